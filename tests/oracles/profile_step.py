#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step of the 7B shape in PyTorch, and what `assay profile` costs it.

A few decoder layers of hidden 3584, 28 heads of 128 on 4 of keys, feed-forward 18944, one sequence of 4096 tokens, BF16, all
weights trained by fused AdamW.

usage: profile_step.py train [--layers N] [--seq N] [--steps N]
       torchrun --nproc-per-node N profile_step.py train --bucket-mib MIB
                 data-parallel; a line of JSON on rank 0: DDP's buckets, and all-reduces of their sizes by themselves
       profile_step.py cost --assay FILE --out DIR [--rounds N] [--launches N]
                 OUT/profile_cost.json: a step, and a kernel of one element a launch, in processes without a profiler, with all
                 that a profile records and with kernels alone, which take turns
"""
import argparse
import contextlib
import itertools
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn

HIDDEN, HEADS, KV_HEADS, HEAD, FFN = 3584, 28, 4, 128, 18944


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.Parameter(torch.ones(2, HIDDEN))
        self.qkv = nn.Linear(HIDDEN, (HEADS + 2 * KV_HEADS) * HEAD, bias=False)
        self.out = nn.Linear(HEADS * HEAD, HIDDEN, bias=False)
        self.gate, self.up = nn.Linear(HIDDEN, FFN, bias=False), nn.Linear(HIDDEN, FFN, bias=False)
        self.down = nn.Linear(FFN, HIDDEN, bias=False)

    @staticmethod
    def turn(x, cos, sin):
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    def forward(self, x, cos, sin):
        b, s, _ = x.shape
        q, k, v = self.qkv(F.rms_norm(x, (HIDDEN,), self.norms[0])).split([HEADS * HEAD, KV_HEADS * HEAD, KV_HEADS * HEAD], -1)
        q, k, v = (t.view(b, s, -1, HEAD).transpose(1, 2) for t in (q, k, v))
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + self.out(a.transpose(1, 2).reshape(b, s, -1))
        h = F.rms_norm(x, (HIDDEN,), self.norms[1])
        return x + self.down(F.silu(self.gate(h)) * self.up(h))


class Model(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x, cos, sin):
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x


class Training:
    def __init__(self, options, rank=0, world=1):
        torch.cuda.set_device(rank)
        torch.manual_seed(1)
        with torch.device("cuda"):
            torch.set_default_dtype(torch.bfloat16)
            self.model = Model(options.layers)
            torch.manual_seed(2 + rank)
            self.x = torch.randn(1, options.seq, HIDDEN)
            angle = torch.arange(options.seq, dtype=torch.float32)[:, None] / 1e6 ** (torch.arange(0, HEAD, 2).float() / HEAD)
            self.cos, self.sin = angle.cos().bfloat16(), angle.sin().bfloat16()
            torch.set_default_dtype(torch.float32)
        if world > 1:
            self.model = nn.parallel.DistributedDataParallel(self.model, device_ids=[rank], bucket_cap_mb=options.bucket_mib,
                                                             gradient_as_bucket_view=True)
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-5, fused=True)

    def step(self):
        nvtx = torch.cuda.nvtx.range
        with nvtx("step"):
            with nvtx("forward"):
                loss = self.model(self.x, self.cos, self.sin).float().pow(2).mean()
            with nvtx("backward"):
                loss.backward()
            with nvtx("optimiser"):
                self.optimiser.step()
                self.optimiser.zero_grad(set_to_none=True)
        return loss

    def steps(self, count):
        """Milliseconds a step."""
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(count):
            self.step()
        torch.cuda.synchronize()
        return (time.perf_counter() - begin) / count * 1e3


def all_reduce_us(size, group, calls=20):
    """Of BF16, alone, calls back to back: the median of five loops."""
    import torch.distributed as dist
    data = torch.zeros(size // 2, dtype=torch.bfloat16, device="cuda")
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    times = []
    for _ in range(6):
        dist.barrier()
        dist.all_reduce(data, group=group)
        begin.record()
        for _ in range(calls):
            dist.all_reduce(data, group=group)
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) / calls * 1e3)
    return statistics.median(times[1:])


def train(options):
    rank, world = int(os.environ.get("LOCAL_RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world > 1:
        torch.cuda.set_device(rank)
        torch.distributed.init_process_group("nccl", device_id=torch.device("cuda", rank))
    t = Training(options, rank, world)
    t.steps(3)
    told = {"ms_a_step": t.steps(options.steps), "loss": t.step().item(), "gpus": world}
    if world > 1:
        buckets = t.model._get_ddp_logging_data().get("rebuilt_bucket_sizes", "").split(",")
        told["bucket_bytes"] = [int(b) for b in buckets if b.strip()]
        del t
        torch.cuda.empty_cache()
        group = torch.distributed.new_group()  # a communicator of its own: the profile's rows are by communicator
        with torch.cuda.nvtx.range("alone"):
            told["alone_us"] = {size: all_reduce_us(size, group) for size in sorted(set(told["bucket_bytes"]))}
        torch.distributed.destroy_process_group()
    if rank == 0:
        print(json.dumps(told), flush=True)


# --- cost: a worker a side, each told by its FIFO what to do next ---

def worker(options):
    t = Training(options)
    x = torch.zeros(1, device="cuda")

    def launch(count):
        """Nanoseconds a launch, back to back."""
        torch.cuda.synchronize()
        begin = time.perf_counter_ns()
        for _ in range(count):
            x.add_(1)
        torch.cuda.synchronize()
        return (time.perf_counter_ns() - begin) / count

    what = {"step": t.steps, "launch": launch}
    with open(options.fifo + ".in") as told, open(options.fifo + ".out", "w") as out:
        t.steps(3)
        launch(1000)
        print("ready", file=out, flush=True)
        for line in told:
            name, count = line.split()
            if name == "end":
                break
            print(what[name](int(count)), file=out, flush=True)


class Side:
    def __init__(self, name, options, profile):
        fifo = os.path.join(options.out, f"cost-{name}")
        for end in (".in", ".out"):
            with contextlib.suppress(FileNotFoundError):
                os.remove(fifo + end)
            os.mkfifo(fifo + end)
        self.run = fifo + ".run"
        shutil.rmtree(self.run, ignore_errors=True)
        command = [sys.executable, __file__, "worker", "--fifo", fifo, "--layers", str(options.layers), "--seq", str(options.seq)]
        if profile is not None:
            command = [options.assay, "profile", "--out", self.run, "--no-trace", *profile, "--", *command]
        self.fifo, self.process = fifo, subprocess.Popen(command, stdout=subprocess.DEVNULL)
        # Open for both: neither waits for a worker that is not there.
        self.told, self.out = (os.fdopen(os.open(fifo + end, os.O_RDWR), "r+b", buffering=0) for end in (".in", ".out"))

    def hear(self):
        while not select.select([self.out], [], [], 0.5)[0]:
            if self.process.poll() is not None:
                sys.exit(f"{self.fifo}: the worker ended with {self.process.returncode}")
        return self.out.readline().decode()

    def do(self, name, count):
        self.told.write(f"{name} {count}\n".encode())
        return float(self.hear())

    def end(self):
        self.told.write(b"end 0\n")
        code = self.process.wait(60)
        self.told.close()
        self.out.close()
        shutil.rmtree(self.run, ignore_errors=True)
        for end in (".in", ".out"):
            os.remove(self.fifo + end)
        return code


def cost(options):
    import pairs
    wanted = {"without": None, "profile": [], "kernels": ["--kernels-only"]}
    sides = {name: Side(name, options, words) for name, words in wanted.items()}
    for side in sides.values():
        side.hear()  # "ready"
    turns = {"step": options.steps, "launch": options.launches}
    orders = list(itertools.permutations(sides))
    got = {name: {side: [] for side in sides} for name in turns}
    for r in range(options.rounds + 1):
        for name, count in turns.items():
            for side in orders[r % len(orders)]:
                sides[side].do(name, 1 if name == "step" else 100)  # the device is this side's again
                value = sides[side].do(name, count)
                if r:
                    got[name][side].append(value)
    codes = {name: side.end() for name, side in sides.items()}
    told = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "rounds": options.rounds, "exit": codes}
    for name in turns:
        base = got[name]["without"]
        told[name] = {"unit": "ms" if name == "step" else "ns", "without": statistics.median(base)}
        for side in list(sides)[1:]:
            differences = [v / b - 1 if name == "step" else v - b for v, b in zip(got[name][side], base)]
            middle, low, high = pairs.interval(differences)
            told[name][side] = {"median": statistics.median(got[name][side]), "cost": middle, "low": low, "high": high}
            shown = [100 * d for d in (middle, low, high)] if name == "step" else [d / 1e3 for d in (middle, low, high)]
            print(f"{name:8} {side:8} {told[name]['without']:10.3f} -> {told[name][side]['median']:10.3f} {told[name]['unit']}: "
                  f"{shown[0]:+.3f} [{shown[1]:+.3f}, {shown[2]:+.3f}] {'%' if name == 'step' else 'us a launch'}")
        told[name]["values"] = got[name]
    with open(os.path.join(options.out, "profile_cost.json"), "w") as f:
        json.dump(told, f, indent=1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("train", "cost", "worker"))
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seq", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--bucket-mib", type=int, default=25)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--launches", type=int, default=20000)
    parser.add_argument("--assay")
    parser.add_argument("--out")
    parser.add_argument("--fifo")
    options = parser.parse_args()
    {"train": train, "cost": cost, "worker": worker}[options.what](options)


if __name__ == "__main__":
    main()
