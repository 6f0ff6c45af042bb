#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small model taught to call functions, by assay and by PEFT (peer_train_gpu.py): the same rows in the same order, the same first adapter,
schedule and held-out rows; answers of both judged by one judge (assay rows --answers).
usage: peer_calls.py --assay PROGRAM --model FOLDER --rows FOLDER --out FOLDER [--device gpu] [--steps 100] [--batch 4] [--rank 16] [--rate 1e-3]
                     [--length 2048] [--held 346] [--before 40] [--tokens 256] [--side both] [--limit SECONDS]
                     [--packing] [--weights bf16|f32]
--model: a folder of Hugging Face's with its tokenizer (assay merge MODEL.gguf --dtype bf16 --out FOLDER); --rows: bfcl-eval's bfcl_eval/data.
Rows are divided by function names, none in both parts. Held against: losses, means of ten steps, within 2 %; held-out loss at most 0.10 with
--length 512, with which that figure agrees; calls
that can be read: none before, 90 % after; names and accepted calls within five points of PEFT's.
--packing: BATCH packs of LENGTH tokens a step, the same on both sides, instead of rows padded to the longest. --weights f32: all of PEFT's in FP32;
with its default, BF16 below adapters in FP32, what a young adapter adds is rounded away in part (docs/explanation/design/training.md, "Rounding").
Nothing here is timed, so both sides work beside each other: PEFT is imported while our rows are made, and trains while we answer.
Writes FOLDER/calls.json after each part, and the answers. What stands there is not done again: a run that LIMIT or a signal ended goes on.
Then answers that were made are judged, and told with their number. Exits 1 where something is missed or lacks.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = "qwen2.5"  # the model's own has no place for tools
WARMUP = 5
BEGUN = time.monotonic()
CHANGE = threading.Lock()


class Failed(Exception):
    """A part of it came to nothing."""


class Programs:
    """Those that run, so that an end reaches them: ours says what it has by then."""

    def __init__(self):
        self.running, self.over, self.lock = set(), False, threading.RLock()  # a signal's end may come within a start

    def start(self, command, **streams):
        with self.lock:
            if self.over:
                raise Failed("no time was left")
            p = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **streams)
            self.running.add(p)
        return p

    def end(self, *_):
        with self.lock:
            self.over = True
            for p in self.running:
                p.terminate()

    def ended(self, p):
        with self.lock:
            self.running.discard(p)


PROGRAMS = Programs()


def tell(what):
    print(f"{time.monotonic() - BEGUN:6.1f} s: {what}", file=sys.stderr, flush=True)


def call(command, cut=False):
    """What it says. With CUT, also what it says of a part, where it was asked to end."""
    begun = time.monotonic()
    p = PROGRAMS.start(command, stderr=subprocess.PIPE)
    said, errors = p.communicate()
    PROGRAMS.ended(p)
    tell(f"{' '.join(command[1:3])}: {time.monotonic() - begun:.1f} s")
    if p.returncode and not (cut and PROGRAMS.over and said):
        raise Failed(f"{' '.join(command)}: exit code {p.returncode}\n{said[-1000:]}\n{errors[-3000:]}")
    return said


def rows(a):
    """Written once: in an order that does not go by kind, since they are trained on in that order."""
    if os.path.exists(a.train):
        return
    call([a.assay, "rows", a.rows, "--format", "bfcl", "--out", a.train + ".plain", "--held-out", a.held_rows + ".plain", "--share", "0.15"])
    for path in (a.train, a.held_rows):
        with open(path + ".plain") as f:
            lines = f.readlines()
        random.Random(42).shuffle(lines)
        with open(path, "w") as f:
            f.writelines(lines)


