#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matrix products beside our plans, in interleaved rounds.

One process, one context, one stream, the same operands (three sets, rotated), the same cuBLASLt file: PyTorch calls
torch.mm, torch._scaled_mm or torch._int_mm, we enqueue the plan of src/gpu/matmul/matmul.c through libpairs.so on PyTorch's own
stream: the first heuristic and, with --top, the fastest of N. All are timed by the same events and stamps in the same
rounds (pairs.py). A figure is the median over the rounds of PyTorch's time over ours with its distribution-free 95 %
interval, as measured and clock-normalised (cycles over cycles); "met" means that the lower edge of the measured one
reaches 0.99. Kernel names are read from the profiler, in a pass of their own.

usage: peer_gemm.py [--assay FILE] [--pairs N] [--turn-ms MS] [--sizes 8192,16384] [--types bf16,..] [--top N]
                    [--seconds S] [--out DIR]
"""
import argparse
import json
import os
import sys
import time

import pairs
import torch

# name: torch type in, out, our a, b, d, compute, transpose_b, fast, scaled
KINDS = {
    "bf16": (torch.bfloat16, torch.bfloat16, b"bf16", b"bf16", b"bf16", b"fp32", 0, 0, 0),
    "fp16": (torch.float16, torch.float16, b"fp16", b"fp16", b"fp16", b"fp32", 0, 0, 0),
    "tf32": (torch.float32, torch.float32, b"fp32", b"fp32", b"fp32", b"tf32", 0, 0, 0),
    "fp32": (torch.float32, torch.float32, b"fp32", b"fp32", b"fp32", b"fp32", 0, 0, 0),
    "fp64": (torch.float64, torch.float64, b"fp64", b"fp64", b"fp64", b"fp64", 0, 0, 0),
    "bf16_nt": (torch.bfloat16, torch.bfloat16, b"bf16", b"bf16", b"bf16", b"fp32", 1, 0, 0),
    "e4m3_fast": (torch.float8_e4m3fn, torch.bfloat16, b"e4m3", b"e4m3", b"bf16", b"fp32", 1, 1, 1),
    "e4m3_exact": (torch.float8_e4m3fn, torch.bfloat16, b"e4m3", b"e4m3", b"bf16", b"fp32", 1, 0, 1),
    "int8": (torch.int8, torch.int32, b"int8", b"int8", b"int32", b"int32", 1, 0, 0),
}
SETS = 3


def shape_of(kind, size, candidates):
    a, b, d, compute, transpose_b, fast, scaled = kind[2:]
    return pairs.Shape(a, b, d, compute, size, size, size, 0, transpose_b, fast, scaled, candidates)


def operands(kind, m, n, k):
    def draw(rows, columns):
        if kind[0] == torch.int8:
            return torch.randint(-128, 128, (rows, columns), dtype=torch.int8, device="cuda")
        x = torch.rand(rows, columns, device="cuda", dtype=torch.float64 if kind[0] == torch.float64 else torch.float32)
        return (x * 2 - 1).to(kind[0])

    b_shape = (n, k) if kind[6] else (k, n)
    return [(draw(m, k), draw(*b_shape), torch.empty(m, n, dtype=kind[1], device="cuda"),
             torch.empty(m, n, dtype=kind[1], device="cuda")) for _ in range(SETS)]


def peer(kind, scale):
    """PyTorch's call on one set; the result goes to a tensor of its own where PyTorch offers that."""
    if kind[8]:
        return lambda a, b, out: torch._scaled_mm(a, b.t(), scale_a=scale, scale_b=scale, out_dtype=kind[1],
                                                  use_fast_accum=bool(kind[7]), out=out)
    if kind[0] == torch.int8:
        return lambda a, b, out: torch._int_mm(a, b.t(), out=out)
    if kind[6]:
        return lambda a, b, out: torch.mm(a, b.t(), out=out)
    return lambda a, b, out: torch.mm(a, b, out=out)


