#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time that monitors of GPUs take for a refresh, with the calls of NVML apart.
usage: peer_top.py --out DIR --nvml FILE --proxy FILE [--seconds 30] [--hold BYTES] NAME=COMMAND ...

Each program runs on a terminal of 50 x 160, one after the other, and refreshes once a second: first five seconds to settle, then a window in which
calls of NVML are only counted, then a window in which each call is timed. tests/nvml_proxy takes NVML's place and does both. With --hold all
programs run a second time, while a process holds so much memory on each GPU. Each program whose name begins with assay is compared with the
others. `assay-gpus="assay top --interval 1s --gpus-only"` reads about what nvtop reads.

CPU time is that of the program and all its children by each process's own clock, which keeps the time of threads that have ended. own is without
the calls of NVML. NVML is the CPU time of the calling threads within them: neither sleep nor work of the driver's own threads is in it. untimed is the
total of the first window. It should agree with own + NVML. Windows are multiples of 30 s, because assay top reads some values only every 30 s.
DIR gets peers.json, peers.txt and the screen of each program at its end. A program that shows no temperatures is absent, with its last words."""
import argparse
import ctypes
import fcntl
import json
import mmap
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

from terminal import Screen

ROWS, COLUMNS = 50, 160
SHOWN_WITHIN_S = 20
PERIOD_S = 30
HEAD, FUNCTION = struct.Struct("<8Q"), struct.Struct("<3Q")
TEMPERATURE = re.compile(r"\d+ ?(°|℃)? ?C\b|\d+ ?℃|\d+ ?°")
# Calls that a program makes once for each GPU and refresh. The first one that it makes often enough counts its refreshes.
MARKERS = ["nvmlDeviceGetUtilizationRates", "nvmlDeviceGetPowerUsage", "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo",
           "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperatureV"]


def function_names():
    here = os.path.dirname(os.path.abspath(__file__))
    with open(f"{here}/../nvml_proxy/functions.h") as f:
        return re.findall(r"^\tX\((\w+)\)", f.read(), re.M)


def is_assay(name):
    return name.startswith("assay")


def environment(name, a, sums):
    env = {k: v for k, v in os.environ.items() if not k.startswith("NVML_PROXY_")}
    env.update(TERM="xterm-256color", LC_ALL="C.UTF-8", NVML_PROXY_REAL=a.nvml, NVML_PROXY_DIR=sums, ASSAY_LIB_NVML=a.proxy)
    # Python's ctypes before 3.12.8 crashes if dlsym answers NULL for a resolver. nvtop ends if a function is missing.
    env["NVML_PROXY_MISSING"] = "null" if is_assay(name) else "error"
    env["LD_LIBRARY_PATH"] = ":".join([f"{a.out}/nvml"] + [p for p in [os.environ.get("LD_LIBRARY_PATH")] if p])
    return env


def family(root):
    """The processes below root, itself included."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat") as f:
                    parents[int(name)] = int(f.read().rsplit(") ", 1)[1].split()[1])
            except OSError:
                pass
    found, more = {root}, True
    while more:
        more = [p for p, parent in parents.items() if parent in found and p not in found]
        found.update(more)
    return found


def cpu_times(root):
    """Of each process: ns by its own clock, and its name."""
    out = {}
    for p in family(root):
        try:
            clock = time.clock_gettime_ns((~p << 3) | 2)
            with open(f"/proc/{p}/cmdline", "rb") as f:
                words = f.read().decode(errors="replace").split("\0")
        except OSError:
            continue
        out[p] = (clock, " ".join([os.path.basename(words[0])] + words[1:4]).strip())
    return out


