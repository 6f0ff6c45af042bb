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
import time

import torch

TURNS = 4  # of a side in a round


class Shape(ctypes.Structure):
    _fields_ = [("a", ctypes.c_char_p), ("b", ctypes.c_char_p), ("d", ctypes.c_char_p), ("compute", ctypes.c_char_p),
                ("m", ctypes.c_uint64), ("n", ctypes.c_uint64), ("k", ctypes.c_uint64),
                ("transpose_a", ctypes.c_int32), ("transpose_b", ctypes.c_int32), ("fast", ctypes.c_int32),
                ("scaled", ctypes.c_int32), ("candidates", ctypes.c_uint32)]


class Arrays(ctypes.Structure):
    """Of the memory kernels: device addresses, `count` floats each; partial: doubles."""
    _fields_ = [(name, ctypes.c_uint64) for name in ("in0", "in1", "out", "partial", "partial_count", "count")]
    _fields_ += [("factor", ctypes.c_float)]


class Launch(ctypes.Structure):
    """A memory kernel's launch shape. rung 0: the device's own number `index`; BULK: bulk copies."""
    _fields_ = [(name, ctypes.c_uint32) for name in ("rung", "index", "threads", "per_sm", "resident", "tile_bytes", "stages",
                                                     "evict_first")]
    BULK = 11


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


def stream():
    return torch.cuda.current_stream().cuda_stream


class Ours:
    """libpairs.so on PyTorch's context and stream: the clock, launches."""

    def __init__(self, path):
        self.text = ctypes.create_string_buffer(512)
        self.lib = ctypes.CDLL(path)
        self.declare("open", ctypes.c_char_p, returns=ctypes.c_void_p)
        self.declare("stamp", ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, ctypes.c_void_p)
        self.declare("clock", ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_double))
        self.declare("launches", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.POINTER(ctypes.c_double))
        self.handle = self.lib.pairs_open(None, self.text, 512)
        if not self.handle:
            sys.exit(f"{os.path.basename(sys.argv[0])}: {self.text.value.decode()}")

    def declare(self, name, *arguments, returns=ctypes.c_int):
        """Every call but few ends in the text for its error and its size."""
        function = getattr(self.lib, "pairs_" + name)
        function.restype = returns
        function.argtypes = [*arguments, ctypes.c_char_p, ctypes.c_size_t]

    def done(self, failed):
        if failed:
            raise RuntimeError(self.text.value.decode())

    def stamp(self, slot, which):
        self.done(self.lib.pairs_stamp(self.handle, slot, which, stream(), self.text, 512))

    def clock(self, slot):
        hz = ctypes.c_double()
        self.done(self.lib.pairs_clock(self.handle, slot, ctypes.byref(hz), self.text, 512))
        return hz.value

    def launches(self, count):
        ns = (ctypes.c_double * count)()
        self.done(self.lib.pairs_launches(self.handle, stream(), count, ns, self.text, 512))
        return list(ns)


class Products(Ours):
    """Our matrix plans."""

    def __init__(self, path, blas):
        super().__init__(path)
        self.declare("matmul", ctypes.c_void_p, ctypes.c_char_p)
        self.declare("plan", ctypes.c_void_p, ctypes.POINTER(Shape), returns=ctypes.c_uint)
        self.declare("select", ctypes.c_void_p, ctypes.c_uint)
        self.declare("run", ctypes.c_void_p, *[ctypes.c_uint64] * 5, ctypes.c_void_p)
        self.lib.pairs_version.argtypes = [ctypes.c_void_p]
        if self.lib.pairs_matmul(self.handle, blas.encode() if blas else None, self.text, 512):
            sys.exit(f"{os.path.basename(sys.argv[0])}: {self.text.value.decode()}")

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
        self.done(self.lib.pairs_run(self.handle, a.data_ptr(), b.data_ptr(), d.data_ptr(), pointer, pointer, stream(),
                                     self.text, 512))


class Moves(Ours):
    """Our memory kernels (Move), the driver's copy and fill, the link."""

    def __init__(self, path):
        super().__init__(path)
        self.declare("move_open", ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(Launch), ctypes.POINTER(Arrays),
                     returns=ctypes.c_void_p)
        self.declare("move_run", ctypes.c_void_p, ctypes.c_void_p)
        self.declare("move_sum", ctypes.c_void_p, ctypes.POINTER(ctypes.c_double))
        self.lib.pairs_move_close.argtypes = [ctypes.c_void_p]
        self.lib.pairs_move_close.restype = None
        self.declare("copy", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)
        self.declare("fill", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p)
        self.declare("copy_to", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p)
        self.declare("copy_from", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p)

    def copy(self, to, source):
        self.done(self.lib.pairs_copy(self.handle, to.data_ptr(), source.data_ptr(), bytes_of(to), stream(), self.text, 512))

    def fill(self, to, word):
        self.done(self.lib.pairs_fill(self.handle, to.data_ptr(), word, bytes_of(to) // 4, stream(), self.text, 512))

    def copy_to(self, to, host):
        self.done(self.lib.pairs_copy_to(self.handle, to.data_ptr(), host.data_ptr(), bytes_of(to), stream(), self.text, 512))

    def copy_from(self, host, source):
        self.done(self.lib.pairs_copy_from(self.handle, host.data_ptr(), source.data_ptr(), bytes_of(host), stream(),
                                           self.text, 512))


class Move:
    """One memory kernel in one launch shape over arrays that the caller keeps."""

    def __init__(self, moves, op, launch, arrays):
        self.moves = moves
        self.handle = moves.lib.pairs_move_open(moves.handle, op.encode(), ctypes.byref(launch), ctypes.byref(arrays),
                                                moves.text, 512)
        moves.done(not self.handle)
        self.name = moves.text.value.decode()

    def run(self):
        self.moves.done(self.moves.lib.pairs_move_run(self.handle, stream(), self.moves.text, 512))

    def sum(self):
        """What the last run of a read or dot summed."""
        total = ctypes.c_double()
        self.moves.done(self.moves.lib.pairs_move_sum(self.handle, ctypes.byref(total), self.moves.text, 512))
        return total.value

    def close(self):
        self.moves.lib.pairs_move_close(self.handle)


def bytes_of(tensor):
    return tensor.numel() * tensor.element_size()


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


def rounds_of(ours, calls, count, rounds, seconds=math.inf):
    """`rounds` rounds after one that only soaks, or fewer: none begins when `seconds` are over."""
    orders = list(itertools.permutations(range(len(calls))))
    began, got = time.monotonic(), []
    round_of(ours, calls, count, orders[-1])
    while len(got) < rounds and time.monotonic() - began < seconds:
        got.append(round_of(ours, calls, count, orders[len(got) % len(orders)]))
    return got


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
