#!/bin/bash
# Meshes of tensor x shard and tensor x data x shard on CPU ranks under mpirun: each zero_stage has the bits of the same mesh without it, and
# losses near those of one rank. A checkpoint goes on in another mesh. Plans, planted faults, and what is refused.
# usage: tensor_zero.sh ASSAY MODULE FAKE
. "$(dirname "$0")/mpirun.sh"
only_open_mpi
assay=$program
export CUDA_VISIBLE_DEVICES=

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
# The same matrices as 12 heads of 16 columns, which four ranks can divide.
sed -i 's/"num_attention_heads": 6/"num_attention_heads": 12/; s/"num_key_value_heads": 2/"num_key_value_heads": 4/; s/"head_dim": 32/"head_dim": 16/' \
	model/config.json
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i $(printf "%$((i * 7 % 30))s" x)"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
head -n 3 rows.jsonl > held.jsonl
# config NAME SIZE LINES..: SIZE ranks share a model; lines are added to its training
config() {
	yaml=$1 size=$2
	shift 2
	cat > "$yaml" << CONFIG
model: {name_or_path: ${model:-model}, chat_template: qwen2.5}
$([ "${full:-yes}" = yes ] || echo "lora: {r: 4, alpha: 8, dropout: 0.1}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 160, packing: false}
training:
  device: cpu
  learning_rate: 1e-2
  global_batch_size: ${packs:-2}
  max_steps: ${steps:-4}
  eval_steps: 2
  save_steps: 2
  max_grad_norm: 0.5
  tensor_parallel_size: $size
$([ "${full:-yes}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$yaml"; done
}
# train CODE RANKS WORDS..: `out` has rank 0's words, `err` those of all
train() {
	want=$1 ranks=$2
	shift 2
	if [ "$ranks" = 1 ]; then
		"$assay" train "$@" > out 2> err
	else
		started "$ranks" "$assay" train "$@" > out 2> err
	fi
	code=$?
	[ $code = "$want" ]
}
losses() { grep '"type":"step"' "$1" | tr ',{' '\n\n' | sed -n 's/^"loss"://p'; }
near() { # FILE FILE: step 1 within 1e-6, all within 1e-4, as shares
	paste "$1" "$2" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > (NR == 1 ? 1e-6 : 1e-4) * $1) bad = 1 } END { exit bad || NR < 4 }'
}
result() { [ -d "$1/model" ] && echo "$1/model/model.safetensors" || echo "$1/adapter/adapter_model.safetensors"; }
held() { sed -n 's/.*"eval_loss": \([-0-9.e+]*\),*/\1/p' "$1/checkpoint-4/trainer_state.json"; }
cut_at() { # DIR STEP: as if the run had been killed there
	for one in "$1"/checkpoint-*; do
		[ "${one##*-}" -le "$2" ] || rm -rf "$one"
	done
	rm -rf "$1/model" "$1/adapter"
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
}
# mesh DIR SIZE STAGE: sets them in the configuration of a run
mesh() { sed -i "s/tensor_parallel_size: .*/tensor_parallel_size: $2/; s/zero_stage: .*/zero_stage: $3/; s/dp_shard_size: .*/dp_shard_size: 0/" "$1/config.yaml"; }
# One rank goes on from the last step, so it writes that checkpoint again, as one file of states.
alone() { [ -e "$1/checkpoint-4/optimizer.bin" ] || { rm -rf "$1.alone" && cp -r "$1" "$1.alone" && cut_at "$1.alone" 4 && mesh "$1.alone" 1 0 && train 0 1 --resume "$1.alone" && cp "$1.alone/checkpoint-4/optimizer.bin" "$1/alone.bin"; }; }
states() { [ -e "$1/alone.bin" ] && echo "$1/alone.bin" || echo "$1/checkpoint-4/optimizer.bin"; }
same() { alone "$1" && alone "$2" && cmp "$(states "$1")" "$(states "$2")" && cmp "$(result "$1")" "$(result "$2")" && [ "$(held "$1")" = "$(held "$2")" ]; }

for kind in full lora; do
	full=$([ $kind = full ] && echo yes || echo no)
	config one.yaml 1
	ok "one rank trains, $kind" train 0 1 one.yaml --out $kind.one --json
	losses out > one
	config whole.yaml 2 "deterministic: true"
	ok "two copies of two ranks each" train 0 4 whole.yaml --out $kind.0 --json
	losses out > many
	ok ".. have its losses" near one many
	for stage in 1 2 3; do
		[ $kind = full ] || [ $stage = 3 ] || continue
		config bits.yaml 2 "deterministic: true" "zero_stage: $stage"
		ok "the same in stage $stage" train 0 4 bits.yaml --out $kind.$stage --json
		ok ".. has the bits of that" same $kind.0 $kind.$stage
	done
done
finish
