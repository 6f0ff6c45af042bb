#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tiny models of each family by transformers and PEFT: what tests/unit/model_torch.c is held against.

For each: a folder as Hugging Face has it (config.json, model.safetensors), an adapter that PEFT wrote, with random B
(B = 0 would make every gradient of A zero), and expected.safetensors: a packed batch of documents that transformers saw
one by one, logits, mean loss, every gradient (of the adapter, and of all parameters in full fine-tuning), and the losses
of 50 steps of torch.optim.AdamW with clipping. All in single precision, attention "eager".

usage: model_gradients.py OUT   (tests/data/model)
"""
import json
import os
import sys

import torch
import transformers
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file

DOCS = [9, 1, 2, 13]  # documents of one and two tokens too
STEPS = 50
RATE = 1e-3  # at 3e-3 torch's own losses in single and double precision are 1e-3 apart by step 50
SIZES = dict(hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
             vocab_size=40, max_position_embeddings=64, initializer_range=0.3, attn_implementation="eager")
ALL = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=32)
PLAIN = dict(rope_type="default", rope_theta=10000.0)
# name: configuration, is the head tied, targets, rank-stabilised
MODELS = {
    "qwen2": (transformers.Qwen2Config(**SIZES, rms_norm_eps=1e-6, rope_parameters=PLAIN, tie_word_embeddings=False), ALL,
              False),
    "qwen3": (transformers.Qwen3Config(**{**SIZES, "hidden_size": 20}, head_dim=4, rms_norm_eps=1e-6,
                                       rope_parameters=PLAIN, tie_word_embeddings=True), ["q_proj", "v_proj", "up_proj"],
              True),
    "llama": (transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, rope_parameters=LLAMA3, tie_word_embeddings=False),
              ALL, False),
    "llama_tied": (transformers.LlamaConfig(**SIZES, rms_norm_eps=1e-5, rope_parameters=PLAIN,
                                            tie_word_embeddings=True), ALL, False),
}


def randomise(model, generator):
    """Weights that BF16 holds exactly, norms around 1, no bias zero; small, or single precision itself is 3e-5 off."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            value = torch.randn(p.shape, generator=generator) * 0.15
            p.copy_((1 + value if "norm" in name else value).to(torch.bfloat16).float())


def loss_of(model, ids, targets):
    """Mean over targets; each document alone, as packing must not change anything."""
    logits = torch.cat([model(input_ids=ids[i][None]).logits[0] for i in range(len(ids))])
    mean = torch.nn.functional.cross_entropy(logits, torch.cat(targets), ignore_index=-100)
    return logits, mean


def curve(model, ids, targets):
    parameters = [p for p in model.parameters() if p.requires_grad]
    groups = [dict(params=[p for p in parameters if p.dim() > 1], weight_decay=0.01),
              dict(params=[p for p in parameters if p.dim() < 2], weight_decay=0.0)]
    optimiser = torch.optim.AdamW(groups, lr=RATE)
    losses = []
    for _ in range(STEPS):
        optimiser.zero_grad()
        _, mean = loss_of(model, ids, targets)
        mean.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        losses.append(mean.item())
    return torch.tensor(losses)


def gradients(model, ids, targets, prefix, out):
    model.zero_grad()
    logits, mean = loss_of(model, ids, targets)
    mean.backward()
    out[prefix + "logits"] = logits.detach().clone()
    out[prefix + "loss"] = mean.detach().reshape(1)
    for name, p in model.named_parameters():
        if p.requires_grad:
            out[prefix + "grad." + name.replace("base_model.model.", "").replace(".default", "")] = p.grad.clone()


def one(name, config, targets_of_lora, rslora, out_dir):
    generator = torch.Generator().manual_seed(len(name) * 1000 + 17)
    folder = os.path.join(out_dir, name)
    model = transformers.AutoModelForCausalLM.from_config(config).float().eval()
    randomise(model, generator)
    model.tie_weights()
    model.to(torch.bfloat16).save_pretrained(folder)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    model.eval()
    ids = [torch.randint(0, config.vocab_size, (n,), generator=generator) for n in DOCS]
    targets = [torch.where(torch.rand(n, generator=generator) < 0.7, torch.randint(0, config.vocab_size, (n,),
               generator=generator), -100) for n in DOCS]
    expected = dict(token=torch.cat(ids).int(), target=torch.cat(targets).int(), documents=torch.tensor(DOCS).int())
    start = {k: v.clone() for k, v in model.state_dict().items()}
    gradients(model, ids, targets, "full.", expected)
    expected["full.curve"] = curve(model, ids, targets)
    model.load_state_dict(start)
    tuned = get_peft_model(model, LoraConfig(r=4, lora_alpha=6, target_modules=targets_of_lora, use_rslora=rslora,
                                             task_type="CAUSAL_LM", lora_dropout=0.0))
    with torch.no_grad():
        for key, p in tuned.named_parameters():
            if "lora_" in key:
                p.copy_(torch.randn(p.shape, generator=generator) * 0.15)
    tuned.save_pretrained(os.path.join(folder, "adapter"))
    tuned.eval()
    gradients(tuned, ids, targets, "lora.", expected)
    expected["lora.curve"] = curve(tuned, ids, targets)
    save_file({k: v.contiguous() for k, v in expected.items()}, os.path.join(folder, "expected.safetensors"))
    for extra in ("generation_config.json", "adapter/README.md"):
        path = os.path.join(folder, extra)
        if os.path.exists(path):
            os.remove(path)
    print(name, float(expected["full.loss"]), float(expected["lora.loss"]), expected["full.curve"][-1].item(),
          expected["lora.curve"][-1].item())


def main():
    torch.set_num_threads(1)
    for name, (config, targets, rslora) in MODELS.items():
        one(name, config, targets, rslora, sys.argv[1])


if __name__ == "__main__":
    main()
