#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What bitsandbytes makes of small matrices: the files of tests/data/model/bnb4.

usage: bnb4_vectors.py FOLDER     FOLDER is new; the files are the same on every machine

One file for each type and shape. x: the matrix. codes, absmax: bitsandbytes' quantize_4bit. offset: the mean of absmax, rounded
once. absmax_codes, group_absmax: absmax - offset in 8 bits. dequantized.FORM.TYPE: what bitsandbytes makes of these; the larger
matrices have one form and type only.

checkpoint/ is a small model that transformers quantized and saved; checkpoint.safetensors has its weights as bitsandbytes
dequantizes them.

bitsandbytes' CPU code and its CUDA kernels differ. Numbers are chosen so that both give the same codes: no block of zeros, and in
FP4 nothing that is nearly zero or on a limit between two codes, where their constants differ. The CPU's code for 8 bits reads a table of 65,536
steps. The kernel searches, so without a GPU absmax_codes come from a transcription of the kernel (dQuantize in kernels.cu).
"""
import os
import sys

os.environ.setdefault("TORCHDYNAMO_DISABLE", "1")  # compiling takes minutes and changes nothing

import numpy
import torch
from bitsandbytes import functional
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, BitsAndBytesConfig, LlamaConfig

device = "cuda" if torch.cuda.is_available() else "cpu"


def search(code, x):
    """dQuantize<0> of kernels.cu for one number."""
    pivot, upper, lower = 127, 255, 0
    for step in (64, 32, 16, 8, 4, 2, 1):
        if x > code[pivot]:
            lower, pivot = pivot, pivot + step
        else:
            upper, pivot = pivot, pivot - step
    half = numpy.float32(0.5)
    if x > code[pivot]:
        return upper if x > (code[upper] + code[pivot]) * half else pivot
    return lower if x < (code[lower] + code[pivot]) * half else pivot


def eight_bits(values, code):
    """Codes and absmax of groups of 256, as the kernel computes them."""
    if device == "cuda":
        codes, state = functional.quantize_blockwise(values.cuda(), code=code.cuda(), blocksize=256)
        return codes.cpu(), state.absmax.cpu()
    codes, most = [], []
    values, code = values.numpy(), code.numpy()
    for first in range(0, len(values), 256):
        group = values[first:first + 256]
        most.append(numpy.abs(group).max())
        inverse = numpy.float32(1) / most[-1]
        codes += [search(code, value * inverse) for value in group]
    return torch.tensor(codes, dtype=torch.uint8), torch.tensor(numpy.array(most))


def matrix(seed, rows, cols, dtype, kind):
    """Numbers of a normal distribution whose width changes from block to block."""
    draw = numpy.random.Generator(numpy.random.PCG64(seed))
    x = draw.standard_normal(rows * cols).astype(numpy.float32)
    count = -(-x.size // 64)
    widths = numpy.exp2(draw.integers(-12, 3, count).astype(numpy.float32)) * draw.uniform(0.5, 1, count).astype(numpy.float32)
    x = torch.tensor(x * numpy.repeat(widths, 64)[:x.size]).to(dtype)
    if kind == "fp4":  # away from the numbers that CPU and GPU code differently
        for first in range(0, x.numel(), 64):
            block = x[first:first + 64].float()
            scaled = block / block.abs().max()
            bad = scaled.abs() < 0.004
            for limit in (0.0859375, 5 / 24, 7 / 24, 5 / 12, 7 / 12, 5 / 6):
                bad |= (scaled.abs() - limit).abs() < 1e-5
            x[first:first + 64][bad] = (block.abs().max() * 0.25).to(dtype)
    return x.reshape(rows, cols)


def write(path, kind, seed, rows, cols, dtype):
    x = matrix(seed, rows, cols, dtype, kind)
    codes, state = functional.quantize_4bit(x.to(device), blocksize=64, quant_type=kind)
    absmax = state.absmax.cpu()
    out = {"x": x, "codes": codes.cpu().reshape(-1), "absmax": absmax}
    if absmax.min() <= 0:
        sys.exit("a block of zeros")
    code = functional.create_dynamic_map()
    offset = absmax.double().mean().float()
    out["offset"] = offset.reshape(1)
    out["absmax_codes"], out["group_absmax"] = eight_bits(absmax - offset, code)
    nested = functional.QuantState(absmax=out["group_absmax"].to(device), code=code.to(device), blocksize=256, dtype=torch.float32)
    small = x.numel() < 1000
    for name, type_ in (("f32", torch.float32), ("bf16", torch.bfloat16), ("f16", torch.float16)):
        for form in ("plain", "nested"):
            if not small and (name, form) != ("bf16", "nested"):
                continue
            made = functional.QuantState(
                absmax=absmax.to(device) if form == "plain" else out["absmax_codes"].to(device), shape=x.shape, code=state.code,
                blocksize=64, quant_type=kind, dtype=type_, offset=None if form == "plain" else offset.to(device),
                state2=None if form == "plain" else nested)
            out[f"dequantized.{form}.{name}"] = functional.dequantize_4bit(codes, made).cpu().contiguous()
    save_file(out, path)


def write_checkpoint(folder):
    torch.manual_seed(3)
    config = LlamaConfig(hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
                         vocab_size=32, max_position_embeddings=64)
    AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder + "/checkpoint")
    model = AutoModelForCausalLM.from_pretrained(
        folder + "/checkpoint", dtype=torch.bfloat16, device_map=device,
        quantization_config=BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True))
    model.save_pretrained(folder + "/checkpoint")
    os.remove(folder + "/checkpoint/generation_config.json")
    out = {}
    for name, value in model.named_parameters():
        state = getattr(value, "quant_state", None)
        out[name] = value.data.cpu() if state is None else functional.dequantize_4bit(value.data, state).cpu()
    save_file(out, folder + "/checkpoint.safetensors", metadata={"format": "pt"})


folder = sys.argv[1]
os.mkdir(folder)
write_checkpoint(folder)
for kind in ("nf4", "fp4"):
    write(f"{folder}/{kind}.safetensors", kind, 1, 69, 256, torch.bfloat16)  # 276 blocks: two groups
    write(f"{folder}/{kind}-odd.safetensors", kind, 2, 7, 33, torch.float32)  # blocks and bytes cross rows
