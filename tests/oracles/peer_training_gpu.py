#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""assay's training on one GPU against transformers + PEFT + Liger (peer_train_gpu.py): rounds in turns, who begins changes with each; the same
rows; random weights that each side makes on the card.
usage: peer_training_gpu.py --assay PROGRAM --out FOLDER [--works b2 b4-full ..] [--side both] [--rounds 3] [--limit SECONDS]
                            [--steps 3] [--seconds 2.5] [--warm 3] [--tokenizer FOLDER] [--rows FOLDER] [--packings ..] [--work FOLDER]
       peer_training_gpu.py --files ...       the time to the first step instead, of the 7B shape, the same weights from files in the page cache;
                                              --zeros: weights of zeros, which are written sooner
       peer_training_gpu.py --out FOLDER --table
Works:
  b1 b2 b4      Qwen2-7B's shape, LoRA r 64 alpha 128 on the seven linears, that many rows of 4096 tokens a step, nothing recomputed
  b2-cheap      ours recomputes what is cheap, the peer nothing
  b4-full       four rows with all recomputed, on both sides
  packed        the same shape over function calls' rows of their real lengths, packs of 4096, 2 a step; the peer in each of its packings, of
                which the fastest goes on
  small small-packed  SmolLM2-135M's shape, 8 x 2048; the same over function calls' rows
Both programs stay loaded and take turns (turns.py): one step that does not count, then STEPS at least and for SECONDS at least. Who waits is
idle and keeps its memory. Where the card does not hold both, ours begins anew in each round, and the peer keeps its model but gives the rest
of its memory back meanwhile ("apart": so from the first on with --apart). Ours is timed from outside, by when its lines arrive.
--work keeps what is prepared. Rows: bfcl-eval's folder bfcl_eval/data, tokenised by
--tokenizer's tokenizer.json; without either, text of this Python's, a token a byte. No new round is begun when LIMIT would be passed.
Writes FOLDER/training.json after each turn; the table is what it comes to.
"""
import argparse
import glob
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from peer_cpu import interval, median
from turns import Device, Ended, Ours, Peer

HERE = os.path.dirname(os.path.abspath(__file__))
LORA = {"rank": 64, "alpha": 128}
WORKS = {
    "b1": {"shape": "qwen2-7b", "batch": 1, "length": 4096, "gate": 1.12},
    "b2": {"shape": "qwen2-7b", "batch": 2, "length": 4096, "gate": 1.12},
    "b2-cheap": {"shape": "qwen2-7b", "batch": 2, "length": 4096, "recompute": "cheap", "gate": 1.12},
    "b4": {"shape": "qwen2-7b", "batch": 4, "length": 4096, "gate": 1.12},
    "b4-full": {"shape": "qwen2-7b", "batch": 4, "length": 4096, "recompute": "full", "gate": 1.12},
    "packed": {"shape": "qwen2-7b", "batch": 2, "length": 4096, "packed": True, "gate": 1.3},
    "small": {"shape": "smollm2-135m", "batch": 8, "length": 2048, "gate": 1.5},
    "small-packed": {"shape": "smollm2-135m", "batch": 8, "length": 2048, "packed": True, "seconds": 1.0, "gate": 1.3},
}  # seconds: so that three rounds end before the rows do, whose last step has fewer
PACKINGS = ["padded", "positions", "flex"]
ROWS = 48  # of text: each batch above divides them, so that no step has fewer


def call(command, folder):
    p = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if p.returncode:
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}\n{p.stdout[-1000:]}\n{p.stderr[-3000:]}")
    return p.stdout


def text_rows(path):
    """Rows of text, each longer than any pack: what is said is 40000 characters of this Python's files."""
    written, said = 0, ""
    with open(path, "w") as out:
        for name in sorted(os.listdir(os.path.dirname(os.__file__))):
            if not name.endswith(".py") or written == ROWS:
                continue
            with open(os.path.join(os.path.dirname(os.__file__), name), encoding="utf-8", errors="replace") as f:
                said += f.read()
            while len(said) >= 40000 and written < ROWS:
                chat = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": said[:40000]}]
                out.write(json.dumps({"messages": chat}) + "\n")
                said, written = said[40000:], written + 1


def rows_name(a, name):
    return "calls" if WORKS[name].get("packed") and a.rows else "text"


def rows_of(a, folder, name):
    path = os.path.join(folder, rows_name(a, name) + ".jsonl")
    if not os.path.exists(path):
        if path.endswith("calls.jsonl"):
            call([a.assay, "rows", a.rows, "--format", "bfcl", "--out", path], folder)
        else:
            text_rows(path)
    return path


