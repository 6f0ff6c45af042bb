#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""8-bit AdamW of bitsandbytes, which tests/unit/train_states.c compares ours with.

usage: optimizer_states.py FILE.safetensors
Three steps of one tensor on the CPU, with gradients over many orders of magnitude. The file has the two maps, the
gradient of each step, and weight, codes and scales after each step; the smallest tensor with 8-bit states.

bitsandbytes' CPU library finds codes by a coarse table: it gives zero the code of 2e-5. Its kernel for all devices
finds the nearest number, as its CUDA kernels do. The step is made with that one.
"""
import sys

import bitsandbytes as bnb
import torch
from bitsandbytes.backends.cpu import ops as cpu
from safetensors.torch import save_file

STEPS, COUNT = 3, 4429  # 17 whole blocks and a part of one
SETTINGS = {"lr": 1e-2, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.1}


def quantize_nearest(numbers, code, absmax, out, blocksize):
    every_device = torch._C.DispatchKeySet(torch._C.DispatchKey.CompositeExplicitAutograd)
    op = torch.ops.bitsandbytes.quantize_blockwise.default
    codes, scales = op.redispatch(every_device, numbers, code, blocksize)
    out.copy_(codes)
    absmax.copy_(scales)


cpu._quant_blockwise_fp32_direct = quantize_nearest


def optimizer(parameter):
    s = SETTINGS
    return bnb.optim.AdamW8bit([parameter], lr=s["lr"], betas=(s["beta1"], s["beta2"]), eps=s["eps"],
                               weight_decay=s["weight_decay"])


def is_8bit(count):
    parameter = torch.nn.Parameter(torch.zeros(count))
    parameter.grad = torch.ones(count)
    o = optimizer(parameter)
    o.step()
    return o.state[parameter]["state1"].dtype == torch.uint8


torch.manual_seed(1)
parameter = torch.nn.Parameter(torch.randn(COUNT))
o = optimizer(parameter)
out = {"w0": parameter.detach().clone()}
for step in range(1, STEPS + 1):
    gradient = torch.randn(COUNT) * torch.exp(2 * torch.randn(COUNT))
    gradient[: COUNT // 256 * 256 : 256] = 0
    parameter.grad = gradient.clone()
    o.step()
    state = o.state[parameter]
    out[f"g{step}"] = gradient
    out[f"w{step}"] = parameter.detach().clone()
    for ours, theirs in (("m", "state1"), ("v", "state2"), ("m_scale", "absmax1"), ("v_scale", "absmax2")):
        out[f"{ours}{step}"] = state[theirs].detach().clone()
    out["signed"], out["unsigned"] = state["qmap1"].clone(), state["qmap2"].clone()
least = next(n for n in range(4000, 4200) if is_8bit(n))
out["least"] = torch.tensor([least], dtype=torch.int32)
save_file(out, sys.argv[1], metadata={"bitsandbytes": bnb.__version__})
