#!/bin/bash
# Training in low precision on two GPU ranks that are not there: FP8, 4-bit base models, 8-bit optimizer states and weights without masters
# have the losses of one GPU in each zero_stage.
# usage: train_ranks_low.sh ASSAY FAKES ROOT [every]: every stage of the reference's table, and not only the first and the last ones
every=${4:-}
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
. "$here/train_ranks.sh"
# beside_one NAME STAGES LINES..: one GPU trains, and two GPUs have its losses in each stage
beside_one() {
	local run=$1 stages=$2 stage
	shift 2
	config "$run.yaml" "$@"
	ok "one GPU trains: $run" expect 0 train "$run.yaml" --out "$run.one" --json
	losses out > one
	for stage in $stages; do
		config "$run.yaml" "$@" "zero_stage: $stage"
		ranked 2 "$run.yaml" --out "$run.$stage" --json
		ok "two GPUs train with zero_stage: $stage" codes '0 0'
		losses out > two
		ok ".. with its losses" near
	done
}
stages() { [ "$every" = every ] && echo "$2" || echo "$1"; }
full=no
beside_one fp8-lora "$(stages '0 2' '0 1 2')" "precision: fp8"
ok ".. which are not those of BF16" eval 'config bf16.yaml && expect 0 train bf16.yaml --out bf16 --json && losses out > two && ! cmp -s one two'
four=', load_in_4bit: true'
beside_one four-bit "$(stages '0 3' '0 1 2 3')" "recompute: offload"
beside_one four-bit-fp8 '0' "precision: fp8"
four= full=yes
beside_one fp8-full "$(stages '0 2' '0 1 2')" "precision: fp8"
beside_one no-masters '1' "master_weights: none" "communication_data_type: bf16" "optim: adamw_8bit"
beside_one moments-on-the-host '2' "optim: adamw_8bit" "offload: optimizer"
finish
