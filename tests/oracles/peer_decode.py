#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Greedy decoding by llama.cpp on the CPU: what `assay generate` is timed beside, at the same weights.
usage: peer_decode.py MODEL.gguf [--tokens 128] [--times 5] [--threads 2]
Prints one JSON object: tokens/s of each time after the prompt was read, median; and the text of the last.
"""
import argparse
import json
import statistics
import sys
import time

try:
    import llama_cpp
except ImportError:
    print("peer_decode: llama_cpp is not here", file=sys.stderr)
    sys.exit(77)


def main():
    words = argparse.ArgumentParser()
    words.add_argument("model")
    for name, value in (("tokens", 128), ("times", 5), ("threads", 2)):
        words.add_argument("--" + name, type=int, default=value)
    words.add_argument("--prompt", default="The capital of France is")
    a = words.parse_args()
    model = llama_cpp.Llama(a.model, n_ctx=1024, n_threads=a.threads, n_threads_batch=a.threads, verbose=False)
    prompt = model.tokenize(a.prompt.encode(), add_bos=False)
    rates, made = [], []
    for _ in range(a.times):
        model.reset()
        made = []
        begun = None
        for token in model.generate(prompt, temp=0.0, top_k=1, repeat_penalty=1.0):
            now = time.monotonic()
            if begun is None:
                begun = now  # the prompt has been read, the first token chosen
            made.append(token)
            if len(made) > a.tokens:
                break
        rates.append((len(made) - 1) / (now - begun))
    print(json.dumps({"what": "llama.cpp, CPU, greedy", "unit": "tokens/s", "llama_cpp_python": llama_cpp.__version__,
                      "threads": a.threads, "tokens": a.tokens, "median": statistics.median(rates), "values": rates,
                      "text": model.detokenize(made).decode(errors="replace")}))


main()
