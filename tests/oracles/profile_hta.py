#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Holistic Trace Analysis (PyPI: HolisticTraceAnalysis) reads in the traces of `assay profile`, against its summary.

usage: profile_hta.py RUN [FILE]     exits 1 where a count differs, or a time by more than HTA's rounding to whole microseconds
FILE: what HTA read, a line each: what, its number, the slack (tabs); tests/end2end/profile_hta.sh holds later builds against one.

HTA cuts each event to whole microseconds, inwards: up to two are lost an event, and of a union as many. Its idle time runs to the
last event with a stream, which waits of the host for one are too: what they lie beyond the device's own is taken off."""
import csv
import glob
import json
import os
import re
import sys
import warnings

warnings.filterwarnings("ignore")
from hta.trace_analysis import TraceAnalysis  # noqa: E402

run = os.path.abspath(sys.argv[1])
with open(run + "/summary.json") as f:
    summary = json.load(f)
files = {int(re.search(r"rank-(\d+)-pid", path)[1]): path for path in glob.glob(run + "/ranks/rank-*.json.gz")}
files = files or {0: run + "/trace.json.gz"}
analysis = TraceAnalysis(trace_files=files, trace_dir="/")
wrong, told = 0, []


def hold(what, ours, theirs, slack):
    global wrong
    good = abs(ours - theirs) <= slack
    wrong += not good
    told.append(f"{what}\t{theirs:.3f}\t{slack:.3f}\n")
    print(f"{'ok' if good else 'WRONG'}: {what}: assay {ours:.3f}, HTA {theirs:.3f}, slack {slack:.3f}")


def pid_of(rank):
    if len(files) == 1:
        return summary["processes"][0]["pid"]
    return next(p["pid"] for p in summary["processes"] if p.get("rank") == rank)


def hold_rows(frames, names):
    """Kernels and calls of all ranks by name."""
    with open(run + "/summary.csv", newline="") as f:
        rows = [r for r in csv.DictReader(f) if r["kind"] in ("kernel", "runtime")]
    for row in rows:
        count, us = 0, 0.0
        for frame in frames:
            mine = frame[frame["name"].map(lambda i: names[i]) == row["name"]]
            mine = mine[mine["stream"] >= 0] if row["kind"] == "kernel" else mine
            count, us = count + len(mine), us + float(mine["dur"].sum())
        hold(f"{row['kind']} {row['name']}, count", int(row["count"]), count, 0)
        hold(f"{row['kind']} {row['name']}, us", float(row["total_ns"]) / 1e3, us, 2 * count)


def beyond_us(frame):
    """How far waits for streams reach beyond what the device does."""
    streams = frame[frame["stream"] >= 0]
    names = analysis.t.symbol_table.get_sym_table()
    device = streams[streams["cat"].map(lambda i: names[i] != "cuda_sync")]
    span = [int((f["ts"] + f["dur"]).max()) - int(f["ts"].min()) for f in (streams, device)]
    return span[0] - span[1]


def beside_nccl(frame, names):
    """Operations of NCCL's, and the events of the device that run beside one."""
    device = frame[frame["stream"] >= 0]
    ours = device["name"].map(lambda i: names[i].startswith("nccl"))
    begins, ends = device["ts"], device["ts"] + device["dur"]
    beside = sum(int(((begins < e) & (ends > b) & ~ours).sum()) for b, e in zip(begins[ours], ends[ours]))
    return int(ours.sum()), beside


def hold_devices(events):
    """Idle, compute and overlap of each rank."""
    temporal = analysis.get_temporal_breakdown(visualize=False).set_index("rank")
    overlap = analysis.get_comm_comp_overlap(visualize=False).set_index("rank")
    for rank in sorted(files):
        pid = pid_of(rank)
        ours = next(d for d in summary["breakdown"] if d["pid"] == pid)
        theirs, slack = temporal.loc[rank], events[rank]
        idle = (ours["span_ns"] - ours["busy_ns"]) / 1e3
        hold(f"pid {pid} idle, us", idle, float(theirs["idle_time(us)"]) - beyond_us(frames[rank]), slack)
        hold(f"pid {pid} compute, us", ours["compute_ns"] / 1e3, float(theirs["compute_time(us)"]), slack)
        busy = float(theirs["compute_time(us)"] + theirs["non_compute_time(us)"])
        hold(f"pid {pid} busy, us", ours["busy_ns"] / 1e3, busy, slack)
        reasons = sum(ours["states_ns"].values())
        hold(f"pid {pid} states add up, ns", reasons, ours["span_ns"], 0)
        if ours["communication_ns"]:
            share = 100 * ours["communication_hidden_ns"] / ours["communication_ns"]
            # A microsecond at each end of what is cut, and HTA's two decimals.
            operations, beside = beside_nccl(frames[rank], analysis.t.symbol_table.get_sym_table())
            slack = 100 * 1e3 * (2 * operations + beside) / ours["communication_ns"] + 0.005
            hold(f"pid {pid} overlap, %", share, float(overlap.loc[rank]["comp_comm_overlap_pctg"]), slack)


def hold_kinds(events):
    """What kernels of each kind took, all ranks."""
    kinds, _ = analysis.get_gpu_kernel_breakdown(visualize=False, include_memory_kernels=True)
    theirs = dict(zip(kinds["kernel_type"], kinds["sum"]))
    for name in ("compute_ns", "communication_ns"):
        kind = "COMPUTATION" if name == "compute_ns" else "COMMUNICATION"
        # HTA splits what overlaps into kinds of their own ("COMPUTATION overlapping COMMUNICATION").
        us = sum(float(v) for k, v in theirs.items() if kind in k.split(" overlapping "))
        counted = sum(r["count"] for r in summary["nccl"]["rows"])
        slack = 2 * counted if kind == "COMMUNICATION" else sum(events.values())
        hold(f"{kind.lower()}, us", sum(d[name] for d in summary["breakdown"]) / 1e3, us, slack)


frames = {rank: analysis.t.get_trace(rank) for rank in files}
events = {rank: 2 * int((frame["stream"] >= 0).sum()) for rank, frame in frames.items()}
hold_rows(frames.values(), analysis.t.symbol_table.get_sym_table())
hold_devices(events)
hold_kinds(events)
if len(sys.argv) > 2:
    with open(sys.argv[2], "w") as f:
        f.writelines(told)
sys.exit(1 if wrong else 0)
