#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's CPU engines against their peers, in interleaved pairs (ABBA): NumPy's product on the same library file, and
STREAM with the same stores and threads. Prints the median ratio with its distribution-free 95 % interval as JSON.

  peer_cpu.py gemm   --assay build/src/assay [--type fp32|fp64] [--size 2048] [--pairs 12] [--seconds 1]
  peer_cpu.py stream --assay build/src/assay --stream STREAM.C [--op copy] [--pairs 12] [--times 60] [--cc "gcc -O3"]
                     [--statistic best|mean]

stream.c is not part of this project: give the path of a copy; it is compiled in a temporary folder. A ratio above 1 means
that assay's engine is faster. Best is held against best, mean against mean: of as many iterations, on the same CPUs. "met" asks the interval's lower edge to reach --target (0.98).
"""
import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time


def assay(program, words, seconds, out):
    """One `assay probe`; the case of its results.json."""
    command = [program, "probe", *words, "--seconds", str(seconds), "--out", out]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    path = os.path.join(out, "results.json")
    if not os.path.exists(path):
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    with open(path) as f:
        case = json.load(f)["cases"][0]
    if case["status"] != "ok":
        sys.exit(f"{case['key']}: {case['reason']}")
    return case


def value(case, phase, name):
    for p in case["phases"]:
        if p["phase"] == phase and name in p["values"]:
            return p["values"][name]
    sys.exit(f"{case['key']}: phase {phase} has no {name}")


def median(x):
    x = sorted(x)
    n = len(x)
    return x[n // 2] if n % 2 else (x[n // 2 - 1] + x[n // 2]) / 2


def interval(x):
    """Order statistics that hold the median with at least 95 %; the extremes below six values."""
    x, n, tail, k, term = sorted(x), len(x), 0.0, 0, 0.5 ** len(x)
    while tail + term <= 0.025 and k < n // 2:
        tail += term
        term = term * (n - k) / (k + 1)
        k += 1
    return (x[max(k - 1, 0)], x[n - max(k, 1)])


def pairs(count, ours, theirs):
    """Rates in ABBA order: ours first in even pairs."""
    a, b = [], []
    for i in range(count):
        for side in ((a, ours), (b, theirs)) if i % 2 == 0 else ((b, theirs), (a, ours)):
            side[0].append(side[1]())
    return a, b


def report(what, a, b, args, extra):
    ratios = [x / y for x, y in zip(a, b)]
    low, high = interval(ratios)
    text = json.dumps({"what": what, "pairs": len(ratios), "ratio_median": median(ratios), "ratio_low": low,
                       "ratio_high": high, "target": args.target, "met": low >= args.target,
                       "assay_median": median(a), "peer_median": median(b), "ratios": ratios, **extra}, indent=1)
    print(text)
    if args.out:
        with open(args.out, "w") as f:
            f.write(text + "\n")
    return 0 if low >= args.target else 1


def loaded_blas():
    with open("/proc/self/maps") as f:
        files = {line.split()[-1] for line in f if "blas" in line and line.split()[-1].startswith("/")}
    return sorted(os.path.realpath(p) for p in files)


def gemm(args):
    import numpy
    dtype = numpy.float32 if args.type == "fp32" else numpy.float64
    n, random = args.size, numpy.random.default_rng(1)
    sets = [(random.uniform(-1, 1, (n, n)).astype(dtype), random.uniform(-1, 1, (n, n)).astype(dtype),
             numpy.empty((n, n), dtype)) for _ in range(3)]
    seen = {}

    def theirs():
        times, begin, i = [], time.monotonic(), 0
        while time.monotonic() - begin < 3 * args.seconds or len(times) < 3:  # settled and measured as ours
            a, b, c = sets[i % 3]
            t = time.monotonic()
            numpy.matmul(a, b, out=c)
            times.append(time.monotonic() - t)
            i += 1
        return 2 * n ** 3 / median(times[len(times) * 2 // 3:])

    def ours():
        time.sleep(0.2)  # NumPy's threads spin for a while after their last product
        with tempfile.TemporaryDirectory() as out:
            case = assay(args.assay, ["gemm", f"type={args.type}", f"m={n}", f"n={n}", f"k={n}", "--engine", "openblas"],
                         args.seconds, out)
        seen["assay"] = value(case, "once", "library")
        return 2 * n ** 3 / (value(case, "sustained", "time_ns_median") * 1e-9)

    theirs()
    a, b = pairs(args.pairs, ours, theirs)
    extra = {"unit": "FLOP/s", "numpy": numpy.__version__, "numpy_libraries": loaded_blas(), "assay_library": seen["assay"]}
    extra["same_file"] = any(p in seen["assay"] for p in extra["numpy_libraries"])
    if not extra["same_file"]:
        print("the libraries differ: set ASSAY_LIB_OPENBLAS to NumPy's file", file=sys.stderr)
    return report(f"gemm {args.type} {n} over NumPy", a, b, args, extra)


def cache_bytes():
    """Last-level cache of one instance, as cpu0 tells it."""
    sizes = [int(open(p).read().strip()[:-1]) * 1024 for p in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*/size")]
    return max(sizes or [32 << 20])


def stream_line(program, env, op):
    """Rate by the best time and by the mean time, from STREAM's line: function, best MB/s, mean, least and most seconds."""
    done = subprocess.run([program], stdout=subprocess.PIPE, text=True, env=env, check=True)
    for line in done.stdout.splitlines():
        if line.lower().startswith(op + ":"):
            best, mean, least = (float(x) for x in line.split()[1:4])
            return {"best": best * 1e6, "mean": best * 1e6 * least / mean}
    sys.exit(f"{program} printed no line for {op}")


