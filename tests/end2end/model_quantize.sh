#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay quantize, and what is done with its result. usage: model_quantize.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
"$assay" make-model --shape tiny --out base > out 2> err
ok "a model is quantized" expect 0 quantize base --out nf4
ok "and the answer says how" says "^nf4: base in nf4, double quantization$" out
ok "without double quantization, and into several files" expect 0 quantize base --to fp4 --no-double-quant --shard 100kB --out fp4
ok "as the index says" says '"model.layers.1.mlp.up_proj.weight.absmax": "model-0000' fp4/model.safetensors.index.json
ok "the result generates like any other model" expect 0 generate nf4 a --raw --device cpu --tokens 2
ok "it is not quantized again" expect 64 quantize nf4 --out again
ok "which names the model" says "nf4: 14 matrices are in 4 bits already" err
ok "and writes nothing" [ ! -e again ]
ok "an unknown format is refused" expect 64 quantize base --to int4 --out other
ok "by its name" says int4 err
ok "a missing folder is refused" expect 64 quantize base
ok "by its option" says "--out DIR" err
: > base/model.safetensors
ok "a damaged model is refused" expect 64 quantize base --out other
ok "with its file" says "base/model.safetensors" err
ok "and nothing is left" [ ! -e other ]
finish
