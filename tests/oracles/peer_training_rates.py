#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Rates of other trainers on the shape of a model, beside those of `assay train`. Weights and token ids are random.
usage: peer_training_rates.py CONFIG CASE...
       torchrun --nproc-per-node N peer_training_rates.py CONFIG CASE...
CONFIG: a folder with a config.json of the family qwen2, as `assay make-model --shape qwen2-7b --holes` writes
CASE on one GPU:
  bf16 fp8 nf4          LoRA r 64 on all linear layers by PEFT with Liger, micro-batch 2, no recomputation. The base weights are in BF16, FP8 (torch._scaled_mm
                        with a scale per tensor) or NF4 (bitsandbytes)
  nf4-full              the same on NF4, micro-batch 4, full recomputation
  adam8                 full fine-tuning, weights in BF16, 8-bit AdamW (bitsandbytes), Liger, micro-batch 2, full recomputation
  unsloth-bf16 unsloth-nf4 unsloth-nf4-full   the LoRA cases by Unsloth, each in a process of its own, because Unsloth changes transformers
CASE on several GPUs:
  ddp                   `bf16` on every rank with DistributedDataParallel
  fsdp2 fsdp2-full      full fine-tuning by FSDP2, FP32 masters, BF16 arithmetic: micro-batch 2 without recomputation, micro-batch 4 with it