def config(a, folder, name, model, device):
    """What is trained, without an end; the rows' part is the same for every model and device, so that ids are kept once."""
    work, path = WORKS[name], os.path.join(folder, f"{name}-{device}.yaml")
    gpu = device == "gpu"
    with open(path, "w") as f:
        f.write(f"""model: {{name_or_path: {json.dumps(model)}, chat_template: qwen2.5{', random_weights: true' if gpu and not a.files else ''}}}
lora: {{r: {LORA['rank']}, alpha: {LORA['alpha']}, target_modules: all-linear}}
training:
  max_steps: 1000000
  save_steps: 0
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
        if a.zeros:
            for name in glob.glob(path + "/*.safetensors"):
                call(["cp", "--sparse=never", name, name + ".whole"], folder)  # which leaves it in the page cache too
                os.replace(name + ".whole", name)
        elif a.files:
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
            p = subprocess.Popen([a.assay, "train", config(a, folder, name, shape, "cpu"), "--out", out, "--no-cache"], cwd=folder, stdout=log, stderr=log)
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


def begin_ours(a, folder, name):
    out = os.path.join(folder, "run")
    shutil.rmtree(out, ignore_errors=True)
    return Ours([a.assay, "train", config(a, folder, name, model_of(a, folder, name), "gpu"), "--out", out, "--json", "--no-cache"], folder)


def works_of_peer(a, folder, names):
    for name in names:
        work = WORKS[name]
        for packing in packings_of(a, name):
            path = os.path.join(folder, f"{name}-{packing}.json")
            with open(path, "w") as f:
                json.dump({"name": name, "packing": packing, "kept": keep(a, folder, name), "batch": work["batch"], "length": work["length"],
                           "recompute": "full" if work.get("recompute") == "full" else "none", **LORA}, f)
            yield path


def packings_of(a, name):
    return a.packings if WORKS[name].get("packed") else ["none"]


class Work:
    """One work's rounds. Each side has had a turn before the first round, which says how many steps a turn takes."""

    def __init__(self, a, folder, name, peer, device, keep_it):
        self.a, self.folder, self.name, self.peer, self.device, self.keep_it = a, folder, name, peer, device, keep_it
        self.seconds = WORKS[name].get("seconds", a.seconds)
        self.out = {"rounds": [], "apart": a.apart, "packings": {}}
        self.ours, self.steps, self.packing, self.base = None, a.steps, "none", 0

    def start(self):
        """Ours, as far as its first steps; what the card takes for it is what it takes more than before."""
        time.sleep(0.3)  # a look of the driver's
        self.base = self.device.now
        self.ours, begun = begin_ours(self.a, self.folder, self.name), time.monotonic()
        self.device.take()
        self.ours.until(1)
        self.out["assay_first_step_s"] = time.monotonic() - begun
        first = self.ours.turn(self.a.warm - 1, 2)
        self.out["assay_bytes"] = self.device.take() - self.base
        self.out["assay_ready"] = self.ours.told("ready")
        return first

    def stop(self):
        if self.ours:
            self.ours.end()
        self.ours = None

    def of_peer(self, packing, warm, steps):
        held = self.out["assay_bytes"] if self.ours else 0
        made = self.peer.turn(self.name, packing, warm, steps)
        if "tokens_per_s" in made:
            made["bytes"] = made["used_bytes"] - held
        return made

    def acquaint(self):
        """The peer's first steps in each packing, of which the fastest goes on; ours makes room where both do not fit."""
        packings = packings_of(self.a, self.name)
        warm = self.a.warm + (4 if len(packings) > 1 else 0)  # each batch has another shape, for which memory is found first
        for packing in packings:
            made = self.of_peer(packing, warm, self.a.steps)
            if self.ours and ("out_of_memory" in made or made.get("retries")):
                self.stop()
                self.out["apart"] = True
                made = self.of_peer(packing, warm, self.a.steps)
            self.out["packings"][packing] = made
            if len(packings) > 1:
                self.peer.order(release=True)  # what one packing's shapes have kept is not in the next one's way
            self.keep_it()
        rates = {k: v["tokens_per_s"] for k, v in self.out["packings"].items() if "tokens_per_s" in v}
        if not rates:
            raise Ended(f"the peer does nothing of {self.name}: {self.out['packings']}")
        self.packing = max(rates, key=rates.get)
        first = self.out["packings"][self.packing]
        self.steps = max(self.a.steps, math.ceil(self.seconds * first["steps"] / first["seconds"]))

    def turn_of_ours(self):
        if not self.ours:
            self.start()
        made = self.ours.turn(1, self.a.steps, self.seconds)
        if self.out["apart"]:
            self.stop()
        return made

    def turn_of_peer(self):
        made = self.of_peer(self.packing, 1, self.steps)
        if self.out["apart"]:
            self.peer.order(release=True)
        return made

    def round(self):
        pair = [{}, {}]
        self.out["rounds"].append(pair)
        for side in (1, 0) if len(self.out["rounds"]) % 2 else (0, 1):
            if side == 0 and self.a.side != "peer":
                pair[0] = self.turn_of_ours()
            elif side == 1 and self.peer:
                pair[1] = self.turn_of_peer()
            self.keep_it()

    def rounds(self, left):
        if self.a.side != "peer" and not self.out["apart"]:
            first = self.start()
            print(f"assay, {self.name}: {first['tokens_per_s']:.0f} tokens/s, {left():.0f} s left", flush=True)
        if self.peer:
            self.acquaint()
            if self.out["apart"]:
                self.peer.order(release=True)
            print(f"peer, {self.name}: {self.packing} {self.out['packings'][self.packing]['tokens_per_s']:.0f} tokens/s, {left():.0f} s left", flush=True)
        longest = 0.0
        while len(self.out["rounds"]) < self.a.rounds and left() > longest * 1.1:
            begun = time.monotonic()
            self.round()
            longest = max(longest, time.monotonic() - begun)


def compared(name, out):
    pairs = [(x, y) for x, y in out["rounds"] if "tokens_per_s" in x and "tokens_per_s" in y]
    if not pairs:
        return None
    ratios = [x["tokens_per_s"] / y["tokens_per_s"] for x, y in pairs]
    low, high = interval(ratios)
    x, y = pairs[0]
    packed = WORKS[name].get("packed", False)
    return {"rounds": len(ratios), "ratio_median": median(ratios), "ratio_low": low, "ratio_high": high, "gate": WORKS[name]["gate"],
            "met": median(ratios) >= WORKS[name]["gate"], "assay": [x["tokens_per_s"] for x, _ in pairs],
            "peer": [y["tokens_per_s"] for _, y in pairs], "peer_packing": y["packing"], "apart": out["apart"],
            "assay_bytes": out["assay_bytes"], "peer_bytes": max(y["bytes"] for _, y in pairs),
            "peer_allocated_bytes": max(y["allocated_bytes"] for _, y in pairs), "loss_first": [x["loss_first"], y["loss_first"]],
            "same_work": packed or x["tokens"] / x["steps"] == y["tokens"] / y["steps"]}


def line(what, figure, gate, met):
    return f"{what:<13}{figure} {gate} {met}"


def table(result):
    about, lines = result.get("about") or {}, []
    lines.append(f"{about.get('device', '?')}: assay train beside transformers {about.get('transformers')}, PEFT {about.get('peft')}, Liger; "
                 "tokens/s, medians and range of rounds in turns")
    for name, out in result["works"].items():
        c = compared(name, out)
        if c:
            lines.append(line(name, f"{median(c['assay']):.0f} beside {median(c['peer']):.0f}: {c['ratio_median']:.3f} "
                              f"[{c['ratio_low']:.3f}, {c['ratio_high']:.3f}] of {c['rounds']}{' apart' if c['apart'] else ''}; memory "
                              f"{c['assay_bytes'] / 2**30:.1f} beside {c['peer_bytes'] / 2**30:.1f} GiB", f">= {c['gate']}",
                              ("met" if c["met"] else "missed") + ("" if c["same_work"] else ", but it is not the same work")))
        for side in (0, 1):
            alone = [r[side]["tokens_per_s"] for r in out["rounds"] if "tokens_per_s" in r[side]]
            if alone and not c:
                lines.append(f"{name:<13}{('assay', 'peer')[side]} alone: {median(alone):.0f} tokens/s, {len(alone)} rounds")
        if out.get("ended"):
            lines.append(f"{name:<13}{out['ended'][-300:]}")
        if len(out["packings"]) > 1:
            lines.append("  packings of the peer, its first turn in each: " + ", ".join(
                f"{k} {v['tokens_per_s']:.0f}" if "tokens_per_s" in v else f"{k} {'out of memory' if 'out_of_memory' in v else v['failed'][:120]}"
                for k, v in out["packings"].items()))
    pairs = [(x, y) for x, y in result.get("first", []) if x and y]
    for x, y in pairs:
        lines.append(f"to the first step: {x['seconds']:.1f} s from the program's start; the peer {y['seconds']:.1f} s, {y['import_s']:.1f} s "
                     f"of them imports{', and it compiled kernels' if result['first_compiles'] else ''}; losses {x['loss']:.4f}, {y['loss']:.4f}")
    if pairs:
        ratio, most = median([x["seconds"] / (y["seconds"] - y["import_s"]) for x, y in pairs]), median([x["seconds"] for x, _ in pairs])
        lines.append(line("first step", f"{most:.1f} s, {ratio:.2f} of the peer's from from_pretrained on", "<= 0.5 and <= 8 s",
                          "met" if ratio <= 0.5 and most <= 8 else "missed"))
    return "\n".join(lines)


def turns(a, folder, device, result, write, left):
    """One peer over each shape. Ours begins while the peer still imports: nothing of it is on the card then."""
    for shape in dict.fromkeys(WORKS[n]["shape"] for n in a.works):
        names = [n for n in a.works if WORKS[n]["shape"] == shape]
        peer = Peer(model_of_peer(a, folder, names[0]), list(works_of_peer(a, folder, names)), folder) if a.side != "assay" else None
        try:
            for i, name in enumerate(names):
                if peer and i:
                    peer.order(release=True)
                work = Work(a, folder, name, peer, device, write)
                result["works"][name] = work.out
                try:
                    work.rounds(left)
                except Ended as why:
                    work.out["ended"] = str(why)
                    if peer and peer.process.poll() is not None:
                        raise
                finally:
                    work.stop()
                    result["about"] = peer.about if peer else None
                    write()
        except Ended as why:
            print(why, file=sys.stderr)
        finally:
            if peer:
                peer.end()


def first_steps(a, folder, result, write, left):
    """Processes that begin anew each time. In its first one the peer also compiles Liger's kernels, which it keeps, and both read their libraries
    from a disk: only where there is time for one round alone are those counted, and told."""
    name = a.works[0]
    words = (model_of_peer(a, folder, name), list(works_of_peer(a, folder, [name])), folder)
    longest = 0.0
    write()

    def ours():
        run = begin_ours(a, folder, name)
        try:
            at, said = run.until(1)
            return {"seconds": at - run.begun, "loss": said["loss"], "ready": run.told("ready")}
        finally:
            run.end()

    def theirs():
        peer = Peer(*words)
        try:
            made = peer.turn(name, "none", 0, 1)
            if "tokens_per_s" not in made:
                raise Ended(str(made))
            result["about"] = peer.about
            return {"seconds": time.monotonic() - peer.begun, "import_s": peer.about["import_s"], "loss": made["loss_first"]}
        finally:
            peer.end()

    result["first"], result["first_compiles"] = [], a.rounds == 1
    if a.rounds > 1:
        result["first_not_counted"] = [ours(), theirs()]
    while len(result["first"]) < a.rounds and left() > longest * 1.1:
        begun, pair = time.monotonic(), [{}, {}]
        for side in (0, 1) if len(result["first"]) % 2 else (1, 0):
            pair[side] = theirs() if side else ours()
        result["first"].append(pair)
        write()
        longest = max(longest, time.monotonic() - begun)


def measure(a, folder):
    begun = time.monotonic()
    result = {"what": "training on one GPU beside transformers, PEFT and Liger", "steps": a.steps, "seconds": a.seconds, "warm": a.warm,
              "lora": LORA, "works": {}}

    def left():
        return a.limit - (time.monotonic() - begun)

    def write():
        result["compared"] = {n: c for n, out in result["works"].items() if (c := compared(n, out))}
        with open(os.path.join(a.out, "training.json"), "w") as f:
            json.dump(result, f, indent=1)

    for name in a.works:
        keep(a, folder, name)
        model_of_peer(a, folder, name)
        if a.side != "peer":
            model_of(a, folder, name)
    print(f"prepared after {time.monotonic() - begun:.0f} s", flush=True)
    if a.files:
        first_steps(a, folder, result, write, left)
        return result
    device = Device()
    try:
        turns(a, folder, device, result, write, left)
    finally:
        device.end()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--assay", default="assay")
    parser.add_argument("--out", required=True)
    parser.add_argument("--works", nargs="+", choices=WORKS, default=None)
    parser.add_argument("--packings", nargs="+", choices=PACKINGS, default=PACKINGS)
    parser.add_argument("--side", choices=["both", "assay", "peer"], default="both")
    for name, value in (("rounds", 3), ("steps", 3), ("warm", 3)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--seconds", type=float, default=2.5)
    parser.add_argument("--limit", type=float, default=1e9)
    for name in ("tokenizer", "rows", "work"):
        parser.add_argument("--" + name, default="")
    for name in ("files", "zeros", "apart", "table"):
        parser.add_argument("--" + name, action="store_true")
    a = parser.parse_args()
    if a.table:
        with open(os.path.join(a.out, "training.json")) as f:
            return print(table(json.load(f)))
    a.works = a.works or (["b1"] if a.files else ["b2", "b4-full"])
    a.assay, a.rows, a.tokenizer, a.work = (os.path.abspath(p) if p else p for p in (a.assay, a.rows, a.tokenizer, a.work))
    os.makedirs(a.out, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))  # a stopped run is not left behind
    with tempfile.TemporaryDirectory(dir=a.work or None) as folder:
        result = measure(a, a.work or folder)
    print(table(result))
    sys.exit(any(not c.get("same_work", True) for c in result["compared"].values()))


if __name__ == "__main__":
    main()
