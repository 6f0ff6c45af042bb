#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults planted in data-parallel training on two GPUs, and whether `assay profile` names each first, with its size.

Two ranks on one host train the same network. Rank 1 is the late one.

  good          DistributedDataParallel, written well: batches in pinned memory, copied ahead, and nothing waits
  late_compute  as good, but rank 1 multiplies large matrices at the start of each step
  every_tenth   as good, but rank 1 does so, three times, in every tenth step
  item          as good, but each step reads its loss and copies its batch when it needs it
  late_host     as item, but rank 1 sleeps before each step, in an NVTX range "augment"
  silent        a network with more parameters, without any communication
  exposed       as silent, but the gradients are all-reduced after the backward pass, and nothing hides this

A fault costs a step as much as the loop's step is longer than that of the same loop without the fault. Both are timed without
a profiler: one process on each GPU runs all loops in turn, in several rounds. The median of the rounds counts.

usage: profile_planted_ranks.py check --assay FILE --out DIR [--steps N] [--rounds N] [--keep] [LOOP...]
                 writes OUT/planted_ranks.json, and each loop's PROFILE.md and PROFILE.html; exits 1 where a fault is not found
       profile_planted_ranks.py time [--device cuda|cpu] [--steps N] [--rounds N] [LOOP...]
                 times the loops without a profiler; on the CPU this tests the loops alone, not assay
       profile_planted_ranks.py judge LOOP --summary FILE --planted-ms X
                 judges one summary.json that `assay profile` wrote; exits 1 where the fault is not found
