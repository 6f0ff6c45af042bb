#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Our block-sparse attention forward beside FlexAttention and our own dense kernel, in turns on one card.

One process, one context, one stream, the same tensors and the same map of random blocks of 128 x 128, all of them whole. Sides,
each a CUDA graph, in a round there and back as in peer_attention.py: FlexAttention (torch.compile, block lists given to it),
ours by key blocks of 128, our dense kernel, and making our lists from the map. Before that ours and FlexAttention's are held
to double precision on the last query block of two heads. Rates are of the pairs that the map keeps.

usage: peer_attention_sparse.py [--assay FILE] [--seq N] [--heads N] [--head-dim D] [--rounds N] [--turn-us US] [--autotune] [--out FILE] [DENSITY...]
"""
import argparse
import ctypes
import json
import time

import pairs
import torch
from peer_attention import Arrays, Attention, Shape, graph_of, rounds_of, seconds_of
from torch.nn.attention.flex_attention import BlockMask, flex_attention

BLOCK = 128
CHECKED = 2  # heads


class Sparse(Attention):
    """Ours by a map of blocks."""

    def __init__(self, path):
        super().__init__(path)
        self.declare("attention_open_map", ctypes.c_void_p, ctypes.POINTER(Shape), ctypes.c_uint64, ctypes.c_uint32,
                     returns=ctypes.c_void_p)
        self.declare("attention_lists", ctypes.c_void_p, ctypes.c_void_p)

    def open_map(self, shape, kept):
        self.lib.pairs_attention_close(self.problem)
        self.problem = self.lib.pairs_attention_open_map(self.handle, ctypes.byref(shape), kept.data_ptr(), BLOCK, self.text, 512)
        if not self.problem:
            raise RuntimeError(self.text.value.decode())
        name = self.text.value.decode()
        self.lists()
        torch.cuda.synchronize()
        return name

    def lists(self):
        self.done(self.lib.pairs_attention_lists(self.problem, pairs.stream(), self.text, 512))


class Case:
    """Tensors of one shape and a map of one density."""

    def __init__(self, options):
        s, h, d = options.seq, options.heads, options.head_dim
        self.shape = Shape(b"bf16", b"bf16", b"none", 1, h, h, s, s, d)
        torch.manual_seed(1)
        self.q, self.k, self.v = (torch.randn(1, h, s, d, device="cuda", dtype=torch.bfloat16) for _ in range(3))
        self.o = torch.empty_like(self.q)
        self.lse = torch.empty(1, h, s, device="cuda", dtype=torch.float32)
        self.arrays = Arrays(*(x.data_ptr() for x in (self.q, self.k, self.v, self.o, self.lse)))
        self.dense_flop = 4.0 * h * s * s * d

    def draw(self, density):
        h, blocks = self.q.shape[1], self.q.shape[2] // BLOCK
        self.map = (torch.rand(1, h, blocks, blocks, device="cuda") < density).to(torch.uint8)
        self.kept = self.map.float().mean().item()
        full = self.map.to(torch.int32).sum(-1, dtype=torch.int32)
        order = torch.argsort(1 - self.map.to(torch.int32), dim=-1, stable=True).to(torch.int32)
        none = torch.zeros_like(full)
        self.mask = BlockMask.from_kv_blocks(none, torch.zeros_like(order), full, order, BLOCK_SIZE=(BLOCK, BLOCK))

    def reference(self):
        q, k, v = (x[0, :CHECKED].double() for x in (self.q, self.k, self.v))
        s = q[:, -BLOCK:] @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        s.masked_fill_(~self.map[0, :CHECKED, -1:].bool().repeat_interleave(BLOCK, -1), float("-inf"))
        return torch.softmax(s, -1) @ v

    def error(self, o, reference):
        return ((o[0, :CHECKED, -BLOCK:].double() - reference).square().mean() ** 0.5).item()


def compare(case, density, flex, sparse, dense, options):
    case.draw(density)
    reference = case.reference()
    name = sparse.open_map(case.shape, case.map)
    dense.open(case.shape)
    dense_name = dense.select(0)

    def ours():
        sparse.run(case.arrays)

    def peer():
        return flex(case.q, case.k, case.v, block_mask=case.mask)

    case.o.fill_(float("nan"))
    ours()
    errors = [case.error(peer(), reference), case.error(case.o, reference)]
    launches = max(2, round(options.turn_us / 1e6 / seconds_of(peer, 3)))
    sides = [("flex", peer), (name, ours), (dense_name, lambda: dense.run(case.arrays)), ("lists", sparse.lists)]
    rows = rounds_of([graph_of(call, launches) for _, call in sides], launches, options.rounds)
    us = [sorted(row[i] for row in rows)[len(rows) // 2] for i in range(len(sides))]
    flop = [case.dense_flop * case.kept] * 2 + [case.dense_flop]
    result = {"density": density, "kept": case.kept, "launches": launches, "rounds": options.rounds, "us": dict(zip([n for n, _ in sides], us)),
              "tflops": [f / t / 1e6 for f, t in zip(flop, us)], "error_over_flex": errors[1] / errors[0],
              "over_flex": pairs.interval([row[0] / row[1] for row in rows]),
              "rate_over_dense": pairs.interval([row[2] / row[1] * case.kept for row in rows]),
              "lists_share": pairs.interval([row[3] / row[1] for row in rows])}
    print("density {:.2f} kept {:.4f}: ".format(density, case.kept)
          + ", ".join(f"{n} {t:.1f} us" + (f" {f / t / 1e6:.0f} TFLOPS" if f else "") for (n, _), t, f in zip(sides, us, [*flop, 0])), flush=True)
    for key in ("over_flex", "rate_over_dense", "lists_share"):
        print("    {} {:.4f} [{:.4f}, {:.4f}]".format(key, *result[key]), flush=True)
    print(f"    error {errors[1]:.3e}, of flex {errors[0]:.3e}: {errors[1] / errors[0]:.3f}", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay")
    parser.add_argument("--seq", type=int, default=32768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turn-us", type=float, default=8000)
    parser.add_argument("--autotune", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("densities", nargs="*", type=float)
    options = parser.parse_args()
    path = pairs.pairs_library(options.assay)
    flex = torch.compile(flex_attention, dynamic=False, mode="max-autotune-no-cudagraphs" if options.autotune else None)
    case, sparse, dense, began = Case(options), Sparse(path), Attention(path), time.monotonic()
    results = []
    for density in options.densities or [0.5, 0.25, 0.1]:
        results.append(compare(case, density, flex, sparse, dense, options))
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {time.monotonic() - began:.1f} s")
    if options.out:
        with open(options.out, "w") as f:
            json.dump({"device": torch.cuda.get_device_name(), "torch": torch.__version__, "autotune": options.autotune, "cases": results}, f, indent=1)


if __name__ == "__main__":
    main()
