#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`vllm bench serve` against a server: a timed trace, random lengths, and chat. usage: client_vllm.py URL MODEL TOKENIZER OUT [TRACE]

MODEL: its name in requests; TOKENIZER: a folder of Hugging Face's; OUT: a new folder for what the client writes;
TRACE: a file of requests to replay, and nothing else.
vLLM imports torch and its engine before its benchmark. Where they are missing, the few names that the benchmark takes from them have
stand-ins here; vllm/benchmarks itself is unchanged (pip install --no-deps vllm).
"""
import argparse
import asyncio
import contextlib
import importlib
import importlib.util
import io
import json
import os
import sys
import types

from client_checks import check, finish, read_trace

URL, MODEL, TOKENIZER, OUT = sys.argv[1:5]
TRACE = sys.argv[5] if len(sys.argv) > 5 else None
if "PYTHONHASHSEED" not in os.environ:  # the hashes of a trace's blocks seed their tokens
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})


def module(name, **names):
    made = types.ModuleType(name)
    vars(made).update(names)
    sys.modules[name] = made
    return made


def stand_ins(folder):
    import huggingface_hub
    import transformers

    for package in ("", ".lora", ".multimodal", ".transformers_utils", ".utils"):
        module("vllm" + package).__path__ = [folder + package.replace(".", "/")]
    nothing = types.SimpleNamespace
    module("vllm.inputs", MultiModalDataDict=dict)
    module("vllm.lora.request", LoRARequest=nothing)
    module("vllm.lora.utils", get_adapter_absolute_path=None)
    module("vllm.multimodal.audio", get_audio_duration=None)
    module("vllm.multimodal.image", convert_image_mode=None)
    module("vllm.multimodal.utils", encode_image_url=None, fetch_image=None)
    module("vllm.tokenizers", TokenizerLike=object, get_tokenizer=lambda name, tokenizer_mode, trust_remote_code:
           transformers.AutoTokenizer.from_pretrained(name))
    module("vllm.transformers_utils.repo_utils", hf_api=huggingface_hub.HfApi)
    module("vllm.utils.argparse_utils", FlexibleArgumentParser=argparse.ArgumentParser)
    module("vllm.utils.gc_utils", freeze_gc_heap=lambda: None)
    module("vllm.utils.mistral", is_mistral_tokenizer=lambda tokenizer: False)
    module("vllm.utils.network_utils", join_host_port=lambda host, port: f"{host}:{port}")


def benchmark():
    folder = os.path.dirname(importlib.util.find_spec("vllm").origin)
    try:
        return importlib.import_module("vllm.benchmarks.serve")
    except ImportError as missing:
        for name in [n for n in sys.modules if n.split(".")[0] == "vllm"]:
            del sys.modules[name]
        print(f"# vllm lacks {missing.name}: its benchmark runs alone", file=sys.stderr)
        stand_ins(folder)
        return importlib.import_module("vllm.benchmarks.serve")


def run(serve, name, *words):
    parser = argparse.ArgumentParser()
    serve.add_cli_args(parser)
    file = f"{name}.json"
    args = parser.parse_args(["--base-url", URL, "--tokenizer", TOKENIZER, "--temperature", "0", "--seed", "1", "--disable-tqdm", "--num-warmups", "1",
                              "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99",
                              "--save-result", "--result-dir", OUT, "--result-filename", file, *words])
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        asyncio.run(serve.main_async(args))
    with open(os.path.join(OUT, name + ".txt"), "w", encoding="utf-8") as out:
        out.write(said.getvalue())
    with open(os.path.join(OUT, file), encoding="utf-8") as result:
        return json.load(result), said.getvalue()


def whole(name, result, requests, prompt, made):
    check(f"vllm bench serve, {name}: all requests", (result["completed"], result["failed"]) == (requests, 0), result)
    # random tokens are sent as text, which may have a few tokens more or less; a trace's, whose tokens are not checked, many more
    check(f"vllm bench serve, {name}: tokens of prompts", prompt is None or abs(result["total_input_tokens"] - prompt) <= 0.1 * prompt, result["total_input_tokens"])
    check(f"vllm bench serve, {name}: tokens of answers", result["total_output_tokens"] == made, result["total_output_tokens"])
    check(f"vllm bench serve, {name}: it measures",
          all(result[f"median_{m}_ms"] > 0 for m in ("ttft", "e2el")) and result["median_itl_ms"] >= 0, result)


def main():
    os.makedirs(OUT)
    serve = benchmark()
    trace, lengths = os.path.join(OUT, "trace.jsonl"), read_trace(TRACE)
    with open(trace, "w", encoding="ascii") as out:
        for i, (at, prompt, made) in enumerate(lengths):  # a hash for each 16 tokens of a prompt
            out.write(json.dumps({"timestamp": at, "input_length": prompt, "output_length": made,
                                  "hash_ids": [1000 * i + k for k in range(-(-prompt // 16))]}) + "\n")
    result, _ = run(serve, "trace", "--model", MODEL, "--backend", "openai", "--endpoint", "/v1/completions", "--dataset-name", "timed_trace",
                    "--dataset-path", trace, "--num-prompts", str(len(lengths)))
    whole("a timed trace", result, len(lengths), None, sum(made for _, _, made in lengths))
    if TRACE:
        return
    result, said = run(serve, "random", "--backend", "openai", "--endpoint", "/v1/completions", "--dataset-name", "random",
                       "--random-input-len", "64", "--random-output-len", "16", "--num-prompts", "8", "--request-rate", "2")
    check("vllm bench serve takes the model's name from /v1/models", f"First model name: {MODEL}" in said, said)
    check("vllm bench serve asks /tokenize", "unavailable" not in said, said)
    whole("random lengths", result, 8, 8 * 64, 8 * 16)
    result, _ = run(serve, "chat", "--model", MODEL, "--backend", "openai-chat", "--endpoint", "/v1/chat/completions", "--dataset-name", "random",
                    "--random-input-len", "64", "--random-output-len", "16", "--num-prompts", "4", "--max-concurrency", "2", "--ignore-eos")
    whole("chat", result, 4, None, 4 * 16)


main()
finish()
