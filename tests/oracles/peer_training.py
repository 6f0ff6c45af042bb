#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's training and generation on the CPU against their peers: rounds in turns (ABBA), each process fresh, as many threads as CPUs.
usage: peer_training.py STEP --assay PROGRAM --out FOLDER [--model GGUF] [--rows FOLDER] [--rounds 5] [--limit SECONDS] [--tokens 128]
                        [--works bfcl full] [--steps 3] [--length 400] [--before PROGRAM]
       peer_training.py table --out FOLDER
  train    tokens/s beside transformers and PEFT (peer_train.py): bfcl's rows, of which a seventh are targets, and full rows, all of
           whose tokens are; the first step of each process is left out, and both must have had the same tokens and targets
  decode   tokens/s beside llama.cpp (peer_decode.py), the same GGUF file and text, greedy, after the prompt
  tokens   the rate at which ids are made of 64 MB of text: the files of this Python and its packages, a conversation each 4000 characters
  example  the training example: ten steps, from start to adapter, and memory as planned and as the process had it
  plan     the plan of a 7B shape from its headers
  builds   training and decode beside another build of assay, BEFORE: whether the CPU's path is as fast as it was
  table    what the steps before came to, beside the targets
No new round is begun when LIMIT would be passed. Writes FOLDER/STEP.json, and the ratio of each round's turns with its median and
distribution-free 95 % interval. Rows: bfcl-eval's folder bfcl_eval/data.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time

from peer_cpu import interval, median

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PROMPT = "The capital of France is"
WORKS = {"bfcl": {"rows": 4, "long_rows": "drop"}, "full": {"rows": 2, "long_rows": "truncate"}}
RANK = 16


def threads():
    return len(os.sched_getaffinity(0))


def run(command, folder):
    """Standard output, seconds, and the most memory that one process of it had."""
    begun = time.monotonic()
    p = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = p.stdout.read(), p.stderr.read()[-2000:]
    _, status, usage = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{out[-1000:]}\n{err}")
    return out, time.monotonic() - begun, usage.ru_maxrss * 1024


def no_cache(program, folder):
    """The word by which a build times what it chooses anew; one that keeps nothing has none."""
    return ["--no-cache"] if "--no-cache" in run([program, "train", "--help"], folder)[0] else []


def last_object(text):
    return json.loads(text[text.index("{"):])


def config(a, folder, name, steps, device="device: cpu, "):
    rows, long_rows = WORKS[name]["rows"], WORKS[name]["long_rows"]
    with open(os.path.join(folder, name + ".yaml"), "w") as f:
        f.write(f"""model: {{name_or_path: {json.dumps(a.model)}, chat_template: qwen2.5}}
lora: {{r: {RANK}, alpha: {2 * RANK}, target_modules: all-linear}}
training: {{{device}max_steps: {steps}, per_device_train_batch_size: {rows}, learning_rate: 1e-3, lr_scheduler_type: constant, tensorboard: false}}
data: {{train: {name}.jsonl, max_seq_length: {a.length}, packing: false, shuffle: false, long_rows: {long_rows}, cache_dir: kept-{name}}}
""")


def parts_of_files():
    for root in ("stdlib", "purelib"):
        for where, folders, files in os.walk(sysconfig.get_paths()[root]):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".py", ".md", ".txt", ".rst")):
                    with open(os.path.join(where, name), encoding="utf-8", errors="replace") as f:
                        text = f.read()
                    yield from (text[i:i + 4000] for i in range(0, len(text), 4000))


def conversations(path, size):
    """Rows of text: what is said in each is 4000 characters of a file of this Python's. Returns the bytes of text."""
    written = 0
    with open(path, "w") as out:
        for part in parts_of_files():
            if written >= size:
                break
            out.write(json.dumps({"messages": [{"role": "user", "content": "Go on."},
                                               {"role": "assistant", "content": part}]}) + "\n")
            written += len(part.encode())
    return written


def bfcl(a, folder, name):
    run([a.assay, "rows", a.rows, "--format", "bfcl", "--out", name, "--held-out", "held.jsonl"], folder)


def our_training(a, folder, name):
    shutil.rmtree(os.path.join(folder, "run"), ignore_errors=True)
    out, _, rss = run([a.assay, "train", name + ".yaml", "--out", "run", "--json", *no_cache(a.assay, folder)], folder)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("type") == "step"], rss