class Run:
    """A program on a terminal of its own."""

    def __init__(self, command, env):
        self.chunks, self.ended = [], False
        self.begun = time.monotonic()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
                os.execvpe(command[0], command, env)
            except OSError as e:
                print(e)
            os._exit(127)

    def pump(self, until):
        """Takes output until so many seconds after the start. False: the program has ended."""
        while not self.ended and (left := self.begun + until - time.monotonic()) > 0:
            if select.select([self.fd], [], [], left)[0]:
                try:
                    data = os.read(self.fd, 65536)
                except OSError:
                    data = b""
                if data:
                    self.chunks.append((time.monotonic() - self.begun, data))
                else:
                    self.ended = True
        return not self.ended

    def finish(self):
        processes = {self.pid} if self.ended else family(self.pid)
        for s in (signal.SIGTERM, signal.SIGKILL):
            for p in processes:
                try:
                    os.kill(p, s)
                except OSError:
                    pass
            end = time.monotonic() + 0.5
            while time.monotonic() < end:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    os.close(self.fd)
                    return
                time.sleep(0.01)
        os.waitpid(self.pid, 0)
        os.close(self.fd)

    def text(self):
        screen = Screen(ROWS, COLUMNS)
        for _, data in self.chunks:
            screen.feed(data)
        return screen.text()

    def values_ms(self, gpus):
        """ms until the screen had a temperature for each GPU."""
        screen = Screen(ROWS, COLUMNS)
        for at, data in self.chunks:
            screen.feed(data)
            if len(TEMPERATURE.findall(screen.text())) >= gpus:
                return 1000 * at
            if at > SHOWN_WITHIN_S:
                break
        return None


class Sums:
    """What the library in place of NVML has counted, in all processes of a program."""

    def __init__(self, folder, names):
        self.folder, self.names = folder, names
        os.makedirs(folder)
        with open(f"{folder}/control", "wb") as f:
            f.write(b"\0")
        with open(f"{folder}/control", "r+b") as f:
            self.control = mmap.mmap(f.fileno(), 1)

    def time_calls(self, on):
        self.control[0] = on

    def read(self):
        """Of each process: calls, timed calls and ns of each function, and ns that the timing of a call adds inside and outside of it."""
        out = {}
        for name in os.listdir(self.folder):
            with open(f"{self.folder}/{name}", "rb") as f:
                data = f.read()
            if name.endswith(".sum") and len(data) >= HEAD.size + FUNCTION.size * len(self.names):
                head = HEAD.unpack_from(data)
                out[int(name[:-4])] = {"inside": head[2], "outside": head[3],
                                       "of": [FUNCTION.unpack_from(data, HEAD.size + FUNCTION.size * i) for i in range(len(self.names))]}
        return out


def refreshes(calls, seconds, gpus):
    """How often the program read the GPUs, and by which call that was counted."""
    for marker in MARKERS:
        n = calls.get(marker, 0) / gpus
        if 0.5 * seconds <= n <= 1.5 * seconds:
            return n, marker
    return seconds, "nominal: one a second"


def window(before, after, names, gpus, timed):
    """The figures between two marks, each a time, the CPU times and the sums. CPU times are ms per refresh."""
    seconds = after[0] - before[0]
    calls, ns, none = {}, {}, [(0, 0, 0)] * len(names)
    own, driver, total, by_process = 0.0, 0.0, 0.0, {}
    for pid, (clock, name) in after[1].items():
        spent = clock - before[1].get(pid, (0, name))[0]
        sums = after[2].get(pid, {"inside": 0, "outside": 0, "of": none})
        earlier = before[2].get(pid, {"of": none})["of"]
        timed_calls = timed_ns = 0
        for function, now, then in zip(names, sums["of"], earlier):
            if now[0] > then[0]:
                calls[function] = calls.get(function, 0) + now[0] - then[0]
                ns[function] = ns.get(function, 0) + now[2] - then[2]
                timed_calls, timed_ns = timed_calls + now[1] - then[1], timed_ns + now[2] - then[2]
        own_here = spent - timed_ns - timed_calls * sums["outside"]
        by_process[f"{pid} {name}"] = own_here
        total, own, driver = total + spent, own + own_here, driver + timed_ns - timed_calls * sums["inside"]
    n, marker = refreshes(calls, seconds, gpus)
    out = {"seconds": seconds, "refreshes": n, "counted_by": marker, "total_ms": total / n / 1e6, "calls": sum(calls.values()) / n,
           "functions": {k: {"calls": v / n, "us": ns[k] / v / 1e3} for k, v in sorted(calls.items(), key=lambda kv: -ns[kv[0]])}}
    if timed:
        out.update(own_ms=own / n / 1e6, driver_ms=driver / n / 1e6, own_ms_of={k: v / n / 1e6 for k, v in by_process.items()})
    return out


