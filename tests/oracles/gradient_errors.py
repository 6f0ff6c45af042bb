#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""By how much gradients of transformers and PEFT in BF16 are off, beside theirs in F32: what tests/gpu/gradients is held to.

usage: gradient_errors.py OUT DIR...      DIR: what `gradients write CASE DIR` made: model, adapter, rows.jsonl; OUT/CASE.json becomes

Weights in BF16, adapters in BF16 (the fast way, which assay is timed beside), each document alone, gradients of documents added in F32: kinder
than PyTorch's own sum, which would be in BF16. Written is for each trained parameter the root of the squares of what it is off by, over that of
its gradient in F32, over all batches; and the first batch's loss with the adapter off and on, in both types. Where DIR has no adapter the whole model is
trained.
Needs torch, transformers, peft; on the CPU where there is no GPU.
"""
import contextlib
import json
import math
import os
import sys

import peft
import torch
import transformers
from peft import PeftModel

UNTRAINED = -100
device = "cuda" if torch.cuda.is_available() else "cpu"


def load(folder, dtype):
    base = transformers.AutoModelForCausalLM.from_pretrained(os.path.join(folder, "model"), dtype=dtype, attn_implementation="sdpa")
    base.config.use_cache = False
    if not os.path.isdir(os.path.join(folder, "adapter")):  # the whole model is trained
        return base.to(device).eval()
    model = PeftModel.from_pretrained(base, os.path.join(folder, "adapter"), is_trainable=True, autocast_adapter_dtype=False)
    return model.to(device=device, dtype=dtype).eval()


def documents(row):
    for begin, end in zip(row["start"], row["start"][1:]):
        target = torch.tensor(row["target"][begin:end], device=device)
        if (target != UNTRAINED).any():
            yield torch.tensor([row["token"][begin:end]], device=device), target


def loss_of(model, ids, target):
    return torch.nn.functional.cross_entropy(model(input_ids=ids).logits[0].float(), target, ignore_index=UNTRAINED, reduction="sum")


def count_of(row):
    return sum(t != UNTRAINED for t in row["target"])


def gradients(model, row):
    """Mean loss, and every trained parameter's gradient in F32 by name."""
    trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
    total, sums = 0.0, {n: torch.zeros_like(p, dtype=torch.float32) for n, p in trained.items()}
    for ids, target in documents(row):
        loss = loss_of(model, ids, target)
        for name, g in zip(trained, torch.autograd.grad(loss / count_of(row), list(trained.values()))):
            sums[name] += g.float()
        total += loss.item()
    return total / count_of(row), {n.replace("base_model.model.", "").replace(".default", ""): g for n, g in sums.items()}


def without(model, row):
    with torch.no_grad(), model.disable_adapter() if isinstance(model, PeftModel) else contextlib.nullcontext():
        return sum(loss_of(model, ids, target).item() for ids, target in documents(row)) / count_of(row)


def one(folder, out_folder):
    with open(os.path.join(folder, "rows.jsonl")) as f:
        rows = [json.loads(line) for line in f]
    model = load(folder, torch.float32)
    due = [gradients(model, row) for row in rows]
    out = {"case": rows[0]["case"], "torch": torch.__version__, "transformers": transformers.__version__, "peft": peft.__version__,
           "device": torch.cuda.get_device_name() if device == "cuda" else "cpu",
           "f32_loss_first": without(model, rows[0]), "f32_loss": due[0][0]}
    del model
    model = load(folder, torch.bfloat16)
    found = [gradients(model, row) for row in rows]
    out["loss_first"], out["loss"] = without(model, rows[0]), found[0][0]
    out["error"] = {}
    for name in due[0][1]:
        apart = sum(((a[1][name] - b[1][name]).double() ** 2).sum().item() for a, b in zip(due, found))
        norm = sum((a[1][name].double() ** 2).sum().item() for a in due)
        out["error"][name] = float(f"{math.sqrt(apart / norm):.4g}") if norm > 0 else 0.0
    with open(os.path.join(out_folder, out["case"] + ".json"), "w") as f:
        json.dump(out, f, indent=1)
        f.write("\n")
    worst = max(out["error"].values())
    print(f"{out['case']}: PyTorch's BF16 is off by at most {100 * worst:.3g} %; losses {out['loss_first']:.5f} to {out['loss']:.5f}, "
          f"in F32 {out['f32_loss_first']:.5f} to {out['f32_loss']:.5f}", flush=True)


def main():
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    for folder in sys.argv[2:]:
        one(folder, sys.argv[1])


if __name__ == "__main__":
    main()
