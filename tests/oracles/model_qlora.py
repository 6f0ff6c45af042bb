#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""QLoRA's losses by PyTorch, bitsandbytes and PEFT: what tests/unit/train_torch.c is held against.

For each model of tests/oracles/model_gradients.py: the weights of the layers' linear layers are quantized by
bitsandbytes on the CPU and dequantized in single precision. FP4 codes follow the limits of bitsandbytes' CUDA kernels, which
round ties in another way than its CPU code. Then the same adapter is trained as there for 50 steps.
expected_4bit.safetensors gets a curve of losses for NF4 with double quantization, and for FP4 without. It also gets
the loss of held-out documents after the last step: the trained ones with every fourth token replaced.

usage: model_qlora.py DIR   (tests/data/model)
"""
import os
import sys

import bitsandbytes.functional as bnb
import torch
import transformers
from model_gradients import DOCS, MODELS, curve, loss_of
from peft import PeftModel
from safetensors.torch import load_file, save_file

FORMS = {"nf4.double": ("nf4", True), "fp4": ("fp4", False)}


FP4_LIMITS = torch.tensor([0.00260417, 0.0859375, 0.20833333, 0.29166667, 0.4166667, 0.583333, 0.8333333])
FP4_ORDER = torch.tensor([0, 1, 6, 7, 4, 5, 2, 3])


def rounded(x, kind, double):
    codes, state = bnb.quantize_4bit(x, blocksize=64, compress_statistics=double, quant_type=kind)
    if kind == "nf4":
        return bnb.dequantize_4bit(codes, state).reshape(x.shape).float()
    exact = bnb.quantize_4bit(x, blocksize=64, quant_type=kind)[1].absmax  # the codes are chosen before the second quantization
    stored = bnb.dequantize_blockwise(state.absmax, state.state2) + state.offset if double else state.absmax
    share = x.reshape(-1) * (1 / exact.repeat_interleave(64)[:x.numel()])
    code = FP4_ORDER[(share.abs()[:, None] > FP4_LIMITS).sum(1)] + 8 * (share < 0)
    return (state.code[code] * stored.repeat_interleave(64)[:x.numel()]).reshape(x.shape)


def quantize(model, kind, double):
    for name, p in model.named_parameters():
        if "_proj.weight" in name:
            p.data = rounded(p.detach().float(), kind, double)


def one(folder):
    expected = load_file(os.path.join(folder, "expected.safetensors"))
    ids = [t.long() for t in torch.split(expected["token"], DOCS)]
    targets = [t.long() for t in torch.split(expected["target"], DOCS)]
    vocab = MODELS[os.path.basename(folder)][0].vocab_size
    held = [torch.where(torch.arange(len(t)) % 4 == 3, (t + 7) % vocab, t) for t in ids]
    out = {"held.token": torch.cat(held).int()}
    for form, (kind, double) in FORMS.items():
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
        quantize(model, kind, double)
        tuned = PeftModel.from_pretrained(model, os.path.join(folder, "adapter"), is_trainable=True)
        tuned.eval()
        out[form] = curve(tuned, ids, targets)
        with torch.no_grad():
            out[form + ".held"] = loss_of(tuned, held, targets)[1].reshape(1)
        print(folder, form, out[form][0].item(), out[form][-1].item(), "lora", expected["lora.curve"][0].item())
    save_file(out, os.path.join(folder, "expected_4bit.safetensors"))


def main():
    torch.set_num_threads(1)
    for name in MODELS:
        one(os.path.join(sys.argv[1], name))


if __name__ == "__main__":
    main()
