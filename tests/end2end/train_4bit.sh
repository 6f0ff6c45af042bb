#!/bin/sh
# QLoRA: training with a base model in 4 bits, from its configuration to the merged model. usage: train_4bit.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too

# config NAME MODEL LINES..: a configuration; lines are added to its training
config() {
	name=$1 model=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: ${base:-model}, chat_template: qwen2.5$model}
${lora-lora: {r: 4, alpha: 8, dropout: 0.1\}}
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 160}
training:
  device: cpu
  learning_rate: 1e-2
  tensorboard: false
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
rows() { # FILE FIRST LAST
	for i in $(seq "$2" "$3"); do
		echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
	done > "$1"
}
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | head -n 1; }
between() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x != "" && low != "" && high != "" && x + 0 >= low + 0 && x + 0 <= high + 0) }'; }
less() { between "$1" -1e9 "$2"; }

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
rows rows.jsonl 1 24
rows held.jsonl 101 106

four=", load_in_4bit: true"
config whole.yaml "$four" "max_steps: 30" "eval_steps: 10" "eval_on_start: true" "save_steps: 10" "gradient_accumulation_steps: 2"
ok "a plan counts weights and the slot" expect 0 train whole.yaml --plan
ok "by their names" says '^  slots ' out
ok "it trains" expect 0 train whole.yaml --out whole --no-telemetry
"$assay" report whole --format json > report.json
ok "the held-out loss went down" less "$(figure eval_loss report.json)" "$(figure eval_loss_first report.json)"
ok "the configuration is kept" says 'load_in_4bit: true' whole/config.yaml

# Killed in the middle: the same as never stopped.
rm -f said
mkfifo said
"$assay" train whole.yaml --out killed --no-telemetry > out 2> said &
pid=$!
exec 3< said
while read -r line <&3; do
	case $line in *step\ 15/30*) break ;; esac
done
kill -KILL "$pid" 2> /dev/null
cat <&3 > err
exec 3<&-
wait "$pid" 2> /dev/null
ok "a killed run goes on" expect 0 train --resume killed --no-telemetry
same() { cmp "whole/adapter/adapter_model.safetensors" "$1/adapter/adapter_model.safetensors"; }
ok "to the same adapter, bit for bit" same killed

# The memory of a larger model, whose weights are most of it.
long=$(printf '%0400d' 0)
for i in $(seq 8); do
	echo '{"messages":[{"role":"user","content":"'"$i"'"},{"role":"assistant","content":"'"$long"'"}]}'
done > long.jsonl
expect 0 make-model --shape smollm2-135m --seed 1 --out larger || { cat err; exit 1; }
sed -e 's/name_or_path: model/name_or_path: larger/' -e 's/rows.jsonl, eval: held.jsonl, max_seq_length: 160/long.jsonl, max_seq_length: 128, long_rows: truncate/' \
	-e '/eval/d; /save/d; s/max_steps: 30/max_steps: 1/' whole.yaml > larger.yaml
unset MALLOC_PERTURB_ # it writes to memory that a program only reserves
ok "a larger model trains" expect 0 train larger.yaml --out larger.run --no-telemetry
"$assay" report larger.run --format json > larger.json
"$assay" train larger.yaml --plan --json > larger.plan
# the plan is for a micro-batch whose tokens all are targets, so only what the run used of the arena counts
used=$(awk -v all="$(figure memory_planned_bytes larger.json)" -v arena="$(figure arena_bytes larger.plan)" -v used="$(figure arena_bytes larger.json)" \
	'BEGIN { print all - arena + used }')
if objdump -T "$assay" 2> /dev/null | grep -q __asan_init; then
	n=$((n + 1))
	echo "ok $n - its memory is the plan's # SKIP a sanitizer keeps memory of its own"
else
	ok "its memory is the plan's, within 2 %" between "$(figure memory_bytes larger.json)" "$(awk "BEGIN { print $used * 0.98 }")" "$(awk "BEGIN { print $used * 1.02 }")"
fi
sed 's/, load_in_4bit: true//' larger.yaml > plain.yaml
bytes() { "$assay" train "$1" --plan --json > plan.json && figure weights plan.json; }
ok "weights take less than half" less "$(bytes larger.yaml)" "$(bytes plain.yaml | awk '{ print $1 / 2 }')"

# The adapter says what it was trained with, and is merged into that.
ok "an adapter is merged" expect 0 merge model --adapter whole/adapter --out merged --dtype f32
expect 0 make-model --shape tiny --seed 2 --out other
ok "another base model is refused" expect 64 merge other --adapter whole/adapter --out wrong
ok "and named" says 'other has other weights' err
ok "where weights are not in 4 bits, that is told" expect 0 generate model x --adapter whole/adapter --chat-template qwen2.5 --tokens 1 --device cpu
ok "with how they were" says 'it was trained on weights in nf4 with double quantization' err

refused() { # WHAT WORDS MODEL [LINES]: exit 64, and the setting named
	what=$1 words=$2 model=$3
	shift 3
	config wrong.yaml "$model" "max_steps: 1" "$@"
	ok "$what is refused" expect 64 train wrong.yaml --out wrong
	ok "by name" says "$words" err
}
lora='' refused "full fine-tuning" 'model: load_in_4bit: weights in 4 bits cannot be trained' "$four" "full_finetuning: true"
refused "a type without 4 bits" 'model: bnb_4bit_quant_type: it has an effect only with load_in_4bit' ", bnb_4bit_quant_type: fp4"
refused "an unknown type" 'bnb_4bit_quant_type' "$four, bnb_4bit_quant_type: nf5"

# A checkpoint in 4 bits has the same bits as a base that is quantized at load.
if expect 0 quantize model --out four; then
	config four.yaml "$four" "max_steps: 30" "eval_steps: 10" "eval_on_start: true" "save_steps: 10" "gradient_accumulation_steps: 2"
	sed -i 's/name_or_path: model/name_or_path: four/' four.yaml
	ok "a checkpoint in 4 bits trains" expect 0 train four.yaml --out four.run --no-telemetry
	numbers() { tail -c "$((13312 * 4))" "$1/adapter/adapter_model.safetensors"; }
	numbers whole > a
	numbers four.run > b
	ok "to the same numbers" cmp a b
	ok "its adapter is not one of the other base" expect 64 merge model --adapter four.run/adapter --out wrong
	ok "but of its own" expect 0 merge four --adapter four.run/adapter --out merged.four --dtype f32
	ok "with the numbers of the other merge" cmp merged/model.safetensors merged.four/model.safetensors
	base=four refused "another type than the checkpoint's" 'is stored in nf4 with double quantization, but the run asks for fp4' "$four, bnb_4bit_quant_type: fp4"
	# A scale that is no number, in a checkpoint whose scales are F32.
	expect 0 quantize model --no-double-quant --out nan
	file=nan/model.safetensors
	size=$(od -An -tu8 -N8 "$file" | tr -d ' ')
	at=$(head -c $((8 + size)) "$file" | grep -ao '"model.layers.1.mlp.down_proj.weight.absmax":{[^}]*}' | sed 's/.*"data_offsets":\[\([0-9]*\).*/\1/')
	printf '\000\000\300\177' | dd of="$file" bs=1 seek=$((8 + size + at)) conv=notrunc 2> dd.err
	base=nan config nan.yaml "$four, bnb_4bit_use_double_quant: false" "max_steps: 1"
	ok "a scale that is NaN is refused" expect 64 train nan.yaml --out nan.run --no-telemetry
	ok "with its name" says 'model.layers.1.mlp.down_proj.weight.absmax has NaN or infinity' err
fi
finish
