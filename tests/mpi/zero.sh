#!/bin/bash
# ZeRO on CPU ranks under mpirun: each stage has the bits of one rank, a checkpoint goes on in another stage, and each rank needs the memory
# of the plan.
# usage: zero.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
rows 14 40
head -n 5 rows.jsonl > held.jsonl
# config NAME LINES..: lines are added to its training; 14 rows make steps of 4 packs, with 2 in the last of an epoch
config() {
	yaml=$1
	shift
	cat > "$yaml" << CONFIG
model: {name_or_path: ${model:-model}, chat_template: qwen2.5${four:-}}
$([ "${full:-yes}" = yes ] || echo "lora: {r: 4, alpha: 8, dropout: 0.1}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 160, packing: false}
training:
  device: cpu
  learning_rate: 1e-2
  global_batch_size: ${packs:-4}
  max_steps: ${steps:-6}
  eval_steps: 3
  save_steps: 3
$([ "${full:-yes}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$yaml"; done
}
arena() { grep -o '"arena_bytes":[0-9][0-9.]*' "$1" | tail -n 1 | cut -d: -f2; }
last() { echo "$1/checkpoint-${steps:-6}"; } # the checkpoint of the last step
same() { cmp <(states "$(last "$1")") <(states "$(last "$2")") && cmp "$(result "$1")" "$(result "$2")"; }
cut_at() { # DIR STEP: as if the run had been killed there
	for one in "$1"/checkpoint-*; do
		[ "${one##*-}" -le "$2" ] || rm -rf "$one"
	done
	rm -rf "$1/model" "$1/adapter"
	sed -i '/"type":"end"/d; /"type":"close"/d' "$1/journal.jsonl"
}
shards() { find "$1" -name "optimizer-0000?-of-0000$2.bin" | wc -l; } # FOLDER RANKS
# One rank goes on from the last step, so it writes that checkpoint again, as one file of states of any format.
same_read() { # ONE SEVERAL
	[ "$(shards "$(last "$2")" 4)" = 4 ] && cmp "$(result "$1")" "$(result "$2")" && cut_at "$2" ${steps:-6} && train 0 1 --resume "$2" &&
		cmp "$(last "$1")/optimizer.bin" "$(last "$2")/optimizer.bin" && cmp "$(result "$1")" "$(result "$2")"
}
held() { sed -n 's/.*"eval_loss": \([-0-9.e+]*\),*/\1/p' "$1/checkpoint-6/trainer_state.json"; }

stages="1 2 3"
highest=${stages##* }
for stage in $stages; do
	config bits.$stage.yaml "deterministic: true" "zero_stage: $stage" "max_grad_norm: 0.5"
done
config bits.yaml "deterministic: true" "max_grad_norm: 0.5"
ok "one rank trains" train 0 1 bits.yaml --out bits
for stage in $stages; do
	for ranks in 4 $([ "$stage" = "$highest" ] && echo 2 || in_long 2); do
		ok "stage $stage on $ranks ranks" train 0 $ranks bits.$stage.yaml --out bits.$stage.$ranks
		ok ".. has the bits of one rank" same bits bits.$stage.$ranks
		ok ".. and each rank writes a shard" eval '[ "$(shards bits.$stage.$ranks/checkpoint-6 $ranks)" = $ranks ] && [ ! -e bits.$stage.$ranks/checkpoint-6/optimizer.bin ]'
		ok ".. and its held-out losses" [ "$(held bits)" = "$(held bits.$stage.$ranks)" ]
	done
done

# Formats of the moments, whose blocks no border cuts; adapters. The fourth step is the first epoch's last one.
steps=4
for kind in 8bit bf16 lora qlora; do
	full=$([ $kind = lora ] || [ $kind = qlora ] && echo no || echo yes)
	four=$([ $kind = qlora ] && echo ', load_in_4bit: true')
	config $kind.yaml "deterministic: true" "zero_stage: $highest" "$([ $full = no ] || echo "optim: adamw_$kind")"
	ok "one rank trains, $kind" train 0 1 $kind.yaml --out $kind.1
	ok "four ranks train, $kind" train 0 4 $kind.yaml --out $kind.4
	[ $kind != lora ] || cp -r $kind.4 $kind.kept
	ok ".. with its bits, as one rank reads them from the shards" same_read $kind.1 $kind.4
done
# less_weights KIND: each of four ranks has fewer bytes than one rank
less_weights() { [ "$(arena $1.kept/nodes/*/rank-1/journal.jsonl | cut -d. -f1)" -lt "$(arena $1.1/journal.jsonl | cut -d. -f1)" ]; }
ok "a base model that is divided takes less memory" less_weights lora
full=yes four= steps=

# FP8: ranks have the losses of one rank.
for kind in yes no; do
	full=$kind steps=3
	config fp8.$kind.yaml "precision: fp8"
	ok "one rank trains in FP8, all weights: $kind" train 0 1 fp8.$kind.yaml --out fp8.$kind.1 --json
	losses out > fp8.losses
	for stage in $([ $kind = yes ] && echo 0 2 || echo 1); do
		config fp8.$kind.yaml "precision: fp8" "zero_stage: $stage"
		ok "two ranks train in FP8, stage $stage" train 0 2 fp8.$kind.yaml --out fp8.$kind.2.$stage --json
		losses out > fp8.losses.2
		ok ".. with its losses" near fp8.losses fp8.losses.2 3
	done
	config fp8.$kind.yaml
	ok ".. which are not those of F32" eval 'train 0 1 fp8.$kind.yaml --out f32.$kind --json && losses out > f32.losses && ! cmp -s fp8.losses f32.losses'
done
full=yes steps=

# Inputs of layers in host memory. The last two layers move nothing, so the model has five: three are copies of its second one, whose files
# have a tensor each.
deepen() {
	expect 0 make-model --shape tiny --seed 3 --shard 1kB --out deep
	index=deep/model.safetensors.index.json
	grep '"model\.layers\.1\.' $index > second
	for layer in 2 3 4; do
		sed "s/layers\.1\./layers.$layer./; s/-of-/-of$layer/; s/ *\$//; s/,*\$/,/" second
		while IFS='"' read -r _ _ _ file _; do
			LC_ALL=C sed "s/layers\.1\./layers.$layer./" "deep/$file" > "deep/${file/-of-/-of$layer}"
		done < second
	done > more
	sed -i -e '/"weight_map"/r more' $index
	sed -i 's/"num_hidden_layers": *2/"num_hidden_layers": 5/' deep/config.json
}
offloaded() { "$assay" train "$1" --plan --json 2> err | grep -q '"offloaded": [1-9]'; }
ok "a model of five layers" deepen
model=deep steps=4
for full in yes no; do
	for level in full offload; do
		config deep.$full.$level.yaml "deterministic: true" "zero_stage: $highest" "recompute: $level"
	done
	ok "one rank trains, recompute: full, all weights: $full" train 0 1 deep.$full.full.yaml --out deep.$full.1
	ok "four ranks with recompute: offload have its bits" eval \
		'train 0 4 deep.$full.offload.yaml --out deep.$full.4 && same deep.$full.1 deep.$full.4'
	ok ".. and they move inputs of layers" offloaded deep.$full.offload.yaml
done
full=yes model=model steps=

# Two groups of two ranks: each group divides, and the groups hold copies.
for stage in 1 $(in_long 2) 3; do
	config hybrid.$stage.yaml "deterministic: true" "zero_stage: $stage" "dp_shard_size: 2" "max_grad_norm: 0.5"
	ok "two groups of two ranks, stage $stage" train 0 4 hybrid.$stage.yaml --out hybrid.$stage
	ok ".. have the bits of one rank" same_read bits hybrid.$stage
done
steps=4
for kind in lora qlora; do
	full=no four=$([ $kind = qlora ] && echo ', load_in_4bit: true')
	config hybrid.$kind.yaml "deterministic: true" "zero_stage: $highest" "dp_shard_size: 2"
	ok "so do adapters, $kind" eval 'train 0 4 hybrid.$kind.yaml --out hybrid.$kind && same_read $kind.1 hybrid.$kind'
done
full=yes four= steps=
# Several micro-batches on each rank, whose gradients are divided one after the other. The norm shows the length of the gradient.
norms() { sed -n 's/.*"type":"step".*"grad_norm":\([0-9.e+-]*\),.*/\1/p' "$1"; }
packs=8 steps=3
config several.yaml
ok "one rank trains with eight micro-batches" train 0 1 several.yaml --out several --json
norms out > several.norms
for stage in 1 $(in_long 2) 3; do
	config several.$stage.yaml "zero_stage: $stage" "dp_shard_size: 2"
	ok "two groups of two ranks with two micro-batches each, stage $stage" train 0 4 several.$stage.yaml --out several.$stage --json
	norms out > several.$stage.norms
	ok ".. have the norms of the gradient of one rank" near several.norms several.$stage.norms 3
done
packs= steps=4
config hybrid.8bit.yaml "deterministic: true" "zero_stage: $highest" "dp_shard_size: 2" "optim: adamw_8bit" "offload: optimizer"
ok "so do 8-bit moments in host memory" eval 'train 0 4 hybrid.8bit.yaml --out hybrid.8bit && same_read 8bit.1 hybrid.8bit'

# Gradients that travel in BF16: each stage has the bits that ranks have which divide nothing, because one micro-batch is summed at once.
for stage in 0 $(in_long 1) 2 3; do
	config halved.$stage.yaml "zero_stage: $stage" "communication_data_type: bf16" "max_grad_norm: 0"
	ok "four ranks send gradients in BF16, stage $stage" train 0 4 halved.$stage.yaml --out halved.$stage --json
	losses out > halved.$stage.losses
	ok ".. with the losses of ranks that divide nothing" cmp halved.0.losses halved.$stage.losses
	ok ".. and their model" cmp halved.0/model/model.safetensors halved.$stage/model/model.safetensors
done
config whole.yaml "max_grad_norm: 0"
ok "in F32 the losses differ" eval 'train 0 4 whole.yaml --out whole --json && losses out > whole.losses && ! cmp -s whole.losses halved.0.losses'
apart() { paste whole.losses "halved.$highest.losses" | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > 1e-3 * $1) bad = 1 } END { exit bad || NR != 4 }'; }
ok ".. by less than 1e-3" apart
steps=

# Optimizer states in host memory: each rank has its range there. A run goes on with them, and without them.
for stage in $(in_long 1) 2 3; do
	config host.$stage.yaml "deterministic: true" "zero_stage: $stage" "max_grad_norm: 0.5" "offload: optimizer"
	ok "four ranks with offload: optimizer have the bits of one, stage $stage" eval 'train 0 4 host.$stage.yaml --out host.$stage && same bits host.$stage'
done
config host.0.yaml "deterministic: true" "max_grad_norm: 0.5" "offload: optimizer"
ok "so do ranks that divide nothing" eval 'train 0 4 host.0.yaml --out host.0 && same bits host.0'
cut_at host.3 3
sed -i 's/offload: optimizer/offload: none/; s/zero_stage: 3/zero_stage: 2/' host.3/config.yaml
ok "two go on without offload" eval 'train 0 2 --resume host.3 && says "resumes from host.3/checkpoint-3$" err && same bits host.3'
cut_at host.2 3
ok "and four go on with it" eval 'train 0 4 --resume host.2 && says "resumes from host.2/checkpoint-3$" err && same bits host.2'
steps=4
config host.8bit.yaml "deterministic: true" "zero_stage: $highest" "optim: adamw_8bit" "offload: optimizer"
ok "so do 8-bit moments" eval 'train 0 4 host.8bit.yaml --out host.8bit && same_read 8bit.1 host.8bit'
steps=

# A run that goes on with another number of ranks, and in other stages: what came later is removed, as if the run had been killed there.
config steps.yaml "deterministic: true" "save_total_limit: 0" "max_grad_norm: 0.5" "zero_stage: $highest"
sed -i 's/save_steps: 3/save_steps: 1/' steps.yaml
goes_on() { # RANKS STEP STAGE
	cut_at chain "$2" && sed -i "s/zero_stage: ./zero_stage: $3/" chain/config.yaml && train 0 "$1" --resume chain && says "resumes from chain/checkpoint-$2\$" err
}
ok "one rank begins" train 0 1 steps.yaml --out chain
ok "four ranks go on in stage 3" goes_on 4 1 3
ok "two go on in stage 1" goes_on 2 2 1
ok "four go on without a stage" goes_on 4 3 0
ok "two go on in stage 2" goes_on 2 4 2
sed -i "s/dp_shard_size: ./dp_shard_size: 2/" chain/config.yaml
ok "two groups of two end it in stage 3" goes_on 4 5 3
# ranks of groups write their ranges in another order than that of the files, so one rank reads them
ok "with the bits of a run without interruption" same_read bits chain

# The memory of the plan. Each rank has two micro-batches, and in the last step of an epoch some have one.
packs=8 steps=3
for stage in 0 $(in_long 2 3) 1; do
	config memory.$stage.yaml "zero_stage: $stage"
	ok "four ranks train in any order of sums, stage $stage" train 0 4 memory.$stage.yaml --out memory.$stage --json
	losses out > losses.$stage
	ok ".. with equal losses" near losses.0 losses.$stage 3
done
trained=$(grep -o '"trained":[0-9]*' out | cut -d: -f2)
# less STAGE BYTES: per parameter; by how much the memory of each rank is below its memory in stage 0, within a twentieth
less() {
	for one in "memory.$1/journal.jsonl" memory."$1"/nodes/*/rank-*/journal.jsonl; do
		awk -v was="$(arena "memory.0/${one#memory.?/}")" -v is="$(arena "$one")" -v want="$2" -v n="$trained" \
			'BEGIN { less = (was - is) / n; exit !(less > want * 0.95 && less < want * 1.05) }' || return 1
	done
}
ok "stage 1 keeps a quarter of 8 bytes per parameter on each rank" less 1 6
packs=4 steps=
expect 0 make-model --shape qwen2-0.5b --holes --out large
model=large
# planned STAGE PART: bytes on each of 16 GPUs
planned() { sed -n 's/^ *"'"$2"'": \([0-9]*\).*/\1/p' "plan.$1"; }
for stage in 0 1 2 3; do
	config plan.yaml "zero_stage: $stage"
	sed -i 's/device: cpu/device: gpu/; s/global_batch_size: 4/global_batch_size: 16/' plan.yaml
	ok "a plan for 16 GPUs, stage $stage" eval '"$assay" train plan.yaml --plan --gpus 8 --nodes 2 --json > plan.$stage 2> err'
done
for stage in 1 3; do
	config plan.yaml "zero_stage: $stage" "dp_shard_size: 8"
	sed -i 's/device: cpu/device: gpu/; s/global_batch_size: 4/global_batch_size: 16/' plan.yaml
	ok "the same in a group on each node, stage $stage" eval '"$assay" train plan.yaml --plan --gpus 8 --nodes 2 --link-rate 400e9 --network-rate 50e9 --json > plan.node$stage 2> err'
	sed -i 's/dp_shard_size: 8/dp_shard_size: 0/' plan.yaml
	ok ".. and in one group over both" eval '"$assay" train plan.yaml --plan --gpus 8 --nodes 2 --link-rate 400e9 --network-rate 50e9 --json > plan.all$stage 2> err'
done
for stage in 1 3; do
	config plan.yaml "zero_stage: $stage" "offload: optimizer"
	sed -i 's/device: cpu/device: gpu/; s/global_batch_size: 4/global_batch_size: 16/' plan.yaml
	ok "the same with states in host memory, stage $stage" eval '"$assay" train plan.yaml --plan --gpus 8 --nodes 2 --json > plan.host$stage 2> err'
done
model=model
length=$(planned 0 trained | head -n 1)
# about PART STAGE BYTES-PER-PARAMETER BYTES: within a hundredth
about() {
	awk -v is="$(planned "$2" "$1" | tail -n 1)" -v n="$length" -v per="$3" -v more="$4" \
		'BEGIN { want = n * per + more; exit !(is > want * 0.99 && is < want * 1.01) }'
}
# a layer of this shape has 14,912,384 parameters, and what is outside of them 136,135,552
buffers=$((2 * 14912384 + 136135552))
ok "stage 1: moments and master weights" eval 'about optimizer 1 0.5 0 && about trained 1 2.25 0'
ok "stage 1: the whole gradient" about gradient 1 4 0
ok "stage 2: gradient of a range, and the buffers of two layers and the ends" about gradient 2 0.25 $((4 * buffers))
ok "stage 3: weights of a range" eval 'about trained 3 0.25 0 && about slots 3 0 $((2 * buffers))'
ok "offload, stage 1: master weights and moments of a range are on the host, BF16 weights on the GPU" eval 'about offloaded host1 0.75 0 && about trained host1 2 0'
ok "offload, stage 3: BF16 weights of a range are on the GPU" eval 'about offloaded host3 0.75 0 && about trained host3 0.125 0'
ok "a group on each node: an eighth of the states" eval 'about optimizer node1 1 0 && about trained node3 0.5 0'
seconds() { sed -n 's/^ *"communication_s": \([0-9.e-]*\).*/\1/p' "plan.$1"; }
ok ".. and less time in collectives than over both nodes" awk -v a="$(seconds node3)" -v b="$(seconds all3)" 'BEGIN { exit !(a > 0 && a < b * 0.8) }'
refuses() { # WORDS YAML-LINES..: before weights are read
	words=$1
	shift
	config refused.yaml "$@"
	train 64 2 refused.yaml --out refused
	[ $code = 64 ] && says "$words" err && [ ! -e refused ]
}
ok "a stage that does not exist is refused" refuses 'zero_stage: .*4' "zero_stage: 4"
ok "FP8 is refused in stage 3" eval 'expect 64 make-model --shape tiny-64 --out eights || true; refuses "zero_stage: 3 divides the weights, and precision: fp8" "zero_stage: 3" "precision: fp8"'
ok "groups that do not divide the ranks are refused" refuses 'dp_shard_size: 3 ranks form a group, so it must be at least 2 and divide the number of ranks, which is 2' "zero_stage: 1" "dp_shard_size: 3"
ok "groups that divide nothing are refused" refuses 'dp_shard_size: 2 needs a zero_stage' "dp_shard_size: 2"
ok "on one rank a stage has no effect, and that is said" eval 'train 0 1 bits.1.yaml --out alone && says "zero_stage: 1 has no effect on one rank" err'
finish