def measure(name, command, a, names, phase):
    sums = Sums(f"{a.out}/sums/{name}-{phase}", names)
    run = Run(command, environment(name, a, sums.folder))
    marks = []
    try:
        for at, on in ((a.settle, 0), (a.settle + a.seconds, 1), (a.settle + 2 * a.seconds, 0)):
            if not run.pump(at):
                break
            marks.append((time.monotonic() - run.begun, cpu_times(run.pid), sums.read()))
            sums.time_calls(on)
    finally:
        run.finish()
    text, values = run.text(), run.values_ms(a.gpus)
    with open(f"{a.out}/{name}.{phase}.screen", "w") as f:
        f.write(text + "\n")
    if len(marks) < 3:
        return {"absent": text[-400:].strip() or "it ended"}
    if values is None:
        return {"absent": f"no temperatures of {a.gpus} GPUs on its screen within {SHOWN_WITHIN_S} s: see {name}.{phase}.screen"}
    written = sum(len(d) for at, d in run.chunks if at > marks[0][0])
    return {"command": shlex.join(command), "values_ms": values, "bytes_per_s": written / (marks[2][0] - marks[0][0]),
            "untimed": window(marks[0], marks[1], names, a.gpus, False), "timed": window(marks[1], marks[2], names, a.gpus, True)}


def gpu_count(nvml):
    code = ("import ctypes, sys\nl = ctypes.CDLL(sys.argv[1])\nn = ctypes.c_uint()\n"
            "r = l.nvmlInit_v2() or l.nvmlDeviceGetCount_v2(ctypes.byref(n))\nsys.exit(f'NVML: error {r}') if r else print(n.value)")
    done = subprocess.run([sys.executable, "-c", code, nvml], capture_output=True, text=True)
    if done.returncode or int(done.stdout) < 1:
        sys.exit(f"peer_top: {nvml}: {(done.stderr or 'no GPU').strip().splitlines()[-1]}")
    return int(done.stdout)


def hold(size):
    """In a process of its own: holds memory on each GPU until it is killed."""
    cuda = ctypes.CDLL(os.environ.get("ASSAY_LIB_CUDA", "libcuda.so.1"))

    def call(name, *args):
        ret = getattr(cuda, name)(*args)
        if ret:
            raise OSError(f"{name}: {ret}")
    call("cuInit", 0)
    count = ctypes.c_int()
    call("cuDeviceGetCount", ctypes.byref(count))
    for i in range(count.value):
        device, context, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
        call("cuDeviceGet", ctypes.byref(device), i)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))


def holder(size):
    """The process that holds memory, and why there is none."""
    said, says = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            hold(size)
            os.write(says, b"ready")
        except (OSError, AttributeError) as e:
            os.write(says, str(e).encode())
        signal.pause()
    words = os.read(said, 1000).decode() if select.select([said], [], [], 30)[0] else "it was not ready within 30 s"
    os.close(said)
    os.close(says)
    return pid, None if words == "ready" else words


def ratios(results):
    """The cheapest peer, and for each program of assay its own time divided by the peer's."""
    own = {k: v["timed"]["own_ms"] for k, v in results.items() if "timed" in v}
    peers = {k: v for k, v in own.items() if not is_assay(k)}
    if not peers:
        return None, {}
    best = min(peers, key=peers.get)
    return best, {k: v / peers[best] for k, v in own.items() if is_assay(k)}


def own_by_role(part):
    """assay's own time by process. nvtop shows nothing of the host, of ports and of runs."""
    own = {}
    for label, ms in part["own_ms_of"].items():
        words = label.split()
        role = words[3] if words[2:3] == ["__watch"] and len(words) > 3 else words[2] if len(words) > 2 else label
        own[role] = own.get(role, 0) + ms
    return own, sum(v for k, v in own.items() if k not in ("host", "ports", "runs"))


