#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small model taught to call functions, by assay and by PEFT (peer_train_gpu.py): the same rows in the same order, the same first adapter,
schedule and held-out rows; answers of both judged by one judge (assay rows --answers).
usage: peer_calls.py --assay PROGRAM --model FOLDER --rows FOLDER --out FOLDER [--device gpu] [--steps 100] [--batch 4] [--rank 16] [--rate 1e-3]
                     [--length 2048] [--held 346] [--before 40] [--tokens 256] [--side both] [--generate "words for assay generate"]
                     [--generator assay|peft]
--model: a folder of Hugging Face's with its tokenizer (assay merge MODEL.gguf --dtype bf16 --out FOLDER); --rows: bfcl-eval's bfcl_eval/data.
--generator peft: transformers generates the
answers of our adapter too. Rows are divided by function names, none in both parts. Held against: losses, means of ten steps, within 2 %; held-out loss at most 0.10; calls
that can be read: none before, 90 % after; names and accepted calls within five points of PEFT's. Writes FOLDER/calls.json and the answers.
Exits 1 where one is missed.
"""
import argparse
import concurrent.futures
import json
import os
import random
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TEMPLATE = "qwen2.5"  # the model's own has no place for tools
WARMUP = 5


BEGUN = time.monotonic()


def call(command, folder=None):
    begun = time.monotonic()
    p = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    print(f"{begun - BEGUN:6.1f} s to {time.monotonic() - BEGUN:6.1f} s: {' '.join(command[:3])}", file=sys.stderr, flush=True)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{p.stdout[-1000:]}\n{p.stderr[-3000:]}")
    return p.stdout


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
  packing: false
  shuffle: false
  cache_dir: {json.dumps(os.path.join(a.work, 'kept'))}
""")
    return path


def train(a, name, steps, rate):
    out = os.path.join(a.work, name)
    shutil.rmtree(out, ignore_errors=True)
    begun = time.monotonic()
    lines = [json.loads(x) for x in call([a.assay, "train", config(a, name, steps, rate), "--out", out, "--json"]).splitlines() if x.startswith("{")]
    evals = [x["eval_loss"] for x in lines if x.get("type") == "eval"]
    end = next(x for x in lines if x.get("type") == "end")
    return {"losses": [x["loss"] for x in lines if x.get("type") == "step"], "eval_losses": evals, "seconds": time.monotonic() - begun,
            "values": end.get("values")}, os.path.join(out, "adapter")


def kept(a):
    """The files of ids, by how many rows stand in each: (trained on, held out)."""
    found = {}
    for name in os.listdir(os.path.join(a.work, "kept")):
        path = os.path.join(a.work, "kept", name)
        with open(path, "rb") as f:
            found[int.from_bytes(f.read(32)[16:24], "little")] = path
    return found


def lines_of(path):
    with open(path) as f:
        return sum(1 for _ in f)


def generate(a, adapter, count, out):
    words = [a.assay, "generate", a.model, "--rows", a.held_rows, "--chat-template", TEMPLATE, "--tokens", str(a.tokens), "--max-rows", str(count),
             "--device", a.device, "--out", out, "--json", *a.generate.split()]
    return json.loads(call(words + (["--adapter", adapter] if adapter else [])))


def judged(a, answers):
    words = [a.assay, "rows", a.held_rows, "--answers", answers, "--chat-template", TEMPLATE, "--json"]
    made = json.loads(call(words))
    made.pop("answers")
    return made


def before(a):
    return generate(a, None, a.before, os.path.join(a.out, "before.jsonl"))


def answers_of(a, adapter):
    """What ours says with its adapter, and the judgement of it."""
    out = os.path.join(a.out, "assay.jsonl")
    return {"generated": generate(a, adapter, a.held, out), "answers": judged(a, out)}


def theirs(a, init, adapter):
    """What PEFT comes to; and what transformers says with our adapter, where it is the one that generates."""
    files = kept(a)
    work = {"name": "calls", "kept": files[lines_of(a.train)], "held": files[lines_of(a.held_rows)], "batch": a.batch, "length": a.length,
            "steps": a.steps, "rank": a.rank, "alpha": 2 * a.rank, "liger": False, "adapters": "as-it-comes",
            "init": init, "schedule": {"rate": a.rate, "warmup": WARMUP, "steps": a.steps}}
    if a.held:
        work.update(answers=os.path.join(a.out, "peft.jsonl"), held_count=a.held, tokens=a.tokens)
        if a.generator == "peft" and adapter:
            work["also"] = {"adapter": adapter, "answers": os.path.join(a.out, "assay.jsonl")}
            work.update(before=os.path.join(a.out, "before.jsonl"), before_count=a.before) if a.before else None
    path = os.path.join(a.work, "peer.json")
    with open(path, "w") as f:
        json.dump(work, f)
    told = {}
    p = subprocess.run([sys.executable, os.path.join(HERE, "peer_train_gpu.py"), a.model, path], stdout=subprocess.PIPE, text=True)
    for line in p.stdout.splitlines():
        told.update(json.loads(line) if line.startswith('{"') else {})
    if p.returncode or "work" not in told:
        sys.exit(f"peer_train_gpu.py: exit code {p.returncode}")
    made = told["work"]
    out = {"losses": made["losses"], "eval_losses": [made["eval_loss_first"], made["eval_loss"]], "tokens_per_s": made["tokens_per_s"],
           "about": told["about"]}
    mine = {}
    if a.held:
        out["generated"], out["answers"] = made["answers"], judged(a, work["answers"])
    if "also" in made:
        mine["generated"], mine["answers"] = {**made["also"], "by": "transformers"}, judged(a, work["also"]["answers"])
    if "before" in made:
        mine["before"] = judged(a, work["before"])
    return out, mine


