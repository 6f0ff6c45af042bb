#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""4-bit checkpoints of assay and of transformers with bitsandbytes: each program reads the other's, to equal bits.

usage: bnb4_checkpoints.py ASSAY FOLDER     exits 1 where they differ; FOLDER is new and left behind

For NF4 and FP4, with and without double quantization, and each shape:
1. transformers loads what `assay quantize` wrote. Its dequantized weights are those that `assay merge` gives.
2. `assay merge` of what transformers wrote gives the weights that bitsandbytes dequantizes.
3. The tensors of both have the same names, types and sizes. Codes, absmax and tables of NF4 are the same bytes. The offset differs
   by its rounding, so the 8-bit absmax are compared as numbers. bitsandbytes' code for FP4 on a CPU differs from its kernel
   (bnb4_vectors.py), so bytes of FP4 codes that differ are only counted.
Needs torch, transformers, accelerate, bitsandbytes, safetensors. Uses the GPU if there is one.
"""
import json
import os
import shutil
import subprocess
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling takes minutes and changes nothing

import torch
from bitsandbytes import functional
from bitsandbytes.backends.default.ops import _dequantize_4bit_compute
from safetensors import safe_open
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

assay, folder = sys.argv[1:3]
device = "cuda" if torch.cuda.is_available() else "cpu"
wrong = 0


def check(name, holds, note=""):
    global wrong
    wrong += not holds
    print("ok" if holds else "not ok", "-", name, note)


def run(*words):
    subprocess.run([assay, *words], check=True, stdout=subprocess.DEVNULL)


def tensors(path):
    out = {}
    for name in sorted(os.listdir(path)):
        if name.endswith(".safetensors"):
            with safe_open(f"{path}/{name}", "pt") as f:
                out.update({key: f.get_tensor(key) for key in f.keys()})
    return out


def dequantize(codes, state):
    """By bitsandbytes. Its AVX-512 code finds wrong absmax for rows that are not whole blocks, so those take its general code."""
    if device == "cuda" or state.shape[-1] % 64 == 0:
        return functional.dequantize_4bit(codes, state).cpu()
    absmax = state.absmax
    if state.nested:
        absmax = functional.dequantize_blockwise(absmax, state.state2) + state.offset
    return _dequantize_4bit_compute(codes.reshape(-1), absmax, state.code, 64, state.shape, state.dtype)


def dequantized(model):
    """Every weight in its own type."""
    states = {name: getattr(value, "quant_state", None) for name, value in model.named_parameters()}
    return {name: value.data.cpu() if states[name] is None else dequantize(value.data, states[name])
            for name, value in model.named_parameters()}


def bits(t):
    return t.contiguous().view(torch.uint8)


def same(a, b):
    """Equal bits; FP4's -0 is 0 in bitsandbytes' CPU code with AVX-512."""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(bits(a + 0.0), bits(b + 0.0))


def load(path, **more):
    return AutoModelForCausalLM.from_pretrained(path, device_map=device, **more)


def compare_files(case, kind, ours, theirs):
    check(f"{case}: the same tensors", {k: (t.dtype, tuple(t.shape)) for k, t in ours.items() if "quant_state" not in k} ==
          {k: (t.dtype, tuple(t.shape)) for k, t in theirs.items() if "quant_state" not in k} and ours.keys() == theirs.keys())
    for name, mine in ours.items():
        other = theirs[name]
        if "quant_state" in name:
            a, b = (json.loads(bytes(t.numpy())) for t in (mine, other))
            offsets = a.pop("nested_offset", 0), b.pop("nested_offset", 0)
            check(f"{case}: {name}", a == b and abs(offsets[0] - offsets[1]) <= 1e-6 * abs(offsets[1]), (a, b, offsets) if a != b else "")
        elif mine.dtype == torch.uint8 and name.endswith("absmax"):
            near = (mine.int() - other.int()).abs().max().item()
            check(f"{case}: {name}", near <= 1, f"{(mine != other).sum().item()} of {mine.numel()} codes differ by one")
        elif name.endswith("nested_absmax"):
            check(f"{case}: {name}", torch.allclose(mine, other, rtol=1e-5, atol=0))
        elif mine.dtype == torch.uint8 and kind == "fp4":
            print("#", case, name, (mine != other).sum().item(), "of", mine.numel(), "bytes of FP4 codes differ")
        elif not torch.equal(bits(mine), bits(other)):
            check(f"{case}: {name}", False)


def one(number, shape, kind, double, dtype):
    case = f"{shape} {kind}{' double' if double else ''} {dtype}"
    here = f"{folder}/{number}"
    word = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}[dtype]
    run("make-model", "--shape", shape, "--dtype", dtype, "--seed", str(number + 1), "--out", here + "-base")
    run("quantize", here + "-base", "--to", kind, *([] if double else ["--no-double-quant"]), "--shard", "100kB", "--out",
        here + "-ours")
    theirs = load(here + "-base", dtype=word, quantization_config=BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type=kind, bnb_4bit_use_double_quant=double, bnb_4bit_compute_dtype=word))
    theirs.save_pretrained(here + "-theirs")
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(f"{here}-base/{name}", here + "-theirs")
    for who, model in (("ours", load(here + "-ours", dtype=word)), ("theirs", theirs)):
        run("merge", f"{here}-{who}", "--dtype", dtype, "--out", f"{here}-{who}-back")
        due, is_ = dequantized(model), tensors(f"{here}-{who}-back")
        quantized = sum(getattr(p, "quant_state", None) is not None for p in model.parameters())
        bad = [name for name in due if not same(due[name], is_[name])]
        check(f"{case}: {who}, {quantized} quantized weights and {len(due) - quantized} others, bit for bit",
              quantized == 14 and not bad, bad)
    compare_files(case, kind, tensors(here + "-ours"), tensors(here + "-theirs"))


os.mkdir(folder)
number = 0
for kind in ("nf4", "fp4"):
    for double in (True, False):
        for shape, dtype in (("tiny", "bf16"), ("tiny-llama", "f32"), ("tiny-qwen3", "f16")):
            one(number, shape, kind, double, dtype)
            number += 1
sys.exit(wrong > 0)
