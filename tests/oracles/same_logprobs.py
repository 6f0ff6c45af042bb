#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Log probabilities of a text from a server and from `assay generate`. usage: same_logprobs.py ANSWER GENERATED

ANSWER: the body of a /v1/completions answer with logprobs. GENERATED: what `assay generate --json --logprobs` printed. Exits 1 where they differ.
"""
import json
import sys

served = json.load(open(sys.argv[1]))["choices"][0]["logprobs"]["token_logprobs"]
due = json.load(open(sys.argv[2]))["logprobs"]
both = list(zip(served, due))
print(served, due)
sys.exit(not both or any(abs(x - y) > 1e-3 for x, y in both))