def write(a, result):
    with open(os.path.join(a.out, "calls.json"), "w") as f:
        json.dump(result, f, indent=1)


def both(a, result):
    """The two sides, written as they come. Nothing here is timed, so that what does not wait for another runs beside it."""
    adapter = None
    with concurrent.futures.ThreadPoolExecutor() as beside:
        started = {}
        if a.side != "peer" and a.before and a.generator == "assay":
            started["before"] = beside.submit(before, a)
        init = train(a, "begin", 1, 1e-12)[1] if a.side != "assay" else None
        if a.side != "peer":
            result["assay"], adapter = train(a, "ours", a.steps, a.rate)
            write(a, result)
        elif len(kept(a)) < 2:  # ours would have kept the held-out rows
            train(a, "keep", 2, 1e-12)
        if adapter and a.held and a.generator == "assay":
            started["answers"] = beside.submit(answers_of, a, adapter)
        if a.side != "assay":
            try:
                result["peer"], mine = theirs(a, init, adapter)
                result.get("assay", {}).update(mine)
            except SystemExit as why:  # what the other side came to is kept
                result["peer_failed"] = str(why)
            write(a, result)
        for name, job in started.items():
            try:
                made = job.result()
                result["assay"].update(made if name == "answers" else {name: made})
            except SystemExit as why:
                result[name + "_failed"] = str(why)


def means(losses):
    return [sum(losses[i:i + 10]) / 10 for i in range(0, len(losses) - 9, 10)]


def checks(a, x, y):
    """(what, how it came out, whether it holds)"""
    if x:
        yield "held-out loss", f"{x['eval_losses'][0]:.3f}, then {x['eval_losses'][-1]:.4f}", x["eval_losses"][-1] <= 0.10
    if x and y:
        apart = max((abs(p - q) / q for p, q in zip(means(x["losses"]), means(y["losses"]))), default=1)
        yield "losses beside PEFT's, means of ten steps", f"{apart:.2%} apart at most", apart <= 0.02
        yield "held-out loss of PEFT", f"{y['eval_losses'][0]:.3f}, then {y['eval_losses'][-1]:.4f}", True
    if x and x.get("before"):
        yield "calls that can be read, before", f"{x['before']['valid']} of {x['before']['rows']}", x["before"]["valid_share"] <= 0.02
    if x and x.get("answers"):
        yield "calls that can be read, after", f"{x['answers']['valid']} of {x['answers']['rows']}", x["answers"]["valid_share"] >= 0.90
    for key, what in (("valid", "calls that can be read"), ("names", "functions as wanted"), ("exact", "accepted calls")):
        if x and y and x.get("answers") and y.get("answers"):
            p, q = x["answers"][key + "_share"], y["answers"][key + "_share"]
            yield what + " beside PEFT's", f"{p:.1%} beside {q:.1%}", p >= q - 0.05


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("assay", "model", "rows", "out"):
        parser.add_argument("--" + name, required=True)
    for name, value in (("steps", 100), ("batch", 4), ("rank", 16), ("length", 2048), ("held", 346), ("before", 40), ("tokens", 256)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--rate", type=float, default=1e-3)
    parser.add_argument("--device", choices=["gpu", "cpu"], default="gpu")
    parser.add_argument("--side", choices=["both", "assay", "peer"], default="both")
    parser.add_argument("--generator", choices=["assay", "peft"], default="assay")
    parser.add_argument("--generate", default="", help="more words for assay generate")
    a = parser.parse_args()
    for name in ("assay", "model", "rows", "out"):
        setattr(a, name, os.path.abspath(getattr(a, name)))
    a.work = os.path.join(a.out, "work")
    os.makedirs(a.work, exist_ok=True)
    a.train, a.held_rows = os.path.join(a.work, "train.jsonl"), os.path.join(a.work, "held.jsonl")
    rows(a)
    result = {"what": "function calls by LoRA beside PEFT", **{k: getattr(a, k) for k in ("steps", "batch", "rank", "rate", "length", "device")}}
    both(a, result)
    made = list(checks(a, result.get("assay"), result.get("peer")))
    result["checks"] = [{"what": what, "figure": figure, "met": met} for what, figure, met in made]
    write(a, result)
    failed = [f"{k}: {v[-500:]}" for k, v in result.items() if k.endswith("_failed")]
    print("\n".join(failed), end="\n" if failed else "")
    for what, figure, met in made:
        print(f"{what:<48}{figure:<44}{'met' if met else 'missed'}")
    sys.exit(bool(failed) or not all(met for _, _, met in made))


if __name__ == "__main__":
    main()