def compile_stream(args, folder, bytes_each):
    """With the stores that assay uses: regular ones as the compiler makes them of plain loops (memcpy kept out of copy, whose
    stores are the library's choice), or past the cache, which gcc makes of no loop: then the peer must be given --cc."""
    program = os.path.join(folder, "stream")
    command = [*args.cc.split(), "-fopenmp", f"-DSTREAM_ARRAY_SIZE={bytes_each // 8}", f"-DNTIMES={args.times}",
               "-mcmodel=medium", args.stream, "-o", program]
    subprocess.run(command, check=True)
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], stdout=subprocess.PIPE, text=True).stdout
    past_cache = "vmovnt" in code or "movntp" in code
    if past_cache != (args.store == "nontemporal"):
        sys.exit(f"{' '.join(command)}: its stores go {'past' if past_cache else 'through'} the cache, assay's do not: "
                 f"store={args.store}")
    return program, " ".join(command[:-3])


def stream(args):
    bytes_each = args.bytes or max(4 * cache_bytes(), 64 << 20) // 4096 * 4096
    cpus = sorted(os.sched_getaffinity(0))
    threads = args.threads or len(cpus)
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true",
           "OMP_PLACES": ",".join(f"{{{c}}}" for c in cpus[:threads])}  # one thread a CPU, as assay pins its own
    with tempfile.TemporaryDirectory() as folder:
        program, command = compile_stream(args, folder, bytes_each)

        def ours():
            with tempfile.TemporaryDirectory() as out:
                case = assay(args.assay, ["memory", f"op={args.op}", f"store={args.store}", f"size={bytes_each}",
                                          f"threads={threads}"], args.seconds, out)
            work = case["work"]["read_bytes"] + case["work"]["write_bytes"]
            name = "time_ns_min" if args.statistic == "best" else "time_ns_mean"
            return work / (value(case, "sustained", name) * 1e-9)

        a, b = pairs(args.pairs, ours, lambda: stream_line(program, env, args.op)[args.statistic])
    return report(f"memory op={args.op} store={args.store} over STREAM, {args.statistic} with {args.statistic}", a, b, args,
                  {"unit": "B/s", "bytes": bytes_each, "threads": threads, "statistic": args.statistic, "built": command})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["gemm", "stream"])
    parser.add_argument("--assay", required=True)
    parser.add_argument("--pairs", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--target", type=float, default=0.98)
    parser.add_argument("--type", choices=["fp32", "fp64"], default="fp32")
    parser.add_argument("--size", type=int, default=2048)
    parser.add_argument("--op", choices=["copy", "scale", "add", "triad"], default="copy")
    parser.add_argument("--store", default="regular")
    parser.add_argument("--stream")
    parser.add_argument("--bytes", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--statistic", choices=["best", "mean"], default="best")
    parser.add_argument("--out", help="write the JSON there as well")
    parser.add_argument("--cc", default="gcc -O3 -march=native -fno-tree-loop-distribute-patterns")
    args = parser.parse_args()
    if args.what == "stream" and not args.stream:
        parser.error("--stream: the path of stream.c")
    sys.exit(gemm(args) if args.what == "gemm" else stream(args))


if __name__ == "__main__":
    main()
