#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning by transformers and PEFT on the CPU: what `assay train` is timed beside. FP32, LoRA on the seven linears, AdamW,
clipping; attention by PyTorch's sdpa; the head runs on every token, as transformers does it.
usage: peer_train.py MODEL [--work KEPT:ROWS:LENGTH[:cut] ...] [--steps 3] [--rank 16] [--threads 2]
MODEL: a folder of Hugging Face's, or a GGUF file. KEPT: a file that assay keeps tokenised rows in (data: cache_dir). Its rows in order,
ROWS a step, padded to the longest; those over LENGTH are left out, or cut. Without --work: full rows of random tokens.
Prints one JSON object; a work's steps are told with their tokens (padding apart), targets, loss and seconds.
"""
import argparse
import json
import os
import struct
import sys
import time

try:
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model
except ImportError as missing:
    print(f"peer_train: {missing.name} is not here", file=sys.stderr)
    sys.exit(77)

TRAINED = 1 << 30
UNTRAINED = -100


def load(path):
    kind = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    if path.endswith(".gguf"):
        return transformers.AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path), **kind)
    return transformers.AutoModelForCausalLM.from_pretrained(path, **kind)


def kept_rows(path, length, cut):
    """(number, (ids, labels)) of each row that has a target and fits."""
    with open(path, "rb") as f:
        data = f.read()
    magic, _, rows, tokens = struct.unpack_from("<8sQQQ", data)
    if magic != b"ASSAYTOK":
        sys.exit(f"peer_train: {path}: not a file of tokenised rows")
    begin = struct.unpack_from(f"<{rows + 1}Q", data, 32)
    token = struct.unpack_from(f"<{tokens}i", data, 32 + 8 * (rows + 1))
    for i in range(rows):
        row = token[begin[i]:begin[i + 1]]
        if len(row) > length and not cut:
            continue
        row = row[:length]
        labels = [t & ~TRAINED if t & TRAINED and k else UNTRAINED for k, t in enumerate(row)]
        if any(label != UNTRAINED for label in labels):
            yield i, ([t & ~TRAINED for t in row], labels)


def padded(rows):
    """One batch, as transformers' collators pad it."""
    longest = max(len(ids) for ids, _ in rows)

    def matrix(values, fill):
        return torch.tensor([list(v) + [fill] * (longest - len(v)) for v in values])

    return {"input_ids": matrix([ids for ids, _ in rows], 0), "labels": matrix([labels for _, labels in rows], UNTRAINED),
            "attention_mask": matrix([[1] * len(ids) for ids, _ in rows], 0)}


def batches(work, steps):
    if not work:
        ids = torch.randint(0, 40000, (4, 400)).tolist()
        return [padded([(row, row) for row in ids])] * steps
    cut = work.endswith(":cut")
    path, rows, length = work.removesuffix(":cut").rsplit(":", 2)
    made, out = kept_rows(path, int(length), cut), []
    for _ in range(steps):
        batch = [row for _, (_, row) in zip(range(int(rows)), made)]
        if not batch:
            sys.exit(f"peer_train: {path} has no rows for {steps} steps")
        out.append(padded(batch))
    return out


def train(model, batch, trained, optimiser):
    begun = time.monotonic()
    optimiser.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    torch.nn.utils.clip_grad_norm_(trained, 1.0)
    optimiser.step()
    seconds = time.monotonic() - begun
    return {"tokens": int(batch["attention_mask"].sum()), "padded": batch["input_ids"].numel(),
            "targets": int((batch["labels"][:, 1:] != UNTRAINED).sum()), "loss": loss.item(), "step_s": seconds}


def main():
    words = argparse.ArgumentParser()
    words.add_argument("model")
    words.add_argument("--work", action="append")
    for name, value in (("steps", 3), ("rank", 16), ("threads", 2)):
        words.add_argument("--" + name, type=int, default=value)
    a = words.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(load(a.model), LoraConfig(r=a.rank, lora_alpha=2 * a.rank, target_modules=targets, task_type="CAUSAL_LM"))
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-3)
    works = [[train(model, batch, trained, optimiser) for batch in batches(work, a.steps)] for work in a.work or [None]]
    print(json.dumps({"what": "PyTorch and PEFT, FP32, CPU", "torch": torch.__version__, "transformers": transformers.__version__,
                      "rank": a.rank, "threads": a.threads, "trained": sum(p.numel() for p in trained), "works": works}))


if __name__ == "__main__":
    main()
