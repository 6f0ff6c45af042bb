#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our attention forward beside cuDNN's (PyTorch's backend), in turns on one card.

One process, one context, one stream, the same tensors. Each side is a CUDA graph of some launches; in a round every side
has a turn, there and back, so that a drift of the clock falls on all alike. A figure is the median over the rounds of our
time over cuDNN's in the same round, with its distribution-free 95 % interval, beside both medians in microseconds. Before
that each candidate is held to double precision on the last heads: its root mean square error over cuDNN's own.

A shape is B,H,KVH,S,D,TYPE,MASK; FP8 (e4m3) has 16-bit output of ours and is timed beside cuDNN's FP16.
--peers adds fa2 (PyTorch's FlashAttention-2) and fa4 (flash-attn-4, its path for compute capability 9.0), where they are importable;
--fa4 DIR takes fa4's kernels as fa4_kernels.py compiled them.

usage: peer_attention.py [--assay FILE] [--peers fa2 fa4] [--fa4 DIR] [--rounds N] [--turn-us US] [--seconds S] [--only ENTRY,..] [--out FILE] [SHAPE...]
"""
import argparse
import ctypes
import json
import os
import sys
import time

import pairs
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

SHAPES = ["16,96,96,512,64,fp16,none", "16,8,8,512,64,fp16,none", "16,128,128,512,64,fp16,none",
          "16,96,96,512,64,fp16,causal", "16,96,96,512,128,fp16,none"]
TYPES = {"fp16": torch.float16, "bf16": torch.bfloat16, "e4m3": torch.float8_e4m3fn}
CHECKED = 4  # heads, the last ones


class Shape(ctypes.Structure):
    _fields_ = [(n, ctypes.c_char_p) for n in ("type", "out_type", "mask")]
    _fields_ += [(n, ctypes.c_uint32) for n in ("batch", "heads", "kv_heads", "q_len", "kv_len", "head_dim")]


class Arrays(ctypes.Structure):
    _fields_ = [(n, ctypes.c_uint64) for n in ("q", "k", "v", "o", "lse", "descale_q", "descale_k", "descale_v", "scale_o")]


class Attention(pairs.Ours):
    """Our candidates for one shape."""

    def __init__(self, path):
        super().__init__(path)
        self.declare("attention_open", ctypes.c_void_p, ctypes.POINTER(Shape), returns=ctypes.c_void_p)
        self.declare("attention_select", ctypes.c_void_p, ctypes.c_uint)
        self.declare("attention_run", ctypes.c_void_p, ctypes.POINTER(Arrays), ctypes.c_void_p)
        self.lib.pairs_attention_count.argtypes = [ctypes.c_void_p]
        self.lib.pairs_attention_close.argtypes = [ctypes.c_void_p]
        self.problem = None

    def open(self, shape):
        self.lib.pairs_attention_close(self.problem)
        self.problem = self.lib.pairs_attention_open(self.handle, ctypes.byref(shape), self.text, 512)
        if not self.problem:
            raise RuntimeError(self.text.value.decode())
        return self.lib.pairs_attention_count(self.problem)

    def select(self, candidate):
        self.done(self.lib.pairs_attention_select(self.problem, candidate, self.text, 512))
        return self.text.value.decode()

    def run(self, arrays):
        self.done(self.lib.pairs_attention_run(self.problem, ctypes.byref(arrays), pairs.stream(), self.text, 512))


class Tensors:
    """The operands of one shape, and PyTorch's call on them."""

    def __init__(self, text):
        b, h, kvh, s, d = (int(x) for x in text.split(",")[:5])
        self.type, self.mask = text.split(",")[5:7]
        self.fp8 = self.type == "e4m3"
        self.shape = Shape(self.type.encode(), b"fp16" if self.fp8 else self.type.encode(), self.mask.encode(), b, h, kvh, s, s, d)
        torch.manual_seed(1)
        self.peer_type = torch.float16 if self.fp8 else TYPES[self.type]
        self.ours = [torch.randn(b, n, s, d, device="cuda", dtype=torch.float32).to(TYPES[self.type]) for n in (h, kvh, kvh)]
        self.theirs = [x.to(self.peer_type) for x in self.ours]
        self.o = torch.full((b, h, s, d), float("nan"), device="cuda", dtype=self.peer_type)
        self.lse = torch.empty(b, h, s, device="cuda", dtype=torch.float32)
        self.one = torch.ones(1, device="cuda", dtype=torch.float32)
        scales = [self.one.data_ptr() if self.fp8 else 0] * 4
        self.arrays = Arrays(*(x.data_ptr() for x in self.ours), self.o.data_ptr(), self.lse.data_ptr(), *scales)
        self.flop = 4.0 * b * h * s * s * d * ((s + 1) / (2 * s) if self.mask == "causal" else 1)
        self.gqa = h != kvh
        self.turned = None

    def peer(self):
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*self.theirs, is_causal=self.mask == "causal",
                                                                    enable_gqa=self.gqa)

    def fa2(self):
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(*self.theirs, is_causal=self.mask == "causal",
                                                                    enable_gqa=self.gqa)

    def turn(self):
        """Heads behind tokens, as FlashAttention-4 wants them, and room for its O."""
        if self.turned is None:
            self.turned = [x.transpose(1, 2).contiguous() for x in self.theirs]
            self.turned.append(torch.empty_like(self.turned[0]))
        return self.turned

    def fa4(self):
        from flash_attn.cute import flash_attn_func
        o = flash_attn_func(*self.turn()[:3], causal=self.mask == "causal")
        return (o[0] if isinstance(o, tuple) else o).transpose(1, 2)

    def fa4_kernel(self, directory):
        """What its front calls, compiled before: without log-sum-exp, lengths, pages, windows and sinks, as in fa4()."""
        import tvm_ffi
        name = f"{self.type}_d{self.shape.head_dim}_{self.mask}.so"
        function = tvm_ffi.load_module(os.path.join(directory, name))["func"]

        def call():
            with tvm_ffi.use_torch_stream():
                function(*self.turn(), None, self.shape.head_dim ** -0.5, *[None] * 8, None, (None, None), None, None)
            return self.turned[3].transpose(1, 2)
        return call

    def reference(self):
        heads = self.theirs[0].shape[1]
        group = heads // self.theirs[1].shape[1]
        q, k, v = (x[-1, [i // g for i in range(heads - CHECKED, heads)]].double() for x, g in zip(self.theirs, (1, group, group)))
        s = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        if self.mask == "causal":
            s.masked_fill_(torch.ones(s.shape[1:], device="cuda", dtype=torch.bool).triu(1), float("-inf"))
        return torch.softmax(s, -1) @ v

    def error(self, o, reference):
        return ((o[-1, -CHECKED:].double() - reference).square().mean() ** 0.5).item()


def graph_of(call, launches):
    call()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g):
        for _ in range(launches):
            call()
    return g


def seconds_of(call, launches):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(launches):
        call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / launches / 1e3


def rounds_of(graphs, launches, rounds):
    """Microseconds a launch, a row a round: every side there and back."""
    order = list(range(len(graphs)))
    got = []
    for r in range(rounds + 1):
        events = []
        for side in order + order[::-1]:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graphs[side].replay()
            end.record()
            events.append((side, begin, end))
        torch.cuda.synchronize()
        row = [0.0] * len(graphs)
        for side, begin, end in events:
            row[side] += begin.elapsed_time(end) * 500 / launches
        if r:  # the first one only soaks
            got.append(row)
        order = order[1:] + order[:1]
    return got


def compare(ours, text, options):
    t = Tensors(text)
    count = ours.open(t.shape)
    reference = t.reference()
    theirs = t.error(t.peer(), reference)
    launches = max(2, round(options.turn_us / 1e6 / seconds_of(t.peer, 5)))
    names, errors, graphs = ["cudnn"], [1.0], [graph_of(t.peer, launches)]
    for peer in options.peers:
        try:
            call = t.fa4_kernel(options.fa4) if peer == "fa4" and options.fa4 else getattr(t, peer)
            errors.append(t.error(call(), reference) / theirs)
            graphs.append(graph_of(call, launches))
            names.append(peer)
        except Exception as e:  # not installed, or not for this card or shape: the others go on without it
            del errors[len(names):]
            print(f"{text:32} {peer:32} {type(e).__name__}: {str(e)[:160]}", flush=True)
    for c in range(count):
        name = ours.select(c)
        if options.only and name.split(",")[0] not in options.only.split(","):
            continue
        t.o.fill_(float("nan"))
        try:
            ours.run(t.arrays)
            torch.cuda.synchronize()
            errors.append(t.error(t.o, reference) / theirs)
            graphs.append(graph_of(lambda: ours.run(t.arrays), launches))
            names.append(name)
        except RuntimeError as e:
            print(f"{text:32} {name:32} {str(e)[:120]}", flush=True)
            if "CUDA error" in str(e):
                sys.exit(1)
    rows = rounds_of(graphs, launches, options.rounds)
    result = {"shape": text, "launches": launches, "rounds": options.rounds, "cudnn": torch.backends.cudnn.version(),
              "device": torch.cuda.get_device_name(), "sides": []}
    for i, name in enumerate(names):
        us = sorted(row[i] for row in rows)[len(rows) // 2]
        middle, low, high = pairs.interval([row[i] / row[0] for row in rows])
        result["sides"].append({"name": name, "us": us, "tflops": t.flop / us / 1e6, "over_cudnn": middle, "low": low,
                                "high": high, "error_over_cudnn": errors[i]})
        print(f"{text:32} {name:32} {us:8.1f} us {t.flop / us / 1e6:6.0f} TFLOPS  {middle:.3f} of cudnn "
              f"[{low:.3f}, {high:.3f}]  error {errors[i]:.3f}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--turn-us", type=float, default=4000)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--only")
    parser.add_argument("--peers", nargs="+", choices=["fa2", "fa4"], default=[])
    parser.add_argument("--fa4")
    parser.add_argument("--out")
    parser.add_argument("shapes", nargs="*")
    options = parser.parse_args()
    ours = Attention(pairs.pairs_library(options.assay))
    began, results = time.monotonic(), []
    for text in options.shapes or SHAPES:
        if time.monotonic() - began > options.seconds:
            print(f"{text}: not run, {options.seconds:.0f} s are over")
            continue
        results.append(compare(ours, text, options))
        torch.cuda.empty_cache()
    if options.out:
        with open(options.out, "w") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