def config(a, name, steps, rate):
    """With a rate of nearly nothing: an adapter as it is at the begin, which PEFT begins with."""
    path = os.path.join(a.work, name + ".yaml")
    with open(path, "w") as f:
        f.write(f"""model: {{name_or_path: {json.dumps(a.model)}, chat_template: {TEMPLATE}}}
lora: {{r: {a.rank}, alpha: {2 * a.rank}, target_modules: all-linear}}
training:
  max_steps: {steps}
  per_device_train_batch_size: {a.batch}
  per_device_eval_batch_size: {a.batch}
  learning_rate: {rate}
  lr_scheduler_type: cosine
  warmup_steps: {WARMUP if steps > WARMUP else 0}
  eval_on_start: {'true' if steps > 1 else 'false'}
  tensorboard: false
  tune: false  # nothing here is timed
  device: {a.device}
data:
  train: {json.dumps(a.train)}
{'  eval: ' + json.dumps(a.held_rows) if steps > 1 else ''}
  max_seq_length: {a.length}
  packing: {'true' if a.packing else 'false'}
  shuffle: false
  cache_dir: {json.dumps(os.path.join(a.work, 'kept'))}
""")
    return path


def train(a, name, steps, rate):
    out = os.path.join(a.work, name)
    shutil.rmtree(out, ignore_errors=True)
    begun = time.monotonic()
    lines = [json.loads(x) for x in call([a.assay, "train", config(a, name, steps, rate), "--out", out, "--json", "--no-cache"]).splitlines() if x.startswith("{")]
    evals = [x["eval_loss"] for x in lines if x.get("type") == "eval"]
    end = next(x for x in lines if x.get("type") == "end")
    steps = [x for x in lines if x.get("type") == "step"]
    return {"losses": [x["loss"] for x in steps], "tokens": [x["tokens"] for x in steps], "eval_losses": evals, "seconds": time.monotonic() - begun,
            "values": end.get("values")}, os.path.join(out, "adapter")


def kept(a):
    """The files of ids, by how many rows stand in each: (trained on, held out)."""
    found, folder = {}, os.path.join(a.work, "kept")
    for name in os.listdir(folder) if os.path.isdir(folder) else []:
        path = os.path.join(folder, name)
        if name.endswith(".tokens"):
            with open(path, "rb") as f:
                found[int.from_bytes(f.read(32)[16:24], "little")] = path
    return found


def lines_of(path):
    with open(path) as f:
        return sum(1 for _ in f)


def generate(a, adapter, count, out):
    words = [a.assay, "generate", a.model, "--no-cache", "--rows", a.held_rows, "--chat-template", TEMPLATE, "--tokens", str(a.tokens), "--max-rows", str(count),
             "--device", a.device, "--out", out, "--json"]
    return json.loads(call(words + (["--adapter", adapter] if adapter else []), cut=True))


def judged(a, answers):
    """By a process that an end does not reach: it takes a moment."""
    words = [a.assay, "rows", a.held_rows, "--answers", answers, "--chat-template", TEMPLATE, "--json"]
    p = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        raise Failed(f"{' '.join(words)}: exit code {p.returncode}\n{p.stderr[-1000:]}")
    made = json.loads(p.stdout)
    made.pop("answers")
    return made


def put(a, result, side=None, **what):
    with CHANGE:
        (result.setdefault(side, {}) if side else result).update(what)
        with open(os.path.join(a.out, "calls.json.new"), "w") as f:
            json.dump(result, f, indent=1)
        os.replace(os.path.join(a.out, "calls.json.new"), os.path.join(a.out, "calls.json"))


def ours(a, result):
    """Training, the answers after it, and a few of the model as it was."""
    adapter, done = os.path.join(a.work, "ours", "adapter"), result.get("assay", {})
    if not (done.get("losses") and os.path.isdir(adapter)):
        put(a, result, "assay", **train(a, "ours", a.steps, a.rate)[0])
    for key, name, of, count in (("answers", "assay.jsonl", adapter, a.held), ("before", "before.jsonl", None, a.before)):
        if count and result["assay"].get(key, {}).get("rows", 0) < count:
            out = os.path.join(a.out, name)
            generated = generate(a, of, count, out)
            put(a, result, "assay", **{key: judged(a, out), key + "_generated": generated})