variables: LENGTH tokens of a row (4096), STEPS timed steps (8)
Prints a JSON object a case: {"peer", "tokens_per_s", "step_s", "memory_bytes", "loss", "ranks"}, or {"peer", "skipped"} or {"peer", "failed"} with the reason.
memory_bytes is what PyTorch's allocator counts. Exits 77 if every case is skipped, 1 if one failed.
"""
import gc
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time

LENGTH, STEPS, WARM = int(os.environ.get("LENGTH", 4096)), int(os.environ.get("STEPS", 8)), 3
RANK, RANKS = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
LINEARS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
LORA = {"r": 64, "lora_alpha": 128, "lora_dropout": 0.0, "target_modules": LINEARS}
PLAIN, BNB, UNSLOTH = ["torch", "transformers", "peft", "liger_kernel"], ["bitsandbytes"], ["torch", "transformers", "tokenizers", "unsloth"]
# case: packages, micro-batch, full recomputation
CASES = {
    "bf16": (PLAIN, 2, False),
    "fp8": (PLAIN, 2, False),
    "nf4": (PLAIN + BNB, 2, False),
    "nf4-full": (PLAIN + BNB, 4, True),
    "adam8": (PLAIN + BNB, 2, True),
    "unsloth-bf16": (UNSLOTH, 2, False),
    "unsloth-nf4": (UNSLOTH, 2, False),
    "unsloth-nf4-full": (UNSLOTH, 4, True),
    "ddp": (PLAIN, 2, False),
    "fsdp2": (PLAIN, 2, False),
    "fsdp2-full": (PLAIN, 4, True),
}
SEVERAL = ("ddp", "fsdp2", "fsdp2-full")


def tell(case, **what):
    if RANK == 0:
        print(json.dumps({"peer": case, **what}), flush=True)


def lacks(case):
    """Why the case cannot run here; None: it can. Nothing is imported but torch, because Unsloth has to come before transformers."""
    absent = [name for name in CASES[case][0] if not importlib.util.find_spec(name)]
    if absent:
        return "Python has no package " + ", ".join(absent)
    import torch
    if not torch.cuda.is_available():
        return "PyTorch finds no GPU"
    if case in SEVERAL and RANKS < 2:
        return "it needs torchrun with several ranks"
    return "it runs on one GPU" if case not in SEVERAL and RANKS > 1 else None


def config_of(path):
    import transformers
    config = transformers.AutoConfig.from_pretrained(path)
    config._attn_implementation = "sdpa"
    return config


def model_of(config):
    """On the GPU, in BF16."""
    import torch
    import transformers
    from liger_kernel.transformers import apply_liger_kernel_to_qwen2
    apply_liger_kernel_to_qwen2()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device("cuda"):
            return transformers.AutoModelForCausalLM.from_config(config).train()
    finally:
        torch.set_default_dtype(torch.float32)


def linears(model):
    """The linear layers but the head: parent, name, layer."""
    import torch
    for parent in list(model.modules()):
        for name, layer in list(parent.named_children()):
            if type(layer) is torch.nn.Linear and name in LINEARS:
                yield parent, name, layer


def to_fp8(model):
    import torch

    @torch.compile
    def quantize(x, top: float, kind: torch.dtype):
        scale = (x.abs().amax().float() / top).clamp(min=1e-12)
        return (x.float() / scale).clamp(-top, top).to(kind), scale

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight, turned, weight_scale, bias):
            q, scale = quantize(x.reshape(-1, x.shape[-1]), 448.0, torch.float8_e4m3fn)
            y = torch._scaled_mm(q, weight.t(), scale_a=scale, scale_b=weight_scale, bias=bias, out_dtype=torch.bfloat16, use_fast_accum=True)
            ctx.save_for_backward(turned, weight_scale)
            ctx.shape = x.shape
            return y.reshape(*x.shape[:-1], -1)

        @staticmethod
        def backward(ctx, g):
            turned, weight_scale = ctx.saved_tensors
            q, scale = quantize(g.reshape(-1, g.shape[-1]), 57344.0, torch.float8_e5m2)
            d = torch._scaled_mm(q, turned.t(), scale_a=scale, scale_b=weight_scale, out_dtype=torch.bfloat16, use_fast_accum=True)
            return d.reshape(ctx.shape), None, None, None, None

    class Fp8Linear(torch.nn.Linear):
        def forward(self, x):
            return Product.apply(x, self.q, self.turned, self.scale, self.bias)

    for _, _, layer in linears(model):
        q, layer.scale = quantize(layer.weight.data, 448.0, torch.float8_e4m3fn)
        layer.__class__ = Fp8Linear
        layer.q, layer.turned = q.contiguous(), q.t().contiguous()
        hole = torch.zeros(1, device="cuda", dtype=torch.bfloat16).expand(layer.out_features, layer.in_features)
        layer.weight = torch.nn.Parameter(hole, requires_grad=False)


def to_nf4(model):
    import bitsandbytes as bnb
    import torch
    for parent, name, layer in linears(model):
        new = bnb.nn.Linear4bit(layer.in_features, layer.out_features, bias=layer.bias is not None, compute_dtype=torch.bfloat16,
                                compress_statistics=True, quant_type="nf4")
        new.weight = bnb.nn.Params4bit(layer.weight.data, requires_grad=False, quant_type="nf4", compress_statistics=True)
        if layer.bias is not None:
            new.bias = torch.nn.Parameter(layer.bias.data, requires_grad=False)
        setattr(parent, name, new.to("cuda"))


def peft_of(model):
    from peft import LoraConfig, get_peft_model
    return get_peft_model(model, LoraConfig(**LORA, task_type="CAUSAL_LM"), autocast_adapter_dtype=False)


def sharded(config, recompute):
    """FSDP2 with FP32 masters and BF16 arithmetic, of random weights."""
    import torch
    import transformers
    from liger_kernel.transformers import apply_liger_kernel_to_qwen2
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    apply_liger_kernel_to_qwen2()
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config).float()
    if recompute:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.to_empty(device="cuda")
    for p in model.parameters():
        torch.nn.init.normal_(p, std=0.02) if p.dim() > 1 else torch.nn.init.ones_(p)
    size = config.hidden_size // config.num_attention_heads
    with torch.no_grad():
        model.model.rotary_emb.inv_freq.copy_(1e6 ** (-torch.arange(0, size, 2, device="cuda").float() / size))
    return model.train()


# Run in a process of its own, because Unsloth has to be imported before transformers.
SAVE = """
import sys, torch, transformers
from tokenizers import Tokenizer, models, pre_tokenizers
config = transformers.AutoConfig.from_pretrained(sys.argv[1])
config.bos_token_id, config.eos_token_id, config.pad_token_id = 0, 1, 2
torch.set_default_dtype(torch.bfloat16)
with torch.device("cuda"):
    model = transformers.AutoModelForCausalLM.from_config(config)
