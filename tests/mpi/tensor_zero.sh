#!/bin/bash
# Meshes of tensor x shard and tensor x data x shard on CPU ranks under mpirun: each zero_stage has the bits of the same mesh without it, and
# losses near those of one rank. A checkpoint goes on in another mesh. Plans, planted faults, and what is refused.
# usage: tensor_zero.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
divided_heads
rows 24 30
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
	ok ".. have its losses" near one many 4
	for stage in 1 2 3; do
		[ $kind = full ] || [ $stage = 3 ] || continue
		config bits.yaml 2 "deterministic: true" "zero_stage: $stage"
		ok "the same in stage $stage" train 0 4 bits.yaml --out $kind.$stage --json
		ok ".. has the bits of that" same $kind.0 $kind.$stage
	done
done

# States in host memory.
full=yes
for stage in 1 $(in_long 2 3); do # stage 3: in folders of their own below
	config host.yaml 2 "deterministic: true" "zero_stage: $stage" "offload: optimizer"
	ok "states in host memory, stage $stage" train 0 4 host.yaml --out host.$stage
	ok ".. have the same bits" same full.0 host.$stage
done

# Checkpoints of parts of tensors: every rank writes its shard, and the manifest says which part it is of.
shards() { find "$1" -name "optimizer-0000?-of-0000$2.bin" | wc -l; } # FOLDER RANKS
ok "each rank writes a shard" eval '[ "$(shards full.3/checkpoint-4 4)" = 4 ] && [ ! -e full.3/checkpoint-4/optimizer.bin ]'
ok ".. of a part" eval '[ "$(grep -c "\"part\": [01]" full.3/checkpoint-4/checkpoint.json)" = 4 ] && says "\"schema\": 4" full.3/checkpoint-4/checkpoint.json'
ok "also without a stage" [ "$(shards full.0/checkpoint-4 4)" = 4 ]
ok "rank 0 writes adapters alone" [ -s lora.3/checkpoint-4/optimizer.bin ]

# A run goes on in other meshes: what came later is removed, as if the run had been killed there. Twice without changes, for the bits.
goes_on() { # SIZE STAGE RANKS STEP
	cut_at chain "$4" && mesh chain "$1" "$2" && train 0 "$3" --resume chain && says "resumes from chain/checkpoint-$4\$" err
}
history() { tr ',{' '\n\n' < "$1/checkpoint-4/trainer_state.json" | sed -n 's/^ *"loss": *\([-0-9.e+]*\).*/\1/p'; }
for kind in full lora; do
	full=$([ $kind = full ] && echo yes || echo no)
	rm -rf chain
	packs=4
	config whole.yaml 1
	ok "one rank trains with four packs, $kind" train 0 1 whole.yaml --out whole.$kind
	history whole.$kind > one
	config steps.yaml 2 "zero_stage: 3" "save_total_limit: 0"
	packs=2
	sed -i 's/save_steps: 2/save_steps: 1/' steps.yaml
	ok "two copies of two ranks divide everything, $kind" train 0 4 steps.yaml --out chain
	ok "one rank goes on" goes_on 1 0 1 1
	ok "four copies of one rank go on" goes_on 1 3 4 2
	ok "two copies of two ranks end it in stage 1" goes_on 2 1 4 3
	history chain > many
	ok "with the losses of one rank" near one many 4
	[ $kind = full ] || continue
	ok "four ranks that share a copy go on from there" goes_on 4 0 4 3
	history chain > many
	ok ".. with these losses" near one many 4
	cut_at full.2 2
	ok "the same mesh goes on" eval 'train 0 4 --resume full.2 && says "resumes from full.2/checkpoint-2\$" err && rm -rf full.2.alone full.2/alone.bin'
	ok ".. with the bits of a run without interruption" same full.0 full.2
	cp -r full.2 missing
	cut_at missing 4
	rm missing/checkpoint-4/optimizer-00003-of-00004.bin
	ok "without a shard the run does not go on" train 64 4 --resume missing
	ok ".. and it is named" says 'optimizer-00003-of-00004.bin is not there; rank 2 wrote it' err
done

# Shard groups: two copies divide, and two such groups hold copies.
full=yes packs=4
config groups.0.yaml 2 "deterministic: true"
ok "four copies of two ranks each" train 0 8 groups.0.yaml --out groups.0
config groups.yaml 2 "deterministic: true" "zero_stage: 3" "dp_shard_size: 2"
ok "in two shard groups" train 0 8 groups.yaml --out groups
ok ".. have the same bits" same groups.0 groups

# Packs that are added along a tree keep the whole gradient.
config tree.0.yaml 2 "deterministic: true"
config tree.yaml 2 "deterministic: true" "zero_stage: 2"
ok "two packs on each copy" train 0 4 tree.0.yaml --out tree.0
ok ".. in stage 2" train 0 4 tree.yaml --out tree
ok ".. have the same bits" same tree.0 tree
# Gradients that the copies send in BF16. CPU ranks add in a fixed order, so a stage has the bits of the mesh without it.
packs=2
config halves.0.yaml 2 "communication_data_type: bf16"
ok "two copies send gradients in BF16" train 0 4 halves.0.yaml --out halves.0
for stage in $(in_long 1 2) 3; do
	config halves.yaml 2 "communication_data_type: bf16" "zero_stage: $stage"
	ok ".. in stage $stage" train 0 4 halves.yaml --out halves.$stage
	ok ".. with the same bits" same halves.0 halves.$stage
