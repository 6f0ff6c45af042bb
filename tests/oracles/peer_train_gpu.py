#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on one GPU by transformers, PEFT and Liger's kernels: what `assay train` is timed beside. BF16 weights and adapters, LoRA on
the seven linears, fused AdamW, clipping.
usage: peer_train_gpu.py MODEL WORK.json              the whole of one work, told after each part; -: a line on stdin instead of a file
       peer_train_gpu.py --turns MODEL WORK.json...   one model; each line on stdin is an order, whose answer is a line:
         {"work": NAME, "packing": .., "warm": N, "steps": N}  goes on with that work: N steps left out of the figures, and N that count
         {"release": true}                         memory that no tensor needs goes back to the device
       Between orders it waits and keeps what it holds; it ends with stdin. Nothing is loaded before the first order.
MODEL: a folder of Hugging Face's; where it has a config.json alone, random weights of that shape. A WORK file has these keys:
  kept, batch, length  rows that assay kept as ids (data: cache_dir), rows or packs a step, tokens of one at most; longer rows are cut
  packing     none: a row a place, padded to the longest; padded: as many rows of like length as batch x length tokens hold;
              positions: packs, rows end to end, attention kept apart by positions (PyTorch's sdpa under a mask); flex: the same by FlexAttention;
              same: by positions, the packs and their order those of assay's without shuffling
  recompute   none or full
  rank, alpha, liger (default true), adapters: bf16 or as-it-comes (FP32); weights: bf16 (default) or f32, all of it in FP32 then
  Of a work that is done whole: steps, rows in the file's order, no row again; each step's loss and tokens are told. Beside it:
    init        an adapter's folder to begin with; schedule: {rate, warmup, steps} of a cosine
    held        kept rows to evaluate on at begin and end; answers: a file that gets a greedy answer to each of the first held_count of them,
                tokens: of one at most
Prints a JSON object a line: {"about"}, then {"turn"} or {"work"}; on stderr what it is about.
Needs torch, transformers, peft and liger_kernel on a machine with a GPU; exits 77 where one is missing.
"""
import functools
import gc
import glob
import itertools
import json
import math
import os
import sys
import time

BEGUN = time.monotonic()
try:
    import peft
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model
    import liger_kernel.transformers as liger
except ImportError as missing:
    print(f"peer_train_gpu: {missing.name} is not here", file=sys.stderr)
    sys.exit(77)

from peer_train import UNTRAINED, kept_rows

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ANSWERED = 3 << 17  # places of rows that are answered at once, each as long as the longest
EVALUATED = 8
IMPORTED = time.monotonic()


def tell(what):
    print(f"peer {time.monotonic() - BEGUN:6.1f} s: {what}", file=sys.stderr, flush=True)


def matrix(rows, fill):
    longest = max(len(r) for r in rows)
    return torch.tensor([list(r) + [fill] * (longest - len(r)) for r in rows])


def padded(rows):
    """Where none is shorter, no mask is needed, and attention runs its fastest."""
    made = {"input_ids": matrix([ids for ids, _ in rows], 0), "labels": matrix([labels for _, labels in rows], UNTRAINED)}
    if any(len(ids) != len(rows[0][0]) for ids, _ in rows):
        made["attention_mask"] = matrix([[1] * len(ids) for ids, _ in rows], 0)
    return made, sum(len(ids) for ids, _ in rows)


def packed(packs, size):
    """A pack a place, its rows end to end, each with positions of its own; what is left is a row of nothing."""
    ids, labels, positions, count = [], [], [], 0
    for pack in packs:
        n = sum(len(row) for row, _ in pack)
        ids.append([t for row, _ in pack for t in row] + [0] * (size - n))
        labels.append([t for _, row in pack for t in [UNTRAINED] + row[1:]] + [UNTRAINED] * (size - n))
        positions.append([i for row, _ in pack for i in range(len(row))] + list(range(size - n)))
        count += n
    return {"input_ids": torch.tensor(ids), "labels": torch.tensor(labels), "position_ids": torch.tensor(positions)}, count


def first_fit(rows, room):
    """Longest first, each into the first pack that has room, as TRL's best-fit packing nearly does."""
    packs = []
    for row in sorted(rows, key=lambda r: -len(r[0])):
        for pack in packs:
            if pack[0] + len(row[0]) <= room:
                pack[0] += len(row[0])
                pack[1].append(row)
                break
        else:
            packs.append([len(row[0]), [row]])
    return [pack for _, pack in packs]


def like_lengths(rows, room):
    """Rows of like length: as many as fit when padded to the longest."""
    batch, out = [], []
    for row in sorted(rows, key=lambda r: -len(r[0])):
        if batch and (len(batch) + 1) * len(batch[0][0]) > room:
            out.append(batch)
            batch = []
        batch.append(row)
    return out + [batch]


def groups_of(work):
    """The rows of each step, and what makes a batch of them."""
    rows = [row for _, row in kept_rows(work["kept"], work["length"], not work.get("held"))]
    packing = work.get("packing", "none")
    if packing == "none":
        return [rows[i:i + work["batch"]] for i in range(0, len(rows) - work["batch"] + 1, work["batch"])], padded
    if packing == "padded":
        groups = like_lengths(rows, work["batch"] * work["length"])
        spread = torch.randperm(len(groups), generator=torch.Generator().manual_seed(1)).tolist()
        return [groups[i] for i in spread], padded
    packs = first_fit(rows, work["length"])
    if packing == "same":  # a pack stands where its first row does
        place = {id(row): i for i, row in enumerate(rows)}
        spread = sorted(range(len(packs)), key=lambda i: min(place[id(row)] for row in packs[i]))
    else:
        spread = torch.randperm(len(packs), generator=torch.Generator().manual_seed(1)).tolist()
    groups = [[packs[i] for i in spread[at:at + work["batch"]]] for at in range(0, len(packs) - work["batch"] + 1, work["batch"])]
    return groups, functools.partial(packed, size=work["length"])


def load(path, work):
    kind = {"dtype": torch.float32 if work.get("weights") == "f32" else torch.bfloat16, "attn_implementation": "sdpa"}
    if work.get("liger", True):
        family = transformers.AutoConfig.from_pretrained(path).model_type
        getattr(liger, f"apply_liger_kernel_to_{family}")()
    if glob.glob(os.path.join(path, "*.safetensors")):
        model = transformers.AutoModelForCausalLM.from_pretrained(path, device_map={"": 0}, **kind)
    else:
        with torch.device("cuda"):
            model = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.from_pretrained(path), **kind)
    model.config.use_cache = False
    config = LoraConfig(r=work["rank"], lora_alpha=work["alpha"], target_modules=TARGETS, task_type="CAUSAL_LM")
    model = get_peft_model(model, config, autocast_adapter_dtype=work.get("adapters", "bf16") != "bf16")
    if work.get("init"):
        state = peft.utils.load_peft_weights(work["init"], device="cuda")
        with torch.no_grad():  # B of zeros, as LoRA begins: what stands there is one step of a rate of nearly nothing
            state = {k: v * (0 if ".lora_B." in k else 1) for k, v in state.items()}
        peft.set_peft_model_state_dict(model, state)
    return model


