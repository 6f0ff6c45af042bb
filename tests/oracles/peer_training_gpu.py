#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's training on one GPU against transformers + PEFT + Liger (peer_train_gpu.py): rounds in turns (ABBA), each side fresh processes,
the same rows, random weights that each side makes on the card; with --files the same weights from files in the page cache, and the time to the
first step.
usage: peer_training_gpu.py --assay PROGRAM --out FOLDER [--works b1 b2 ..] [--side both] [--rounds 3] [--limit SECONDS] [--steps 8] [--warm 3]
                            [--tokenizer FOLDER] [--rows FOLDER] [--files] [--work FOLDER]
       peer_training_gpu.py --out FOLDER --table
Works:
  b1 b2 b4      Qwen2-7B's shape, LoRA r 64 alpha 128 on the seven linears, that many rows of 4096 tokens a step, nothing recomputed
  b4-full       the same with all recomputed
  packed        the same shape over function calls' rows of their real lengths, packs of 4096, 2 a step; the peer in each of its packings, of
                which the fastest counts
  small small-packed  SmolLM2-135M's shape, 8 x 2048; the same over function calls' rows
--work keeps what is prepared. Rows: bfcl-eval's folder bfcl_eval/data, tokenised by
--tokenizer's tokenizer.json; without either, text of this Python's, a token a byte. No new round is begun when LIMIT would be passed.
Ours is timed from outside, by when its lines arrive. Writes FOLDER/training.json after each round; the table is what it comes to.
"""
import argparse
import glob
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

from peer_cpu import interval, median

HERE = os.path.dirname(os.path.abspath(__file__))
LORA = {"rank": 64, "alpha": 128}
WORKS = {
    "b1": {"shape": "qwen2-7b", "batch": 1, "length": 4096, "gate": 1.12},
    "b2": {"shape": "qwen2-7b", "batch": 2, "length": 4096, "gate": 1.12},
    "b4": {"shape": "qwen2-7b", "batch": 4, "length": 4096, "gate": 1.12},
    "b4-full": {"shape": "qwen2-7b", "batch": 4, "length": 4096, "recompute": "full", "gate": 1.12},
    "packed": {"shape": "qwen2-7b", "batch": 2, "length": 4096, "packed": True, "gate": 1.3},
    "small": {"shape": "smollm2-135m", "batch": 8, "length": 2048, "gate": 1.5},
    "small-packed": {"shape": "smollm2-135m", "batch": 8, "length": 2048, "packed": True, "gate": 1.3},
}
PACKINGS = ["padded", "positions", "flex"]


def call(command, folder):
    p = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{p.stdout[-1000:]}\n{p.stderr[-3000:]}")
    return p.stdout


class Device:
    """The most memory in use on the card, as the driver tells it, between two looks."""

    def __init__(self):
        words = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "100"]
        self.highest = 0
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        for line in self.process.stdout:
            if line.split(",")[0].strip().isdigit():
                self.highest = max(self.highest, int(line.split(",")[0]) << 20)

    def take(self):
        highest, self.highest = self.highest, 0
        return highest


def text_rows(path, size):
    """Rows of text, each longer than any pack: what is said is 40000 characters of a file of this Python's."""
    written, said = 0, ""
    with open(path, "w") as out:
        for name in sorted(os.listdir(os.path.dirname(os.__file__))):
            if not name.endswith(".py") or written >= size:
                continue
            with open(os.path.join(os.path.dirname(os.__file__), name), encoding="utf-8", errors="replace") as f:
                said += f.read()
            while len(said) >= 40000:
                chat = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": said[:40000]}]
                out.write(json.dumps({"messages": chat}) + "\n")
                said, written = said[40000:], written + 40000


def rows_name(a, name):
    return "calls" if WORKS[name].get("packed") and a.rows else "text"


def rows_of(a, folder, name):
    path = os.path.join(folder, rows_name(a, name) + ".jsonl")
    if not os.path.exists(path):
        if path.endswith("calls.jsonl"):
            call([a.assay, "rows", a.rows, "--format", "bfcl", "--out", path], folder)
        else:
            text_rows(path, 5 << 20)
    return path