"""
import argparse
import contextlib
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time

import profile_planted

FAULTS = {  # loop: what is to be found; nothing in `good`
    "good": None,
    "late_compute": {"key": "late_rank", "without": "good", "part": 1, "states": ("compute",)},
    "late_host": {"key": "late_rank", "without": "item", "part": 1, "states": ("data", "rest"), "range": "augment"},
    "every_tenth": {"key": "late_rank", "without": "good", "part": 0.1, "states": ("compute",)},
    "exposed": {"key": "communication", "without": "silent"},
}
LOOPS = ("good", "late_compute", "every_tenth", "item", "late_host", "silent", "exposed")
KINDS = {"late_rank", "communication", *(key for key, _ in profile_planted.LOOPS.values() if key)}
RANKS, LATE_RANK, LATE_S, RANGE = 2, 1, 0.016, "augment"
LIMIT_S = 120  # of one run of both ranks
WARM_UP = 10  # steps; every tenth one is late here too
DEPTH = 8
# Width and batch of both networks; sides of the matrices that a late rank multiplies. On an H100 a step takes 8 to 10 ms, and
# the product 16 ms. The CPU's sizes only test that the loops do what they say.
SIZES = {
    "cuda": {"net": (2048, 2048), "large": (4096, 512), "more": (4096, 12288, 8192)},
    "cpu": {"net": (64, 64), "large": (256, 8), "more": (768, 768, 768)},
}


class Now:
    """The same batch for each step, on the CPU."""

    def __init__(self, host):
        self.host = host

    def take(self):
        return self.host[0]


class Rank:
    """The networks and batches of one rank. The network of `good` is data-parallel, the large one is not."""

    def __init__(self, torch, device):
        self.torch, self.dist = torch, torch.distributed
        self.rank, self.cuda = int(os.environ["RANK"]), device == "cuda"
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if self.cuda else torch.device("cpu")
        if self.cuda:
            torch.cuda.set_device(self.device)
            torch.backends.cuda.matmul.allow_tf32 = False  # FP32 units stay below the power limit: both GPUs keep their clock
        self.dist.init_process_group("nccl" if self.cuda else "gloo")
        self.sizes = SIZES[device]
        self.made = {}
        rows, inner, columns = self.sizes["more"]
        self.factors = torch.randn(rows, inner, device=self.device), torch.randn(inner, columns, device=self.device)
        self.product = torch.empty(rows, columns, device=self.device)

    def network(self, name):
        """Network, optimizer, batches that are copied ahead, and one batch in pinned memory."""
        if name in self.made:
            return self.made[name]
        torch, (width, batch) = self.torch, self.sizes[name]
        torch.manual_seed(1)
        layers = []
        for _ in range(DEPTH):
            layers += [torch.nn.Linear(width, width, bias=False, device=self.device), torch.nn.GELU()]
        net = torch.nn.Sequential(*layers)
        if name == "net":
            net = torch.nn.parallel.DistributedDataParallel(net, device_ids=[self.device.index] if self.cuda else None,
                                                            gradient_as_bucket_view=True)
        sgd = torch.optim.SGD(net.parameters(), lr=1e-3, foreach=True)
        torch.manual_seed(2 + self.rank)
        host = [torch.randn(batch, width) for _ in range(2)]
        ahead = profile_planted.Ahead(torch, host) if self.cuda else Now(host)
        self.made[name] = net, sgd, ahead, host[0].pin_memory() if self.cuda else host[0]
        return self.made[name]

    def synchronize(self):
        if self.cuda:
            self.torch.cuda.synchronize()

    def together(self):
        """All ranks have come here."""
        self.dist.all_reduce(self.torch.zeros(1, device=self.device))
        self.synchronize()

    def more_compute(self):
        self.torch.mm(*self.factors, out=self.product)

    def sleep(self):
        with self.torch.cuda.nvtx.range(RANGE) if self.cuda else contextlib.nullcontext():
            time.sleep(LATE_S)

    def all_reduce(self, net):
        for parameter in net.parameters():
            self.dist.all_reduce(parameter.grad)

    def step_of(self, loop):
        net, sgd, ahead, pinned = self.network("large" if loop in ("silent", "exposed") else "net")
        late, reads = self.rank == LATE_RANK, loop in ("item", "late_host")

        def step(i):
            if loop == "late_host" and late:
                self.sleep()
            batch = pinned.to(self.device, non_blocking=True) if reads else ahead.take()
            if loop == "late_compute" and late:
                self.more_compute()
            if loop == "every_tenth" and late and i % 10 == 5:
                for _ in range(3):
                    self.more_compute()
            loss = net(batch).square().mean()
            loss.backward()
            if loop == "exposed":
                self.all_reduce(net)
            sgd.step()
            sgd.zero_grad(set_to_none=True)
            if reads:
                loss.item()

        return step

    def step_ms(self, loop, steps):
        step = self.step_of(loop)
        for i in range(WARM_UP):
            step(i)
        self.synchronize()
        self.together()
        begin = time.perf_counter()
        for i in range(steps):
            step(i)
        self.synchronize()
        return 1e3 * (time.perf_counter() - begin) / steps

    def of_all(self, value):
        """The value of each rank, by rank."""
        values = self.torch.zeros(self.dist.get_world_size(), dtype=self.torch.float64, device=self.device)
        values[self.rank] = value
        self.dist.all_reduce(values)
        return values.tolist()

    def alone_ms(self, fault):
        """What the fault takes by itself, a step of its loop; where ranks meet in it, the fastest one's time."""
        net, times = self.network("large")[0], []
        for parameter in net.parameters():
            parameter.grad = self.torch.zeros_like(parameter)
        what = {"late_compute": self.more_compute, "every_tenth": self.more_compute, "late_host": self.sleep,
                "exposed": lambda: self.all_reduce(net)}[fault]
        for _ in range(6):
            self.together()
            begin = time.perf_counter()
            what()
            self.synchronize()
            times.append(1e3 * (time.perf_counter() - begin))
        net.zero_grad(set_to_none=True)
        each = self.of_all(statistics.median(times[1:]))
        return min(each) if fault == "exposed" else each[LATE_RANK] * (0.3 if fault == "every_tenth" else 1)