def step(model, batch, trained, optimiser):
    batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    return loss.detach()


def scheduled(optimiser, schedule):
    return transformers.get_cosine_schedule_with_warmup(optimiser, schedule["warmup"], schedule["steps"])


def evaluate(model, work):
    model.eval()
    total, targets = 0.0, 0
    rows = [row for _, row in kept_rows(work["held"], work["length"], False)]
    with torch.no_grad():
        for at in range(0, len(rows), EVALUATED):
            batch, _ = padded(rows[at:at + EVALUATED])
            n = int((batch["labels"][:, 1:] != UNTRAINED).sum())
            total += model(**{k: v.cuda() for k, v in batch.items()}).loss.item() * n
            targets += n
    model.train()
    return total / targets


def said_to(model, prompts, end, most):
    """Greedy answers to prompts, as one batch: ids up to the end of each."""
    longest = max(len(p) for p in prompts)
    ids = torch.tensor([[end] * (longest - len(p)) + p for p in prompts]).cuda()
    mask = torch.tensor([[0] * (longest - len(p)) + [1] * len(p) for p in prompts]).cuda()
    said = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=most, do_sample=False, eos_token_id=end, pad_token_id=end)
    return [tokens[:tokens.index(end)] if end in tokens else tokens for tokens in said[:, longest:].tolist()]