def config(a, folder, name, model, steps, device):
    """What is trained; the rows' part is the same for every model and device, so that ids are kept once."""
    work, path = WORKS[name], os.path.join(folder, f"{name}-{device}.yaml")
    gpu = device == "gpu"
    with open(path, "w") as f:
        f.write(f"""model: {{name_or_path: {json.dumps(model)}, chat_template: qwen2.5{', random_weights: true' if gpu and not a.files else ''}}}
lora: {{r: {LORA['rank']}, alpha: {LORA['alpha']}, target_modules: all-linear}}
training:
  max_steps: {steps}
  per_device_train_batch_size: {work['batch'] if gpu else 1}
  recompute: {work.get('recompute', 'none') if gpu else 'none'}
  learning_rate: 1e-4
  lr_scheduler_type: constant
  tensorboard: false
  device: {device}
data:
  train: {json.dumps(rows_of(a, folder, name))}
  max_seq_length: {work['length']}
  packing: {'true' if work.get('packed') else 'false'}
  shuffle: {'true' if work.get('packed') else 'false'}
  long_rows: truncate
  cache_dir: {json.dumps(os.path.join(folder, 'kept', rows_name(a, name)))}
""")
    return path


def model_of(a, folder, name):
    """A folder of that shape, made once: holes for us, who take random numbers instead, or numbers for both."""
    shape = WORKS[name]["shape"]
    path = os.path.join(folder, shape + (".files" if a.files else ""))
    if not os.path.exists(path):
        words = [a.assay, "make-model", "--shape", shape, "--holes", "--out", path]
        call(words + (["--tokenizer", a.tokenizer] if a.tokenizer else []), folder)
        if a.files:
            call([sys.executable, os.path.join(HERE, "fill_model.py"), path], folder)
    return path


def model_of_peer(a, folder, name):
    """The shape alone, of which it makes random weights on the card."""
    path = os.path.join(folder, WORKS[name]["shape"] + ".config")
    if a.files:
        return model_of(a, folder, name)
    if not os.path.exists(path):
        os.makedirs(path)
        shutil.copy(os.path.join(model_of(a, folder, name), "config.json"), path)
    return path


def keep(a, folder, name):
    """The rows as ids, which a run on the CPU keeps before its first step: it is ended then."""
    kept = os.path.join(folder, "kept", rows_name(a, name))
    if not glob.glob(kept + "/*.tokens"):
        shape, out = os.path.join(folder, "keeper"), os.path.join(folder, "keep-" + name)
        if not os.path.exists(shape):
            words = ["smollm2-135m", "--holes", "--tokenizer", a.tokenizer] if a.tokenizer else ["tiny"]
            call([a.assay, "make-model", "--shape", *words, "--out", shape], folder)
        with open(os.path.join(folder, "keep.log"), "w") as log:
            p = subprocess.Popen([a.assay, "train", config(a, folder, name, shape, 1, "cpu"), "--out", out], cwd=folder, stdout=log, stderr=log)
            while p.poll() is None and not glob.glob(kept + "/*.tokens"):
                time.sleep(0.05)
            p.terminate()
            time.sleep(0.2)
            p.terminate()  # at once
            p.wait()
        shutil.rmtree(out, ignore_errors=True)
    files = glob.glob(kept + "/*.tokens")
    if not files:
        with open(os.path.join(folder, "keep.log")) as f:
            sys.exit(f"{name}: no rows were kept: {f.read()[-1000:]}")
    return files[0]


