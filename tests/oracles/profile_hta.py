#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What Holistic Trace Analysis (PyPI: HolisticTraceAnalysis) reads in a trace of `assay profile`, against its summary.

usage: profile_hta.py RUN     exits 1 where a count differs, or a time by more than HTA's rounding to whole microseconds"""
import csv
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
from hta.trace_analysis import TraceAnalysis  # noqa: E402

run = os.path.abspath(sys.argv[1])
analysis = TraceAnalysis(trace_files={0: run + "/trace.json"}, trace_dir="/")
wrong = 0


def hold(what, ours, theirs, slack):
    global wrong
    good = abs(ours - theirs) <= slack
    wrong += not good
    print(f"{'ok' if good else 'WRONG'}: {what}: assay {ours:.3f}, HTA {theirs:.3f}, slack {slack:.3f}")


with open(run + "/summary.csv", newline="") as f:
    rows = [r for r in csv.DictReader(f)]
with open(run + "/summary.json") as f:
    devices = json.load(f)["devices"]
frame = analysis.t.get_trace(0) if hasattr(analysis.t, "get_trace") else analysis.t.traces[0]
names = analysis.t.symbol_table.get_sym_table()
frame = frame.assign(text=[names[i] for i in frame["name"]])
for row in rows:
    if row["kind"] not in ("kernel", "runtime"):
        continue
    mine = frame[frame["text"] == row["name"]]
    if row["kind"] == "kernel":
        mine = mine[mine["stream"] >= 0]
    count = int(row["count"])
    hold(row["kind"] + " " + row["name"] + ", count", count, len(mine), 0)
    hold(row["kind"] + " " + row["name"] + ", us", float(row["total_ns"]) / 1e3, float(mine["dur"].sum()), count)
broken_down = analysis.get_temporal_breakdown(visualize=False).iloc[0]
busy = float(broken_down["compute_time(us)"] + broken_down["non_compute_time(us)"])
events = sum(int(r["count"]) for r in rows if r["kind"] in ("kernel", "copy", "set"))
hold("device busy, us", sum(d["busy_ns"] for d in devices) / 1e3, busy, events)
sys.exit(1 if wrong else 0)
