#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters that `assay train` writes, loaded by transformers and PEFT.

usage: model_adapter.py ASSAY FOLDER          trains them and compares; FOLDER is new and left behind; exits 1 where they differ
       model_adapter.py ASSAY FOLDER OUT      the same, and writes what tests/unit/model_trained.c reads (tests/data/model/trained)

For each of CASES a model of random numbers is made (`make-model --seed 1`), trained on a few rows, and its adapter loaded by PEFT.
1. `assay generate --adapter --logprobs` gives the tokens and logarithms of probability that PEFT's model gives.
2. The logits of `assay merge`'s folder under transformers are those of base and adapter under PEFT.
OUT/NAME: adapter_config.json and adapter_model.safetensors as assay wrote them, expected.safetensors with PEFT's logits of the ids
`token`. Needs torch, transformers, peft.
"""
import json
import os
import shutil
import sys

import spoken
import torch
from peft import PeftModel
from safetensors.torch import save_file
from spoken import IDS, apart, logits
from transformers import AutoModelForCausalLM

# name: shape, section lora
CASES = {
    "qwen2": ("tiny", "{r: 2, alpha: 5, target_modules: all-linear}"),
    "qwen3": ("tiny-qwen3", "{r: 3, alpha: 7, use_rslora: true, target_modules: [q_proj, k_proj, down_proj]}"),
    "llama": ("tiny-llama", "{r: 2, alpha: 6, target_modules: [v_proj, up_proj], modules_to_save: [lm_head]}"),
}
CONFIG = """model: {name_or_path: %s-base, chat_template: qwen2.5}
lora: %s
data: {train: %s/rows.jsonl, max_seq_length: 160}
training: {device: cpu, per_device_train_batch_size: 1, learning_rate: 3e-2, lr_scheduler_type: constant, max_steps: 12, tensorboard: false}
"""
assay, folder = sys.argv[1:3]
checks = spoken.Checks()


def run(*words):
    return spoken.run(assay, *words)


def train(name, shape, lora):
    here = f"{folder}/{name}"
    run("make-model", "--shape", shape, "--dtype", "f32", "--out", here + "-base")
    with open(here + ".yaml", "w") as f:
        f.write(CONFIG % (here, lora, folder))
    run("train", here + ".yaml", "--out", here, "--no-telemetry", "--no-cache")
    run("merge", here + "-base", here + "/adapter", "--dtype", "f32", "--out", here + "-merged")


def one(name, shape, lora, out):
    train(name, shape, lora)
    base = AutoModelForCausalLM.from_pretrained(f"{folder}/{name}-base", attn_implementation="eager").float().eval()
    before = logits(base, IDS)
    model = PeftModel.from_pretrained(base, f"{folder}/{name}/adapter").eval()
    due = logits(model, IDS)
    assert apart(before, due) > 0.05, f"{name}: the adapter changes next to nothing"
    spoken.compare(checks, name, assay, f"{folder}/{name}-base", model, f"{folder}/{name}/adapter")
    merged = AutoModelForCausalLM.from_pretrained(f"{folder}/{name}-merged", attn_implementation="eager").float().eval()
    checks.less(f"{name}: merged", apart(logits(merged, IDS), due))
    if out:
        os.makedirs(f"{out}/{name}", exist_ok=True)
        for file in ("adapter_config.json", "adapter_model.safetensors"):
            shutil.copy(f"{folder}/{name}/adapter/{file}", f"{out}/{name}/{file}")
        with open(f"{out}/{name}/adapter_config.json") as f:
            config = json.load(f)
        config["base_model_name_or_path"] = f"make-model --shape {shape} --dtype f32 --seed 1"
        with open(f"{out}/{name}/adapter_config.json", "w") as f:
            json.dump(config, f, indent=2, sort_keys=True)
            f.write("\n")
        expected = f"{out}/{name}/expected.safetensors"
        save_file({"token": torch.tensor(IDS, dtype=torch.int32), "logits": due.contiguous()}, expected)
        os.chmod(expected, 0o644)


torch.set_num_threads(1)
os.mkdir(folder)
spoken.rows(f"{folder}/rows.jsonl", 8)
for name, (shape, lora) in CASES.items():
    one(name, shape, lora, sys.argv[3] if len(sys.argv) > 3 else None)
sys.exit(checks.wrong > 0)
