#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of models as transformers, PEFT and gguf read and write them, against what assay makes and merges.

usage: model_files.py ASSAY FOLDER [MODEL.gguf]     exits 1 where they differ; FOLDER is new and left behind

1. transformers loads each small model of `assay make-model`, with its tokenizer.
2. PEFT's adapters on them (random B, alpha other than the rank, rank-stabilised, whole modules on tied and untied models),
   merged by `assay merge`: the merged model's logits are those of base and adapter under PEFT.
3. A llama-architecture GGUF out of which `assay merge` makes a folder: each tensor is, bit for bit, what gguf's own
   dequantisation gives with q's and k's rows put back in order.
Adapters of `assay train`: model_adapter.py. Needs torch, transformers, peft; gguf for 3.
"""
import json
import os
import re
import subprocess
import sys

import torch
from peft import LoraConfig, get_peft_model
from safetensors import safe_open
from transformers import AutoModelForCausalLM, AutoTokenizer

assay, folder = sys.argv[1:3]
wrong = 0


def check(name, holds, note=""):
    global wrong
    wrong += not holds
    print("ok" if holds else "not ok", "-", name, note)


def run(*words):
    subprocess.run([assay, *words], check=True, stdout=subprocess.DEVNULL)


def logits(model):
    with torch.no_grad():
        return model(torch.arange(1, 40)[None]).logits


SEVEN = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
ADAPTERS = [
    ("tiny", dict(r=4, lora_alpha=10, target_modules=SEVEN)),
    ("tiny-qwen3", dict(r=3, lora_alpha=7, target_modules=["q_proj", "v_proj"], use_rslora=True)),
    ("tiny-llama", dict(r=4, lora_alpha=6, target_modules=["o_proj", "down_proj"], modules_to_save=["lm_head"])),
    ("tiny", dict(r=2, lora_alpha=8, target_modules="all-linear", modules_to_save=["lm_head", "embed_tokens"])),
    ("tiny-qwen3", dict(r=4, lora_alpha=8, target_modules=["gate_proj"], modules_to_save=["embed_tokens"])),
]


def adapter(number, shape, config):
    here = f"{folder}/{number}"
    run("make-model", "--shape", shape, "--dtype", "f32", "--shard", "300kB", "--out", here + "-base")
    torch.manual_seed(number)
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(here + "-base"),
                           LoraConfig(task_type="CAUSAL_LM", **config)).eval()
    for name, value in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(value, std=0.1)
        if "modules_to_save" in name:
            value.data.add_(torch.randn_like(value) * 0.02)
    due = logits(model)
    model.save_pretrained(here + "-adapter")
    run("merge", here + "-base", here + "-adapter", "--out", here + "-merged")
    error = (logits(AutoModelForCausalLM.from_pretrained(here + "-merged")) - due).abs().max() / due.abs().max()
    check(f"{shape} merged, {json.dumps(config)}", error < 1e-5, f"(relative {error:.1e})")


def tokenizers():
    text = "naïve <|im_start|>user\n<tool_call>"
    here = f"{folder}/tokens"
    run("make-model", "--out", here)
    ids = AutoTokenizer.from_pretrained(here)(text).input_ids
    due = list("naïve ".encode()) + [257] + list(b"user\n") + [259]
    check("a vocabulary of bytes", ids == due, str(ids))


def of_gguf(path):
    from gguf import GGUFReader
    from gguf.quants import dequantize

    leaf = {"attn_norm": "input_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
            "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "ffn_norm": "post_attention_layernorm",
            "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj"}
    top = {"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight",
           "output.weight": "lm_head.weight"}
    here = f"{folder}/gguf"
    run("merge", path, "--dtype", "f32", "--out", here)
    with open(here + "/config.json") as f:
        config = json.load(f)
    heads = {"attn_q": config["num_attention_heads"], "attn_k": config["num_key_value_heads"]}
    equal = count = 0
    with safe_open(here + "/model.safetensors", "np") as ours:
        for tensor in GGUFReader(path).tensors:
            due = dequantize(tensor.data, tensor.tensor_type)
            inside = re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", tensor.name)
            name = f"model.layers.{inside[1]}.{leaf[inside[2]]}.weight" if inside else top[tensor.name]
            if inside and inside[2] in heads:
                n = heads[inside[2]]
                due = due.reshape(n, due.shape[0] // n // 2, 2, due.shape[1]).swapaxes(1, 2).reshape(due.shape)
            equal += ours.get_tensor(name).tobytes() == due.astype("float32").tobytes()
            count += 1
    check("every tensor of the GGUF", equal == count, f"({equal} of {count})")
    AutoModelForCausalLM.from_pretrained(here)
    tokenizer = AutoTokenizer.from_pretrained(here)
    check("its tokenizer", tokenizer.decode(tokenizer("é 12 <|im_end|>").input_ids) == "é 12 <|im_end|>")


os.mkdir(folder)
tokenizers()
for number, (shape, config) in enumerate(ADAPTERS):
    adapter(number, shape, config)
if len(sys.argv) > 3:
    of_gguf(sys.argv[3])
sys.exit(wrong > 0)
