#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""FlashAttention-4's own forward kernels for compute capability 9.0, compiled where no GPU is.

The package compiles a kernel at its first call, by 250 MB of compiler. Here its own front does that on tensors without
memory, its own cache writes the objects, and they are linked with the DSL's static run time: what peer_attention.py --fa4 DIR
then loads is the package's kernel for that type, head dimension and mask, and needs torch and apache-tvm-ffi alone.

Needs flash-attn-4 and its packages, torch and cc. A kernel is TYPE_dHEADDIM_MASK, as bf16_d128_causal.

usage: fa4_kernels.py DIR [TYPE_dD_MASK...]
"""
import glob
import os
import pathlib
import subprocess
import sys
import tempfile

KERNELS = ["bf16_d128_none", "bf16_d128_causal", "bf16_d64_none", "fp16_d64_none", "fp16_d64_causal", "fp16_d128_none"]
# The objects call one function that only the DSL's shared run time has.
SHIM = """
#include <stdint.h>
#include <stdio.h>
void CuteDSLRT_TVMFFISetRaisedCudaError(void (*set)(const char *, const char **, int32_t), int32_t code)
{
	char text[32];
	const char *parts[2] = {"CUDA error ", text};
	snprintf(text, sizeof(text), "%d", (int)code);
	if (set)
		set("RuntimeError", parts, 2);
}
"""


def compiled(name, cache):
    """The object that the package writes at its first call of that kind."""
    import torch
    from flash_attn.cute import flash_attn_func
    from torch._subclasses.fake_tensor import FakeTensorMode

    kind, d, mask = name.split("_")
    before = set(glob.glob(cache + "/**/*.o", recursive=True))
    with FakeTensorMode():
        q, k, v = (torch.empty(2, 512, 2, int(d[1:]), device="cuda", dtype={"fp16": torch.float16, "bf16": torch.bfloat16}[kind])
                   for _ in range(3))
        flash_attn_func(q, k, v, causal=mask == "causal")
    new = set(glob.glob(cache + "/**/*.o", recursive=True)) - before
    if len(new) != 1:
        sys.exit(f"fa4_kernels.py: {name}: {len(new)} objects where one was expected")
    return new.pop()


def libraries():
    import nvidia_cutlass_dsl
    import torch
    import tvm_ffi

    site = pathlib.Path(torch.__file__).parents[1]
    static = pathlib.Path(nvidia_cutlass_dsl.__path__[0]) / "cu13/lib/libcuda_dialect_runtime_static.a"
    return [str(static), str(next(site.glob("nvidia/cu13/lib/libcudart.so.*"))),
            str(pathlib.Path(tvm_ffi.__file__).parent / "lib/libtvm_ffi.so")]


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__.rsplit("\n\n", 1)[1].strip())
    with tempfile.TemporaryDirectory() as work:
        os.environ.update(FLASH_ATTENTION_ARCH="sm_90", CUTE_DSL_ARCH="sm_90a", FLASH_ATTENTION_NUM_SMS="132",
                          FLASH_ATTENTION_CUTE_DSL_CACHE_ENABLED="1", FLASH_ATTENTION_CUTE_DSL_CACHE_DIR=work + "/cache")
        shim = pathlib.Path(work) / "shim.c"
        shim.write_text(SHIM)
        os.makedirs(sys.argv[1], exist_ok=True)
        for name in sys.argv[2:] or KERNELS:
            out = os.path.join(sys.argv[1], name + ".so")
            subprocess.run(["cc", "-O2", "-fPIC", "-shared", "-s", "-Wl,-z,defs", "-o", out, compiled(name, work + "/cache"),
                            str(shim), *libraries(), "-ldl", "-lpthread"], check=True)
            print(out, flush=True)


if __name__ == "__main__":
    main()
