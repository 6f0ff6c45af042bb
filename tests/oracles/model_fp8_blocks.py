#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A checkpoint in E4M3 with a scale per 128 x 128 elements, as of DeepSeek-V3 and Qwen3-FP8, against what assay reads of it.

usage: model_fp8_blocks.py ASSAY FOLDER     exits 1 where they differ, 77 with a reason without numpy; FOLDER is new and left behind

The matrices of `assay make-model`'s small models are quantized here by DeepSeek's rule: scale = largest magnitude of the block / 448,
element = number / scale, rounded to nearest even. A number is its element times its scale, as in DeepSeek's weight_dequant.
1. `assay merge` without an adapter writes these numbers in F32: each tensor is, bit for bit, what numpy gives.
2. `assay generate`, whose engine is that of `assay serve`, has the same tokens and log probabilities with the checkpoint and with those numbers.
3. Scales of another layout are refused, with the file and the tensor.
4. The error of the numbers, of rounding them to BF16, and of requantizing them with a scale per row, as `--weights fp8` does on a GPU.
"""
import json
import os
import shutil
import struct
import subprocess
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: this Python has no numpy")
    sys.exit(77)

assay, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
wrong = 0
TILE, MOST = 128, 448.0


def check(name, holds, note=""):
    global wrong
    wrong += not holds
    print("ok" if holds else "not ok", "-", name, note)


def run(*words, code=0):
    p = subprocess.run([assay, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
    if p.returncode != code:
        sys.exit(f"{' '.join(words)}: exit code {p.returncode}\n{p.stderr[-2000:]}")
    return p.stdout, p.stderr


def numbers_of_e4m3():
    """The number of each byte: sign, 4 bits of exponent with bias 7, 3 bits of fraction; no infinity, one NaN of each sign."""
    codes = np.arange(256)
    exponent, fraction = codes >> 3 & 15, (codes & 7).astype(np.float64)
    size = np.where(exponent > 0, (8 + fraction) * 2.0 ** (exponent - 10.0), fraction * 2.0**-9)
    size[(codes & 0x7F) == 0x7F] = np.nan
    return np.where(codes & 0x80, -size, size).astype(np.float32)


E4M3 = numbers_of_e4m3()
POSITIVE = E4M3[:0x7F].astype(np.float64)


def to_e4m3(x):
    """Bytes of the nearest numbers, ties to the even byte; magnitudes of up to 448."""
    size = np.abs(x.astype(np.float64))
    above = np.searchsorted(POSITIVE, size).clip(0, 0x7E)
    below = (above - 1).clip(0)
    up, down = POSITIVE[above] - size, size - POSITIVE[below]
    nearest = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
    return (nearest | np.where(np.signbit(x), 0x80, 0)).astype(np.uint8)


def read(path):
    with open(path, "rb") as f:
        (size,) = struct.unpack("<Q", f.read(8))
        header = json.loads(f.read(size))
        data = f.read()
    return {name: (t["dtype"], t["shape"], data[slice(*t["data_offsets"])]) for name, t in header.items() if name != "__metadata__"}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def blocks(x):
    """Largest magnitude of each tile of 128 x 128; those at the edges are smaller."""
    rows, cols = -(-x.shape[0] // TILE), -(-x.shape[1] // TILE)
    padded = np.zeros((rows * TILE, cols * TILE), np.float32)
    padded[: x.shape[0], : x.shape[1]] = np.abs(x)
    return padded.reshape(rows, TILE, cols, TILE).max(axis=(1, 3))


def spread(scale, shape):
    return np.repeat(np.repeat(scale, TILE, 0), TILE, 1)[: shape[0], : shape[1]]


def rounded_bf16(x):
    bits = x.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)


def per_row(x):
    """What a scale per row leaves of the numbers: from BF16, as a GPU quantizes them."""
    x = rounded_bf16(x)
    scale = (np.abs(x).max(axis=1, keepdims=True) / np.float32(MOST)).astype(np.float32)
    return E4M3[to_e4m3(x / scale)] * scale


def rms(difference, of):
    return float(np.sqrt((difference.astype(np.float64) ** 2).sum() / (of.astype(np.float64) ** 2).sum()))


def text_of(model):
    out, _ = run("generate", model, "The quick", "--raw", "--tokens", "24", "--temperature", "0", "--json", "--logprobs", "--device", "cpu")
    answer = json.loads(out)
    return answer["ids"], answer["logprobs"]


def of_shape(shape, scale_type):
    here = f"{folder}/{shape}-{scale_type.lower()}"
    run("make-model", "--shape", shape, "--dtype", "f32", "--out", here + "-base")
    tensors = read(here + "-base/model.safetensors")
    made, plain = {}, {}
    for name, (dtype, size, data) in tensors.items():
        plain[name] = made[name] = (dtype, size, data)
        if len(size) != 2 or ".layers." not in name:
            continue
        x = np.frombuffer(data, np.float32).reshape(size)
        most = blocks(x)
        scale = np.where(most > 0, most / np.float32(MOST), 1).astype(np.float32)
        if scale_type == "BF16":
            scale = rounded_bf16(scale * np.float32(1.01))  # no element beyond 448 after rounding
        codes = to_e4m3(x / spread(scale, x.shape))
        numbers = E4M3[codes] * spread(scale, x.shape)
        bits = scale.tobytes() if scale_type == "F32" else (scale.view(np.uint32) >> 16).astype(np.uint16).tobytes()
        made[name] = ("F8_E4M3", size, codes.tobytes())
        made[name + "_scale_inv"] = (scale_type, scale.shape, bits)
        plain[name] = (dtype, size, numbers.astype(np.float32).tobytes())
    for kind, content in (("-fp8", made), ("-plain", plain)):
        shutil.copytree(here + "-base", here + kind)
        write(here + kind + "/model.safetensors", content)
    with open(here + "-fp8/config.json") as f:
        config = json.load(f)
    config["quantization_config"] = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8", "weight_block_size": [TILE, TILE]}
    with open(here + "-fp8/config.json", "w") as f:
        json.dump(config, f)
    run("merge", here + "-fp8", "--dtype", "f32", "--out", here + "-read")
    found = read(here + "-read/model.safetensors")
    equal = sum(found[name][2] == plain[name][2] for name in plain)
    check(f"{shape}, scales in {scale_type}: every tensor", equal == len(plain) == len(found), f"({equal} of {len(plain)})")
    check(f"{shape}, scales in {scale_type}: text and log probabilities", text_of(here + "-fp8") == text_of(here + "-plain"))
    return here, made


def errors():
    """Of a matrix of many blocks, normally distributed, with rows and columns of several sizes."""
    random = np.random.default_rng(1)
    x = random.standard_normal((1024, 2048)) * np.exp(0.3 * random.standard_normal((1024, 1))) * np.exp(0.3 * random.standard_normal((1, 2048)))
    x = x.astype(np.float32)
    scale = (blocks(x) / np.float32(MOST)).astype(np.float32)
    numbers = E4M3[to_e4m3(x / spread(scale, x.shape))] * spread(scale, x.shape)
    again = per_row(numbers)
    print(f"# error of the numbers {rms(numbers - x, x):.4f}; in BF16 {rms(rounded_bf16(numbers) - x, x):.4f}; with a scale per row {rms(again - x, x):.4f}, "
          f"of which beside the checkpoint {rms(again - numbers, numbers):.4f}")
    check("a scale per row adds no more than another rounding to E4M3", 0 < rms(again - numbers, numbers) < 0.03)


def refused(here, made):
    name = next(n for n in made if n.endswith("_scale_inv"))
    shutil.copytree(here + "-fp8", here + "-bad")
    write(here + "-bad/model.safetensors", dict(made, **{name: ("F32", [7, 3], bytes(84))}))
    _, err = run("generate", here + "-bad", "x", "--raw", "--tokens", "1", "--device", "cpu", code=2)
    check("scales of another layout are refused by name", name in err and "model.safetensors" in err and "128 x 128" in err, err.strip()[-200:])


os.mkdir(folder)
for shape in ("tiny", "tiny-qwen3", "tiny-llama"):
    here, made = of_shape(shape, "F32")
here, made = of_shape("tiny-64", "BF16")
refused(here, made)
errors()
sys.exit(wrong > 0)