def table(out):
    lines = [f"{out['gpus']} GPUs, terminal {ROWS} x {COLUMNS}, one refresh a second. ms of CPU time per refresh, all processes of a program"]
    for phase, results in out["phases"].items():
        lines += ["", phase, f"  {'':12} {'own':>8} {'NVML':>8} {'total':>8} {'untimed':>8} {'calls':>7} {'refreshes':>9} {'values':>10} {'bytes/s':>8}"]
        if "absent" in results:
            lines.append(f"  not measured: {results['absent']}")
            continue
        for name, r in results.items():
            if "absent" in r:
                lines.append(f"  {name:12} not measured: {' '.join(r['absent'].split())[-300:]}")
                continue
            t = r["timed"]
            lines.append(f"  {name:12} {t['own_ms']:8.3f} {t['driver_ms']:8.3f} {t['own_ms'] + t['driver_ms']:8.3f} {r['untimed']['total_ms']:8.3f}"
                         f" {t['calls']:7.1f} {t['refreshes']:9.1f} {r['values_ms']:7.1f} ms {r['bytes_per_s']:8.0f}")
        best, shares = ratios(results)
        for name, share in shares.items():
            own, fewer = own_by_role(results[name]["timed"])
            lines.append(f"  {name}'s own time by process: " + ", ".join(f"{k} {v:.3f}" for k, v in own.items()))
            lines.append(f"  without host, ports and runs: {fewer:.3f} ms, {fewer / results[best]['timed']['own_ms']:.2f} times {best}'s")
            lines.append(f"  {name}'s own time is {share:.2f} times {best}'s (target: at most 0.5)")
    return "\n".join(lines) + f"\n\ntook {out['took_s']:.0f} s\n"


def options():
    words = argparse.ArgumentParser(description="CPU time of GPU monitors per refresh, with the calls of NVML apart")
    words.add_argument("--out", required=True, help="folder, new")
    words.add_argument("--nvml", required=True, help="path of NVML's library")
    words.add_argument("--proxy", required=True, help="path of libnvml_proxy.so")
    words.add_argument("--seconds", type=float, default=PERIOD_S, help="length of a window: a multiple of 30")
    words.add_argument("--any-window", action="store_true", help="for tests: windows of any length")
    words.add_argument("--settle", type=float, default=5, help="seconds before the first window")
    words.add_argument("--hold", type=int, default=0, help="bytes of each GPU that a process holds in a second phase; 0: no second phase")
    words.add_argument("programs", nargs="+", metavar="NAME=COMMAND")
    a = words.parse_args()
    if a.seconds <= 0 or (a.seconds % PERIOD_S and not a.any_window):
        words.error(f"--seconds {a.seconds:g} is no multiple of {PERIOD_S}, so rows that are read every {PERIOD_S} s would count too much or not at all")
    a.out, a.nvml, a.proxy = map(os.path.abspath, (a.out, a.nvml, a.proxy))
    a.programs = {name: shlex.split(command) for name, command in (p.split("=", 1) for p in a.programs)}
    return a


def main():
    begun, a, names = time.monotonic(), options(), function_names()
    os.makedirs(f"{a.out}/nvml")
    for name in ("libnvidia-ml.so.1", "libnvidia-ml.so"):
        os.symlink(a.proxy, f"{a.out}/nvml/{name}")
    a.gpus = gpu_count(a.nvml)
    out = {"gpus": a.gpus, "phases": {"idle": {n: measure(n, c, a, names, "idle") for n, c in a.programs.items()}}}
    if a.hold:
        pid, why = holder(a.hold)
        try:
            out["phases"]["held"] = {"absent": why} if why else {n: measure(n, c, a, names, "held") for n, c in a.programs.items()}
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
    out["took_s"] = time.monotonic() - begun
    shutil.rmtree(f"{a.out}/sums")
    shutil.rmtree(f"{a.out}/nvml")
    with open(f"{a.out}/peers.json", "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    with open(f"{a.out}/peers.txt", "w") as f:
        f.write(table(out))
    print(table(out), end="")


main()
