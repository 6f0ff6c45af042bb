#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The ladder's baseline beside eager PyTorch: transformers and PEFT in FP32 without TF32, eager attention, one row at a time, no packing, rows made
while the step waits, on the ladder's own rows and shape with random weights.
usage: peer_ladder.py --ladder FOLDER --json FILE [--steps 4] [--least 0.9]
Prints both rates; exit 1: the ladder's baseline has less than LEAST of eager PyTorch's, or the peer does not run.
"""
import argparse
import json
import os
import sys
import time

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
STEP_ROWS = 8  # src/cmd/ladder/config.c


def rows_of(path, tokens):
    """Rows of as many tokens as the ladder's, in its proportions: the text's bytes, scaled to what its baseline counted per row."""
    with open(path) as f:
        sizes = [sum(len(m["content"]) for m in json.loads(line)["messages"]) for line in f]
    scale = tokens * len(sizes) / sum(sizes)
    return [max(2, round(size * scale)) for size in sizes]


def step(model, optimizer, lengths, vocab, device):
    losses = 0
    for length in lengths:
        ids = torch.randint(0, vocab, (1, length)).to(device)
        loss = model(input_ids=ids, labels=ids).loss / len(lengths)
        loss.backward()
        losses += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad()
    return losses


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ladder", required=True)
    p.add_argument("--json", required=True)
    p.add_argument("--steps", type=int, default=4)
    p.add_argument("--least", type=float, default=0.9)
    o = p.parse_args()
    with open(os.path.join(o.ladder, "summary.json")) as f:
        summary = json.load(f)
    values = summary["rungs"][0]["values"]
    ours = values["tokens_per_s"]
    device = "cuda" if summary["device"] == "gpu" else "cpu"
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    config = AutoConfig.from_pretrained(os.path.join(o.ladder, "model"))
    with torch.device(device):
        model = AutoModelForCausalLM.from_config(config, torch_dtype=torch.float32, attn_implementation="eager")
        model = get_peft_model(model, LoraConfig(r=16, lora_alpha=32, target_modules=LINEARS))
    optimizer = torch.optim.AdamW([q for q in model.parameters() if q.requires_grad], lr=1e-4)
    lengths = rows_of(os.path.join(o.ladder, "rows.jsonl"), ours * values["step_s"] / STEP_ROWS)
    seconds, tokens = 0.0, 0
    for i in range(o.steps + 1):
        rows = [lengths[(i * STEP_ROWS + k) % len(lengths)] for k in range(STEP_ROWS)]
        if device == "cuda":
            torch.cuda.synchronize()
        begin = time.monotonic()
        step(model, optimizer, rows, config.vocab_size, device)
        if device == "cuda":
            torch.cuda.synchronize()
        if i:  # the first one loads libraries
            seconds += time.monotonic() - begin
            tokens += sum(rows)
    theirs = tokens / seconds
    with open(o.json, "w") as f:
        json.dump({"ours": ours, "theirs": theirs, "ratio": ours / theirs, "least": o.least, "torch": torch.__version__}, f)
    print(f"baseline {ours:.1f} tokens/s, eager PyTorch {theirs:.1f}: {ours / theirs:.3f}, at least {o.least}")
    return 0 if ours >= o.least * theirs else 1


sys.exit(main())
