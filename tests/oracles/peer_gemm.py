#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's matrix products beside our plans, in interleaved pairs.

One process, one context, one stream, the same operands (three sets, rotated), the same cuBLASLt file: PyTorch calls
torch.mm, torch._scaled_mm or torch._int_mm, we enqueue the plan of src/gpu/matmul.c through libpairs.so on PyTorch's own
stream. Both are timed by the same CUDA events. A pair is A B or B A in turn (ABBA); each side soaks the device for half
as long as it is timed. The figure is the median over the pairs of PyTorch's time over ours with its distribution-free
95 % interval; "met" means that the lower edge reaches 0.99. Kernel names are read from the profiler, in a pass of
their own.

usage: peer_gemm.py [--assay FILE] [--pairs N] [--sizes 8192,16384] [--types bf16,..] [--top N] [--out DIR]
"""
import argparse
import ctypes
import json
import math
import os
import statistics
import sys

import torch


class Shape(ctypes.Structure):
    _fields_ = [("a", ctypes.c_char_p), ("b", ctypes.c_char_p), ("d", ctypes.c_char_p), ("compute", ctypes.c_char_p),
                ("m", ctypes.c_uint64), ("n", ctypes.c_uint64), ("k", ctypes.c_uint64),
                ("transpose_a", ctypes.c_int32), ("transpose_b", ctypes.c_int32), ("fast", ctypes.c_int32),
                ("scaled", ctypes.c_int32), ("candidates", ctypes.c_uint32)]


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


def library_in_use():
    """The cuBLASLt that PyTorch has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if os.path.basename(path).startswith("libcublasLt.so"):
                return path
    return None


def pairs_library(assay):
    here = os.path.dirname(os.path.abspath(assay)) if assay else "."
    for path in ("libpairs.so", "../tests/gpu/libpairs.so", "build/tests/gpu/libpairs.so"):
        if os.path.exists(os.path.join(here, path)):
            return os.path.join(here, path)
    sys.exit("peer_gemm: no libpairs.so beside " + here)


class Ours:
    def __init__(self, path, blas):
        self.text = ctypes.create_string_buffer(512)
        lib = self.lib = ctypes.CDLL(path)
        lib.pairs_open.restype = ctypes.c_void_p
        lib.pairs_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]
        lib.pairs_plan.argtypes = [ctypes.c_void_p, ctypes.POINTER(Shape), ctypes.c_char_p, ctypes.c_size_t]
        lib.pairs_select.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_char_p, ctypes.c_size_t]
        lib.pairs_run.argtypes = [ctypes.c_void_p] + [ctypes.c_uint64] * 5 + [ctypes.c_void_p, ctypes.c_char_p,
                                                                               ctypes.c_size_t]
        lib.pairs_version.argtypes = [ctypes.c_void_p]
        self.handle = lib.pairs_open(blas.encode() if blas else None, None, self.text, 512)
        if not self.handle:
            sys.exit("peer_gemm: " + self.text.value.decode())

    def plan(self, kind, m, n, k, candidates):
        a, b, d, compute, tb, fast, scaled = kind[2:]
        shape = Shape(a, b, d, compute, m, n, k, 0, tb, fast, scaled, candidates)
        count = self.lib.pairs_plan(self.handle, ctypes.byref(shape), self.text, 512)
        if not count:
            raise RuntimeError(self.text.value.decode())
        return count

    def select(self, candidate):
        if self.lib.pairs_select(self.handle, candidate, self.text, 512):
            raise RuntimeError(self.text.value.decode())
        return self.text.value.decode()

    def run(self, a, b, d, scale):
        pointer = scale.data_ptr() if scale is not None else 0
        if self.lib.pairs_run(self.handle, a.data_ptr(), b.data_ptr(), d.data_ptr(), pointer, pointer,
                              torch.cuda.current_stream().cuda_stream, self.text, 512):
            raise RuntimeError(self.text.value.decode())


def operands(kind, m, n, k):
    def draw(rows, columns):
        if kind[0] == torch.int8:
            return torch.randint(-128, 128, (rows, columns), dtype=torch.int8, device="cuda")
        x = torch.rand(rows, columns, device="cuda", dtype=torch.float64 if kind[0] == torch.float64 else torch.float32)
        return (x * 2 - 1).to(kind[0])

    b_shape = (n, k) if kind[6] else (k, n)
    return [(draw(m, k), draw(*b_shape), torch.empty(m, n, dtype=kind[1], device="cuda"),
             torch.empty(m, n, dtype=kind[1], device="cuda")) for _ in range(SETS)]


def peer(name, kind, scale):
    """PyTorch's call on one set; the result goes to a tensor of its own where PyTorch offers that."""
    if kind[8]:
        return lambda a, b, out: torch._scaled_mm(a, b.t(), scale_a=scale, scale_b=scale, out_dtype=kind[1],
                                                  use_fast_accum=bool(kind[7]), out=out)
    if kind[0] == torch.int8:
        return lambda a, b, out: torch._int_mm(a, b.t(), out=out)
    if kind[6]:
        return lambda a, b, out: torch.mm(a, b.t(), out=out)
    return lambda a, b, out: torch.mm(a, b, out=out)


def timed(call, soak, count):
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for i in range(soak):
        call(i)
    begin.record()
    for i in range(count):
        call(i)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / count


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


def interval(values):
    """Median and its distribution-free 95 % interval by order statistics."""
    x, n = sorted(values), len(values)
    k = 0
    while k + 1 < n // 2 and sum(math.comb(n, i) for i in range(k + 2)) / 2 ** n <= 0.025:
        k += 1
    return statistics.median(x), x[k], x[n - 1 - k]