def kernels(call):
    names = []
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as p:
        for i in range(2):
            call(i)
        torch.cuda.synchronize()
    for e in p.events():
        if str(e.device_type).endswith("CUDA"):
            names.append(e.name)
    return sorted(set(n for n in names if "Memset" not in n and "Memcpy" not in n))


def search(ours, count, call, batch):
    """The candidate of fewest cycles; the power cap's clock moves too much to rank by time."""
    best, best_cycles = 0, float("inf")
    for c in range(count):
        ours.select(c)
        try:
            turn = pairs.Turn(ours, 0, call, batch)
            torch.cuda.synchronize()
            ms, hz = turn.read()
        except RuntimeError:  # a candidate that this size or device refuses
            continue
        if ms * hz < best_cycles:
            best, best_cycles = c, ms * hz
    return best


class Comparison:
    """One type and size: the operands and the sides that take turns."""

    def __init__(self, ours, name, size, top):
        self.ours, self.kind, self.size = ours, KINDS[name], size
        self.sets = operands(self.kind, size, size, size)
        self.scale = torch.ones((), device="cuda") if self.kind[8] else None
        self.theirs = peer(self.kind, self.scale)
        self.count = ours.plan(shape_of(self.kind, size, max(1, top)))
        self.first = ours.select(0)

    def call_ours(self, i):
        a, b, d, _ = self.sets[i % SETS]
        self.ours.run(a, b, d, self.scale)

    def call_theirs(self, i):
        a, b, _, e = self.sets[i % SETS]
        self.theirs(a, b, e)

    def candidate(self, index):
        def call(i):
            if i == 0:  # the calls of a turn begin at 0
                self.ours.select(index)
            self.call_ours(i)
        return call

    def agreement(self):
        """Whether the results are equal bit by bit, or close as the type allows."""
        self.call_ours(0)
        self.call_theirs(0)
        torch.cuda.synchronize()
        mine, other = self.sets[0][2], self.sets[0][3]
        equal = bool(torch.equal(mine, other))
        return equal, equal or bool(torch.allclose(mine.double(), other.double(), rtol=0.02, atol=0.02 * self.size ** 0.5))

    def milliseconds(self):
        turn = pairs.Turn(self.ours, 0, self.call_ours, 5)
        torch.cuda.synchronize()
        return turn.read()[0]


def compare(ours, name, size, options):
    c = Comparison(ours, name, size, options.top)
    equal, close = c.agreement()
    names_ours, names_theirs = kernels(c.call_ours), kernels(c.call_theirs)
    batch = max(2, round(options.turn_ms / pairs.TURNS / c.milliseconds()))
    best = search(ours, c.count, c.call_ours, batch) if c.count > 1 else 0
    result = {"type": name, "size": size, "first": c.first, "candidates": c.count, "bits_equal": equal, "close": close,
              "kernel_ours": names_ours, "kernel_torch": names_theirs, "same_kernel": names_ours == names_theirs,
              "pairs": options.pairs, "turn_calls": batch, "turns_a_side_and_round": pairs.TURNS}
    calls = [c.candidate(0), c.call_theirs] + ([c.candidate(best)] if best else [])
    rounds = pairs.rounds_of(ours, calls, batch, options.pairs)
    flop = 2.0 * size ** 3
    result["ours"], result["torch"] = pairs.side_of(rounds, 0, flop), pairs.side_of(rounds, 1, flop)
    result["first_to_torch"] = pairs.ratio_of(rounds, 0, 1)
    if c.count > 1:
        result["best"] = ours.select(best)
    if best:
        result["ours_best"] = pairs.side_of(rounds, 2, flop)
        result["best_to_first"] = pairs.ratio_of(rounds, 2, 0)
        result["best_to_torch"] = pairs.ratio_of(rounds, 2, 1)
    return result


