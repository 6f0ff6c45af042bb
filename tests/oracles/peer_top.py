#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Screens of GPU monitors on a pseudo terminal, in turns: time to the first screen with a GPU's figures, CPU time of a refresh.
usage: peer_top.py --seconds 10 --rounds 3 NAME=COMMAND ...
Prints one JSON object: for each name the medians and the rounds. A command that does not start is absent, with its reason.
CPU time is that of the command and of all its children. It is measured between two readings of /proc, one when the first screen
is complete and one at the end, so that the start does not count. Driver calls are shown apart: they are ioctls, so their time is
system time of the processes that have opened /dev/nvidia*. cpu_s_per_s has all, driver_s_per_s the calls, own_s_per_s the rest.
The kernel counts system time in ticks of 10 ms, so measure for 10 s or longer.
"""
import argparse
import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import statistics
import struct
import sys
import termios
import time

TICKS = os.sysconf("SC_CLK_TCK")
# A figure of a GPU: a temperature, or memory in use beside all of it. A screen without values shows neither.
FIGURE = re.compile(rb"\d+ ?(\xc2\xb0 ?|\xe2\x84\x83)?C\b|\d+ ?\xe2\x84\x83|\d+ ?\xc2\xb0")


def family(root):
    """The processes below root, itself included."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                parents[int(name)] = int(open(f"/proc/{name}/stat").read().rsplit(") ", 1)[1].split()[1])
            except OSError:
                pass
    found, more = {root}, True
    while more:
        more = [p for p, parent in parents.items() if parent in found and p not in found]
        found.update(more)
    return found


def cpu_seconds(root):
    """Nanoseconds that the scheduler counted for each thread, where the kernel tells them; else the ticks of each process."""
    total = 0.0
    for p in family(root):
        try:
            total += sum(int(open(f"/proc/{p}/task/{t}/schedstat").read().split()[0]) for t in os.listdir(f"/proc/{p}/task")) / 1e9
        except OSError:
            try:
                fields = open(f"/proc/{p}/stat").read().rsplit(") ", 1)[1].split()
                total += (int(fields[11]) + int(fields[12])) / TICKS
            except OSError:
                pass
    return total


def driver_seconds(root):
    """System time of those processes that have a file of NVIDIA's driver open."""
    total = 0.0
    for p in family(root):
        try:
            files = [os.readlink(f"/proc/{p}/fd/{n}") for n in os.listdir(f"/proc/{p}/fd")]
            if any(f.startswith("/dev/nvidia") for f in files):
                total += int(open(f"/proc/{p}/stat").read().rsplit(") ", 1)[1].split()[12]) / TICKS
        except OSError:
            pass
    return total


def plain(seen):
    """The text of a screen without control sequences. In the character set of lines (nvtop, htop) "f" is the degree sign."""
    seen = re.sub(rb"\x1b\(0(.*?)\x1b\(B", lambda m: m.group(1).replace(b"f", "°".encode()), seen, flags=re.S)
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b\([A-Z0]", b"", seen)


def watch(command, seconds):
    begun = time.monotonic()
    pid, fd = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", LC_ALL="C.UTF-8")
        try:
            os.execvp(command[0], command)
        except OSError as e:
            print(e)
            os._exit(127)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 160, 0, 0))
    seen, first, before, calls, at, written = b"", None, None, 0.0, None, 0
    try:
        while time.monotonic() - begun < seconds + (first or 20):
            if select.select([fd], [], [], 0.02)[0]:
                try:
                    got = os.read(fd, 65536)
                except OSError:
                    break
                written += len(got)
                if first is None:
                    seen = (seen + got)[-200000:]
                    if FIGURE.search(plain(seen)):
                        first = time.monotonic() - begun
            if first is not None and before is None and time.monotonic() - begun > first + 2:
                before, calls, at = cpu_seconds(pid), driver_seconds(pid), time.monotonic()
        if before is None:
            return {"absent": re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen[-300:]).decode(errors="replace").strip() or "no figure of a GPU within 20 s"}
        took = time.monotonic() - at
        cpu, driver = (cpu_seconds(pid) - before) / took, (driver_seconds(pid) - calls) / took
        return {"first_s": round(first, 4), "cpu_s_per_s": cpu, "driver_s_per_s": driver, "own_s_per_s": max(cpu - driver, 0.0), "bytes": written}
    finally:
        for p in family(pid):
            try:
                os.kill(p, signal.SIGTERM)
            except OSError:
                pass
        time.sleep(0.3)
        for p in family(pid):
            try:
                os.kill(p, signal.SIGKILL)
            except OSError:
                pass
        os.close(fd)
        os.waitpid(pid, 0)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("--seconds", type=float, default=10)
    words.add_argument("--rounds", type=int, default=3)
    words.add_argument("programs", nargs="+")
    a = words.parse_args()
    runs = {}
    for _ in range(a.rounds):
        for program in a.programs:
            name, command = program.split("=", 1)
            if "absent" not in (runs.get(name) or [{}])[-1]:
                runs.setdefault(name, []).append(watch(shlex.split(command), a.seconds))
    out = {}
    for name, rounds in runs.items():
        good = [r for r in rounds if "absent" not in r]
        out[name] = {"rounds": rounds}
        for key in ("first_s", "cpu_s_per_s", "driver_s_per_s", "own_s_per_s"):
            if good:
                out[name][key] = statistics.median(r[key] for r in good)
    json.dump(out, sys.stdout, indent=1)
    print()


main()
