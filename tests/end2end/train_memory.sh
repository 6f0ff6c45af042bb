#!/bin/sh
# The memory of a training run: planned, found a micro-batch for, taken as planned, and refused where there is too little.
# usage: train_memory.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch

# config NAME LENGTH LINES..: rows that are longer than LENGTH and cut there, so that each fills its pack
config() {
	name=$1 length=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
lora: {r: 4, alpha: 8}
data: {train: rows.jsonl, max_seq_length: $length, long_rows: truncate}
training:
  device: cpu
  learning_rate: 1e-3
  tensorboard: false
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | head -n 1; }
between() { awk -v x="$1" -v low="$2" -v high="$3" 'BEGIN { exit !(x != "" && low != "" && high != "" && x + 0 >= low + 0 && x + 0 <= high + 0) }'; }

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
long=$(printf '%0400d' 0)
for i in $(seq 128); do
	echo '{"messages":[{"role":"user","content":"'"$i"'"},{"role":"assistant","content":"'"$long"'"}]}'
done > rows.jsonl

# Two halves of a step are planned; one micro-batch of all 128 rows fits any machine, and is found.
config full.yaml 256 "max_steps: 1" "per_device_train_batch_size: 64" "gradient_accumulation_steps: 2" "auto_find_batch_size: true"
ok "a micro-batch is found" expect 0 train full.yaml --out full --no-telemetry
ok "and told" says 'auto_find_batch_size: per_device_train_batch_size: 128, gradient_accumulation_steps: 1; ' err
ok "what is planned is told before the first step" says ' steps; [0-9.]* MB of memory planned' err
ok "what was found is what is kept" says 'per_device_train_batch_size: 128' full/config.yaml
ok "the recomputation too" says 'recompute: none' full/config.yaml
ok "and nothing to be found again" says 'auto_find_batch_size: false' full/config.yaml
"$assay" train full/config.yaml --plan --json > plan.json
"$assay" report full --format json > report.json
as_planned() { between "$(figure "$1" report.json)" "$(figure "$2" plan.json)" "$(figure "$2" plan.json)"; }
ok "the report has the plan's bytes" as_planned memory_planned_bytes memory_bytes
ok "a full micro-batch uses the arena to its last byte" as_planned arena_bytes arena_bytes
# as_much WHAT REPORT: the process's highest memory is what was planned for it
as_much() {
	if objdump -T "$assay" 2> /dev/null | grep -q __asan_init; then
		n=$((n + 1))
		echo "ok $n - $1 # SKIP a sanitizer keeps memory of its own"
	else
		ok "$1" between "$(figure memory_planned_share "$2")" 0.98 1.02
	fi
}
as_much "the process takes what was planned, within 2 %" report.json
ok "a plan knows what there is" says '"available_bytes"' plan.json
ok "and that it fits" says '"fits": true' plan.json

# 250 MB: what is timed before the first step stands in the memory of the passes, so that no other is taken for it. Threads and the
# allocator take up to 2 MB more or less under load, which is less than 1 % of it.
config small.yaml 256 "max_steps: 1" "per_device_train_batch_size: 64"
ok "a smaller micro-batch is trained" expect 0 train small.yaml --out small --no-telemetry
"$assay" report small --format json > small.json
as_much "and takes what was planned for it too" small.json

# Full fine-tuning with one micro-batch a step. Activations use the gradient's memory.
config whole.yaml 256 "max_steps: 2" "per_device_train_batch_size: 64" "full_finetuning: true"
sed -i '/^lora/d' whole.yaml
ok "everything is trained" expect 0 train whole.yaml --out whole --no-telemetry
"$assay" report whole --format json > report.json
"$assay" train whole/config.yaml --plan --json > plan.json
ok "activations share memory with the gradient" eval '[ "$(figure shared_bytes plan.json)" -gt 0 ]'
ok "the arena is as planned" as_planned arena_bytes arena_bytes
as_much "and the process" report.json

# 15 TB: more than this machine has.
config large.yaml 16384 "max_steps: 1" "per_device_train_batch_size: 65536"
ok "too little memory is said before anything is taken" expect 2 train large.yaml --out large
ok "with the largest rows of the plan" says 'the plan needs .* of memory, but only .* are available: saved 12.5 TB, scratch ' err
ok "and what to turn, with what it gives" says '; change one of these settings: training: per_device_train_batch_size: [0-9]*, gradient_accumulation_steps: [0-9]* ([0-9.]* [kMG]B)' err
ok "it leaves nothing" [ ! -e large ]
ok "a plan of it is a plan" expect 0 train large.yaml --plan
ok "which says so" says '^  available .* too little; settings to change:$' out
ok "and the settings" says ' training: per_device_train_batch_size: ' out
config found.yaml 16384 "max_steps: 1" "per_device_train_batch_size: 65536" "auto_find_batch_size: true"
ok "the micro-batch that fits is planned" expect 0 train found.yaml --plan
ok "and there is enough" sh -c '! grep -q "too little" out'
finish