def compare(ours, name, size, options):
    kind = KINDS[name]
    sets = operands(kind, size, size, size)
    scale = torch.ones((), device="cuda") if kind[8] else None
    theirs = peer(name, kind, scale)
    count = ours.plan(kind, size, size, size, max(1, options.top))
    first = ours.select(0)

    def call_ours(i):
        a, b, d, _ = sets[i % SETS]
        ours.run(a, b, d, scale)

    def call_theirs(i):
        a, b, _, e = sets[i % SETS]
        theirs(a, b, e)

    call_ours(0)
    call_theirs(0)
    torch.cuda.synchronize()
    equal = bool(torch.equal(sets[0][2], sets[0][3]))
    near = equal or bool(torch.allclose(sets[0][2].double(), sets[0][3].double(), rtol=0.02, atol=0.02 * size ** 0.5))
    names_ours, names_theirs = kernels(call_ours), kernels(call_theirs)
    each = timed(call_ours, 2, 5)
    batch = max(3, int(options.turn_ms / each))
    result = {"type": name, "size": size, "first": first, "candidates": count, "bits_equal": equal, "close": near,
              "kernel_ours": names_ours, "kernel_torch": names_theirs, "same_kernel": names_ours == names_theirs}
    ratios, t_ours, t_theirs = [], [], []
    for p in range(options.pairs):
        turn = [(call_ours, t_ours), (call_theirs, t_theirs)]
        for call, times in turn if p % 2 == 0 else reversed(turn):
            times.append(timed(call, batch // 2, batch))
        ratios.append(t_theirs[-1] / t_ours[-1])
    flop = 2.0 * size ** 3
    result["ratio"], result["low"], result["high"] = interval(ratios)
    result["tflops_ours"] = flop / statistics.median(t_ours) / 1e9
    result["tflops_torch"] = flop / statistics.median(t_theirs) / 1e9
    result["ratios"] = ratios
    if options.top > 1 and count > 1:
        best, best_time = 0, float("inf")
        for c in range(count):
            ours.select(c)
            try:
                t = timed(call_ours, 2, max(3, batch // 4))
            except RuntimeError:
                continue
            if t < best_time:
                best, best_time = c, t
        result["best"] = ours.select(best)
        ratios = []
        for p in range(options.pairs):
            turn = [0, 1] if p % 2 == 0 else [1, 0]
            t = [timed((call_ours, call_theirs)[side], batch // 2, batch) for side in turn]
            ratios.append(t[turn.index(1)] / t[turn.index(0)])
        result["best_ratio"], result["best_low"], result["best_high"] = interval(ratios)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay")
    parser.add_argument("--out")
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--turn-ms", type=float, default=60)
    parser.add_argument("--sizes", default="8192,16384")
    parser.add_argument("--types", default="bf16,fp16,e4m3_fast,e4m3_exact,tf32,int8")
    parser.add_argument("--top", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = "tf32" in options.types
    x = torch.ones(64, 64, device="cuda", dtype=torch.bfloat16)
    torch.mm(x, x)
    torch._scaled_mm(x.to(torch.float8_e4m3fn), x.to(torch.float8_e4m3fn).t(), scale_a=torch.ones((), device="cuda"),
                     scale_b=torch.ones((), device="cuda"), out_dtype=torch.bfloat16)
    torch.cuda.synchronize()
    blas = library_in_use()
    ours = Ours(pairs_library(options.assay), blas)
    record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "cublaslt": blas,
              "cublaslt_version": ours.lib.pairs_version(ours.handle), "pairs": options.pairs, "results": []}
    failed = 0
    print(f"{record['device']}, PyTorch {record['torch']}, cuBLASLt {record['cublaslt_version']} ({blas})")
    print(f"{'type':<11}{'size':>6} {'ours':>8} {'torch':>8} TFLOPS   ratio [95 % interval]    kernel   bits")
    for name in options.types.split(","):
        torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
        for size in map(int, options.sizes.split(",")):
            try:
                r = compare(ours, name, size, options)
            except (RuntimeError, torch.OutOfMemoryError) as e:
                print(f"{name:<11}{size:>6} {e}")
                record["results"].append({"type": name, "size": size, "error": str(e)})
                failed = 1
                continue
            finally:
                torch.cuda.empty_cache()
            record["results"].append(r)
            met = r["same_kernel"] or r["low"] >= 0.99
            failed |= not met or not r["close"]
            print(f"{name:<11}{size:>6} {r['tflops_ours']:8.1f} {r['tflops_torch']:8.1f}          {r['ratio']:.4f} "
                  f"[{r['low']:.4f}, {r['high']:.4f}]  {'same' if r['same_kernel'] else 'other'}  "
                  f"{'equal' if r['bits_equal'] else 'close' if r['close'] else 'WRONG'}  {'met' if met else 'NOT MET'}"
                  f"  {r['first']}", flush=True)
            if "best" in r:
                print(f"{'':17} best of {r['candidates']}: {r['best']} {r['best_ratio']:.4f} "
                      f"[{r['best_low']:.4f}, {r['best_high']:.4f}]")
            if not r["same_kernel"]:
                print(f"{'':17} ours {r['kernel_ours']}\n{'':17} torch {r['kernel_torch']}")
    if options.out:
        with open(os.path.join(options.out, "peer_gemm.json"), "w") as f:
            json.dump(record, f, indent=1)
    return failed


if __name__ == "__main__":
    sys.exit(main())
