#!/bin/bash
# Training ranks under mpirun in a build with AddressSanitizer or ThreadSanitizer: several steps with buckets, evaluations and checkpoints, a
# planted mismatch and a lost rank. No sanitizer may report anything. MPI itself is not instrumented: TSan ignores its modules, and leaks
# are not looked for. usage: train_sanitized.sh ASSAY MODULE FAKE
. "$(dirname "$0")/mpirun.sh"
only_open_mpi
assay=$program
export CUDA_VISIBLE_DEVICES=
grep -qa '__tsan_init\|__asan_init' "$assay" || { echo "1..0 # SKIP this build has no sanitizer"; exit 0; }
# Reports go to files: the words of workers are read by their supervisors.
TSAN_OPTIONS=${TSAN_OPTIONS:+$TSAN_OPTIONS:}ignore_noninstrumented_modules=1:log_path=$tmp/report:second_deadlock_stack=1
ASAN_OPTIONS=$ASAN_OPTIONS:log_path=$tmp/report
UBSAN_OPTIONS=${UBSAN_OPTIONS:+$UBSAN_OPTIONS:}log_path=$tmp/report:print_stacktrace=1
export TSAN_OPTIONS ASAN_OPTIONS UBSAN_OPTIONS

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for i in $(seq 12); do echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask '"$i"'"}]}'; done > rows.jsonl
head -n 2 rows.jsonl > held.jsonl
config() { # NAME LINES..
	cat > "$1" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 128}
training:
  device: cpu
  learning_rate: 1e-3
  per_device_train_batch_size: 1
  global_batch_size: 4
  max_steps: 4
  eval_steps: 2
  save_steps: 2
CONFIG
	name=$1
	shift
	for line; do echo "  $line" >> "$name"; done
}
config full.yaml "full_finetuning: true" "bucket_cap_mb: 0.1"
config bits.yaml "full_finetuning: true" "deterministic: true"
config divided.yaml "full_finetuning: true" "bucket_cap_mb: 0.1" "zero_stage: 3"
config shared.yaml "full_finetuning: true" "bucket_cap_mb: 0.1" "tensor_parallel_size: 2" "zero_stage: 2" "offload: optimizer" "communication_data_type: bf16"
ranked() { # PLANT CONFIG WORDS..: as many ranks as $ranks, 2
	plant=$1
	shift
	(
		[ -z "$plant" ] || export ASSAY_TEST=1 ASSAY_TEST_PLANT="$plant"
		"$assay" launch --how mpirun --ranks-per-node ${ranks:-2} -- train "$@" --silence 120s --no-telemetry > out 2> err
	)
}
silent() { # no report of a sanitizer
	for one in report.*; do
		[ -e "$one" ] || continue
		sed 's/^/# /' "$one" | head -n 60
		return 1
	done
}
ok "two ranks train with buckets" ranked "" full.yaml --out full
ok ".. without a report" silent
rm -f report.*
ok "two ranks train deterministically" ranked "" bits.yaml --out bits
ok ".. and go on from a checkpoint" eval 'rm -rf bits/checkpoint-4 && sed -i "/\"type\":\"end\"/d; /\"type\":\"close\"/d" bits/journal.jsonl && ranked "" --resume bits'
ok ".. without a report" silent
rm -f report.*
ok "two ranks divide weights, gradient and states" ranked "" divided.yaml --out divided
ok "two copies of two ranks divide them, with states in host memory" eval 'ranks=4; ranked "" shared.yaml --out shared; code=$?; ranks=2; [ $code = 0 ]'
ok ".. without a report" silent
rm -f report.*
ok "a planted mismatch ends them" eval '! ranked size:1 full.yaml --out size'
ok ".. and is named" says 'rank 1 .*asks for another collective' err
ok ".. without a report" silent
rm -f report.*
ok "a lost rank ends them" eval '! ranked lost:1 full.yaml --out lost'
ok ".. and is named" says 'rank 1 on .*signal 9' err
ok ".. without a report" silent
finish
