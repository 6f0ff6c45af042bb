#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside our memory and link kernels, in interleaved pairs on one GPU.

peer_memory.py --assay PATH --out DIR [--pairs N] [--gib N]
Each pair times both sides back to back in ABBA order on streams of the same size. The ratio is the median over the pairs
of ours / peer's rate, with a distribution-free 95 % interval. Writes DIR/peer_memory.csv and .json; prints the table.
"""
import argparse
import csv
import json
import os
import statistics
import subprocess

import pairs
import torch


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


def settings():
    """Clocks and power as the driver tells them, while the peers' context is open."""
    wanted = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    answer = subprocess.run(["nvidia-smi", "--query-gpu=" + wanted, "--format=csv,noheader", "--id=0"], check=False,
                            capture_output=True, text=True).stdout.strip()
    return dict(zip(wanted.split(","), answer.split(", ")))


def in_turns(n, ours, theirs):
    """n pairs of rates, AB and BA in turn."""
    got = []
    for i in range(n):
        if i % 2:
            b = theirs()
            got.append((ours(), b))
        else:
            a = ours()
            got.append((a, theirs()))
    return got


def summary(ours, peer, rates):
    ratio, low, high = pairs.interval([a / b for a, b in rates])
    row = {"ours": ours, "peer": peer, "pairs": len(rates), "ours_gbps": round(statistics.median(a for a, _ in rates), 2),
           "peer_gbps": round(statistics.median(b for _, b in rates), 2), "ratio": round(ratio, 4), "ratio_low": round(low, 4),
           "ratio_high": round(high, 4)}
    print(" ".join(f"{k}={v}" for k, v in row.items()), flush=True)
    return row


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--assay", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--pairs", type=int, default=12)
    p.add_argument("--gib", type=float, default=4)
    args = p.parse_args()
    ours = Ours(pairs.beside(args.assay, "kernel_cases", "../tests/gpu/kernel_cases"), args.gib)
    peer = Torch(ours.bytes, 1 << 30)
    record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "before": settings(), "results": []}
    # command of ours, PyTorch's name, calls a span
    plan = [(n, n, 4) for n in ("read", "write", "copy", "scale", "add", "triad")]
    plan += [("driver_copy", "copy", 4), ("h2d", "h2d", 2), ("d2h", "d2h", 2)]
    for command, name, calls in plan:
        rates = in_turns(args.pairs, lambda: ours.rate(command, calls), lambda: peer.rate(name, calls))
        record["results"].append(summary(command, "PyTorch " + name, rates))
    for command, name in (("copy", "driver_copy"), ("write", "driver_set")):  # the driver's, the same way
        rates = in_turns(2 * args.pairs, lambda: ours.rate(command, 4), lambda: ours.rate(name, 4))
        record["results"].append(summary(command, name.replace("_", " "), rates))
    record["after"] = settings()
    with open(os.path.join(args.out, "peer_memory.json"), "w") as f:
        json.dump(record, f, indent=1)
    with open(os.path.join(args.out, "peer_memory.csv"), "w", newline="") as f:
        w = csv.DictWriter(f, fieldnames=record["results"][0].keys())
        w.writeheader()
        w.writerows(record["results"])


if __name__ == "__main__":
    main()