def spawn(args):
    """A process for each rank, which this one waits for: what assay profiles. torchrun would do, but starts more slowly."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    # NVLink multicast (NVLS) fails on machines that share a fabric without it.
    shared = {"NCCL_NVLS_ENABLE": "0", "OMP_NUM_THREADS": "1", **os.environ, "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
              "MASTER_PORT": str(port)}
    words = [w for w in sys.argv[1:] if w != "ranks"]
    ranks = [subprocess.Popen([sys.executable, os.path.abspath(__file__), "rank", *words],
                              env={**shared, "RANK": str(r), "LOCAL_RANK": str(r)}) for r in range(RANKS)]
    end = time.monotonic() + LIMIT_S
    while any(r.poll() is None for r in ranks) and not any(r.poll() for r in ranks) and time.monotonic() < end:
        time.sleep(0.05)
    for r in ranks:  # a rank that failed would keep the other one waiting
        if r.poll() is None:
            r.kill()
    return max(abs(r.wait()) for r in ranks)


def rank(args):
    """One rank. Rank 0 prints a line of JSON."""
    import torch

    r = Rank(torch, args.device)
    ms = {loop: [] for loop in args.loops}
    for _ in range(args.rounds):
        for loop in args.loops:
            ms[loop].append(r.of_all(r.step_ms(loop, args.steps)))
    alone = {loop: r.alone_ms(loop) for loop in args.loops if FAULTS.get(loop)} if args.alone else {}
    if r.rank == 0:
        print(json.dumps({"step_ms": ms, "alone_ms": alone, "torch": torch.__version__,
                          "device": torch.cuda.get_device_name() if r.cuda else "CPU"}), flush=True)
    r.together()
    if not r.cuda:
        os._exit(0)  # gloo of PyTorch 1.13 sometimes hangs when it is taken down
    r.dist.destroy_process_group()


def launch(args, loops, rounds, wrap=(), options=()):
    """Runs the loops on two ranks: milliseconds a step of the slower rank, and all that rank 0 told."""
    command = [*wrap, sys.executable, os.path.abspath(__file__), "ranks", *loops, "--device", args.device, "--steps", str(args.steps),
               "--rounds", str(rounds), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    line = [x for x in done.stdout.splitlines() if x.startswith('{"step_ms"')]
    if not line:
        sys.exit(f"{' '.join(loops)}: no result of rank 0\n{done.stdout[-500:]}{done.stderr[-2500:]}")
    told = json.loads(line[-1])
    return {loop: statistics.median(max(ranks) for ranks in told["step_ms"][loop]) for loop in loops}, told


def timed(args, loops):
    wanted = {loop for loop in loops} | {FAULTS[loop]["without"] for loop in loops if FAULTS.get(loop)}
    return launch(args, [loop for loop in LOOPS if loop in wanted], args.rounds, options=["--alone"])


def planted_ms(step_ms, loop):
    return step_ms[loop] - step_ms[FAULTS[loop]["without"]] if FAULTS.get(loop) else None


def wrong_of_late(fault, found):
    """What is wrong with the late rank that was found."""
    late, wrong = found.get("late_rank"), []
    if not late:
        return ["no late rank"]
    ranks = {p["pid"]: p.get("rank") for p in found["processes"]}
    if ranks.get(late["pid"]) != LATE_RANK:
        wrong.append(f"rank {ranks.get(late['pid'])} is named")
    if abs(late["late_steps"] / late["steps"] - fault["part"]) > max(0.1 * fault["part"], 0.02):
        wrong.append(f"late in {late['late_steps']} of {late['steps']} steps")
    if late["state"] not in fault["states"]:
        wrong.append(f"meanwhile {late['state']}")
    if "range" in fault and late.get("range") != fault["range"]:
        wrong.append(f"in the range {late.get('range')}")
    return wrong


def judge(loop, found, size_ms):
    """Findings, as summary.json has them, beside the fault and its size: a row of planted_ranks.json."""
    fault, savings = FAULTS[loop], found["savings"]
    first = savings[0] if savings else None
    row = {"loop": loop, "steps": [s["steps"] for s in found["steps"]], "steady_step_ms": [s["median_ns"] / 1e6 for s in found["steps"]],
           "first": first and first["key"], "found_ms": first and first["per_step_ns"] / 1e6, "planted_ms": size_ms,
           "findings": [[s["key"], s["per_step_ns"] / 1e6, s["share"]] for s in savings], "late_rank": found.get("late_rank"), "wrong": []}
    if not found["steps"]:
        row["wrong"].append("no steps")
    if fault is None:
        row["wrong"] += [f"a finding of {s['key']}" for s in savings if s["key"] in KINDS]
    elif row["first"] != fault["key"]:
        row["wrong"].append(f"the first finding is {row['first']}, not {fault['key']}")
    else:
        if not profile_planted.near(row["found_ms"], size_ms):
            row["wrong"].append(f"{row['found_ms']:.3f} ms a step, not {size_ms:.3f}")
        if fault["key"] == "late_rank":
            row["wrong"] += wrong_of_late(fault, found)
    row["good"] = not row["wrong"]
    return row


def findings_of(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def check(args):
    loops, rows = args.loops or list(FAULTS), []
    os.makedirs(args.out, exist_ok=True)
    step_ms, told = timed(args, loops)
    print(json.dumps({"step_ms": step_ms, "alone_ms": told["alone_ms"]}), flush=True)
    for loop in loops:
        folder = os.path.join(args.out, "run_" + loop)
        profiled, _ = launch(args, [loop], 1, [args.assay, "profile", "--no-trace", "--out", folder, "--"])
        row = judge(loop, findings_of(os.path.join(folder, "summary.json")), planted_ms(step_ms, loop))
        row.update(step_ms=step_ms[loop], profiled_step_ms=profiled[loop], alone_ms=told["alone_ms"].get(loop),
                   ranks_step_ms=told["step_ms"][loop], device=told["device"], torch=told["torch"])
        rows.append(row)
        print(json.dumps(row), flush=True)
        profile_planted.keep_pages(folder, args.out, loop)
        if not args.keep:
            shutil.rmtree(folder)
        with open(os.path.join(args.out, "planted_ranks.json"), "w", encoding="utf-8") as f:  # so far: a limit may end this
            json.dump(rows, f, indent=1)
    return 0 if all(row["good"] for row in rows) else 1


def time_loops(args):
    loops = args.loops or list(LOOPS)
    step_ms, told = timed(args, loops)
    for loop, ms in step_ms.items():
        of = FAULTS.get(loop)
        print(f"{loop:13} {ms:9.3f} ms a step" + (f", {planted_ms(step_ms, loop):+8.3f} to {of['without']}; the fault by itself: "
                                                  f"{told['alone_ms'][loop]:.3f}" if of else ""))
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("check", "time", "judge", "ranks", "rank"))
    parser.add_argument("loops", nargs="*", metavar="LOOP")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--device", choices=tuple(SIZES), default="cuda")
    parser.add_argument("--assay")
    parser.add_argument("--out")
    parser.add_argument("--keep", action="store_true", help="keep the run directories")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--summary")
    parser.add_argument("--planted-ms", type=float)
    args = parser.parse_intermixed_args()
    unknown = [loop for loop in args.loops if loop not in (LOOPS if args.what in ("time", "ranks", "rank") else FAULTS)]
    if unknown:
        parser.error(f"no loop {' '.join(unknown)}")
    if args.what == "judge":
        rows = [judge(loop, findings_of(args.summary), args.planted_ms) for loop in args.loops]
        print(json.dumps(rows, indent=1))
        return 0 if all(row["good"] for row in rows) else 1
    return {"check": check, "time": time_loops, "ranks": spawn, "rank": rank}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
