# SPDX-License-Identifier: Apache-2.0
"""Compares a model of transformers or PEFT with `assay generate` on the same files. The oracles of trained models share it."""
import json
import subprocess

import torch

PROMPT = "town 7?"
MADE = 12
IDS = list(range(1, 260, 23)) + [PROMPT.encode()[i % len(PROMPT)] for i in range(4)]


class Checks:
    """Lines of TAP without numbers, and how many do not hold."""

    def __init__(self):
        self.wrong = 0

    def less(self, name, error, limit=1e-5):
        holds = error < limit
        self.wrong += not holds
        print("ok" if holds else "not ok", "-", name, f"(relative {error:.1e})")


def run(assay, *words):
    return subprocess.run([assay, *words], check=True, capture_output=True, text=True).stdout


def rows(path, count):
    with open(path, "w") as f:
        for i in range(count):
            turns = [{"role": "user", "content": f"town {i}?"}, {"role": "assistant", "content": f"station {i}"}]
            f.write(json.dumps({"messages": turns}) + "\n")


def logits(model, ids):
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0]


def apart(ours, due):
    return ((ours - due).abs().max() / due.abs().max()).item()


def known_ids(folder):
    """Ids that the tokenizer has. The vocabulary of the model may be larger, and assay makes none of the other ids."""
    with open(f"{folder}/tokenizer.json") as f:
        tokenizer = json.load(f)
    return 1 + max([*tokenizer["model"]["vocab"].values(), *(token["id"] for token in tokenizer.get("added_tokens", []))])


def compare(checks, name, assay, folder, model, adapter=None):
    """Greedy tokens of assay's own forward pass, with what it thought of each, held against those of `model` at the same place."""
    words = ["--adapter", adapter] if adapter else []
    made = json.loads(run(assay, "generate", "--no-cache", "--device", "cpu", folder, PROMPT, "--raw", "--tokens", str(MADE), "--json", "--logprobs", *words))
    ids, ours = made["ids"], torch.tensor(made["logprobs"])
    prompt = list(PROMPT.encode())
    after = torch.log_softmax(logits(model, prompt + ids)[len(prompt) - 1:-1, :known_ids(folder)].double(), -1)
    due = after[range(len(ids)), ids]
    assert ids, "assay made no token"
    checks.less(f"{name}: {len(ids)} tokens' logarithms of probability", apart(ours, due))
    checks.less(f"{name}: each is the other program's likeliest", (after.max(-1).values - due).max().item())
