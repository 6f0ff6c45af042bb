#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# transformers with bitsandbytes beside assay quantize, where python3 has them. usage: model_quantize_peers.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
if ! python3 -c 'import torch, transformers, accelerate, bitsandbytes, safetensors' 2> /dev/null; then
	echo "1..0 # SKIP python3 has no torch, transformers, accelerate and bitsandbytes"
	exit 0
fi
scratch
export HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error HF_HUB_DISABLE_PROGRESS_BARS=1
ok "both programs read each other's checkpoints to equal bits" \
	python3 -W ignore "$root/tests/oracles/bnb4_checkpoints.py" "$assay" peers
ok "the committed results of bitsandbytes come out again" \
	eval 'python3 -W ignore "$root/tests/oracles/bnb4_vectors.py" vectors && diff -r vectors "$root/tests/data/model/bnb4"'
finish