def kept(a, folder, name):
    (file,) = os.listdir(os.path.join(folder, "kept-" + name))
    cut = ":cut" if WORKS[name]["long_rows"] == "truncate" else ""
    return f"{os.path.join(folder, 'kept-' + name, file)}:{WORKS[name]['rows']}:{a.length}{cut}"


def their_training(a, folder):
    words = [w for name in a.works for w in ("--work", kept(a, folder, name))]
    out, _, rss = run([sys.executable, os.path.join(HERE, "peer_train.py"), a.model, "--steps", str(a.steps), "--rank", str(RANK),
                       "--threads", str(threads()), *words], folder)
    made = last_object(out)
    return dict(zip(a.works, made.pop("works"))), {**made, "process_bytes": rss}


def rate(steps):
    """Without the first: memory is met there for the first time."""
    return sum(s["tokens"] for s in steps[1:]) / sum(s["step_s"] for s in steps[1:])


def same_work(ours, theirs):
    for name in ours:
        for x, y in zip(ours[name], theirs[name]):
            if (x["tokens"], x["targets"]) != (y["tokens"], y["targets"]):
                sys.exit(f"{name}: ours had {x['tokens']} tokens and {x['targets']} targets, the peer {y['tokens']} and {y['targets']}")
    first = next(iter(ours))
    x, y = ours[first][0]["loss"], theirs[first][0]["loss"]
    if abs(x - y) > 0.01 * abs(y):
        sys.exit(f"{first}: the first loss is {x}, the peer's {y}: that is not the same work")


def rounds(a, ours, theirs):
    """Turns in ABBA order until there are enough, or no time for another."""
    begun, longest, pairs = time.monotonic(), 0, []
    while len(pairs) < a.rounds and (not pairs or time.monotonic() - begun + longest < a.limit):
        t, turn = time.monotonic(), {}
        for side in (ours, theirs) if len(pairs) % 2 == 0 else (theirs, ours):
            turn[side] = side()
        pairs.append((turn[ours], turn[theirs]))
        longest = max(longest, time.monotonic() - t)
    return pairs


def compared(ours, theirs, target):
    ratios = [x / y for x, y in zip(ours, theirs)]
    low, high = interval(ratios)
    return {"rounds": len(ratios), "ratio_median": median(ratios), "ratio_low": low, "ratio_high": high, "target": target,
            "met": median(ratios) >= target, "assay_median": median(ours), "peer_median": median(theirs), "unit": "tokens/s",
            "ratios": ratios, "assay": ours, "peer": theirs}


def train(a, folder):
    bfcl(a, folder, "bfcl.jsonl")
    conversations(os.path.join(folder, "full.jsonl"), 1 << 20)
    for name in a.works:
        config(a, folder, name, 1)
        our_training(a, folder, name)  # keeps the rows as ids, which the peer reads
        config(a, folder, name, a.steps)
    peer = {}

    def ours():
        made = {name: our_training(a, folder, name) for name in a.works}
        return {name: steps for name, (steps, _) in made.items()}

    def theirs():
        steps, peer["about"] = their_training(a, folder)
        return steps

    pairs = rounds(a, ours, theirs)
    for x, y in pairs:
        same_work(x, y)
    result = {"what": "training, LoRA, FP32, over transformers and PEFT", "rank": RANK, "length": a.length, "steps": a.steps,
              "threads": threads(), "peer_about": peer["about"]}
    for name in a.works:
        gemm = [s["gemm_s"] / s["step_s"] for x, _ in pairs for s in x[name][1:]]
        result[name] = {**compared([rate(x[name]) for x, _ in pairs], [rate(y[name]) for _, y in pairs], 1.0),
                        "gemm_share_median": median(gemm), "step_tokens": [s["tokens"] for s in pairs[0][0][name]],
                        "step_targets": [s["targets"] for s in pairs[0][0][name]],
                        "peer_padded": [s["padded"] for s in pairs[0][1][name]]}
    return result


