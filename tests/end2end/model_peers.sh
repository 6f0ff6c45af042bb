#!/bin/sh
# transformers and PEFT on the files of make-model, merge and train, where python3 has them. usage: model_peers.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
if ! python3 -c 'import torch, transformers, peft, safetensors' 2> /dev/null; then
	echo "1..0 # SKIP python3 has no torch, transformers and peft"
	exit 0
fi
scratch
ok "transformers and PEFT agree with make-model and merge" python3 -W ignore "$root/tests/oracles/model_files.py" "$assay" peers
ok "PEFT gives the logits of adapters with patterns, DoRA and whole modules that assay merges" \
	python3 -W ignore "$root/tests/oracles/peft_adapters.py" "$assay" adapters
ok "PEFT gives the logits of a trained adapter that assay gives" \
	python3 -W ignore "$root/tests/oracles/model_adapter.py" "$assay" trained
finish
