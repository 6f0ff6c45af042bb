#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bfcl-eval's runner and judge against a server. usage: client_bfcl.py URL ENTRY TOKENIZER OUT [ROWS]

ENTRY is a model that bfcl-eval knows: gpt-4o-2024-11-20-FC (asks /v1/responses with tools), gpt-4o-2024-11-20 (tools in the prompt),
openbmb/MiniCPM-SALA-FC (/v1/chat/completions with tools), Qwen/Qwen3-0.6B-FC (/v1/completions, with the template of bfcl-eval).
The server's --served-model-name is that name without -FC, with it for openbmb's, and TOKENIZER for Qwen's. TOKENIZER: a folder of Hugging Face's;
OUT: a new folder; ROWS: how many of each of three categories (12).
"""
import glob
import json
import os
import subprocess
import sys

from client_checks import check, finish, program

URL, ENTRY, TOKENIZER, OUT = sys.argv[1:5]
ROWS = int(sys.argv[5]) if len(sys.argv) > 5 else 12
BFCL = program("bfcl")
CATEGORIES = ["simple_python", "multiple", "parallel"]


def run(*words):
    env = os.environ | {"BFCL_PROJECT_ROOT": os.path.abspath(OUT), "OPENAI_BASE_URL": f"{URL}/v1", "OPENAI_API_KEY": "none", "HF_HUB_OFFLINE": "1",
                        "REMOTE_OPENAI_BASE_URL": f"{URL}/v1", "REMOTE_OPENAI_API_KEY": "none"}
    done = subprocess.run([BFCL, *words], env=env, capture_output=True, text=True, timeout=1200, check=False)
    with open(os.path.join(OUT, words[0] + ".txt"), "w", encoding="utf-8") as out:
        out.write(done.stdout + done.stderr)
    return done.returncode


def rows(pattern):
    out = []
    for file in glob.glob(os.path.join(OUT, pattern), recursive=True):
        with open(file, encoding="utf-8") as lines:
            out += [json.loads(line) for line in lines]
    return out


def main():
    os.makedirs(OUT)
    with open(os.path.join(OUT, "test_case_ids_to_generate.json"), "w", encoding="ascii") as out:
        json.dump({c: [f"{c}_{i}" for i in range(ROWS)] for c in CATEGORIES}, out)
    local = ["--skip-server-setup", "--local-model-path", TOKENIZER] if ENTRY.startswith("Qwen") else []
    check(f"bfcl generate, {ENTRY}", run("generate", "--model", ENTRY, "--run-ids", "--num-threads", "8", *local) == 0)
    answers = rows("result/**/*_result.json")
    check(f"bfcl generate, {ENTRY}: an answer for each row", len(answers) == ROWS * len(CATEGORIES), len(answers))
    bad = [a["result"] for a in answers if "traceback" in a]
    check(f"bfcl generate, {ENTRY}: no error", not bad, bad[:3])
    check(f"bfcl generate, {ENTRY}: tokens are counted", all(a.get("input_token_count", 0) > 0 and a["output_token_count"] > 0 for a in answers), answers[:2])
    check(f"bfcl evaluate, {ENTRY}", run("evaluate", "--model", ENTRY, "--test-category", ",".join(CATEGORIES), "--partial-eval") == 0)
    heads = [r for r in rows("score/**/*_score.json") if "accuracy" in r]
    check(f"bfcl evaluate, {ENTRY}: all rows are judged", sum(h["total_count"] for h in heads) == len(answers), heads)
    print(f"# {ENTRY}: {sum(h['correct_count'] for h in heads)} of {len(answers)} right, "
          f"{sum(isinstance(a['result'], list) for a in answers)} answers with calls", file=sys.stderr)


main()
finish()