def decode(a, folder):
    texts = {}

    def ours():
        out, _, _ = run([a.assay, "generate", "--no-cache", "--device", "cpu", a.model, PROMPT, "--raw", "--tokens", str(a.tokens + 1), "--json"], folder)
        made = last_object(out)
        texts["assay"] = made["text"]
        return made["tokens_per_s"]

    def theirs():
        out, _, _ = run([sys.executable, os.path.join(HERE, "peer_decode.py"), a.model, "--tokens", str(a.tokens), "--times", "1",
                         "--threads", str(threads()), "--prompt", PROMPT], folder)
        made = last_object(out)
        texts["peer"], texts["about"] = made["text"], made["llama_cpp_python"]
        return made["median"]

    pairs = rounds(a, ours, theirs)
    return {"what": "decode, batch 1, greedy, over llama.cpp", "threads": threads(), "llama_cpp_python": texts["about"],
            "same_text_begins": os.path.commonprefix([texts["assay"], texts["peer"]]),
            **compared([x for x, _ in pairs], [y for _, y in pairs], 0.8)}


def tokens(a, folder):
    text = conversations(os.path.join(folder, "text.jsonl"), 64 << 20)
    rates, counts = [], {}
    for _ in range(a.rounds):
        out, _, _ = run([a.assay, "rows", "text.jsonl", "--model", a.model, "--chat-template", "chatml", "--json"], folder)
        counts = last_object(out)
        rates.append(text / counts["seconds"])
    return {"what": "tokenising", "unit": "B/s", "threads": threads(), "text_bytes": text, "tokens": counts["tokens"], "values": rates,
            "median": median(rates), "target": 20e6, "met": text >= 50e6 and median(rates) >= 20e6}


def example(a, folder):
    bfcl(a, folder, "train.jsonl")
    run([a.assay, "merge", a.model, "--out", "smollm2"], folder)
    shutil.copy(os.path.join(ROOT, "examples", "train.yaml"), folder)
    plan = last_object(run([a.assay, "train", "train.yaml", "--plan", "--json"], folder)[0])
    out, seconds, rss = run([a.assay, "train", "train.yaml", "--out", "run", "--json", "--no-cache"], folder)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    end = next(line for line in lines if line.get("type") == "end")
    return {"what": "the training example, ten steps", "unit": "s", "wall_s": seconds, "target": 90, "met": seconds <= 90,
            "steps_s": sum(line["step_s"] for line in lines if line.get("type") == "step"), "values": end["values"],
            "planned": {k: v for k, v in plan.items() if k.endswith("bytes")}, "process_bytes": rss}


def memory(a, folder):
    """Of rows that fill their packs: others take less than is planned."""
    conversations(os.path.join(folder, "full.jsonl"), 1 << 20)
    config(a, folder, "full", 2)
    out, _, rss = run([a.assay, "train", "full.yaml", "--out", "run", "--json", "--no-cache"], folder)
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    values = next(line for line in lines if line.get("type") == "end")["values"]
    ratio = values["memory_bytes"] / values["memory_planned_bytes"]
    return {"what": "memory of the training process over its plan, rows that fill their packs", "unit": "B",
            "planned": values["memory_planned_bytes"], "process": values["memory_bytes"], "largest_seen_from_outside": rss,
            "ratio": ratio, "target": 0.02, "met": abs(ratio - 1) <= 0.02}


def plan(a, folder):
    run([a.assay, "make-model", "--shape", "qwen2-7b", "--holes", "--out", "7b"], folder)
    conversations(os.path.join(folder, "rows.jsonl"), 1)
    with open(os.path.join(folder, "7b.yaml"), "w") as f:
        f.write("model: {name_or_path: 7b}\nlora: {r: 16}\ndata: {train: rows.jsonl, max_seq_length: 4096}\n"
                "training: {device: cpu, learning_rate: 1e-4, max_steps: 1}\n")
    seconds = [run([a.assay, "train", "7b.yaml", "--plan", "--json"], folder)[1] for _ in range(10)]
    return {"what": "the plan of qwen2-7b from its headers", "unit": "s", "values": seconds, "median": median(seconds), "target": 1,
            "met": max(seconds) <= 1}


