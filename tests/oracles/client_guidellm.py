#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GuideLLM against a server: a timed trace over completions, and chat. usage: client_guidellm.py URL MODEL TOKENIZER OUT [TRACE]

MODEL: its name in requests; TOKENIZER: a folder of Hugging Face's; OUT: a new folder for what the client writes;
TRACE: a file of requests to replay, and nothing else.
"""
import json
import os
import sys

import client_checks
from client_checks import check, finish, read_trace

URL, MODEL, TOKENIZER, OUT = sys.argv[1:5]
TRACE = sys.argv[5] if len(sys.argv) > 5 else None


def run(name, path, *words):
    file = os.path.join(OUT, f"{name}.json")
    return client_checks.run(f"guidellm, {name}", [
        client_checks.program("guidellm"), "run", "--backend", f"kind=openai_http,target={URL},model={MODEL},request_format={path}",
        "--tokenizer", f"kind=hf_auto,model={os.path.abspath(TOKENIZER)}", "--seed", "kind=static,value=1",
        "--output", f"kind=json,path={file}", "--disable-console-outputs", *words],
        file, HF_HUB_OFFLINE="1", HF_HOME=os.path.abspath(os.path.join(OUT, "hf")))["benchmarks"][0]


def whole(name, result, lengths):
    requests = result["requests"]["successful"]
    # At times it ends before it has noted the end of its last request, which the server has answered.
    unnoted = result["scheduler_state"]["processing_requests"]
    check(f"guidellm, {name}: all requests", len(requests) + unnoted == len(lengths) and unnoted <= 1 and not result["requests"]["errored"],
          (len(requests), result["requests"]["errored"]))
    check(f"guidellm, {name}: tokens of answers",
          sorted(r["output_tokens"] for r in requests) in ([*sorted(lengths)], *(sorted(lengths[:i] + lengths[i + 1:]) for i in range(len(lengths) * unnoted))),
          [r["output_tokens"] for r in requests])
    check(f"guidellm, {name}: at most a chunk for each token", all(r["info"]["timings"]["token_iterations"] <= r["output_tokens"] for r in requests), requests)
    check(f"guidellm, {name}: it measures",
          all(result["metrics"][m]["successful"]["median"] > 0 for m in ("time_to_first_token_ms", "request_latency")) and
          result["metrics"]["inter_token_latency_ms"]["successful"]["median"] >= 0, result["metrics"])


def main():
    os.makedirs(OUT)
    trace, lengths = os.path.join(OUT, "trace_in.jsonl"), read_trace(TRACE)
    with open(trace, "w", encoding="ascii") as out:
        for at, prompt, made in lengths:
            out.write(json.dumps({"timestamp": at, "input_length": prompt, "output_length": made}) + "\n")
    result = run("trace", "/v1/completions", "--data", f"kind=trace_synthetic,source.kind=json_file,source.path={trace}",
                 "--profile", "kind=replay,schedule_turn=timestamp")
    whole("a timed trace", result, [made for _, _, made in lengths])
    if TRACE:
        return
    result = run("chat", "/v1/chat/completions", "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16", "--profile", "kind=concurrent,streams=2",
                 "--constraint", "kind=max_requests,count=8")
    whole("chat", result, [16] * 8)
    result = run("responses", "/v1/responses", "--data", "kind=synthetic_text,prompt_tokens=64,output_tokens=16", "--profile", "kind=constant,rate=2",
                 "--constraint", "kind=max_requests,count=4")
    whole("responses", result, [16] * 4)


main()
finish()
