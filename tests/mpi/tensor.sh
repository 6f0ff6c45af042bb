#!/bin/bash
# Tensor parallel on CPU ranks under mpirun: losses beside one rank, meshes of tensor x data, the files of a run, a run that goes on with
# another number of ranks that share a model, plans, and what is refused.
# usage: tensor.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
divided_heads
rows 24 30
head -n 6 rows.jsonl > held.jsonl
# config NAME SIZE LINES..: SIZE ranks share a model; lines are added to its training
config() {
	yaml=$1 size=$2
	shift 2
	cat > "$yaml" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5${more:-}}
$([ "${full:-no}" = yes ] || echo "lora: {r: 4, alpha: 8, dropout: ${dropout:-0.1}}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: ${length:-160}, packing: ${packing:-true}}
training:
  device: cpu
  learning_rate: ${rate:-1e-2}
  global_batch_size: ${packs:-2}
  max_steps: ${steps:-6}
  eval_steps: ${every:-3}
  save_steps: ${every:-3}
  tensor_parallel_size: $size
$([ "${full:-no}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$yaml"; done
}
held() { sed -n 's/.*"eval_loss": \([-0-9.e+]*\),*/\1/p' "$1"; }
# header FILE: names, types and places of the tensors
header() { head -c $((8 + $(od -An -tu8 -N8 "$1"))) "$1"; }
alike() { cmp <(header "$(result "$1")") <(header "$(result "$2")"); }

# Many steps beside one rank; fewer for a mesh.
steps=$many rate=2e-3 every=$((many / 2))
for kind in lora full; do
	full=$([ $kind = full ] && echo yes || echo no)
	config $kind.1.yaml 1 "max_grad_norm: 0.5" "lr_scheduler_type: constant"
	ok "one rank trains, $kind" train 0 1 $kind.1.yaml --out $kind.1 --json
	losses out > one
	for ranks in 2 4; do
		config $kind.$ranks.yaml $ranks "max_grad_norm: 0.5" "lr_scheduler_type: constant"
		ok "$ranks ranks share a model, $kind" train 0 $ranks $kind.$ranks.yaml --out $kind.$ranks --json
		losses out > many
		ok ".. with its losses" near one many $many
		ok ".. and its held-out loss" near <(held $kind.1/checkpoint-$many/trainer_state.json) <(held $kind.$ranks/checkpoint-$many/trainer_state.json) 1
		ok ".. and its files" alike $kind.1 $kind.$ranks
	done
	steps=8
	config $kind.mesh.yaml 2 "max_grad_norm: 0.5" "lr_scheduler_type: constant"
	steps=$many
	ok "two copies of two ranks each, $kind" train 0 4 $kind.mesh.yaml --out $kind.mesh --json
	losses out > many
	ok ".. whose waits within a pass count once" adds_up out
	ok ".. have its losses" near <(head -n 8 one) many 8
done
ok "the result says how many ranks there were" says '"ranks":4' full.mesh/journal.jsonl
ok "and how many parameters are trained" [ "$(grep -o '"trained":[0-9]*' full.1/journal.jsonl)" = "$(grep -o '"trained":[0-9]*' full.mesh/journal.jsonl)" ]
steps=6 rate=1e-2 every=3

# The states of adapters travel to rank 0 only for a checkpoint that is written.
collected() { grep -c "collects the states of 2 ranks" err; }
full=no dropout=0
config saves.yaml 2
ok "two ranks save twice" train 0 2 saves.yaml --out saves --debug=run
ok ".. and collect their states as often" [ "$(collected)" = 2 ]
ok ".. for the adapter too" [ -f saves/adapter/adapter_model.safetensors ]
config nothing.yaml 2 "save_strategy: no"
sed -i 's/save_steps: .*/save_steps: 0/' nothing.yaml
ok "a run that saves nothing" train 0 2 nothing.yaml --out nothing --debug=run
ok ".. collects nothing" [ "$(collected)" = 0 ]
ok ".. and writes no adapter" [ ! -e nothing/adapter ]
unset dropout

# Levels of recomputation, packs that are added along a tree, rows that are not packed, an epoch's last step with fewer packs.
full=yes packing=false packs=6
config levels.1.yaml 1
ok "one rank trains rows without packing" train 0 1 levels.1.yaml --out levels.1 --json
losses out > one
for level in cheap full offload; do
	config levels.$level.yaml 2 "recompute: $level"
	ok "two copies with recompute: $level" train 0 4 levels.$level.yaml --out levels.$level --json
	losses out > many
	ok ".. have the losses of one rank" near one many
done
config tree.yaml 2 "deterministic: true" "gradient_accumulation_steps: 1"
ok "two copies add packs along the tree" train 0 4 tree.yaml --out tree.a --json
losses out > many
ok ".. with the losses of one rank" near one many

# States in host memory: the same bits in another run, also after a resume.
config host.yaml 2 "deterministic: true" "gradient_accumulation_steps: 1" "offload: optimizer"
ok "two copies keep the states in host memory" train 0 4 host.yaml --out host --json
states() { cat "$1"/checkpoint-6/optimizer-0000?-of-00004.bin; }
ok ".. with the same bits" eval 'cmp <(states tree.a) <(states host) && cmp "$(result tree.a)" "$(result host)"'
rm -rf host/checkpoint-6 host/model
sed -i '/"type":"end"/d; /"type":"close"/d' host/journal.jsonl
ok ".. and go on from a checkpoint" eval 'train 0 4 --resume host && says "resumes from host/checkpoint-3\$" err'
ok ".. to the same bits" eval 'cmp <(states tree.a) <(states host) && cmp "$(result tree.a)" "$(result host)"'

# Gradients that the copies send in BF16, and the ranks of a copy add in float32.
rate=2e-3
config halves.1.yaml 1
ok "one rank trains for comparison" train 0 1 halves.1.yaml --out halves.1 --json
losses out > one
config halves.yaml 2 "communication_data_type: bf16"
ok "three copies send gradients in BF16" train 0 6 halves.yaml --out halves --json
losses out > many
apart() { paste one many | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-4 * $1) bad = 1; if (d > 1e-6 * $1) any = 1 } END { exit bad || !any || NR != 6 }'; }
ok ".. with losses within the error that is stated" apart
packs=2 packing=true rate=1e-2
for kind in bf16; do
	config moments.1.yaml 1 "optim: adamw_$kind"
	config moments.2.yaml 2 "optim: adamw_$kind"
	ok "one rank trains with moments in $kind" train 0 1 moments.1.yaml --out moments.1 --json
	losses out > one
	ok "two ranks with moments in $kind" train 0 2 moments.2.yaml --out moments.2 --json
	losses out > many
	# stochastic rounding depends on the place in a rank's own vector, so only the first losses are equal
	ok ".. begin with the same losses" near <(head -n 2 one) <(head -n 2 many) 2
done

# A run that goes on with another number of ranks that share a model: what came later is removed, as if the run had been killed there.
cut_at() { # DIR STEP
	for one in "$1"/checkpoint-*; do
		[ "${one##*-}" -le "$2" ] || rm -rf "$one"
	done
	rm -rf "$1/model" "$1/adapter"
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
}
goes_on() { # SIZE RANKS STEP
	cut_at chain "$3" && sed -i "s/tensor_parallel_size: .*/tensor_parallel_size: $1/" chain/config.yaml && train 0 "$2" --resume chain &&
		says "resumes from chain/checkpoint-$3\$" err
}
history() { tr ',{' '\n\n' < "$1" | sed -n 's/^ *"loss": *\([-0-9.e+]*\).*/\1/p'; }
for kind in lora full; do
	full=$([ $kind = full ] && echo yes || echo no)
	rm -rf chain
	config whole.yaml 1 "max_grad_norm: 0.5"
	config steps.yaml 1 "save_total_limit: 0" "max_grad_norm: 0.5"
	sed -i 's/save_steps: 3/save_steps: 1/' steps.yaml
	ok "a run without interruption, $kind" train 0 1 whole.yaml --out whole.$kind
	ok "one rank begins" train 0 1 steps.yaml --out chain
	ok "two go on" goes_on 2 2 1
	ok "four go on" goes_on 4 4 2
	ok "two copies of two go on" goes_on 2 4 4
	ok "one ends it" goes_on 1 1 5
	history whole.$kind/checkpoint-6/trainer_state.json > one
	history chain/checkpoint-6/trainer_state.json > many
	ok "with the losses of the run without interruption" near one many
	ok "and its files" alike whole.$kind chain
done

# Plans.
expect 0 make-model --shape qwen2-7b --holes --out large
sed 's/name_or_path: model/name_or_path: large/; s/device: cpu/device: gpu/' lora.1.yaml > plan.1.yaml
planned() { sed -n 's/^ *"'"$2"'": \([0-9.e+]*\).*/\1/p' "plan.$1" | tail -n 1; }
for size in 1 2 4; do
	sed "s/tensor_parallel_size: 1/tensor_parallel_size: $size/; s/global_batch_size: 2/global_batch_size: 8/" plan.1.yaml > plan.yaml
	ok "a plan for 8 GPUs, of which $size share a model" eval \
		'"$assay" train plan.yaml --plan --gpus 8 --link-rate 200e9 --json > plan.$size 2> err'
done
share() { awk -v is="$(planned "$1" "$2")" -v was="$(planned 1 "$2")" -v want="$3" 'BEGIN { exit !(is > was * want * 0.97 && is < was * want * 1.03) }'; }
ok "two ranks hold half of the weights each" share 2 weights 0.5
ok "four a quarter" share 4 weights 0.25
# two micro-batches with 28 layers of 2 all-gathers and 2 reduce-scatters in each direction of 160 x 3584 numbers in BF16, beside the ends
within() { awk -v is="$(planned 2 tensor_bytes)" 'BEGIN { step = 2 * 8 * 160 * 3584 * 2 * 28; exit !(is > step && is < step * 1.1) }'; }
ok "the bytes of a step's activations" within
ok "with a time" eval '[ -n "$(planned 2 tensor_s)" ]'
ok "in words" eval '"$assay" train plan.yaml --plan --gpus 8 > out 2> err && says "groups of 4 ranks that share a copy of the model" out'

# What is refused, before weights are read.
refuses() { # RANKS SIZE WORDS YAML-LINES..
	ranks=$1 size=$2 words=$3
	shift 3
	config refused.yaml "$size" "$@"
	train 64 "$ranks" refused.yaml --out refused
	[ $code = 64 ] && says "$words" err && [ ! -e refused/model ] && [ ! -e refused/adapter ] && rm -rf refused
}
full=yes
ok "a number of ranks that is no multiple is refused" refuses 3 2 "tensor_parallel_size: 2 ranks share a model, so the number of ranks must be a multiple of 2, and it is 3"
ok "one rank as well" refuses 1 2 "must be a multiple of 2, and it is 1"
ok "a model that cannot be divided" refuses 3 3 "3 ranks cannot divide a model with 12 heads, 4 key-value heads and 160 features of the MLP; these can: 2, 4"
ok "precision: fp8" refuses 2 2 "tensor_parallel_size: 2 is not supported with precision: fp8" "precision: fp8"
ok "moments in 8 bits" refuses 2 2 "tensor_parallel_size: 2 is not supported with moments in 8 bits" "optim: adamw_8bit"
full=no
packs=3
ok "packs that the copies cannot share" refuses 4 2 "a step has 3 packs .*, which 2 groups with 1 packs per micro-batch"
packs=2
more=', load_in_4bit: true'
ok "weights in 4 bits" refuses 2 2 "tensor_parallel_size: 2 is not supported with load_in_4bit"
finish
