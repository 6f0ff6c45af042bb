#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning by transformers and PEFT on the CPU: what `assay train` is timed beside. FP32, LoRA on the seven linears,
full rows of random tokens, AdamW. The head runs on every token, as transformers does it.
usage: peer_train.py MODEL [--rows 4] [--length 400] [--steps 5] [--rank 16] [--threads 2]
MODEL: a folder of Hugging Face's, or a GGUF file. Prints one JSON object: tokens/s of each step but the first, median.
"""
import argparse
import json
import os
import statistics
import sys
import time

try:
    import torch
    import transformers
    from peft import LoraConfig, get_peft_model
except ImportError as missing:
    print(f"peer_train: {missing.name} is not here", file=sys.stderr)
    sys.exit(77)


def load(path):
    kind = {"dtype": torch.float32, "attn_implementation": "sdpa"}
    if path.endswith(".gguf"):
        return transformers.AutoModelForCausalLM.from_pretrained(os.path.dirname(path), gguf_file=os.path.basename(path), **kind)
    return transformers.AutoModelForCausalLM.from_pretrained(path, **kind)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("model")
    for name, value in (("rows", 4), ("length", 400), ("steps", 5), ("rank", 16), ("threads", 2)):
        words.add_argument("--" + name, type=int, default=value)
    a = words.parse_args()
    torch.set_num_threads(a.threads)
    torch.manual_seed(1)
    targets = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    model = get_peft_model(load(a.model), LoraConfig(r=a.rank, lora_alpha=2 * a.rank, target_modules=targets, task_type="CAUSAL_LM"))
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad]
    optimiser = torch.optim.AdamW(trained, lr=1e-3)
    tokens = torch.randint(0, 40000, (a.rows, a.length))
    seconds = []
    for _ in range(a.steps):
        t0 = time.monotonic()
        optimiser.zero_grad()
        model(input_ids=tokens, labels=tokens).loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        seconds.append(time.monotonic() - t0)
    rates = [a.rows * a.length / s for s in seconds[1:]]
    print(json.dumps({"what": "PyTorch and PEFT, FP32, CPU", "unit": "tokens/s", "torch": torch.__version__,
                      "transformers": transformers.__version__, "rows": a.rows, "length": a.length, "rank": a.rank,
                      "threads": a.threads, "trained": sum(p.numel() for p in trained),
                      "median": statistics.median(rates), "values": rates}))


main()
