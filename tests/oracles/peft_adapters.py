#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adapters that PEFT makes, and the logits that transformers and PEFT give with them.

usage: peft_adapters.py ASSAY FOLDER          makes them and compares `assay merge`; FOLDER is new and left behind; exits 1 where they differ
       peft_adapters.py ASSAY FOLDER OUT      the same, and writes what tests/unit/engine_adapters.c reads (tests/data/model/adapters)

All of them belong to one base model of random numbers (`make-model --shape tiny --dtype f32 --seed 1`).
OUT/NAME: adapter_config.json, adapter_model.safetensors, and expected.safetensors with the logits of the ids `token`.
OUT/base: expected.safetensors of the base model. Needs torch, transformers, peft.
"""
import json
import os
import shutil
import subprocess
import sys

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
IDS = list(range(1, 260, 23))
# PEFT takes the first pattern that matches, and writes patterns in the order of their text: here it is the same.
CASES = {
    "plain": dict(r=4, lora_alpha=10, target_modules=SEVEN),
    "patterns": dict(r=4, lora_alpha=6, use_rslora=True, target_modules=["q_proj", "v_proj", "gate_proj", "down_proj"],
                     rank_pattern={"gate_proj": 3, r"layers\.1\.mlp\..*": 6, "q_proj": 2},
                     alpha_pattern={"down_proj": 3, r"layers.\d.mlp.(gate|up)_proj": 9, "model.layers.0.self_attn.v_proj": 20}),
    "dora": dict(r=2, lora_alpha=5, use_dora=True, target_modules=["q_proj", "v_proj", "o_proj", "up_proj", "down_proj"]),
    "whole": dict(r=2, lora_alpha=4, use_dora=True, rank_pattern={"layers.0.self_attn.q_proj": 1}, target_modules=["q_proj"],
                  modules_to_save=["lm_head", "embed_tokens"]),
}
assay, folder = sys.argv[1:3]
out = sys.argv[3] if len(sys.argv) > 3 else None
wrong = 0


def run(*words):
    subprocess.run([assay, *words], check=True, capture_output=True, text=True)


def load(path):
    return AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager").float().eval()


def logits(model):
    with torch.no_grad():
        return model(torch.tensor([IDS])).logits[0]


def write(name, due):
    if not out:
        return
    os.makedirs(f"{out}/{name}", exist_ok=True)
    path = f"{out}/{name}/expected.safetensors"
    save_file({"token": torch.tensor(IDS, dtype=torch.int32), "logits": due.contiguous()}, path)
    os.chmod(path, 0o644)


def one(number, name, config):
    global wrong
    here = f"{folder}/{name}"
    torch.manual_seed(number)
    model = get_peft_model(load(f"{folder}/base"), LoraConfig(task_type="CAUSAL_LM", **config)).eval()
    for key, value in model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(value, std=0.05)
        if "lora_magnitude" in key:
            value.data.mul_(1 + 0.3 * torch.randn_like(value))
        if "modules_to_save" in key:
            value.data.add_(torch.randn_like(value) * 0.02)
    model.save_pretrained(here)
    due = logits(PeftModel.from_pretrained(load(f"{folder}/base"), here).eval())
    run("merge", f"{folder}/base", here, "--dtype", "f32", "--out", here + "-merged")
    error = ((logits(load(here + "-merged")) - due).abs().max() / due.abs().max()).item()
    wrong += not error < 1e-5
    print("ok" if error < 1e-5 else "not ok", "-", name, f"(relative {error:.1e})")
    write(name, due)
    if out:
        shutil.copy(f"{here}/adapter_model.safetensors", f"{out}/{name}/adapter_model.safetensors")
        os.chmod(f"{out}/{name}/adapter_model.safetensors", 0o644)
        with open(f"{here}/adapter_config.json") as f:
            kept = json.load(f)
        kept["base_model_name_or_path"] = "make-model --shape tiny --dtype f32 --seed 1"
        with open(f"{out}/{name}/adapter_config.json", "w") as f:
            json.dump(kept, f, indent=2)
            f.write("\n")


torch.set_num_threads(1)
os.mkdir(folder)
run("make-model", "--shape", "tiny", "--dtype", "f32", "--out", f"{folder}/base")
write("base", logits(load(f"{folder}/base")))
for number, (name, config) in enumerate(CASES.items()):
    one(number, name, config)
sys.exit(wrong > 0)