def edges(ratio):
    return " ".join(f"{ratio[k]['ratio']:.4f} [{ratio[k]['low']:.4f}, {ratio[k]['high']:.4f}]"
                    for k in ("raw", "clock_normalised"))


def show(r):
    print(f"{r['type']:<11}{r['size']:>6} {r['ours']['tflops']:8.1f} {r['torch']['tflops']:8.1f}  "
          f"{r['ours']['clock_hz'] / 1e6:5.0f} {r['torch']['clock_hz'] / 1e6:5.0f}  {edges(r['first_to_torch'])}  "
          f"{'same' if r['same_kernel'] else 'other'}  "
          f"{'equal' if r['bits_equal'] else 'close' if r['close'] else 'WRONG'}  {'met' if r['met'] else 'NOT MET'}"
          f"  {r['first']}", flush=True)
    if "best_to_first" in r:
        print(f"{'':17} best of {r['candidates']}: {r['best']} {r['ours_best']['tflops']:.1f} TFLOPS, to the first "
              f"{edges(r['best_to_first'])}, to PyTorch {edges(r['best_to_torch'])}", flush=True)
    elif "best" in r:
        print(f"{'':17} best of {r['candidates']}: the first")
    if not r["same_kernel"]:
        print(f"{'':17} ours {r['kernel_ours']}\n{'':17} torch {r['kernel_torch']}")


def warm_up():
    """Makes PyTorch load its libraries, so that we can use the same file."""
    x = torch.ones(64, 64, device="cuda", dtype=torch.bfloat16)
    torch.mm(x, x)
    torch._scaled_mm(x.to(torch.float8_e4m3fn), x.to(torch.float8_e4m3fn).t(), scale_a=torch.ones((), device="cuda"),
                     scale_b=torch.ones((), device="cuda"), out_dtype=torch.bfloat16)
    torch.cuda.synchronize()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay")
    parser.add_argument("--out")
    parser.add_argument("--pairs", type=int, default=18)
    parser.add_argument("--turn-ms", type=float, default=160, help="timed a side and round, over its turns")
    parser.add_argument("--sizes", default="8192,16384")
    parser.add_argument("--types", default="bf16,fp16,e4m3_fast,tf32")
    parser.add_argument("--top", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=100, help="rows that would begin later are left out, named")
    options = parser.parse_args()
    began = time.monotonic()
    torch.manual_seed(1)
    warm_up()
    blas = pairs.library_in_use()
    ours = pairs.Products(pairs.pairs_library(options.assay), blas)
    record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cublaslt": blas,
              "cublaslt_version": ours.version(), "pairs": options.pairs, "results": []}
    failed = 0
    print(f"{record['device']}, PyTorch {record['torch']}, cuBLASLt {record['cublaslt_version']} ({blas})")
    print(f"{'type':<11}{'size':>6} {'ours':>8} {'torch':>8}  TFLOPS; clocks, MHz; ratio [95 % interval] as measured, "
          "clock-normalised; kernel, bits")
    for name in options.types.split(","):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        for size in map(int, options.sizes.split(",")):
            try:
                if time.monotonic() - began > options.seconds:
                    raise RuntimeError(f"not begun: {options.seconds:.0f} s were over")
                r = compare(ours, name, size, options)
            except (RuntimeError, torch.OutOfMemoryError) as e:
                print(f"{name:<11}{size:>6} {e}")
                record["results"].append({"type": name, "size": size, "error": str(e)})
                failed = 1
                continue
            finally:
                torch.cuda.empty_cache()
            r["met"] = r["same_kernel"] or r["first_to_torch"]["raw"]["low"] >= 0.99
            record["results"].append(r)
            failed |= not r["met"] or not r["close"]
            show(r)
            if options.out:
                with open(os.path.join(options.out, "peer_gemm.json"), "w") as f:
                    json.dump(record, f, indent=1)
    print(f"{time.monotonic() - began:.0f} s")
    return failed


if __name__ == "__main__":
    sys.exit(main())