def answer(model, work, path, answers, count):
    """Greedy answers to the held-out rows, as many at a time as the card holds: what stands before the first trained token is the prompt."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    end = tokenizer.convert_tokens_to_ids("<|im_end|>")
    rows = list(kept_rows(work["held"], 1 << 30, False))[:count]
    rows.sort(key=lambda r: len(r[1][0]))
    asked, room = len(rows), ANSWERED
    model.eval()
    model.config.use_cache = True
    begun, made = time.monotonic(), 0
    with open(answers, "w") as out, torch.no_grad():
        while rows:
            count = next((n for n, (_, (ids, _)) in enumerate(rows) if n and (n + 1) * len(ids) > room), len(rows))
            prompts = [ids[:next(k for k, label in enumerate(labels) if label != UNTRAINED)] for _, (ids, labels) in rows[:count]]
            try:
                said = said_to(model, prompts, end, work["tokens"])
            except torch.OutOfMemoryError:
                if count == 1:
                    raise
                said, room = None, room // 2
            if said is None:  # out of the handler, which held what was in the way
                gc.collect()
                torch.cuda.empty_cache()
                continue
            for (i, _), tokens in zip(rows, said):
                made += len(tokens)
                out.write(json.dumps({"row": i + 1, "text": tokenizer.decode(tokens, skip_special_tokens=False)}) + "\n")
            out.flush()
            tell(f"{count} rows answered")
            rows = rows[count:]
    model.config.use_cache = False
    return {"rows": asked, "tokens": made, "seconds": time.monotonic() - begun}


def recompute(model, work):
    if work.get("recompute") == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    else:
        model.gradient_checkpointing_disable()


class Turns:
    """Works over one model and one optimiser, each going on where its last turn ended."""

    def __init__(self, path, works):
        self.path, self.works, self.feeds, self.model = path, works, {}, None

    def begin(self):
        self.model = load(self.path, self.works[0])
        self.trained = [p for p in self.model.parameters() if p.requires_grad]
        self.optimiser = torch.optim.AdamW(self.trained, lr=1e-4, weight_decay=0.0, fused=True)
        tell("model is there")

    def batches(self, work, count):
        key = (work["name"], work["packing"])
        if key not in self.feeds:
            groups, make = groups_of(work)
            self.feeds[key] = (itertools.cycle(groups), make)
            tell(f"{work['name']} {work['packing']}: {len(groups)} batches")
        groups, make = self.feeds[key]
        return [make(group) for group in itertools.islice(groups, count)]

    def timed(self, made, warm):
        losses, marks, begun, first_s = [], [], time.monotonic(), 0.0
        for i, (batch, _) in enumerate(made):
            if i == warm:
                torch.cuda.synchronize()
                begun = time.monotonic()
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()
            losses.append(step(self.model, batch, self.trained, self.optimiser))
            if i == 0:
                torch.cuda.synchronize()
                first_s = time.monotonic() - BEGUN
            if i >= warm:
                marks.append(torch.cuda.Event(enable_timing=True))
                marks[-1].record()
        torch.cuda.synchronize()
        seconds = time.monotonic() - begun
        return seconds, first_s, [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])], [x.item() for x in losses]

    def turn(self, order):
        if not self.model:
            self.begin()
        work = next(w for w in self.works if w["name"] == order["work"] and w["packing"] == order.get("packing", "none"))
        made = self.batches(work, order["warm"] + order["steps"])
        recompute(self.model, work)
        self.model.get_base_model().set_attn_implementation("flex_attention" if work["packing"] == "flex" else "sdpa")
        self.model.train()
        torch.cuda.reset_peak_memory_stats()
        retries = torch.cuda.memory_stats().get("num_alloc_retries", 0)
        try:
            seconds, first_s, each, losses = self.timed(made, order["warm"])
        except torch.OutOfMemoryError as why:
            self.optimiser.zero_grad(set_to_none=True)
            return {"out_of_memory": str(why)[:200]}
        except Exception as why:  # a packing that this machine's libraries cannot do costs that packing
            self.optimiser.zero_grad(set_to_none=True)
            return {"failed": f"{type(why).__name__}: {why}"[:300]}
        counted, (free, total) = made[order["warm"]:], torch.cuda.mem_get_info()
        tokens = sum(n for _, n in counted)
        return {"packing": work["packing"], "steps": len(counted), "tokens": tokens, "places": sum(b["input_ids"].numel() for b, _ in counted),
                "seconds": seconds, "tokens_per_s": tokens / seconds, "step_s": each, "first_step_s": first_s, "loss_first": losses[0],
                "loss": losses[-1], "allocated_bytes": torch.cuda.max_memory_allocated(), "reserved_bytes": torch.cuda.max_memory_reserved(),
                "used_bytes": total - free, "retries": torch.cuda.memory_stats().get("num_alloc_retries", 0) - retries,
                "trained": sum(p.numel() for p in self.trained)}

    def obey(self, order):
        if order.get("release"):
            out = {"released": True}
        else:
            out = self.turn(order)
        if "tokens_per_s" not in out:
            gc.collect()
            torch.cuda.empty_cache()
        print(json.dumps({"turn": out}), flush=True)


def curve(model, work):
    """Each step's loss, and the tokens a second from the second step on."""
    groups, make = groups_of(work)
    if len(groups) < work["steps"]:
        sys.exit(f"peer_train_gpu: {work['kept']} has rows for {len(groups)} steps, not {work['steps']}")
    made = [make(group) for group in groups[:work["steps"]]]
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=work["schedule"]["rate"], weight_decay=0.0, fused=True)
    rates, losses, begun = scheduled(optimiser, work["schedule"]), [], time.monotonic()
    for i, (batch, _) in enumerate(made):
        losses.append(step(model, batch, trained, optimiser))
        rates.step()
        if i == 0:
            torch.cuda.synchronize()
            begun = time.monotonic()
    torch.cuda.synchronize()
    seconds = time.monotonic() - begun
    losses = [x.item() for x in losses]
    if any(math.isnan(x) for x in losses):
        sys.exit("peer_train_gpu: a loss is no number")
    return {"losses": losses, "tokens": [n for _, n in made], "tokens_per_s": sum(n for _, n in made[1:]) / seconds, "trained": sum(p.numel() for p in trained)}