def start_peer(a):
    """It imports its libraries, and waits for its work."""
    return PROGRAMS.start([sys.executable, os.path.join(HERE, "peer_train_gpu.py"), a.model, "-"], stdin=subprocess.PIPE)


def work_of_peer(a, init):
    """Our run keeps the held-out rows' ids before its first step."""
    while len(files := kept(a)) < 2:
        if PROGRAMS.over:
            raise Failed("our rows' ids were not kept")
        time.sleep(0.1)
    work = {"name": "calls", "kept": files[lines_of(a.train)], "held": files[lines_of(a.held_rows)], "batch": a.batch, "length": a.length,
            "steps": a.steps, "rank": a.rank, "alpha": 2 * a.rank, "liger": False, "adapters": "as-it-comes",
            "packing": "same" if a.packing else "none", "weights": a.weights,
            "init": init, "schedule": {"rate": a.rate, "warmup": WARMUP if a.steps > WARMUP else 0, "steps": a.steps}}
    if a.held:
        work.update(answers=os.path.join(a.out, "peft.jsonl"), held_count=a.held, tokens=a.tokens)
    return work


def theirs(a, result, peer, init):
    """What PEFT comes to, as it tells it."""
    work, last = work_of_peer(a, init), {}
    try:
        peer.stdin.write(json.dumps(work) + "\n")
        peer.stdin.close()
    except BrokenPipeError:
        pass  # its exit code says more
    for line in peer.stdout:
        told = json.loads(line) if line.startswith('{"') else {}
        last = told.get("work", last)
        evals = [last[k] for k in ("eval_loss_first", "eval_loss") if k in last]
        put(a, result, "peer", eval_losses=evals, **{k: last[k] for k in ("losses", "tokens", "tokens_per_s", "trained") if k in last},
            **({"about": told["about"]} if "about" in told else {}))
    code = peer.wait()
    PROGRAMS.ended(peer)
    if a.held and os.path.exists(work["answers"]) and os.path.getsize(work["answers"]):
        put(a, result, "peer", answers=judged(a, work["answers"]), answers_generated=last.get("answers"))
    if code:
        raise Failed(f"peer_train_gpu.py: exit code {code}")


def lacks_peer(a, result):
    done = result.get("peer", {})
    return len(done.get("eval_losses", [])) < 2 or done.get("answers", {}).get("rows", 0) < a.held


def both(a, result):
    peer = start_peer(a) if a.side != "assay" and lacks_peer(a, result) else None
    rows(a)
    with concurrent.futures.ThreadPoolExecutor() as beside:
        jobs, init = {}, train(a, "begin", 1, 1e-12)[1] if peer else None
        if a.side != "peer":
            jobs["assay"] = beside.submit(ours, a, result)
        elif len(kept(a)) < 2:
            jobs["kept"] = beside.submit(train, a, "keep", 2, 1e-12)
        if peer:
            jobs["peer"] = beside.submit(theirs, a, result, peer, init)
        for name, job in jobs.items():
            try:
                job.result()
            except Failed as why:  # what the other side comes to is kept
                put(a, result, **{name + "_failed": str(why)[-1500:]})
                if name != "peer" and len(kept(a)) < 2:
                    PROGRAMS.end()


def means(losses):
    return [sum(losses[i:i + 10]) / 10 for i in range(0, len(losses) - 9, 10)]