model.generation_config.pad_token_id = 2
model.save_pretrained(sys.argv[2])
words = {"<s>": 0, "</s>": 1, "<pad>": 2, "<unk>": 3, **{f"t{i}": i for i in range(4, config.vocab_size)}}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="<pad>", unk_token="<unk>").save_pretrained(sys.argv[2])
"""


def unsloth_of(path, case, recompute):
    os.environ.update(UNSLOTH_DISABLE_STATISTICS="1", HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1", UNSLOTH_RETURN_LOGITS="0")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", SAVE, path, folder], check=True, stdout=sys.stderr)
        os.environ["UNSLOTH_COMPILE_LOCATION"] = os.path.join(tempfile.gettempdir(), f"unsloth-{os.getpid()}")
        from unsloth import FastLanguageModel
        import torch
        model, _ = FastLanguageModel.from_pretrained(folder, max_seq_length=LENGTH, dtype=torch.bfloat16, load_in_4bit="nf4" in case, local_files_only=True)
    model = FastLanguageModel.get_peft_model(model, **LORA, bias="none", use_gradient_checkpointing=recompute, max_seq_length=LENGTH)
    FastLanguageModel.for_training(model, use_gradient_checkpointing=recompute)
    return model


def made(path, case, recompute):
    """The model and its optimizer."""
    import torch
    if case.startswith("unsloth"):
        model = unsloth_of(path, case, recompute)
    elif case.startswith("fsdp2"):
        model = sharded(config_of(path), recompute)
    else:
        model = model_of(config_of(path))
        if case == "fp8":
            to_fp8(model)
        if case.startswith("nf4"):
            to_nf4(model)
        if case != "adam8":
            model = peft_of(model)
        if recompute:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            model.enable_input_require_grads()
        torch.cuda.empty_cache()
    trained = [p for p in model.parameters() if p.requires_grad]
    if case == "adam8":
        import bitsandbytes as bnb
        return model, trained, bnb.optim.AdamW8bit(trained, lr=1e-5)
    if case == "ddp":
        model = torch.nn.parallel.DistributedDataParallel(model, device_ids=[torch.cuda.current_device()], gradient_as_bucket_view=True, static_graph=True)
    return model, trained, torch.optim.AdamW(trained, lr=1e-5, fused=True)


def waited():
    import torch
    torch.cuda.synchronize()
    if RANKS > 1:
        torch.distributed.barrier()
    return time.monotonic()


def measure(path, case):
    import torch
    _, batch, recompute = CASES[case]
    model, trained, optimiser = made(path, case, recompute)
    words = config_of(path).vocab_size

    def step():
        ids = torch.randint(4, words, (batch, LENGTH), device="cuda")
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=case.startswith("unsloth")):
            loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        if case.startswith("fsdp2"):
            torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM):
        step()
    begun = waited()
    for _ in range(STEPS):
        loss = step()
    seconds = (waited() - begun) / STEPS
    tell(case, tokens_per_s=RANKS * batch * LENGTH / seconds, step_s=seconds, memory_bytes=torch.cuda.max_memory_allocated(), loss=loss.item(), ranks=RANKS)


def main():
    if len(sys.argv) < 3 or any(case not in CASES for case in sys.argv[2:]):
        sys.exit(__doc__)
    failed, ran, joined = False, False, False
    for case in sys.argv[2:]:
        why = lacks(case)
        if why:
            tell(case, skipped=why)
            continue
        import torch
        if RANKS > 1 and not joined:
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
            torch.distributed.init_process_group("nccl")
            joined = True
        ran = True
        try:
            measure(sys.argv[1], case)
        except Exception as what:  # another case may still have a rate
            failed = True
            tell(case, failed=f"{type(what).__name__}: {what}"[:300])
        gc.collect()
        torch.cuda.empty_cache()
    if joined:
        torch.distributed.destroy_process_group()
    sys.exit(1 if failed else 0 if ran else 77)


if __name__ == "__main__":
    main()
