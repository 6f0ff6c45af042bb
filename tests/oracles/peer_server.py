"""An OpenAI server under load: the saturated rate of requests with 1000 tokens in and 250 out, then Poisson arrivals at given rates. The server runs
already; its tokens are counted as chunks of the stream.

usage: peer_server.py URL MODEL NAME RATE[,RATE..]    RATE: requests per second; 0: all at once
One line of JSON per rate: latency from the scheduled arrival.
"""
import asyncio
import json
import random
import sys
import time

PROMPT, MADE, SATURATED, SECONDS = 1000, 250, 600, 25


async def one(session, url, model, due, out):
    body = dict(model=model, prompt=[random.randrange(1000, 150000) for _ in range(PROMPT)], max_tokens=MADE, min_tokens=MADE,
                ignore_eos=True, temperature=0, stream=True)
    times = []
    async with session.post(url + "/v1/completions", json=body) as r:
        if r.status != 200:
            out.append((due, None, (await r.text())[:200]))
            return
        async for line in r.content:
            if line.startswith(b"data: {"):
                times.append(time.perf_counter())
    out.append((due, times, None))


async def load(url, model, rate, count):
    import aiohttp
    out, gap = [], random.Random(1)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None), connector=aiohttp.TCPConnector(limit=0)) as session:
        start, due, tasks = time.perf_counter(), 0.0, []
        for _ in range(count):
            if rate:
                due += gap.expovariate(rate)
                await asyncio.sleep(max(0, start + due - time.perf_counter()))
            tasks.append(asyncio.create_task(one(session, url, model, start + due, out)))
        await asyncio.gather(*tasks)
        return out, time.perf_counter() - start


def percentile(values, p):
    values = sorted(values)
    return round(1e3 * values[min(len(values) - 1, int(p * len(values)))], 2)


def main():
    url, model, name = sys.argv[1:4]
    for rate in (float(r) for r in sys.argv[4].split(",")):
        out, took = asyncio.run(load(url, model, rate, int(rate * SECONDS) if rate else SATURATED))
        good = [(due, times) for due, times, error in out if times]
        errors = [error for _, _, error in out if error]
        first = [times[0] - due for due, times in good]
        itl = [b - a for _, times in good for a, b in zip(times, times[1:])]
        print(json.dumps(dict(by=name, rate=rate, requests=len(good), errors=len(errors), error=errors[0] if errors else None,
                              per_s=round(len(good) / took, 2), chunks=round(sum(len(t) for _, t in good) / max(1, len(good))),
                              ttft_p50=percentile(first, .5), ttft_p99=percentile(first, .99), itl_p50=percentile(itl, .5),
                              itl_p99=percentile(itl, .99))), flush=True)


if __name__ == "__main__":
    main()
