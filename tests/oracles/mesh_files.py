#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters and models that ranks of each mesh write, loaded by transformers and PEFT.

usage: mesh_files.py ASSAY FOLDER     FOLDER is new and left behind; exits 1 where something differs

For each of MESHES four CPU ranks train an adapter and a whole model (`assay launch --how mpirun`), and one rank trains the same.
1. PEFT or transformers loads the files. They lack no tensor, and have none too many.
2. `assay generate --logprobs` on these files gives the tokens and logarithms of probability that the loaded model gives.
3. The loaded model's logits are those of the files that one rank wrote: the same without tensor parallel, where deterministic: true
   gives the same bits; within 1e-5 with it.
Needs torch, transformers, peft; mpirun, and ASSAY_MODULE_DIR for a program that is not installed.
"""
import os
import sys

import spoken
import torch
from peft import PeftModel
from safetensors import safe_open
from spoken import IDS, apart, logits
from transformers import AutoModelForCausalLM

# name: lines of the section training, limit of the difference from one rank
MESHES = {
    "data 4": ("", 1e-9),
    "zero_stage 3": ("zero_stage: 3", 1e-9),
    "tensor 2 x data 2": ("tensor_parallel_size: 2", 1e-5),
}
CONFIG = """model: {name_or_path: %s, chat_template: qwen2.5}
%s
data: {train: %s, max_seq_length: 160}
training: {device: cpu, tune: false, deterministic: true, global_batch_size: 4, per_device_train_batch_size: 1,
  lr_scheduler_type: constant, max_steps: 8, tensorboard: false%s}
"""
# name: section lora, lines of the section training
KINDS = {
    "adapter": ("lora: {r: 4, alpha: 8, target_modules: all-linear}", "learning_rate: 1e-2"),
    "model": ("", "learning_rate: 1e-3, full_finetuning: true"),
}
assay, folder = sys.argv[1:3]
checks = spoken.Checks()
base = f"{folder}/base"


def train(name, kind, more, ranks):
    """Returns the folder of the adapter or model."""
    here = f"{folder}/{kind} {name}".replace(" ", "-")
    lora, full = KINDS[kind]
    lines = "".join(f", {line}" for line in (full, more) if line)
    with open(here + ".yaml", "w") as f:
        f.write(CONFIG % (base, lora, f"{folder}/rows.jsonl", lines))
    launch = ["launch", "--how", "mpirun", "--ranks-per-node", str(ranks), "--"] if ranks > 1 else []
    spoken.run(assay, *launch, "train", here + ".yaml", "--out", here, "--no-telemetry", "--no-cache")
    return f"{here}/{kind}"


def exactly(name, loaded, path):
    """The file's tensors are those that the loaded model has."""
    with safe_open(path, "pt") as f:
        stored = set(f.keys())
    checks.less(f"{name}: {len(stored)} tensors, none missing and none too many", float(len(stored ^ loaded)), 0.5)


def load(name, kind, path):
    if kind == "model":
        model, info = AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager", output_loading_info=True)
        missing = len(info["missing_keys"]) + len(info["unexpected_keys"]) + len(info["mismatched_keys"])
        checks.less(f"{name}: no tensor is missing, unexpected or of another shape", float(missing), 0.5)
        return model.float().eval()
    model = AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").float().eval()
    model = PeftModel.from_pretrained(model, path).eval()
    exactly(name, {key.replace(".default", "") for key in model.state_dict() if "lora_" in key}, f"{path}/adapter_model.safetensors")
    return model


def one(kind):
    before = logits(AutoModelForCausalLM.from_pretrained(base, attn_implementation="eager").float().eval(), IDS)
    due = logits(load(f"{kind}, one rank", kind, train("one", kind, "", 1)), IDS)
    assert apart(before, due) > 0.05, f"{kind}: training changes next to nothing"
    for mesh, (more, limit) in MESHES.items():
        name = f"{kind}, {mesh}"
        path = train(mesh, kind, more, 4)
        model = load(name, kind, path)
        spoken.compare(checks, name, assay, *((base, model, path) if kind == "adapter" else (path, model)))
        checks.less(f"{name}: the logits of one rank", apart(logits(model, IDS), due), limit)


torch.set_num_threads(1)
os.mkdir(folder)
spoken.rows(f"{folder}/rows.jsonl", 12)
spoken.run(assay, "make-model", "--shape", "tiny", "--seed", "1", "--dtype", "f32", "--out", base)
for kind in KINDS:
    one(kind)
sys.exit(checks.wrong > 0)