def checks(a, x, y):
    """(what, how it came out, whether it holds)"""
    for name, side in (("assay", x), ("PEFT", y)):
        if a.side in ("both", "peer" if side is y else "assay"):
            rows = side.get("answers", {}).get("rows", 0)
            yield "held-out rows that have an answer, " + name, f"{rows} of {a.held}", rows == a.held
    p, q = x.get("eval_losses", []), y.get("eval_losses", [])
    if len(p) == 2:
        yield "held-out loss", f"{p[0]:.3f}, then {p[1]:.4f}", a.length > 512 or p[1] <= 0.10
    if len(q) == 2:
        yield "held-out loss of PEFT", f"{q[0]:.3f}, then {q[1]:.4f}", True
    p, q = x.get("tokens"), y.get("tokens")
    if p and q:
        same = sum(i == j for i, j in zip(p, q))
        yield "steps of as many tokens on both sides", f"{same} of {len(p)}", same == len(p) == len(q)
    p, q = means(x.get("losses", [])), means(y.get("losses", []))
    if p and q:
        apart = max(abs(i - j) / j for i, j in zip(p, q))
        yield "losses beside PEFT's, means of ten steps", f"{apart:.2%} apart at most", apart <= 0.02
    p, q = x.get("before"), x.get("answers")
    if p:
        yield "calls that can be read, before", f"{p['valid']} of {p['rows']}", p["valid_share"] <= 0.02
    if q:
        yield "calls that can be read, after", f"{q['valid']} of {q['rows']}", q["valid_share"] >= 0.90
    for key, what in (("valid", "calls that can be read"), ("names", "functions as wanted"), ("exact", "accepted calls")):
        if q and y.get("answers"):
            p = y["answers"][key + "_share"]
            yield what + " beside PEFT's", f"{q[key + '_share']:.1%} beside {p:.1%}", q[key + "_share"] >= p - 0.05


def kept_result(a):
    """What a run before this one came to with the same settings."""
    about = {"what": "function calls by LoRA beside PEFT", "model": os.path.basename(a.model),
             **{k: getattr(a, k) for k in ("steps", "batch", "rank", "rate", "length", "packing", "weights", "device")}}
    try:
        with open(os.path.join(a.out, "calls.json")) as f:
            found = json.load(f)
    except (OSError, ValueError):
        return about
    found = {k: v for k, v in found.items() if not k.endswith("_failed")}
    return found if all(found.get(k) == v for k, v in about.items()) else about


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("assay", "model", "rows", "out"):
        parser.add_argument("--" + name, required=True)
    for name, value in (("steps", 100), ("batch", 4), ("rank", 16), ("length", 2048), ("held", 346), ("before", 40), ("tokens", 256)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--limit", type=float, default=1e6)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--packing", action="store_true")
    parser.add_argument("--weights", choices=["bf16", "f32"], default="bf16")
    parser.add_argument("--side", choices=["both", "assay", "peer"], default="both")
    a = parser.parse_args()
    for name in ("assay", "model", "rows", "out"):
        setattr(a, name, os.path.abspath(getattr(a, name)))
    a.work = os.path.join(a.out, "work")
    os.makedirs(a.work, exist_ok=True)
    a.train, a.held_rows = os.path.join(a.work, "train.jsonl"), os.path.join(a.work, "held.jsonl")
    signal.signal(signal.SIGTERM, PROGRAMS.end)
    clock = threading.Timer(a.limit, PROGRAMS.end)
    clock.daemon = True
    clock.start()
    result = kept_result(a)
    try:
        both(a, result)
    except Failed as why:
        put(a, result, begin_failed=str(why)[-1500:])
        PROGRAMS.end()
    made = list(checks(a, result.get("assay", {}), result.get("peer", {})))
    put(a, result, checks=[{"what": what, "figure": figure, "met": met} for what, figure, met in made])
    failed = [f"{k}: {v[-500:]}" for k, v in result.items() if k.endswith("_failed")]
    print("\n".join(failed), end="\n" if failed else "")
    for what, figure, met in made:
        print(f"{what:<48}{figure:<44}{'met' if met else 'missed'}")
    sys.exit(bool(failed) or not all(met for _, _, met in made))


if __name__ == "__main__":
    main()