def builds(a, folder):
    """Another build knows a GPU perhaps not, so neither is told of one: both take what is there, which has to be a CPU."""
    bfcl(a, folder, "bfcl.jsonl")
    conversations(os.path.join(folder, "full.jsonl"), 1 << 20)
    before = argparse.Namespace(**{**vars(a), "assay": a.before})
    for name in a.works:
        config(a, folder, name, 1, device="")
        our_training(before, folder, name), our_training(a, folder, name)  # rows are kept as ids
        config(a, folder, name, a.steps, device="")

    def side(program):
        one = argparse.Namespace(**{**vars(a), "assay": program})
        steps = {name: our_training(one, folder, name)[0] for name in a.works}
        out, _, _ = run([program, "generate", a.model, PROMPT, "--raw", "--tokens", str(a.tokens + 1), "--json", *no_cache(program, folder)], folder)
        return steps, last_object(out)

    pairs = rounds(a, lambda: side(a.assay), lambda: side(a.before))
    for (ours, said), (before, said_before) in pairs:
        same_work(ours, before)
        if said["text"] != said_before["text"]:
            sys.exit(f"decode: now {said['text']!r}, before {said_before['text']!r}")
    versions = {name: run([program, "--version"], folder)[0].splitlines()[0] for name, program in (("assay", a.assay), ("before", a.before))}
    result = {"what": "training and decode over another build's", "rank": RANK, "length": a.length, "steps": a.steps, "threads": threads(), **versions}
    for name in a.works:
        result[name] = compared([rate(x[name]) for (x, _), _ in pairs], [rate(y[name]) for _, (y, _) in pairs], 0.98)
    result["decode"] = compared([x["tokens_per_s"] for (_, x), _ in pairs], [y["tokens_per_s"] for _, (_, y) in pairs], 0.98)
    return result


def table_line(what, figure, target, met):
    return f"{what:<44}{figure:<34}{target:<16}{'met' if met else 'missed'}"


def ratio_lines(what, r):
    figure = f"{r['ratio_median']:.2f} [{r['ratio_low']:.2f}, {r['ratio_high']:.2f}], {r['rounds']} rounds"
    return [table_line(what, figure, f">= {r['target']:.3g}", r["met"]),
            f"{'':<44}{r['assay_median']:.1f} beside {r['peer_median']:.1f} {r['unit']}"]


def table_of(step, r):
    if step == "train":
        lines = []
        for name in (name for name in WORKS if name in r):
            lines += ratio_lines(f"training / PyTorch, {name} rows", r[name])
            share = r[name]["gemm_share_median"]
            lines.append(table_line("  products' share of our steps", f"{share:.1%}", ">= 70 %", share >= 0.7))
        return lines
    if step == "decode":
        return ratio_lines("decode / llama.cpp", r)
    if step == "builds":
        return [line for name in (*WORKS, "decode") if name in r for line in ratio_lines(f"{name} / the build before", r[name])]
    if step == "tokens":
        return [table_line("tokenising", f"{r['median'] / 1e6:.1f} MB/s, {r['text_bytes'] / 1e6:.0f} MB of text", ">= 20 MB/s", r["met"])]
    if step == "memory":
        figure = f"{r['ratio']:.4f}, {r['process'] / 1e6:.0f} of {r['planned'] / 1e6:.0f} MB"
        return [table_line("memory of the process / planned", figure, "within 2 %", r["met"])]
    if step == "example":
        planned = ", ".join(f"{k} {v / 1e6:.0f}" for k, v in r["planned"].items())
        return [table_line("the example, ten steps", f"{r['wall_s']:.1f} s", "<= 90 s", r["met"]),
                f"{'  memory, MB':<44}process {r['process_bytes'] / 1e6:.0f}; planned: {planned}"]
    return [table_line("plan of qwen2-7b", f"{r['median'] * 1e3:.0f} ms", "<= 1 s", r["met"])]


def table(a):
    for step in ("train", "decode", "tokens", "example", "memory", "plan", "builds"):
        path = os.path.join(a.out, step + ".json")
        if os.path.exists(path):
            with open(path) as f:
                print("\n".join(table_of(step, json.load(f))))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = {f.__name__: f for f in (train, decode, tokens, example, memory, plan, builds)}
    parser.add_argument("step", choices=[*steps, "table"])
    parser.add_argument("--assay", default="assay")
    parser.add_argument("--out", required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--rows", default="")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1e9)
    parser.add_argument("--tokens", type=int, default=128, help="of decode")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS), help="of train, like the next two")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--length", type=int, default=400, help="tokens of a row at most")
    parser.add_argument("--before", default="", help="of builds: the other build's program")
    a = parser.parse_args()
    if a.step == "table":
        return table(a)
    a.assay, a.model, a.rows, a.before = (os.path.abspath(p) if p else p for p in (a.assay, a.model, a.rows, a.before))
    os.makedirs(a.out, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        text = json.dumps(steps[a.step](a, folder), indent=1)
    with open(os.path.join(a.out, a.step + ".json"), "w") as f:
        f.write(text + "\n")
    print(text)


main()