def ours(a, folder, name, device):
    """Rates by when lines come: from the last step that is left out to the last one."""
    out = os.path.join(folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    path = config(a, folder, name, model_of(a, folder, name), a.warm + a.steps, "gpu")
    begun, came, lines = time.monotonic(), [], []
    device.take()
    p = subprocess.Popen([a.assay, "train", path, "--out", out, "--json"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    errors = []
    reader = threading.Thread(target=lambda: errors.append(p.stderr.read()))
    reader.start()
    for line in p.stdout:
        if line.startswith("{"):
            lines.append(json.loads(line))
            if lines[-1].get("type") == "step":
                came.append(time.monotonic())
    reader.join()
    highest = device.take()
    if p.wait() or len(came) != a.warm + a.steps:
        return {"failed": f"exit code {p.returncode} after {len(came)} steps: {errors[0][-600:]}"}
    steps = [x for x in lines if x["type"] == "step"]
    end = next(x for x in lines if x["type"] == "end")
    counted, seconds = steps[a.warm:], came[-1] - came[a.warm - 1]
    tokens = sum(s["tokens"] for s in counted)
    return {"tokens": tokens, "seconds": seconds, "tokens_per_s": tokens / seconds, "own_tokens_per_s": tokens / sum(s["step_s"] for s in counted),
            "first_step_s": came[0] - begun, "loss_first": steps[0].get("loss"), "loss": steps[-1].get("loss"), "device_bytes": highest,
            "step_s": [s["step_s"] for s in counted], "values": end.get("values"), "ready": next((x for x in lines if x["type"] == "ready"), None)}


def works_of_peer(a, folder, names):
    for name in names:
        work = WORKS[name]
        made = {"kept": keep(a, folder, name), "batch": work["batch"], "length": work["length"], "recompute": work.get("recompute", "none"),
                "warm": a.warm, "steps": a.steps, **LORA}
        for packing in a.packings if work.get("packed") else ["none"]:
            path = os.path.join(folder, f"{name}-{packing}.json")
            with open(path, "w") as f:
                json.dump({**made, "name": name, "packing": packing}, f)
            yield path


def theirs(a, folder, names, keep_it):
    """One process for all works over one model; of packings the fastest. What is done is kept as it comes."""
    made = {"all": []}
    for shape in dict.fromkeys(WORKS[n]["shape"] for n in names):
        of_shape = [n for n in names if WORKS[n]["shape"] == shape]
        files = list(works_of_peer(a, folder, of_shape))
        words = [sys.executable, os.path.join(HERE, "peer_train_gpu.py"), model_of_peer(a, folder, of_shape[0]), *files]
        p = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)  # what it says of itself goes where ours goes
        for line in p.stdout:
            if line.startswith('{"about"'):
                made["about"] = json.loads(line)["about"]
            elif line.startswith('{"work"'):
                w = json.loads(line)["work"]
                made["all"].append(w)
                if w.get("tokens_per_s", 0) >= made.get(w["name"], {}).get("tokens_per_s", 0):
                    made[w["name"]] = w
                keep_it(made)
        if p.wait():
            sys.exit(f"{' '.join(words)}: exit code {p.returncode}")
    return made


def ours_all(a, folder, names, device, keep_it):
    made = {}
    for name in names:
        t = time.monotonic()
        made[name] = ours(a, folder, name, device)
        print(f"assay, {name}: {time.monotonic() - t:.0f} s, {made[name].get('tokens_per_s', made[name])}", file=sys.stderr, flush=True)
        keep_it(made)
    return made


def compared(name, rounds, files):
    pairs = [(x[name], y[name]) for x, y in rounds if name in x and name in y]
    pairs = [(x, y) for x, y in pairs if "tokens_per_s" in x and "tokens_per_s" in y]
    if not pairs:
        return None
    ratios = [x["tokens_per_s"] / y["tokens_per_s"] for x, y in pairs]
    low, high = interval(ratios)
    x, y = pairs[0]
    out = {"rounds": len(ratios), "ratio_median": median(ratios), "ratio_low": low, "ratio_high": high, "gate": WORKS[name]["gate"],
           "met": median(ratios) >= WORKS[name]["gate"], "assay": [x["tokens_per_s"] for x, _ in pairs],
           "peer": [y["tokens_per_s"] for _, y in pairs], "peer_packing": y["work"].get("packing"),
           "assay_device_bytes": max(x["device_bytes"] for x, _ in pairs), "peer_allocated_bytes": max(y["allocated_bytes"] for _, y in pairs),
           "peer_device_bytes": max(y["device_bytes"] for _, y in pairs), "loss_first": [x["loss_first"], y["loss_first"]]}
    out["same_work"] = WORKS[name].get("packed") or x["tokens"] == y["tokens"]
    if not WORKS[name].get("packed") and files:  # the same weights, rows and order
        out["same_work"] = abs(x["loss_first"] - y["loss_first"]) <= 0.01 * abs(y["loss_first"])
    return out


def line(what, figure, gate, met):
    return f"{what:<16}{figure:<66}{gate:<10}{met}"


def table(result):
    lines = [f"{result.get('about', {}).get('device', '?')}: assay train beside transformers {result.get('about', {}).get('transformers')}, PEFT "
             f"{result.get('about', {}).get('peft')}, Liger; tokens/s, medians and range of {len(result['rounds'])} rounds"]
    for name in WORKS:
        c = result["compared"].get(name)
        if c:
            lines.append(line(name, f"{median(c['assay']):.0f} beside {median(c['peer']):.0f}: {c['ratio_median']:.3f} "
                              f"[{c['ratio_low']:.3f}, {c['ratio_high']:.3f}]; memory {c['assay_device_bytes'] / 2**30:.1f} beside "
                              f"{c['peer_device_bytes'] / 2**30:.1f} GiB", f">= {c['gate']}",
                              ("met" if c["met"] else "missed") + ("" if c.get("same_work", True) else ", but it is not the same work")))
            continue
        for x, y in result["rounds"]:
            for side, made in (("assay", x), ("peer", y)):
                if name in made:
                    said = f"{made[name]['tokens_per_s']:.0f} tokens/s" if "tokens_per_s" in made[name] else str(made[name])[:200]
                    lines.append(f"{name:<16}{side} alone: {said}")
    for w in (w for _, y in result["rounds"][:1] for w in y.get("all", []) if w["work"].get("packing", "none") != "none"):
        lines.append(f"  peer, {w['name']}, {w['work']['packing']}: {w.get('tokens_per_s', 0):.0f} tokens/s without padding"
                     f"{' (out of memory)' if 'out_of_memory' in w else ''}")
    for x, y in result["rounds"] if result["files"] else []:
        mine = next((x[n]["first_step_s"] for n in WORKS if "first_step_s" in x.get(n, {})), None)
        first = next((w["first_step_s"] for w in y.get("all", []) if w.get("first_step_s")), None)
        if mine and first:
            lines.append(f"to first step: {mine:.1f} s from the start of the program; the peer {first:.1f} s, "
                         f"{first - y['about']['import_s']:.1f} s of them after its imports")
    return "\n".join(lines)


def measure(a, folder):
    device, rounds = Device(), []
    begun, longest = time.monotonic(), 0.0
    result = {"what": "training on one GPU beside transformers, PEFT and Liger", "steps": a.steps, "warm": a.warm, "lora": LORA, "files": a.files}
    for name in a.works:
        keep(a, folder, name)
        model_of_peer(a, folder, name)
        if a.side != "peer":
            model_of(a, folder, name)
    print(f"prepared after {time.monotonic() - begun:.0f} s", flush=True)
    def write():
        result.update(rounds=rounds, about=next((y["about"] for _, y in rounds if "about" in y), {}),
                      compared={n: c for n in a.works if (c := compared(n, rounds, a.files))})
        with open(os.path.join(a.out, "training.json"), "w") as f:
            json.dump(result, f, indent=1)

    while len(rounds) < a.rounds and (not rounds or time.monotonic() - begun + longest < a.limit):
        t = time.monotonic()
        rounds.append([{}, {}])
        for side in (1, 0) if len(rounds) % 2 else (0, 1):
            def keep_it(made, side=side):
                rounds[-1][side] = made
                write()

            if side == 1 and a.side != "assay":
                theirs(a, folder, a.works, keep_it)
            elif side == 0 and a.side != "peer":
                ours_all(a, folder, a.works, device, keep_it)
            print(f"round {len(rounds)}, {('assay', 'peer')[side]}: {time.monotonic() - t:.0f} s", flush=True)
        longest = max(longest, time.monotonic() - t)
    device.process.terminate()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="assay")
    parser.add_argument("--out", required=True)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=["b2", "b4-full"])
    parser.add_argument("--packings", nargs="+", choices=PACKINGS, default=PACKINGS)
    parser.add_argument("--side", choices=["both", "assay", "peer"], default="both")
    for name, value in (("rounds", 3), ("steps", 8), ("warm", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--limit", type=float, default=1e9)
    for name in ("tokenizer", "rows", "work"):
        parser.add_argument("--" + name, default="")
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--table", action="store_true")
    a = parser.parse_args()
    if a.table:
        with open(os.path.join(a.out, "training.json")) as f:
            return print(table(json.load(f)))
    a.assay, a.rows, a.tokenizer, a.work = (os.path.abspath(p) if p else p for p in (a.assay, a.rows, a.tokenizer, a.work))
    os.makedirs(a.out, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=a.work or None) as folder:
        result = measure(a, a.work or folder)
    print(table(result))
    sys.exit(any(not c.get("same_work", True) for c in result["compared"].values()))


if __name__ == "__main__":
    main()
