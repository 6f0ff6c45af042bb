#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch and the driver beside our memory kernels and the link, in interleaved rounds.

One process, one context, one stream, the same arrays: PyTorch's tensors, on which our kernels (src/gpu/memory/move.h) run through
libpairs.so. The sides of a row (ours, PyTorch's and, for copy and write, the driver's own) take turns in the same rounds
(pairs.py), each timed by the same events. Before it is timed, a side's result is checked: a row with a wrong one ends there.
A figure is the median over the rounds of the peer's time over ours with its distribution-free 95 % interval, as measured
(which is what counts where DRAM is the limit) and clock-normalised.

usage: peer_memory.py [--assay FILE] [--out DIR] [--pairs N] [--turn-ms MS] [--gib N] [--ops copy,read,..]
                      [--shapes OP=SHAPE[,SHAPE..][,OP=..]] [--row-seconds S] [--seconds S]

--shapes tries launch shapes instead, two at a time, in rounds with our first and the driver's (PyTorch's, where the driver
has none). A SHAPE is vN:THREADS[:RESIDENT[:PER_SM]], bulk:THREADS:TILE:STAGES[:RESIDENT[:PER_SM[:EVICT]]] with TILE in bytes,
or #N, the device's own number N; 0 or nothing: as it fits, a tile a block. Example: copy=v10:256,v9:128:6,write=#1
"""
import argparse
import csv
import dataclasses
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import pairs
import torch

FACTOR = 3.0
FACTOR_BITS = 0x40400000
LINK_BYTES = 1 << 30
CHUNK = 1 << 26  # floats that are checked at a time
ROUNDS_LEAST = 10
STREAMS = {"read": 1, "write": 1, "copy": 2, "scale": 2, "add": 3, "triad": 3, "dot": 2}  # arrays that a call moves
SUMS = ("read", "dot")
LINK = ("h2d", "d2h")
DRIVERS = {"copy": "driver copy", "write": "driver set"}  # what the driver does by itself
# What an element becomes, in double precision.
ELEMENT = {
    "read": lambda a, b: a,
    "write": lambda a, b: torch.full_like(a, FACTOR),
    "copy": lambda a, b: a,
    "scale": lambda a, b: FACTOR * a,
    "add": lambda a, b: a + b,
    "triad": lambda a, b: a + FACTOR * b,
    "dot": lambda a, b: a * b,
}
TOLERANCE = {"triad": 1e-6}  # with or without a fused multiplication; the others are exact
FIELDS = ("ours", "peer", "pairs", "ours_gbps", "peer_gbps", "ratio", "ratio_low", "ratio_high", "at_clock", "at_clock_low",
          "at_clock_high", "ours_gbps_low", "ours_gbps_high", "peer_gbps_low", "peer_gbps_high", "ours_clock_mhz",
          "peer_clock_mhz", "calls", "kernel")


@dataclasses.dataclass
class Side:
    """One of those who take turns. call(i) enqueues; total(what call returned) is its sum, of those that sum."""
    name: str
    call: Callable
    kernel: str = ""
    total: Callable = float
    close: Callable = lambda: None


class Streams:
    """The arrays on the device, and the sides that work on them."""

    def __init__(self, ours, size):
        self.ours, self.count = ours, size // 16 * 4
        self.bytes = 4 * self.count
        self.a, self.b = (torch.empty(self.count, device="cuda").uniform_(-1, 1) for _ in range(2))
        self.out = torch.empty(self.count, device="cuda")
        self.partial = torch.empty(self.count // 512 + 8192, dtype=torch.float64, device="cuda")
        self.arrays = pairs.Arrays(self.a.data_ptr(), self.b.data_ptr(), self.out.data_ptr(), self.partial.data_ptr(),
                                   self.partial.numel(), self.count, FACTOR)
        self.sums = {}

    def moved(self, op):
        return STREAMS[op] * self.bytes

    def kernel(self, op, launch, name):
        move = pairs.Move(self.ours, op, launch, self.arrays)
        return Side(name, lambda i: move.run(), move.name, lambda answer: move.sum(), move.close)

    def pytorch(self, op):
        a, b, out = self.a, self.b, self.out
        calls = {
            "read": lambda i: torch.sum(a),
            "write": lambda i: out.fill_(FACTOR),
            "copy": lambda i: out.copy_(a),
            "scale": lambda i: torch.mul(a, FACTOR, out=out),
            "add": lambda i: torch.add(a, b, out=out),
            "triad": lambda i: torch.add(a, b, alpha=FACTOR, out=out),
            "dot": lambda i: torch.dot(a, b),
        }
        return Side("PyTorch " + op, calls[op])

    def driver(self, op):
        if op == "copy":
            return Side(DRIVERS[op], lambda i: self.ours.copy(self.out, self.a))
        return Side(DRIVERS[op], lambda i: self.ours.fill(self.out, FACTOR_BITS))

    def maker(self, op, launch, name):
        return name, lambda: self.kernel(op, launch, name)

    def makers(self, op):
        """Names and makers of ours, PyTorch's and, where there is one, the driver's side."""
        makers = [self.maker(op, pairs.Launch(), op), ("PyTorch " + op, lambda: self.pytorch(op))]
        return makers + ([(DRIVERS[op], lambda: self.driver(op))] if op in DRIVERS else [])

    def chunks(self, op):
        """Slices of the arrays with what they must become."""
        for first in range(0, self.count, CHUNK):
            part = slice(first, min(first + CHUNK, self.count))
            yield part, ELEMENT[op](self.a[part].double(), self.b[part].double())

    def check(self, op, side):
        if op in SUMS:
            self.check_sum(op, side)
            return
        self.out.fill_(math.nan)
        side.call(0)
        torch.cuda.synchronize()
        for part, want in self.chunks(op):
            found, want = self.out[part].double(), want.float().double()
            wrong = ~((found - want).abs() <= TOLERANCE.get(op, 0))  # so that NaN is wrong
            if bool(wrong.any()):
                at = int(wrong.nonzero()[0])
                raise RuntimeError(f"wrong result: element {part.start + at} is {float(found[at])!r} instead of "
                                   f"{float(want[at])!r}")

    def check_sum(self, op, side):
        """Tolerance: far above single precision's rounding, below what a block that is left out changes."""
        if op not in self.sums:
            self.sums[op] = sum(float(want.sum()) for _, want in self.chunks(op))
        self.partial.fill_(math.nan)
        found = side.total(side.call(0))
        if not abs(found - self.sums[op]) <= 1e-4 * math.sqrt(self.count):
            raise RuntimeError(f"wrong result: the sum is {found!r} instead of {self.sums[op]!r}")


