#!/bin/bash
# Training on GPU ranks that are not there, with the fake driver and the fake NCCL: losses beside one GPU, all GPUs of a node by the
# configuration, and what is refused. usage: train_ranks_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
. "$here/train_ranks.sh"
for kind in lora full; do
	full=$([ $kind = full ] && echo yes || echo no)
	config $kind.yaml
	ok "one GPU trains, $kind" expect 0 train $kind.yaml --out $kind.1 --json
	losses out > $kind.one # which later sections compare with too
	cp $kind.one one
	ranked 2 $kind.yaml --out $kind.2 --json
	ok "two GPUs train" codes '0 0'
	losses out > two
	ok ".. with its losses" near
	ok ".. and both are priced" eval 'expect 0 cost $kind.2 && says " x 2, window" out'
	ok ".. on a GPU each" eval 'says "8d:00.0" $kind.2/journal.jsonl && says "8e:00.0" $kind.2/nodes/*/rank-1/journal.jsonl'
done
# ZeRO.
for kind in full lora qlora; do
	full=$([ $kind = full ] && echo yes || echo no) four=$([ $kind = qlora ] && echo ', load_in_4bit: true')
	if [ $kind = qlora ]; then
		config zero.yaml
		ok "one GPU trains, $kind" expect 0 train zero.yaml --out zero.$kind --json
		losses out > $kind.one
	fi
	cp $kind.one one
	for stage in $([ $kind = full ] && echo 1 2 3 || echo 3); do
		config zero.yaml "zero_stage: $stage"
		ranked 2 zero.yaml --out zero.$kind.$stage --json
		ok "two GPUs train in stage $stage" codes '0 0'
		losses out > two
		ok ".. with its losses" near
		[ $kind = full ] && [ -n "$([ $stage = 2 ] && in_long 2 || echo $stage)" ] || continue
		config zero_host.yaml "zero_stage: $stage" "offload: optimizer"
		ranked 2 zero_host.yaml --out zero.host.$stage --json
		ok ".. and with states in host memory" codes '0 0'
		losses out > three
		ok ".. with the same losses, bit for bit" cmp two three
		ok ".. and the same model" cmp zero.full.$stage/model/model.safetensors zero.host.$stage/model/model.safetensors
	done
done
four=
# One micro-batch of each rank in a step, so activations lie in the gradient's memory.
full=yes
config lent.yaml "per_device_train_batch_size: 2"
expect 0 train lent.yaml --out lent.one --json
losses out > one
arena() { grep -o '"arena_bytes":[0-9][0-9.]*' "$1" | tail -n 1 | cut -d: -f2; }
as_planned() { awk -v is="$(arena "$1")" -v plan="$2" 'BEGIN { exit !(is > plan * 0.98 && is < plan * 1.02) }'; } # JOURNAL BYTES
for stage in 0 $(in_long 1) 2 3; do
	config lent.yaml "per_device_train_batch_size: 2" "zero_stage: $stage"
	ok "a plan for two GPUs in stage $stage shares memory" eval 'expect 0 train lent.yaml --plan --gpus 2 --json && says "\"shared_bytes\": [1-9]" out'
	planned=$(sed -n 's/^ *"arena_bytes": *\([0-9]*\).*/\1/p' out)
	ranked 2 lent.yaml --out lent.$stage --json
	losses out > two
	ok ".. they train" codes '0 0'
	ok ".. with the losses of one" near
	for journal in lent.$stage/journal.jsonl lent.$stage/nodes/*/rank-1/journal.jsonl; do ok ".. in the planned memory" as_planned "$journal" "$planned"; done
done
# Micro-batches of an evaluation and of training have sizes of their own, and padding stays within each.
for sizes in "2 1" "1 2"; do
	config lent_eval.yaml "per_device_train_batch_size: ${sizes% *}" "per_device_eval_batch_size: ${sizes#* }"
	sed -i "s/max_seq_length: .*}/max_seq_length: 48}/; s/global_batch_size: .*/global_batch_size: ${sizes% *}/" lent_eval.yaml
	ok "micro-batches of $sizes rows, trained and evaluated" expect 0 train lent_eval.yaml --out "lent_eval.${sizes% *}"