done
ok ".. which are not those of float32" eval '! cmp -s $(states halves.0) $(states full.0)'
packs=4
# Micro-batches, of which copies have different numbers.
config micro.yaml 2 "zero_stage: 3" "recompute: full"
history whole.full > one
ok "two copies take micro-batches in stage 3" train 0 4 micro.yaml --out micro
history micro > many
ok ".. with its losses" near one many 4
packs=2

# A run directory that only rank 0 has: it collects the states.
if unshare -m true 2> /dev/null; then
	mkdir -p mnt/0 mnt/1 mnt/2 mnt/3
	apart() { # WORDS..: four ranks train with folders of their own
		started 4 sh -c 'exec unshare -m sh -c "mount --bind mnt/$OMPI_COMM_WORLD_RANK mnt && exec \"\$0\" train --no-telemetry \"\$@\"" "$0" "$@"' "$assay" "$@" > out 2> err
	}
	config apart.yaml 2 "deterministic: true" "zero_stage: 2" "save_total_limit: 0"
	ok "ranks with folders of their own train" apart apart.yaml --out mnt/apart
	ok ".. rank 0 writes one file, with the same bits" eval '[ -s mnt/0/apart/checkpoint-4/optimizer.bin ] && same full.0 mnt/0/apart'
	cut_at mnt/0/apart 2
	ok ".. and gives each rank its range after a resume" eval 'apart --resume mnt/apart && says "resumes from mnt/apart/checkpoint-2\$" err && same full.0 mnt/0/apart'
	for stage in 0 3; do
		config apart.yaml 2 "deterministic: true" "zero_stage: $stage" "save_total_limit: 0" "offload: optimizer"
		ok "the same with states in host memory, stage $stage" apart apart.yaml --out mnt/host.$stage
		ok ".. with the same bits" same full.0 mnt/0/host.$stage
		cut_at mnt/0/host.$stage 2
		ok ".. also after a resume" eval 'apart --resume mnt/host.$stage && says "resumes from mnt/host.$stage/checkpoint-2\$" err && same full.0 mnt/0/host.$stage'
	done
else
	untested "ranks with folders of their own" "no mount namespaces here"
fi

# Plans.
expect 0 make-model --shape qwen2-7b --holes --out large
planned() { sed -n 's/^ *"'"$2"'": \([0-9.e+-]*\).*/\1/p' "plan.$1" | tail -n 1; }
plan() { # NAME SIZE GPUS LINES..
	into=plan.$1 size=$2 gpus=$3
	shift 3
	model=large packs=16 config plan.yaml "$size" "$@"
	sed -i 's/device: cpu/device: gpu/' plan.yaml
	"$assay" train plan.yaml --plan --gpus "$gpus" --link-rate 200e9 --json > "$into" 2> err
}
ok "a plan for two ranks that share a copy" plan two 2 2
for stage in 1 2 3; do
	ok ".. and for four such copies in stage $stage" plan mesh$stage 2 8 "zero_stage: $stage"
done
ok ".. and with gradients in BF16" plan halved 2 8 "zero_stage: 1" "communication_data_type: bf16"
ok ".. and in two shard groups" plan groups 2 8 "zero_stage: 3" "dp_shard_size: 2"
# times A B C: A is B times C, within a hundredth
times() { awk -v is="$1" -v by="$2" -v was="$3" 'BEGIN { exit !(is > was * by * 0.99 && is < was * by * 1.01) }'; }
ok "a rank has a quarter of the moments of its part" times "$(planned mesh1 optimizer)" 0.25 "$(planned two optimizer)"
length=$(planned two optimizer | awk '{ print $1 / 8 }') # numbers of a part: two moments in float32
ok ".. and of its master weights, beside the weights that GEMMs read" times "$(planned mesh1 trained)" 3 "$length"
ok ".. in stage 3 of both" times "$(planned mesh3 trained)" 1 "$length"
ok ".. in groups of two half of them" times "$(planned groups trained)" 2 "$length"
ok "a step with gradients in BF16 sends two bytes less of each number" times "$(planned halved communication_bytes)" 4 "$length"
ok "a step sends the gradient of a part, and its weights" times "$(planned mesh1 communication_bytes)" 6 "$length"
ok "activations are those of two ranks, a quarter of the micro-batches" times "$(planned mesh3 tensor_bytes)" 0.25 "$(planned two tensor_bytes)"
ok "with times" eval '[ -n "$(planned mesh3 communication_s)" ] && [ -n "$(planned mesh3 tensor_s)" ]'
ok "in words" eval '"$assay" train plan.yaml --plan --gpus 8 > out 2> err && says "zero_stage: 3, in 2 groups of 2 ranks" out && says "groups of 2 ranks that share a copy" out'

# What is refused, before weights are read.
refuses() { # WORDS YAML-LINES..
	words=$1
	shift
	config refused.yaml 2 "$@"
	train 64 4 refused.yaml --out refused
	[ $code = 64 ] && says "$words" err && [ ! -e refused/model ] && rm -rf refused
}
ok "groups that do not divide the copies are refused" refuses 'dp_shard_size: 4 ranks form a group, so it must be at least 2 and divide the number of copies of the model (ranks / tensor_parallel_size), which is 2' "zero_stage: 1" "dp_shard_size: 4"
ok "moments in 8 bits" refuses 'tensor_parallel_size: 2 is not supported with moments in 8 bits' "zero_stage: 2" "optim: adamw_8bit"
config alone.yaml 2 "zero_stage: 1"
ok "with one copy a stage has no effect, and that is said" eval 'train 0 2 alone.yaml --out alone && says "zero_stage: 1 has no effect on one copy of the model" err'
finish
