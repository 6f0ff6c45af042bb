#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults planted in training loops, and whether `assay profile` names them first, with their size.

A loop trains a small network on one GPU. `good` is written well: pinned batches are copied ahead on a stream of their own, and
nothing waits. Each other loop has one fault. The size of a fault is what it costs a step without a profiler: the loop's step less
the step of the same loop without the fault, both timed in a process of their own.

usage: profile_planted.py LOOP [--steps N]
       profile_planted.py check --assay FILE --out DIR [--steps N] [LOOP...]
                 OUT/planted.json, and each loop's PROFILE.md and PROFILE.html in OUT; exit 1 where a fault is not found
LOOP: good, loader, item (what loader is held against), launch, graph, pageable, allocation
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time

LOOPS = {  # loop: (the finding, the loop without the fault)
    "good": (None, None),
    "graph": (None, None),
    "loader": ("data", "item"),
    "launch": ("launch", "graph"),
    "pageable": ("pageable", "good"),
    "allocation": ("allocation", "good"),
}
WIDTH, BATCH, DEPTH = 4096, 4096, 8
LONGER = {"launch": 15, "graph": 15}  # steps this many times as many: they are short
TOLERANCE = 0.2


def make(torch):
    torch.manual_seed(1)
    layers = []
    for _ in range(DEPTH):
        layers += [torch.nn.Linear(WIDTH, WIDTH, bias=False, dtype=torch.bfloat16), torch.nn.GELU()]
    net = torch.nn.Sequential(*layers).cuda()
    return net, torch.optim.SGD(net.parameters(), lr=1e-3, fused=True)


class Ahead:
    """Batches in pinned memory, each copied to the GPU while the step before it runs."""

    def __init__(self, torch, host):
        self.torch, self.stream = torch, torch.cuda.Stream()
        self.host = [h.pin_memory() for h in host]
        self.at, self.next = 0, None
        self.fetch()

    def fetch(self):
        with self.torch.cuda.stream(self.stream):
            self.next = self.host[self.at % len(self.host)].cuda(non_blocking=True)
        self.at += 1

    def take(self):
        self.torch.cuda.current_stream().wait_stream(self.stream)
        batch = self.next
        batch.record_stream(self.torch.cuda.current_stream())
        self.fetch()
        return batch


def train(torch, loop, steps):
    net, sgd = make(torch)
    ahead = Ahead(torch, [torch.randn(BATCH, WIDTH).to(torch.bfloat16) for _ in range(2)])
    host = torch.randn(BATCH, WIDTH).to(torch.bfloat16)
    pinned = host.pin_memory()
    if loop == "pageable":  # 8 of them: as much as the loader of a video model
        host = torch.randn(8 * BATCH, WIDTH).to(torch.bfloat16)

    def step():
        if loop == "pageable":
            batch = host.cuda()[:BATCH]
        elif loop in ("loader", "item"):
            if loop == "loader":
                time.sleep(0.015)
            batch = pinned.cuda(non_blocking=True)
        else:
            batch = ahead.take()
        loss = net(batch).float().square().mean()
        loss.backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)
        if loop in ("loader", "item"):
            loss.item()
        if loop == "allocation":
            torch.cuda.empty_cache()

    return step


def small(torch, loop):
    """Four hundred additions of a small tensor, which the host launches more slowly than the GPU runs them."""
    x = torch.zeros(256, device="cuda")

    def body():
        for _ in range(400):
            x.add_(1)

    if loop == "launch":
        def step():
            body()
            torch.cuda.synchronize()
        return step
    body()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        body()

    def replay():
        graph.replay()
        torch.cuda.synchronize()
    return replay


def run(loop, steps):
    import torch

    time.sleep(1)  # a start-up
    step = small(torch, loop) if loop in ("launch", "graph") else train(torch, loop, steps)
    steps *= LONGER.get(loop, 1)
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    print(json.dumps({"loop": loop, "step_ms": 1e3 * (time.perf_counter() - t0) / steps}))


def timed(loop, steps, wrap=()):
    done = subprocess.run([*wrap, sys.executable, os.path.abspath(__file__), loop, "--steps", str(steps)], capture_output=True, text=True, check=False)
    line = [x for x in done.stdout.splitlines() if x.startswith('{"loop"')]
    if not line:
        sys.exit(f"{loop}: {done.stdout[-500:]}{done.stderr[-1500:]}")
    return json.loads(line[-1])["step_ms"]


def near(found_ms, planted_ms):
    return planted_ms > 0 and abs(found_ms / planted_ms - 1) <= TOLERANCE


def keep_pages(folder, out, loop):
    for name in ("PROFILE.md", "PROFILE.html"):
        shutil.copy(os.path.join(folder, name), os.path.join(out, f"{loop}_{name}"))


def check(args):
    plain = {}

    def step_ms(loop):
        if loop not in plain:
            plain[loop] = statistics.median(timed(loop, args.steps) for _ in range(3))
        return plain[loop]

    rows, wrong = [], 0
    os.makedirs(args.out, exist_ok=True)
    for loop in args.loops or LOOPS:
        key, without = LOOPS[loop]
        folder = os.path.join(args.out, "run_" + loop)
        profiled = timed(loop, args.steps, [args.assay, "profile", "--out", folder, "--"])
        with open(os.path.join(folder, "summary.json"), encoding="utf-8") as f:
            found = json.load(f)
        first = found["savings"][0] if found["savings"] else None
        row = {"loop": loop, "step_ms": step_ms(loop), "profiled_step_ms": profiled, "steps": [s["steps"] for s in found["steps"]],
               "steady_step_ms": [s["median_ns"] / 1e6 for s in found["steps"]], "first": first and first["key"],
               "found_ms": first and first["per_step_ns"] / 1e6, "planted_ms": key and step_ms(loop) - step_ms(without)}
        if key is None:
            row["good"] = first is None or first["key"] not in [k for k, _ in LOOPS.values()]
            if loop == "graph" and first:
                row["good"] = "torch.cuda.graph" not in first["knob"]
        else:
            row["good"] = row["first"] == key and near(row["found_ms"], row["planted_ms"])
        wrong += not row["good"]
        rows.append(row)
        print(json.dumps(row), flush=True)
        keep_pages(folder, args.out, loop)
        shutil.rmtree(folder)
    with open(os.path.join(args.out, "planted.json"), "w", encoding="utf-8") as f:
        json.dump(rows, f, indent=1)
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what")
    parser.add_argument("loops", nargs="*")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--assay")
    parser.add_argument("--out")
    args = parser.parse_args()
    if args.what == "check":
        return check(args)
    run(args.what, args.steps)
    return 0


if __name__ == "__main__":
    sys.exit(main())