done
# Ranks share the states of a checkpoint in whatever format they are.
full=yes
config states.yaml "optim: adamw_8bit" "save_steps: 2" "deterministic: true"
ranked 2 states.yaml --out states --json
ok "two GPUs train with 8-bit moments" codes '0 0'
own[1]="FAKE_CUDA=devices=4,cuMemcpyDtoHAsync_v2=719@16"
ranked 2 states.yaml --out states_cut --json
own=()
ok ".. and fail behind a checkpoint" eval 'codes "2 2" && [ -d states_cut/checkpoint-2 ] && [ ! -d states_cut/checkpoint-4 ]'
grep 'error: ' err.0 > words
ok ".. with the rank whose GPU is lost" says 'rank 1: .*CUDA_ERROR_LAUNCH_FAILED (719,.* continues from the newest checkpoint, of step 2' words
ok ".. and no other rank's GPU" eval '! says "8D:00" words'
ranked 2 --resume states_cut --json
ok ".. and go on from there" eval 'codes "0 0" && says "resumes from .*states_cut/checkpoint-2" err'
same_shards() { # DIR DIR RANKS: each rank has written its own
	[ "$(find "$1/checkpoint-4" -name "optimizer-0000?-of-0000$3.bin" | wc -l)" = "$3" ] || return 1
	for shard in "$1"/checkpoint-4/optimizer-*.bin; do
		cmp "$shard" "$2/checkpoint-4/${shard##*/}" || return 1
	done
}
ok ".. to the same states, bit for bit" same_shards states states_cut 2
config divided.yaml "optim: adamw_8bit" "save_steps: 2" "deterministic: true" "zero_stage: 3"
ranked 2 divided.yaml --out divided --json
ok "two GPUs train with them in stage 3" codes '0 0'
own[0]="FAKE_CUDA=cuMemcpyDtoHAsync_v2=719@20"
ranked 2 divided.yaml --out divided_cut --json
own=()
ok ".. and fail behind a checkpoint" eval 'codes "2 2" && [ -d divided_cut/checkpoint-2 ] && [ ! -d divided_cut/checkpoint-4 ]'
ok ".. with the rank whose GPU is lost" says 'error: .*rank 0: .*CUDA_ERROR_LAUNCH_FAILED (719,' err.0
ranked 2 --resume divided_cut --json
ok ".. and go on from there" eval 'codes "0 0" && says "resumes from .*divided_cut/checkpoint-2" err'
ok ".. to the same states, bit for bit" same_shards divided divided_cut 2
for stage in 1 $(in_long 2) 3; do
	config hybrid.yaml "zero_stage: $stage" "dp_shard_size: 2"
	ranked 4 hybrid.yaml --out hybrid.$stage --json
	ok "two groups of two GPUs train in stage $stage" codes '0 0 0 0'
	losses out > two
	cp full.one one
	ok ".. with the losses of one GPU" near
done
config halves.yaml "master_weights: split"
ranked 2 halves.yaml --out halves
ok "gradients that ranks cannot add are refused" eval 'codes "64 64" && says "master_weights: split has gradients in BF16, but 2 ranks" err'
# Gradients that travel in BF16: rounded from float32, or as they are.
config rounded.yaml "communication_data_type: bf16"
ranked 2 rounded.yaml --out rounded --json
ok "gradients travel in BF16" codes '0 0'
losses out > two
cp full.one one
ok ".. with losses within 1e-3" near
ok ".. that are not those of float32" eval '! cmp -s one two'
config as_they_are.yaml "communication_data_type: bf16" "master_weights: split" "optim: adamw_bf16"
ranked 2 as_they_are.yaml --out as_they_are --json
ok "so do gradients that are BF16 already" codes '0 0'
losses out > two
ok ".. with losses within 1e-3" near
for stage in 1 $(in_long 2) 3; do
	config rounded.yaml "communication_data_type: bf16" "zero_stage: $stage"
	ranked 2 rounded.yaml --out rounded.$stage --json
	ok "ranks that divide send gradients in BF16, stage $stage" codes '0 0'
	losses out > two
	ok ".. with losses within 1e-3" near
	for host in none optimizer; do
		config split.yaml "communication_data_type: bf16" "zero_stage: $stage" "master_weights: split" "optim: adamw_bf16" "offload: $host"
		ranked 2 split.yaml --out split.$stage.$host --json
		ok ".. and with weights in two halves, offload: $host" codes '0 0'
		losses out > two
		ok ".. with losses within 1e-3" near
	done
	ok ".. and the same model with offload" cmp split.$stage.none/model/model.safetensors split.$stage.optimizer/model/model.safetensors