class Link:
    """Pinned host memory and device memory."""

    def __init__(self, ours, size):
        self.ours, self.bytes = ours, size // 4 * 4
        self.far = torch.empty(self.bytes // 4, device="cuda").uniform_(-1, 1)
        self.host = torch.empty(self.bytes // 4, dtype=torch.float32, pin_memory=True)
        self.host.copy_(self.far)

    def moved(self, _):
        return self.bytes

    def makers(self, way):
        calls = {
            "h2d": (lambda i: self.ours.copy_to(self.far, self.host), lambda i: self.far.copy_(self.host, non_blocking=True)),
            "d2h": (lambda i: self.ours.copy_from(self.host, self.far), lambda i: self.host.copy_(self.far, non_blocking=True)),
        }
        ours, theirs = calls[way]
        return [(way, lambda: Side(way, ours, "copy engine")), ("PyTorch " + way, lambda: Side("PyTorch " + way, theirs))]

    def check(self, way, side):
        (self.far if way == "h2d" else self.host).fill_(math.nan)
        torch.cuda.synchronize()
        side.call(0)
        torch.cuda.synchronize()
        if not torch.equal(self.far.cpu(), self.host):
            raise RuntimeError("wrong result: the two ends differ")


def launch_of(text):
    """A launch shape in the words of --shapes; ValueError where it is none."""
    if text.startswith("#"):
        return pairs.Launch(index=int(text[1:]))
    word, *numbers = text.split(":")
    names = ("threads", "resident", "per_sm")
    if word == "bulk":
        names = ("threads", "tile_bytes", "stages", "resident", "per_sm", "evict_first")
    rung = pairs.Launch.BULK if word == "bulk" else int(word.removeprefix("v"))
    if not numbers or len(numbers) > len(names) or rung < 1 or (word != "bulk" and rung >= pairs.Launch.BULK):
        raise ValueError(text)
    return pairs.Launch(rung=rung, **dict(zip(names, map(int, numbers))))


def shapes_of(text):
    """{"copy": ["v10:256", ..], ..} of --shapes."""
    shapes, op = {}, None
    for item in text.split(","):
        before, equals, after = item.rpartition("=")
        op = before if equals else op
        if op not in STREAMS:
            raise argparse.ArgumentTypeError(f"no operation before '{item}'; there are {', '.join(STREAMS)}")
        try:
            launch_of(after)
        except ValueError:
            raise argparse.ArgumentTypeError(f"'{after}' is no launch shape") from None
        shapes.setdefault(op, []).append(after)
    return shapes


def ops_of(text):
    ops = text.split(",")
    for op in ops:
        if op not in STREAMS and op not in LINK:
            raise argparse.ArgumentTypeError(f"no operation '{op}'; there are {', '.join([*STREAMS, *LINK])}")
    return ops


def settings():
    """Clocks and power as the driver tells them, while the context is open."""
    wanted = "clocks.sm,clocks.mem,power.draw,temperature.gpu"
    try:
        answer = subprocess.run(["nvidia-smi", "--query-gpu=" + wanted, "--format=csv,noheader", "--id=0"], check=False,
                                capture_output=True, text=True).stdout.strip()
    except OSError:
        return {}
    return dict(zip(wanted.split(","), answer.split(", ")))


def turn_calls(ours, sides, turn_ms):
    """Calls of a turn that lasts at least turn_ms on the fastest side."""
    turns = [pairs.Turn(ours, i, side.call, 3) for i, side in enumerate(sides)]
    torch.cuda.synchronize()
    return max(1, math.ceil(turn_ms / min(turn.read()[0] for turn in turns)))


def take(ours, sides, options):
    """The rounds of a row and the calls of a turn."""
    calls = turn_calls(ours, sides, options.turn_ms)
    orders = math.factorial(len(sides))
    wanted = math.ceil(options.pairs / orders) * orders  # every side as often in every place
    rounds = pairs.rounds_of(ours, [side.call for side in sides], calls, wanted, options.row_seconds)
    if len(rounds) < min(ROUNDS_LEAST, wanted):
        raise RuntimeError(f"only {len(rounds)} rounds within {options.row_seconds:g} s")
    return rounds, calls


def figures(rounds, side, moved):
    """Rate in GB/s with its interval, and clock in MHz, of one side."""
    rate, low, high = pairs.interval([moved / r[side][0] / 1e6 for r in rounds])
    return rate, low, high, statistics.median(r[side][1] for r in rounds) / 1e6


def comparison(rounds, sides, mine, peer, moved, calls):
    """A row of the results: side `mine` against side `peer`."""
    row = {"ours": sides[mine].name, "peer": sides[peer].name, "pairs": len(rounds), "calls": calls,
           "kernel": sides[mine].kernel}
    for who, side in (("ours", mine), ("peer", peer)):
        rate, low, high, clock = figures(rounds, side, moved)
        row |= {who + "_gbps": round(rate, 2), who + "_gbps_low": round(low, 2), who + "_gbps_high": round(high, 2),
                who + "_clock_mhz": round(clock, 1)}
    ratios = pairs.ratio_of(rounds, mine, peer)
    for name, key in (("ratio", "raw"), ("at_clock", "clock_normalised")):
        r = ratios[key]
        row |= {name: round(r["ratio"], 4), name + "_low": round(r["low"], 4), name + "_high": round(r["high"], 4)}
    row["ratios"] = [round(x, 5) for x in ratios["raw"]["values"]]
    print(f"{row['ours']:<28} {row['peer']:<14} {row['ours_gbps']:8.1f} {row['peer_gbps']:8.1f}  {row['ratio']:.4f} "
          f"[{row['ratio_low']:.4f}, {row['ratio_high']:.4f}]  {row['at_clock']:.4f} [{row['at_clock_low']:.4f}, "
          f"{row['at_clock_high']:.4f}]  {row['ours_clock_mhz']:4.0f} {row['peer_clock_mhz']:4.0f}  {row['pairs']} x {calls}  "
          f"{row['kernel']}", flush=True)
    return row


class Rows:
    """Takes one row after the other and keeps the record, on disk too."""

    def __init__(self, ours, options):
        self.ours, self.options, self.failed, self.began = ours, options, False, time.monotonic()
        self.record = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "gib": options.gib,
                       "turn_ms": options.turn_ms, "before": settings(), "results": []}

    def fail(self, name, why):
        print(f"{name:<28} {why}", flush=True)
        self.record["results"].append({"ours": name, "error": str(why)})
        self.failed = True
        self.write()

    def sides(self, where, op, *makers):
        """The sides that (name, make) give, each checked; a row of the record says why one is left out."""
        sides = []
        for name, make in makers:
            side = None
            try:
                if time.monotonic() - self.began > self.options.seconds:
                    raise RuntimeError(f"not begun: {self.options.seconds:g} s were over")
                side = make()
                where.check(op, side)
                sides.append(side)
            except RuntimeError as e:
                self.fail(name, e)
                if side:
                    side.close()
        return sides

    def row(self, sides, moved, against):
        """against: pairs of indexes, mine and peer's, that are compared; moved: bytes of a call."""
        try:
            rounds, calls = take(self.ours, sides, self.options)
            self.record["results"] += [comparison(rounds, sides, mine, peer, moved, calls) for mine, peer in against]
        except RuntimeError as e:
            self.fail(sides[0].name, e)
        self.write()

    def write(self):
        if not self.options.out:
            return
        with open(os.path.join(self.options.out, "peer_memory.json"), "w") as f:
            json.dump(self.record, f, indent=1)
        with open(os.path.join(self.options.out, "peer_memory.csv"), "w", newline="") as f:
            w = csv.DictWriter(f, fieldnames=FIELDS, extrasaction="ignore")
            w.writeheader()
            w.writerows(r for r in self.record["results"] if "error" not in r)


def full_row(rows, where, op, makers):
    """Ours (the first maker's), PyTorch's and, where there is one, the driver's, in one row."""
    sides = rows.sides(where, op, *makers)
    if len(sides) == len(makers):
        rows.row(sides, where.moved(op), [(0, 1), (0, 2), (2, 1)] if len(sides) > 2 else [(0, 1)])
    for side in sides:
        side.close()


def shape_rows(rows, streams, op, shapes):
    """Launch shapes in turns with our first and the driver's or PyTorch's, two shapes in a row."""
    base = rows.sides(streams, op, *streams.makers(op)[::2] if op in DRIVERS else streams.makers(op))
    tried = rows.sides(streams, op, *[streams.maker(op, launch_of(text), f"{op} {text}") for text in shapes])
    for i in range(0, len(tried) if len(base) == 2 else 0, 2):
        sides = base + tried[i:i + 2]
        against = [(0, 1)] + [(mine, peer) for mine in range(2, len(sides)) for peer in (1, 0)]
        rows.row(sides, streams.moved(op), against)
    for side in base + tried:
        side.close()


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--assay")
    parser.add_argument("--out")
    parser.add_argument("--pairs", type=int, default=18, help="rounds; more where the number of sides asks for it")
    parser.add_argument("--turn-ms", type=float, default=20)
    parser.add_argument("--gib", type=float, default=4, help="of each of three arrays")
    parser.add_argument("--ops", type=ops_of, default=[*STREAMS, *LINK])
    parser.add_argument("--shapes", type=shapes_of, default={})
    parser.add_argument("--row-seconds", type=float, default=20, help="a row ends then with the rounds it has")
    parser.add_argument("--seconds", type=float, default=120, help="rows that would begin later are left out, named")
    return parser.parse_args()


def main():
    options = parse()
    torch.manual_seed(1)
    torch.ones(1, device="cuda")  # PyTorch's context is there before we join it
    ours = pairs.Moves(pairs.pairs_library(options.assay))
    rows = Rows(ours, options)
    print(f"{rows.record['device']}, PyTorch {rows.record['torch']}, arrays of {options.gib:g} GiB")
    print(f"{'ours':<28} {'peer':<14} GB/s of both; ratio [95 % interval] as measured, clock-normalised; clocks, MHz; rounds x "
          "calls; kernel")
    size = int(options.gib * (1 << 30))
    ops = list(options.shapes) or options.ops
    if any(op in STREAMS for op in ops):
        streams = Streams(ours, size)
        for op in ops:
            if op in options.shapes:
                shape_rows(rows, streams, op, options.shapes[op])
            elif op in STREAMS:
                full_row(rows, streams, op, streams.makers(op))
    if any(op in LINK for op in ops):
        link = Link(ours, min(size, LINK_BYTES))
        for way in (op for op in ops if op in LINK):
            full_row(rows, link, way, link.makers(way))
    rows.record["after"] = settings()
    rows.write()
    print(f"{time.monotonic() - rows.began:.0f} s")
    return int(rows.failed)


if __name__ == "__main__":
    sys.exit(main())
