# SPDX-License-Identifier: Apache-2.0
"""What the peers' scripts share: libpairs.so by ctypes, rounds of turns, intervals.

A round takes every side in the orders ABC CBA ABC CBA: a drift of the clock that is straight over the round falls on all
sides alike. From round to round the order goes through all permutations, so that each side stands in each place equally
often: what the power cap does after one side's turn falls on every other. A turn is a call that is not timed, a stamp, an
event, the timed calls, an event, a stamp; nothing waits within a round, and a turn that is not timed leads it, so the device
is never idle and each side is soaked by the one before. A side's time of a round is the mean over its four turns, its clock
their mean weighted by time.
"""
import ctypes
import itertools
import math
import os
import statistics
import sys

import torch

TURNS = 4  # of a side in a round


class Shape(ctypes.Structure):
    _fields_ = [("a", ctypes.c_char_p), ("b", ctypes.c_char_p), ("d", ctypes.c_char_p), ("compute", ctypes.c_char_p),
                ("m", ctypes.c_uint64), ("n", ctypes.c_uint64), ("k", ctypes.c_uint64),
                ("transpose_a", ctypes.c_int32), ("transpose_b", ctypes.c_int32), ("fast", ctypes.c_int32),
                ("scaled", ctypes.c_int32), ("candidates", ctypes.c_uint32)]


def library_in_use():
    """The cuBLASLt that PyTorch has loaded."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            path = line.split()[-1]
            if os.path.basename(path).startswith("libcublasLt.so"):
                return path
    return None


def beside(assay, *names):
    """The first of `names` that exists beside the program: a bundle's place or a build's."""
    here = os.path.dirname(os.path.abspath(assay)) if assay else "."
    for name in names:
        if os.path.exists(os.path.join(here, name)):
            return os.path.join(here, name)
    sys.exit(f"{os.path.basename(sys.argv[0])}: no {names[0]} beside {here}")


def pairs_library(assay):
    return beside(assay, "libpairs.so", "../tests/gpu/libpairs.so", "build/tests/gpu/libpairs.so")


class Ours:
    """Our plans on PyTorch's context and stream."""

    def __init__(self, path, blas):
        self.text = ctypes.create_string_buffer(512)
        lib = self.lib = ctypes.CDLL(path)
        text = [ctypes.c_char_p, ctypes.c_size_t]
        lib.pairs_open.restype = ctypes.c_void_p
        lib.pairs_open.argtypes = [ctypes.c_char_p, ctypes.c_char_p] + text
        lib.pairs_plan.argtypes = [ctypes.c_void_p, ctypes.POINTER(Shape)] + text
        lib.pairs_select.argtypes = [ctypes.c_void_p, ctypes.c_uint] + text
        lib.pairs_run.argtypes = [ctypes.c_void_p] + [ctypes.c_uint64] * 5 + [ctypes.c_void_p] + text
        lib.pairs_stamp.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p] + text
        lib.pairs_clock.argtypes = [ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_double)] + text
        lib.pairs_launches.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_double)] + text
        lib.pairs_version.argtypes = [ctypes.c_void_p]
        self.handle = lib.pairs_open(blas.encode() if blas else None, None, self.text, 512)
        if not self.handle:
            sys.exit(f"{os.path.basename(sys.argv[0])}: {self.text.value.decode()}")

    def done(self, failed):
        if failed:
            raise RuntimeError(self.text.value.decode())

    def version(self):
        return self.lib.pairs_version(self.handle)

    def plan(self, shape):
        count = self.lib.pairs_plan(self.handle, ctypes.byref(shape), self.text, 512)
        self.done(not count)
        return count

    def select(self, candidate):
        self.done(self.lib.pairs_select(self.handle, candidate, self.text, 512))
        return self.text.value.decode()

    def run(self, a, b, d, scale):
        pointer = scale.data_ptr() if scale is not None else 0
        self.done(self.lib.pairs_run(self.handle, a.data_ptr(), b.data_ptr(), d.data_ptr(), pointer, pointer,
                                     torch.cuda.current_stream().cuda_stream, self.text, 512))

    def stamp(self, slot, which):
        self.done(self.lib.pairs_stamp(self.handle, slot, which, torch.cuda.current_stream().cuda_stream, self.text, 512))

    def clock(self, slot):
        hz = ctypes.c_double()
        self.done(self.lib.pairs_clock(self.handle, slot, ctypes.byref(hz), self.text, 512))
        return hz.value

    def launches(self, count):
        ns = (ctypes.c_double * count)()
        self.done(self.lib.pairs_launches(self.handle, torch.cuda.current_stream().cuda_stream, count, ns, self.text, 512))
        return list(ns)


def interval(values):
    """Median and its distribution-free 95 % interval by order statistics."""
    x, n = sorted(values), len(values)
    k = 0
    while k + 1 < n // 2 and sum(math.comb(n, i) for i in range(k + 2)) / 2 ** n <= 0.025:
        k += 1
    return statistics.median(x), x[k], x[n - 1 - k]


class Turn:
    """One turn on the stream: its events and the slot of its stamps."""

    def __init__(self, ours, slot, call, count):
        self.ours, self.slot, self.count = ours, slot, count
        self.begin, self.end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        call(0)
        ours.stamp(slot, 0)
        self.begin.record()
        for i in range(count):
            call(i)
        self.end.record()
        ours.stamp(slot, 1)

    def read(self):
        """Milliseconds a call and hertz."""
        return self.begin.elapsed_time(self.end) / self.count, self.ours.clock(self.slot)


def round_of(ours, calls, count, order):
    """A round over `calls` (up to four), `count` of each a turn: for each the milliseconds a call and the clock held."""
    for i in range(count):
        calls[order[0]](i)
    turns = [(side, Turn(ours, n * len(calls) + place, calls[side], count))
             for n in range(TURNS) for place, side in enumerate(order if n % 2 == 0 else order[::-1])]
    torch.cuda.synchronize()
    read = [(side, turn.read()) for side, turn in turns]
    sides = []
    for side in range(len(calls)):
        mine = [r for s, r in read if s == side]
        ms = sum(t for t, _ in mine) / TURNS
        sides.append((ms, sum(t * hz for t, hz in mine) / (ms * TURNS)))
    return sides


def rounds_of(ours, calls, count, rounds):
    """`rounds` rounds, after one that only soaks."""
    orders = list(itertools.permutations(range(len(calls))))
    return [round_of(ours, calls, count, orders[n % len(orders)]) for n in range(-1, rounds)][1:]


def ratio_of(rounds, ours, theirs):
    """Theirs over ours, as measured and in clock cycles: how many times as fast we are."""
    raw = [r[theirs][0] / r[ours][0] for r in rounds]
    cycles = [r[theirs][0] * r[theirs][1] / (r[ours][0] * r[ours][1]) for r in rounds]
    out = {}
    for name, values in (("raw", raw), ("clock_normalised", cycles)):
        middle, low, high = interval(values)
        out[name] = {"ratio": middle, "low": low, "high": high, "n": len(values), "values": values}
    return out


def side_of(rounds, side, flop):
    """Rate and clock of one side over the rounds."""
    ms = statistics.median(r[side][0] for r in rounds)
    return {"tflops": flop / ms / 1e9, "ms": ms, "clock_hz": statistics.median(r[side][1] for r in rounds)}
