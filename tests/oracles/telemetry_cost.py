#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What our telemetry costs what it watches: a matrix product and kernel launches with the sampler running and stopped.

The sampler is the process that every run starts (`assay __sample PCI`), with its lines read and thrown away. It is started
once and then stopped and continued by signals, so that a pair's two halves differ in nothing else; its first second is let
pass. A pair is with-without or without-with in turn. Cost on the product: median over the pairs of time with over time
without, less 1, as measured and clock-normalised. Launches: 99th percentile of the host time to enqueue an empty kernel.

usage: telemetry_cost.py --assay FILE --out DIR [--pairs N] [--turn-ms MS]
"""
import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import time

import pairs
import peer_gemm
import torch

LAUNCHES = 20000  # a half of a pair


def pci_address():
    return subprocess.run(["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader", "--id=0"], check=True,
                          capture_output=True, text=True).stdout.strip()


class Sampler:
    def __init__(self, assay):
        self.lines, write = os.pipe()
        os.set_blocking(self.lines, False)
        # The sampler writes on descriptor 3. A shell's `3>&12` is not portable; the same pipe by its path is.
        command = f'exec "$0" __sample host "$1" 3>/proc/self/fd/{write}'
        self.process = subprocess.Popen(["/bin/sh", "-c", command, assay, pci_address()], pass_fds=[write])
        os.close(write)
        self.bytes = 0
        time.sleep(1)
        self.drain()
        if self.process.poll() is not None or not self.bytes:
            sys.exit(f"telemetry_cost: the sampler wrote nothing (exit {self.process.poll()})")

    def drain(self):
        """Takes what was written, so that the pipe never fills; the count shows that it samples."""
        try:
            while block := os.read(self.lines, 1 << 16):
                self.bytes += len(block)
        except BlockingIOError:
            pass  # drained

    def run(self, on):
        self.drain()
        os.kill(self.process.pid, signal.SIGCONT if on else signal.SIGSTOP)

    def end(self):
        os.kill(self.process.pid, signal.SIGCONT)
        self.process.terminate()
        self.process.wait(5)
        os.close(self.lines)


def turn(ours, call, count):
    t = pairs.Turn(ours, 0, call, count)
    torch.cuda.synchronize()
    return t.read()


def p99(values):
    return statistics.quantiles(values, n=100)[98]


def gemm_pairs(ours, sampler, options):
    c = peer_gemm.Comparison(ours, "bf16", 8192, 1)
    count = max(2, round(options.turn_ms / c.milliseconds()))
    turn(ours, c.call_ours, 2 * count)  # soak
    raw, cycles, clocks = [], [], {True: [], False: []}
    for p in range(options.pairs):
        got = {}
        for on in (True, False) if p % 2 == 0 else (False, True):
            sampler.run(on)
            got[on] = turn(ours, c.call_ours, count)
            clocks[on].append(got[on][1])
        raw.append(got[True][0] / got[False][0] - 1)
        cycles.append(got[True][0] * got[True][1] / (got[False][0] * got[False][1]) - 1)
    out = {"calls_a_turn": count, "clock_hz_with": statistics.median(clocks[True]),
           "clock_hz_without": statistics.median(clocks[False])}
    for name, values in (("raw", raw), ("clock_normalised", cycles)):
        middle, low, high = pairs.interval(values)
        out[name] = {"cost": middle, "low": low, "high": high, "n": len(values), "values": values}
    return out


def launch_pairs(ours, sampler, options):
    ours.launches(LAUNCHES)
    all_of, ratios = {True: [], False: []}, []
    for p in range(options.pairs):
        got = {}
        for on in (True, False) if p % 2 == 0 else (False, True):
            sampler.run(on)
            got[on] = ours.launches(LAUNCHES)
            all_of[on] += got[on]
        ratios.append(p99(got[True]) / p99(got[False]))
    middle, low, high = pairs.interval(ratios)
    return {"p99_ns_with": p99(all_of[True]), "p99_ns_without": p99(all_of[False]),
            "median_ns_with": statistics.median(all_of[True]), "median_ns_without": statistics.median(all_of[False]),
            "p99_ratio": {"ratio": middle, "low": low, "high": high, "n": len(ratios), "values": ratios}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--pairs", type=int, default=30)
    parser.add_argument("--turn-ms", type=float, default=300)
    options = parser.parse_args()
    torch.manual_seed(1)
    peer_gemm.warm_up()
    ours = pairs.Products(pairs.pairs_library(options.assay), pairs.library_in_use())
    sampler = Sampler(options.assay)
    try:
        record = {"device": torch.cuda.get_device_name(), "gemm_bf16_8192": gemm_pairs(ours, sampler, options),
                  "launch": launch_pairs(ours, sampler, options)}
        sampler.drain()
        record["sampler_bytes"] = sampler.bytes
    finally:
        sampler.end()
    with open(os.path.join(options.out, "telemetry_cost.json"), "w") as f:
        json.dump(record, f, indent=1)
    g, launch = record["gemm_bf16_8192"], record["launch"]
    for name in ("raw", "clock_normalised"):
        r = g[name]
        print(f"BF16 8192, {name}: {100 * r['cost']:+.3f} % [{100 * r['low']:+.3f}, {100 * r['high']:+.3f}], {r['n']} pairs")
    r = launch["p99_ratio"]
    print(f"launch p99: {launch['p99_ns_with']:.0f} ns with, {launch['p99_ns_without']:.0f} without; "
          f"ratio {r['ratio']:.3f} [{r['low']:.3f}, {r['high']:.3f}]")
    return 0


if __name__ == "__main__":
    sys.exit(main())
