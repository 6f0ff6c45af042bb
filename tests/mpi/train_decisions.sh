#!/bin/bash
# What ranks decide together, on CPU ranks under mpirun: they stop early after the same step as one rank and export the same best adapter, and
# a number of one rank's gradient that is not finite ends all of them after the same step, with the last checkpoint.
# usage: train_decisions.sh ASSAY MODULE FAKE
. "$(dirname "$0")/training.sh"
rows 12 20
head -n 4 rows.jsonl > held.jsonl
# config NAME LINES..: lines are added to its training
config() {
	file=$1
	shift
	cat > "$file" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
$([ "${full:-no}" = yes ] || echo "lora: {r: 4, alpha: 64}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 128}
training:
  device: cpu
  per_device_train_batch_size: 1
  global_batch_size: 4
  max_steps: 40
  lr_scheduler_type: constant
  tune: false
$([ "${full:-no}" = no ] || printf '  full_finetuning: true\n')
CONFIG
	for line; do echo "  $line" >> "$file"; done
}

# A rate far too high: the held-out loss rises.
config early.yaml "deterministic: true" "learning_rate: 0.3" "eval_steps: 2" "early_stopping_patience: 2" "load_best_model_at_end: true"
for ranks in 1 4; do
	ok "$ranks of them stop early" train 0 $ranks early.yaml --out early.$ranks
	ok ".. because the held-out loss rises" says 'stops early: the held-out loss did not improve in 2 evaluations' err
	sed -n 's/.*the best was at step \([0-9]*\).*/\1/p' err > best.$ranks
done
step_of() { sed -n 's/checkpoint-//p' "$1/latest"; }
# journals DIR: of all ranks
journals() { find "$1/journal.jsonl" "$1/nodes" -name journal.jsonl; }
last_steps() { # DIR: of each rank's journal, in one line
	journals "$1" | while read -r one; do
		sed -n 's/.*"signals":{"step":{[^}]*"v":\[\([0-9]*\)\]}.*/\1/p' "$one" | tail -n 1
	done | tr '\n' ' '
}
times() { for _ in $(seq "$1"); do printf '%s ' "$2"; done; }
ok "four after the step of one" [ "$(step_of early.1)" = "$(step_of early.4)" ]
ok ".. before the last one" [ "$(step_of early.4)" -lt 40 ]
ok ".. in the journals of all ranks" [ "$(last_steps early.4)" = "$(times 4 "$(step_of early.1)")" ]
best=$(cat best.1)
ok ".. with the same best step" [ -n "$best" -a "$best" = "$(cat best.4)" ]
ok ".. which is not the last" [ "$best" -lt "$(step_of early.4)" ]
ok ".. whose adapter is exported" cmp early.4/adapter/adapter_model.safetensors "early.4/checkpoint-$best/adapter_model.safetensors"
ok ".. with the bits of one rank" cmp early.4/adapter/adapter_model.safetensors early.1/adapter/adapter_model.safetensors

# A number that is not finite, in one rank's part of the gradient of step 3, after a checkpoint of step 2.
not_finite() { # DIR RANK RANKS LINES..
	dir=$1 odd=$2 ranks=$3
	shift 3
	config $dir.yaml "learning_rate: 1e-3" "save_steps: 2" "$@"
	ASSAY_TEST=1 ASSAY_TEST_PLANT=nan:$odd@3 train 1 $ranks $dir.yaml --out $dir --json
}
ended() { # DIR RANKS: each rank found it in step 3, and began no other
	[ "$(last_steps "$1")" = "$(times "$2" 3)" ] &&
		[ "$(journals "$1" | xargs grep -l 'not_finite: step 3: the gradient' | wc -l)" = "$2" ]
}
stands() { # DIR: the checkpoint of step 2
	[ "$(cat "$1/latest")" = checkpoint-2 ] && [ ! -e "$1/checkpoint-3" ] && [ -z "$(find "$1" -name '*.damaged')" ]
}
planted() { # WORDS DIR RANK RANKS LINES..
	words=$1
	shift
	ok "NaN in the gradient of one rank ends all, $words" not_finite "$@"
	ok ".. with the finding" says 'the gradient is not a finite number' err
	ok ".. each after the same step" ended "$1" "$3"
	ok ".. and the checkpoint before it stands" stands "$1"
}
planted LoRA nan 2 4
full=yes planted "zero_stage: 3" nan_zero 3 4 "zero_stage: 3"
planted "two copies of tensor_parallel_size: 2" nan_tensor 1 4 "tensor_parallel_size: 2"
finish
