#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""AIPerf against a server: a timed trace over completions, and chat with usage in each chunk. usage: client_aiperf.py URL MODEL TOKENIZER OUT [TRACE]

MODEL: its name in requests; TOKENIZER: a folder of Hugging Face's; OUT: a new folder for what the client writes;
TRACE: a file of requests to replay, and nothing else.
"""
import json
import os
import shutil
import sys

import client_checks
from client_checks import check, finish, read_trace

URL, MODEL, TOKENIZER, OUT = sys.argv[1:5]
TRACE = sys.argv[5] if len(sys.argv) > 5 else None


def cache_tokenizer():
    """Its processes that make prompts look for a tokenizer in the hub's cache only, so a folder's path does not do."""
    model = os.path.join(OUT, "hf", "hub", "models--local--tokenizer")
    os.makedirs(os.path.join(model, "refs"))
    os.makedirs(os.path.join(model, "snapshots", "0"))
    with open(os.path.join(model, "refs", "main"), "w", encoding="ascii") as ref:
        ref.write("0")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        if os.path.exists(os.path.join(TOKENIZER, name)):
            shutil.copy(os.path.join(TOKENIZER, name), os.path.join(model, "snapshots", "0", name))


def run(name, *words):
    folder = os.path.join(OUT, name)
    return client_checks.run(f"aiperf, {name}", [
        client_checks.program("aiperf"), "profile", "--model", MODEL, "--url", URL, "--tokenizer", "local/tokenizer", "--streaming", "--use-server-token-count",
        "--extra-inputs", "ignore_eos:true", "--extra-inputs", "temperature:0", "--random-seed", "1", "--artifact-dir", folder, "--ui", "none", *words],
        os.path.join(folder, "profile_export_aiperf.json"), AIPERF_TELEMETRY="0", HF_HOME=os.path.abspath(os.path.join(OUT, "hf")), HF_HUB_OFFLINE="1")


def whole(name, result, requests, made):
    check(f"aiperf, {name}: all requests", result["request_count"]["avg"] == requests and not result["error_summary"], result)
    check(f"aiperf, {name}: tokens of answers", result["total_usage_completion_tokens"]["avg"] == made, result["total_usage_completion_tokens"])
    check(f"aiperf, {name}: lengths as asked for", result["osl_mismatch_count"]["avg"] == 0, result["osl_mismatch_count"])
    check(f"aiperf, {name}: it measures",
          all(result[m]["min"] > 0 for m in ("time_to_first_token", "request_latency")) and result["inter_token_latency"]["min"] >= 0, result)


def records(name):
    with open(os.path.join(OUT, name, "profile_export.jsonl"), encoding="utf-8") as lines:
        return [json.loads(line)["metrics"] for line in lines]


def main():
    os.makedirs(OUT)
    cache_tokenizer()
    trace, lengths = os.path.join(OUT, "trace.jsonl"), read_trace(TRACE)
    with open(trace, "w", encoding="ascii") as out:
        for i, (at, prompt, made) in enumerate(lengths):  # milliseconds; a hash for each 512 tokens of a prompt
            out.write(json.dumps({"timestamp": 1000 * at, "input_length": prompt, "output_length": made, "hash_ids": [1000 * i + k for k in range(-(-prompt // 512))]}) + "\n")
    result = run("trace", "--endpoint-type", "completions", "--custom-dataset-type", "mooncake-trace", "--input-file", trace, "--fixed-schedule")
    whole("a timed trace", result, len(lengths), sum(made for _, _, made in lengths))
    check("aiperf, a timed trace: prompts of the lengths in the trace",
          sorted(r["usage_prompt_tokens"]["value"] for r in records("trace")) == sorted(prompt for _, prompt, _ in lengths), records("trace"))
    with open(os.path.join(OUT, "trace", "server_metrics_export.json"), encoding="utf-8") as file:
        metrics = json.load(file)
    check("aiperf reads /metrics", metrics["summary"]["endpoints_successful"] and "vllm:num_requests_running" in metrics["metrics"],
          list(metrics["metrics"]))
    if TRACE:
        return
    result = run("chat", "--endpoint-type", "chat", "--per-chunk-usage", "--isl", "64", "--osl", "16", "--request-count", "8", "--concurrency", "2",
                 "--warmup-request-count", "1", "--wait-for-model-timeout", "60", "--wait-for-model-mode", "both")
    whole("chat", result, 8, 8 * 16)
    result = run("responses", "--endpoint-type", "responses", "--isl", "64", "--osl", "16", "--request-count", "4", "--concurrency", "2")
    check("aiperf, responses: all requests", result["request_count"]["avg"] == 4 and not result["error_summary"], result)
    result = run("messages", "--endpoint-type", "messages", "--isl", "64", "--osl", "16", "--request-count", "4", "--concurrency", "2")
    check("aiperf, messages: all requests", result["request_count"]["avg"] == 4 and not result["error_summary"], result)


main()
finish()
