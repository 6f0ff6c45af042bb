#!/bin/sh
# Offload by the real binary, on the CPU and on the fake driver: the same files as without it, also after a kill; plans; what
# is refused. usage: train_offload.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for i in $(seq 24); do
	echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask station '"$i"'"}]}'
done > rows.jsonl
head -n 3 rows.jsonl > held.jsonl
# config NAME DEVICE LINES..: lines are added to its training
config() {
	name=$1 device=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 128}
training:
  full_finetuning: true
  learning_rate: 1e-3
  gradient_accumulation_steps: 2
  max_steps: 8
  save_steps: 2
  save_total_limit: 0
  tensorboard: false
  device: $device
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
moved="recompute: offload, offload: optimizer, bucket_cap_mb: 0.05"
same() { # DIR DIR: their last checkpoints and models
	cmp "$1/checkpoint-8/optimizer.bin" "$2/checkpoint-8/optimizer.bin" && cmp "$1/model/model.safetensors" "$2/model/model.safetensors"
}
killed() { # CONFIG DIR: a run that is killed after its third step
	rm -f said
	mkfifo said
	"$assay" train "$1" --out "$2" --no-telemetry > out 2> said &
	pid=$!
	exec 3< said
	while read -r line <&3; do
		case $line in *step\ 3/8*) break ;; esac
	done
	kill -KILL "$pid"
	cat <&3 > /dev/null
	exec 3<&-
	wait "$pid"
}

config cpu.yaml cpu "recompute: full"
config cpu_moved.yaml cpu "recompute: offload" "offload: optimizer" "bucket_cap_mb: 0.05"
ok "the CPU trains" expect 0 train cpu.yaml --out cpu --no-telemetry
ok "and with offload" expect 0 train cpu_moved.yaml --out cpu_moved --no-telemetry
ok "which costs memory there, as is told" eval 'says "recompute: offload saves memory only on a GPU" err && says "offload: optimizer saves memory only on a GPU" err'
ok "its files are the same" same cpu cpu_moved
killed cpu_moved.yaml cpu_killed 2> /dev/null
ok "one that is killed goes on" expect 0 train --resume cpu_killed --no-telemetry
ok "to the same files" same cpu cpu_killed
printf 'model: {name_or_path: model}\nlora: {r: 4}\ndata: {train: rows.jsonl}\ntraining: {device: cpu, offload: optimizer}\n' > lora.yaml
ok "an adapter's states are not offloaded" expect 64 train lora.yaml --out lora
ok "which is said at its place" says 'lora.yaml:4: training: offload: the optimizer states of adapters are small' err
if ! "$assay" list kernels | grep -q train_rows; then
	finish
	exit
fi
config gpu.yaml gpu "deterministic: true" "recompute: full" "optim: adamw_8bit"
config gpu_moved.yaml gpu "deterministic: true" "recompute: offload" "optim: adamw_8bit" "offload: optimizer" "bucket_cap_mb: 0.05"
config early.yaml gpu "deterministic: true" "recompute: full" "max_grad_norm: 0" "master_weights: split"
config early_moved.yaml gpu "deterministic: true" "recompute: full" "max_grad_norm: 0" "master_weights: split" "offload: optimizer" "bucket_cap_mb: 0.05"
ok "a plan has what is offloaded" expect 0 train gpu_moved.yaml --plan
ok "as host memory" eval 'sed -n "/^memory on the host/,\$p" out | grep -q "^  offloaded "'
ok "and its JSON" eval '"$assay" train gpu_moved.yaml --plan --json 2> err | grep -q "\"offloaded\": [1-9]"'
ok "the GPU trains" expect 0 train gpu.yaml --out gpu --no-telemetry
ok "and with offload" expect 0 train gpu_moved.yaml --out gpu_moved --no-telemetry
ok "its files are the same" same gpu gpu_moved
ok "layer by layer" eval 'expect 0 train early.yaml --out early --no-telemetry && expect 0 train early_moved.yaml --out early_moved --no-telemetry'
ok "they are the same" same early early_moved
killed gpu_moved.yaml gpu_killed 2> /dev/null
ok "one that is killed goes on" expect 0 train --resume gpu_killed --no-telemetry
ok "to the same files" same gpu gpu_killed
FAKE_CUDA=cuMemHostRegister_v2=2 expect 2 train gpu_moved.yaml --out pinless --no-telemetry
ok "memory that cannot be pinned is told, with what to change" says 'cannot pin .* of host memory.*recompute: full, offload: none' err
finish
