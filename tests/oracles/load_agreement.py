#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One trace by `assay load`, AIPerf, GuideLLM and `vllm bench serve` against the stub server, whose truth file is the reference.

usage: load_agreement.py BUILD ROOT CLIENTS TOKENIZER OUT [REQUESTS]

BUILD: assay's build folder; CLIENTS: the folder of virtual environments (results/2026-11-28-cpu-2core/clients/README.md); TOKENIZER: a folder of
Hugging Face's; OUT: a new folder. Prints a table: medians of each client, and each divided by the truth of its own run.
"""
import glob
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time

BUILD, ROOT, CLIENTS, TOKENIZER, OUT = map(os.path.abspath, sys.argv[1:6])
COUNT = int(sys.argv[6]) if len(sys.argv) > 6 else 200
RATE, PROMPT, ANSWER = 8, 64, 32


def make_trace():
    """Poisson arrivals; a line per request, in seconds for the clients' scripts and in milliseconds for assay."""
    draw, at = random.Random(7), 0.5
    with open(f"{OUT}/trace.jsonl", "w", encoding="ascii") as seconds, open(f"{OUT}/mooncake.jsonl", "w", encoding="ascii") as ms:
        for i in range(COUNT):
            seconds.write(json.dumps({"timestamp": at, "input_length": PROMPT, "output_length": ANSWER}) + "\n")
            ms.write(json.dumps({"timestamp": round(1000 * at), "input_length": PROMPT, "output_length": ANSWER, "hash_ids": [i]}) + "\n")
            at += draw.expovariate(RATE)


class Stub:
    """The stub server for one client; its truth is read when it has ended."""

    def __init__(self, name):
        self.truth = f"{OUT}/{name}-truth.jsonl"
        self.process = subprocess.Popen([f"{BUILD}/tests/load/stub_server", "--ttft-ms", "80", "--itl-ms", "15", "--jitter", "lognormal:0.2",
                                         "--model", "stub", "--truth", self.truth], stdout=subprocess.PIPE, text=True)
        self.url = "http://127.0.0.1:" + self.process.stdout.readline().split()[1]

    def end(self):
        self.process.terminate()
        self.process.wait()
        with open(self.truth, encoding="ascii") as lines:
            rows = [json.loads(line) for line in lines]
        rows = [r for r in rows if r.get("end") == "complete" and r.get("tokens") == ANSWER]
        return figures([((r["token_ns"][0] - r["received_ns"]) / 1e9, r["token_ns"][-1] / 1e9 - r["token_ns"][0] / 1e9,
                         (r["token_ns"][-1] - r["received_ns"]) / 1e9, [b - a for a, b in zip(r["token_ns"], r["token_ns"][1:])]) for r in rows], 1e9)


def figures(rows, unit):
    """Medians in ms of (TTFT s, first to last token s, whole answer s, gaps in `unit` a second)."""
    gaps = [g / unit for row in rows for g in row[3]]
    return {"requests": len(rows), "TTFT": 1e3 * statistics.median(r[0] for r in rows), "TPOT": 1e3 * statistics.median(r[1] / (ANSWER - 1) for r in rows),
            "gap": 1e3 * statistics.median(gaps), "E2E": 1e3 * statistics.median(r[2] for r in rows)}


def assay(url):
    run = subprocess.run([f"{BUILD}/src/assay", "load", url, "--trace", f"{OUT}/mooncake.jsonl", "--endpoint", "completions", "--tokenizer", TOKENIZER,
                          "--out", f"{OUT}/assay", "--no-telemetry", "--idle", "0", "--warmup", "0", "--json"],
                         env=os.environ | {"ASSAY_MODULE_DIR": f"{BUILD}/src/load"}, capture_output=True, text=True, check=False)
    with open(f"{OUT}/assay/requests.jsonl", encoding="ascii") as lines:
        rows = [json.loads(line) for line in lines]
    if not rows:
        sys.exit(run.stderr)
    return figures([((r["first_token_ns"] - r["sent_ns"]) / 1e9, sum(r["gaps_us"]) / 1e6, (r["end_ns"] - r["sent_ns"]) / 1e9, r["gaps_us"]) for r in rows], 1e6)


def client(name, script):
    def run(url):
        subprocess.run([f"{CLIENTS}/{name}/bin/python", "-W", "ignore", f"{ROOT}/tests/oracles/{script}", url, "stub", TOKENIZER, f"{OUT}/{name}",
                        f"{OUT}/trace.jsonl"], stdout=sys.stderr, check=False)
        return {"aiperf": read_aiperf, "guidellm": read_guidellm, "vllm": read_vllm}[name]()
    return run


def read_aiperf():
    with open(f"{OUT}/aiperf/trace/profile_export.jsonl", encoding="utf-8") as lines:
        rows = [json.loads(line)["metrics"] for line in lines]
    return figures([(r["time_to_first_token"]["value"] / 1e3, r["inter_token_latency"]["value"] * (ANSWER - 1) / 1e3, r["request_latency"]["value"] / 1e3,
                     r["inter_chunk_latency"]["value"]) for r in rows], 1e3)


def read_vllm():
    with open(glob.glob(f"{OUT}/vllm/**/trace.json", recursive=True)[0], encoding="utf-8") as file:
        r = json.load(file)
    return {"requests": r["completed"], "TTFT": r["median_ttft_ms"], "TPOT": r["median_tpot_ms"], "gap": r["median_itl_ms"], "E2E": r["median_e2el_ms"]}


def read_guidellm():
    with open(glob.glob(f"{OUT}/guidellm/**/trace*.json", recursive=True)[0], encoding="utf-8") as file:
        done = json.load(file)["benchmarks"][0]["requests"]["successful"]
    rows = [r["info"]["timings"] for r in done]
    return figures([(t["first_token_iteration"] - t["request_start"], t["last_token_iteration"] - t["first_token_iteration"],
                     t["request_end"] - t["request_start"], [(t["last_token_iteration"] - t["first_token_iteration"]) / (ANSWER - 1)]) for t in rows], 1)


def main():
    os.makedirs(OUT)
    make_trace()
    print("| client | requests | TTFT ms | / truth | TPOT ms | / truth | gap ms | / truth | E2E ms | / truth |\n|---|---:|" + "---:|" * 8)
    for name, run in (("assay load", assay), ("vllm bench serve", client("vllm", "client_vllm.py")), ("AIPerf", client("aiperf", "client_aiperf.py")),
                      ("GuideLLM", client("guidellm", "client_guidellm.py"))):
        stub = Stub(name.split()[0].lower())
        try:
            got = run(stub.url)
        except (OSError, KeyError, IndexError, ValueError) as why:
            print(f"| {name} | did not come to its end: {type(why).__name__} {why} |")
            stub.end()
            continue
        true = stub.end()
        cells = [f"{got[f]:.2f} | {got[f] / true[f]:.3f}" if true[f] > 0 and not math.isnan(got[f]) else "– | –" for f in ("TTFT", "TPOT", "gap", "E2E")]
        print(f"| {name} | {got['requests']} of {true['requests']} | " + " | ".join(cells) + " |", flush=True)
        time.sleep(1)


main()
