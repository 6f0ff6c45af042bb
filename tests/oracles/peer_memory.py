#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside our memory and link kernels, in interleaved pairs on one GPU.

peer_memory.py --assay PATH --out DIR [--pairs N] [--gib N]
Each pair times both sides back to back in ABBA order on streams of the same size. The ratio is the median over the pairs
of ours / peer's rate, with a distribution-free 95 % interval. Writes DIR/peer_memory.csv; prints the table.
"""
import argparse
import csv
import math
import os
import subprocess

import torch


def find_cases(assay):
    here = os.path.dirname(os.path.abspath(assay))
    for path in (here + "/kernel_cases", here + "/../tests/gpu/kernel_cases"):
        if os.access(path, os.X_OK):
            return path
    raise SystemExit("peer_memory: no kernel_cases beside " + assay)


class Ours:
    def __init__(self, path, gib):
        self.process = subprocess.Popen([path, "serve", "--gib", str(gib)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.bytes = int(self.read("streams")[0])

    def read(self, word):
        line = self.process.stdout.readline().split()
        if not line or line[0] != word:
            raise SystemExit("peer_memory: kernel_cases answered: " + " ".join(line))
        return line[1:]

    def rate(self, command, calls):
        self.process.stdin.write(f"{command} {calls}\n")
        self.process.stdin.flush()
        ns, _, size = self.read("ns")
        return float(size) / float(ns)


class Torch:
    def __init__(self, size, link_size):
        count = size // 4
        self.a, self.b, self.c = (torch.rand(count, device="cuda") * 2 - 1 for _ in range(3))
        self.host = torch.empty(link_size // 4, dtype=torch.float32, pin_memory=True).uniform_(-1, 1)
        self.far = torch.empty(link_size // 4, device="cuda")
        self.size, self.link_size = size, link_size

    def call(self, name):
        a, b, c = self.a, self.b, self.c
        calls = {
            "read": (lambda: torch.sum(a), 1),
            "write": (lambda: c.fill_(3.0), 1),
            "copy": (lambda: c.copy_(a), 2),
            "scale": (lambda: torch.mul(a, 3.0, out=c), 2),
            "add": (lambda: torch.add(a, b, out=c), 3),
            "triad": (lambda: torch.add(a, b, alpha=3.0, out=c), 3),
            "h2d": (lambda: self.far.copy_(self.host, non_blocking=True), 1),
            "d2h": (lambda: self.host.copy_(self.far, non_blocking=True), 1),
        }
        function, streams = calls[name]
        return function, streams * (self.link_size if name in ("h2d", "d2h") else self.size)

    def rate(self, name, calls):
        """As kernel_cases times: two calls to warm up, then the median of three spans."""
        function, size = self.call(name)
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        times = []
        for _ in range(2):
            function()
        for _ in range(3):
            start.record()
            for _ in range(calls):
                function()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end) * 1e6 / calls)
        return size / sorted(times)[1]


def interval(values):
    """Order statistics around the median: 95 % by the binomial."""
    x, n = sorted(values), len(values)
    k = 0
    while sum(math.comb(n, i) for i in range(k + 1)) / 2**n <= 0.025:
        k += 1
    return x[max(k - 1, 0)], x[min(n - k, n - 1)]


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--assay", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--pairs", type=int, default=10)
    p.add_argument("--gib", type=float, default=4)
    args = p.parse_args()
    ours = Ours(find_cases(args.assay), args.gib)
    peer = Torch(ours.bytes, 1 << 30)
    rows = []
    # command of ours, PyTorch's name, calls a span
    plan = [(n, n, 4) for n in ("read", "write", "copy", "scale", "add", "triad")]
    plan += [("driver_copy", "copy", 4), ("h2d", "h2d", 2), ("d2h", "d2h", 2)]
    for command, name, calls in plan:
        pairs = []
        for i in range(args.pairs):
            if i % 2:
                b = peer.rate(name, calls)
                a = ours.rate(command, calls)
            else:
                a = ours.rate(command, calls)
                b = peer.rate(name, calls)
            pairs.append((a, b))
        rows.append(summary(command, "PyTorch " + name, pairs))
    pairs = []
    for i in range(args.pairs):  # ours against the driver's copy, the same way
        first, second = ("copy", "driver_copy") if i % 2 else ("driver_copy", "copy")
        rate = {first: ours.rate(first, 4)}
        rate[second] = ours.rate(second, 4)
        pairs.append((rate["copy"], rate["driver_copy"]))
    rows.append(summary("copy", "driver copy", pairs))
    with open(os.path.join(args.out, "peer_memory.csv"), "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=rows[0].keys())
        w.writeheader()
        w.writerows(rows)


def summary(ours, peer, pairs):
    ratios = [a / b for a, b in pairs]
    low, high = interval(ratios)
    middle = lambda x: sorted(x)[len(x) // 2]
    row = {"ours": ours, "peer": peer, "pairs": len(pairs), "ours_gbps": round(middle([a for a, _ in pairs]), 2),
           "peer_gbps": round(middle([b for _, b in pairs]), 2), "ratio": round(middle(ratios), 4),
           "ratio_low": round(low, 4), "ratio_high": round(high, 4)}
    print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)
    return row


if __name__ == "__main__":
    main()