done
full=no
ranked 4 full.yaml --out full.4 --json
losses out > two
ok "four GPUs train" codes '0 0 0 0'
ok ".. with the losses of one" near
ok "collectives of parts of the gradient are counted" says '"comm_s":' out
# Waits within a pass of ZeRO-3, in collectives that begin when the pass waits for them and take 300 times as long. The fake device has one clock
# for all streams.
waits_within() { # FILE: they are communication and no part of the passes. All three are times of the fake device.
	grep '"type":"step"' "$1" | awk '
		function field(name) { return match($0, "\"" name "\":[-0-9.e+]*") ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : -1 }
		{ n++ }
		field("comm_s") < 2 * (field("forward_s") + field("backward_s")) || field("forward_s") <= 0 { bad = 1 }
		END { exit bad || !n }'
}
full=yes
config late.yaml "zero_stage: 3"
for r in 0 1; do own[$r]="FAKE_CUDA=devices=4,late=1 FAKE_NCCL=slow=0:300"; done
ranked 2 late.yaml --out late --json
own=()
ok "two GPUs in stage 3 wait for slow collectives within a pass" codes '0 0'
ok ".. which is communication and no part of the pass" waits_within out
# A kernel of one GPU that never ends, while the hosts enqueue the collectives behind it.
config stuck.yaml "save_strategy: no"
for odd in 0 1; do
	own=([$odd]="FAKE_CUDA=devices=4,stick=train_rmsnorm_bwd@7")
	ranked 2 stuck.yaml --out stuck.$odd --silence 12s
	ok "a kernel of rank $odd never ends" codes '2 2'
	ok ".. and it is named" says "error: rank $odd on .* (GPU .*) never entered collective [0-9]* (all-reduce of the gradient, .* bytes, on the communication stream); rank $((1 - odd)) waited for it for .* s; its last kernel has not ended for .* s" err
done
# A driver that cannot write words: the hosts have enqueued the same, so the records name nobody.
for r in 0 1; do own[$r]="FAKE_CUDA=devices=4,cuStreamWriteValue32_v2=801"; done
own[1]="FAKE_CUDA=devices=4,stick=train_rmsnorm_bwd@7,cuStreamWriteValue32_v2=801"
ranked 2 stuck.yaml --out blind --silence 12s
own=()
ok "without a device that writes nobody is named" eval 'codes "2 2" && says "error: training hangs: all ranks have enqueued collective .* (all-reduce of the gradient, .*, and this driver does not tell which GPU has not reached it" err'
full=no
# As torchrun starts ranks, with its variables and its words. The ranks keep their secret in the home folder.
by_torchrun() {
	HOME=$tmp ASSAY_TEAM_SECRET='' XDG_RUNTIME_DIR='' timeout 120 "$here/torchrun.sh" --nproc-per-node 2 --no-python "$assay" train "$@" > out 2> err
}
config lora4.yaml "seed: 42"
ok "torchrun: two GPUs train" by_torchrun lora4.yaml --out torchrun --json
losses out > two
cp lora.one one
ok ".. with the losses of one" near
ok ".. as ranks" says '"ranks":2' torchrun/journal.jsonl
config node.yaml "gpus: 2"
ok "a plain train uses the GPUs that the configuration names" expect 0 train node.yaml --out node
ok ".. as ranks" says '"ranks":2' node/journal.jsonl
config many.yaml "gpus: 8"
ok "more than there are is refused" expect 64 train many.yaml --out many
ok ".. with both numbers" says 'training: gpus: 8: this process may use 4 GPUs of this machine' err
own[1]="CUDA_VISIBLE_DEVICES="
ranked 2 lora.yaml --out mixed
own=()
other_gpu() { # the same four GPUs, but the second one is of another type
	awk '/8E:00.0/ { sub(/NVIDIA H100 80GB HBM3/, "NVIDIA H200") } { print }' "$FAKE_NVML_FILE" > other.json
	grep -q 'NVIDIA H200' other.json
}
ok "a rank without a GPU is refused" eval '[ "$(cat code.0)" != 0 ] && [ "$(cat code.1)" != 0 ]'
ok ".. and named" says 'rank 1 on .*GPU' err.0
ok "four GPUs of two types" other_gpu
own[1]="FAKE_NVML_FILE=$tmp/other.json"
ranked 2 lora.yaml --out types
own=()
ok ".. are refused" codes '64 64'
ok ".. with both names" says 'rank 1 on .*its GPU is not of the type of rank 0.s: NVIDIA H200 here, NVIDIA H100 80GB HBM3 there' err.0
ok ".. before a folder is made" [ ! -e types ]
for r in 0 1; do own[$r]="FAKE_NCCL=none"; done
own[1]="ASSAY_LIB_NCCL=/none/libnccl.so.2"
ranked 2 lora.yaml --out lacking
own=()
ok "a rank without NCCL is named" says 'rank 1.*libnccl' err.0
ok ".. and no rank hangs" eval '[ "$(cat code.0)" = 2 ] && [ "$(cat code.1)" = 2 ]'
finish
