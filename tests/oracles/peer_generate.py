#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding at batch 1 on one GPU by transformers: what `assay generate --device gpu` is timed beside.
usage: peer_generate.py (--model DIR | --shape qwen2-7b|smollm2-135m) [--prompt-tokens 64] [--tokens 128] [--times 3] [--static]
                        [--assay ASSAY --assay-model DIR]
BF16; with --shape random weights made on the card. A rate is of the tokens behind the first, as assay's is: the time of all less
that of a text of one token. --static: a static cache, whose decoding transformers compiles (takes a minute). With --assay the two
take turns, each text of the same lengths. Prints one JSON object: both sides' rates and medians, and the ratio.
"""
import argparse
import json
import statistics
import subprocess
import sys
import time

try:
    import torch
    import transformers
except ImportError as why:
    print(f"peer_generate: {why}", file=sys.stderr)
    sys.exit(77)

SHAPES = {
    "qwen2-7b": dict(model_type="qwen2", hidden_size=3584, num_hidden_layers=28, num_attention_heads=28, num_key_value_heads=4,
                     intermediate_size=18944, vocab_size=152064, max_position_embeddings=32768, rope_theta=1e6,
                     tie_word_embeddings=False),
    "smollm2-135m": dict(model_type="llama", hidden_size=576, num_hidden_layers=30, num_attention_heads=9, num_key_value_heads=3,
                         intermediate_size=1536, vocab_size=49152, max_position_embeddings=8192, rope_theta=1e5,
                         tie_word_embeddings=True),
}


def load(a):
    if a.model:
        return transformers.AutoModelForCausalLM.from_pretrained(a.model, dtype=torch.bfloat16, device_map="cuda")
    words = dict(SHAPES[a.shape])
    config = transformers.AutoConfig.for_model(words.pop("model_type"), **words)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        return transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()


def text(model, ids, tokens, a):
    words = {"cache_implementation": "static"} if a.static else {}
    torch.cuda.synchronize()
    begun = time.perf_counter()
    made = model.generate(ids, attention_mask=torch.ones_like(ids), do_sample=False, min_new_tokens=tokens,
                          max_new_tokens=tokens, pad_token_id=0, **words)
    torch.cuda.synchronize()
    assert made.shape[1] == ids.shape[1] + tokens
    return time.perf_counter() - begun


def theirs(model, ids, a):
    first = text(model, ids, 1, a)
    return (a.tokens - 1) / (text(model, ids, a.tokens, a) - first)


def ours(a):
    command = [a.assay, "generate", a.assay_model, "x" * a.prompt_tokens, "--raw", "--tokens", str(a.tokens), "--device", "gpu",
               "--json", "--no-cache"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    told = json.loads(done.stdout)
    if told["tokens"] != a.tokens:
        print(f"peer_generate: {told['tokens']} tokens in place of {a.tokens}: {told['end']}", file=sys.stderr)
    return told


def main():
    words = argparse.ArgumentParser()
    for name in ("model", "shape", "assay", "assay-model"):
        words.add_argument("--" + name, default="")
    for name, value in (("prompt-tokens", 64), ("tokens", 128), ("times", 3)):
        words.add_argument("--" + name, type=int, default=value)
    words.add_argument("--static", action="store_true")
    a = words.parse_args()
    if not torch.cuda.is_available():
        print("peer_generate: PyTorch sees no GPU", file=sys.stderr)
        sys.exit(77)
    model = load(a)
    ids = torch.randint(1, 1000, (1, a.prompt_tokens), device="cuda")
    theirs(model, ids, a)  # warm
    rates, told = [], []
    for _ in range(a.times):
        rates.append(theirs(model, ids, a))
        if a.assay:
            told.append(ours(a))
    out = {"what": "transformers, greedy, BF16, batch 1", "unit": "tokens/s", "gpu": torch.cuda.get_device_name(),
           "torch": torch.__version__, "transformers": transformers.__version__, "static": a.static,
           "prompt_tokens": a.prompt_tokens, "tokens": a.tokens, "theirs": rates, "theirs_median": statistics.median(rates)}
    if told:
        out["ours"] = [t["tokens_per_s"] for t in told]
        out["ours_median"] = statistics.median(out["ours"])
        out["ours_weights_gb_per_s"] = statistics.median(t["weights_gb_per_s"] for t in told)
        out["ratio"] = out["ours_median"] / out["theirs_median"]
    print(json.dumps(out))


main()