def whole(path, work):
    out = {"name": work["name"]}

    def told(what):
        print(json.dumps({"work": out}), flush=True)
        tell(what)

    model = load(path, work)
    tell("model is there")
    recompute(model, work)
    out["eval_loss_first"] = evaluate(model, work)
    told("evaluated")
    out.update(curve(model, work))
    told("trained")
    out["eval_loss"] = evaluate(model, work)
    told("evaluated again")
    if work.get("answers"):
        out["answers"] = answer(model, work, path, work["answers"], work["held_count"])
        told("answered")


def tell_about():
    """Not before the first order: this opens the device."""
    about = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "transformers": transformers.__version__,
             "peft": peft.__version__, "import_s": IMPORTED - BEGUN}
    print(json.dumps({"about": about}), flush=True)


def main():
    turns, words = "--turns" in sys.argv, [w for w in sys.argv[1:] if w != "--turns"]
    if len(words) < 2 or (not turns and len(words) > 2):
        sys.exit(__doc__)
    if not torch.cuda.is_available():
        print("peer_train_gpu: no GPU here", file=sys.stderr)
        sys.exit(77)
    torch.manual_seed(1)
    works = []
    for path in words[1:]:
        if path == "-":
            works.append(json.loads(sys.stdin.readline()))
        else:
            with open(path) as f:
                works.append(json.load(f))
    if not turns:
        tell_about()
        return whole(words[0], works[0])
    run = Turns(words[0], works)
    for line in sys.stdin:
        if not run.model:
            tell_about()
        run.obey(json.loads(line))


if __name__ == "__main__":
    main()
