#!/bin/sh
# Training in each low precision and each format of optimizer states, on the CPU and on the fake driver: a run that is killed behind a
# checkpoint goes on to the bits of a run that nobody killed, and no run goes on in another mode. usage: train_modes.sh ASSAY FAKES ROOT
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
steps=10
# config NAME DEVICE MODEL TRAINS SETTINGS: TRAINS is lora or full
config() {
	case $4 in lora) trains='lora: {r: 4, alpha: 8}' whole=false ;; full) trains= whole=true ;; esac
	cat > "$1.yaml" << CONFIG
model: {name_or_path: model, chat_template: chatml$3}
$trains
data: {train: rows.jsonl, max_seq_length: 48}
training: {device: $2, full_finetuning: $whole, deterministic: true, learning_rate: 1e-3, max_steps: $steps, save_steps: 2, save_total_limit: 2, tensorboard: false, tune: false$5}
CONFIG
}
# killed NAME: a run that is killed behind its first checkpoint. It begins anew if it ended sooner, which a slow poll can miss.
killed() {
	for attempt in 1 2 3 4 5 6; do
		rm -rf "$1.killed"
		"$assay" train "$1.yaml" --out "$1.killed" --no-telemetry --no-cache > out 2> err &
		pid=$!
		while [ ! -e "$1.killed/checkpoint-2/checkpoint.json" ] && kill -0 "$pid" 2> /dev/null; do sleep 0.02; done
		kill -KILL "$pid" 2> /dev/null
		wait "$pid" 2> /dev/null
		[ $? != 137 ] || return 0
	done
	return 1
}
same() { # NAME: the states and what was trained
	cmp "$1/checkpoint-$steps/optimizer.bin" "$1.killed/checkpoint-$steps/optimizer.bin" || return 1
	if [ -d "$1/adapter" ]; then set -- "$1" adapter/adapter_model.safetensors; else set -- "$1" model/model.safetensors; fi
	cmp "$1/$2" "$1.killed/$2"
}
goes_on() { # NAME DEVICE MODEL TRAINS SETTINGS
	config "$@"
	ok "$1 trains" expect 0 train "$1.yaml" --out "$1" --no-telemetry --no-cache
	killed "$1" 2> /dev/null
	ok ".. is killed" [ $? = 0 ]
	ok ".. and goes on" expect 0 train --resume "$1.killed" --no-telemetry --no-cache
	ok ".. to the same bits" same "$1"
}
four=', load_in_4bit: true'
goes_on cpu-fp8-all cpu '' full ', precision: fp8'
goes_on cpu-fp8-some cpu '' full ', precision: fp8, fp8_layers: [1]'
goes_on cpu-nf4-fp8 cpu "$four" lora ', precision: fp8'
goes_on cpu-fp4 cpu "$four, bnb_4bit_quant_type: fp4, bnb_4bit_use_double_quant: false" lora ', recompute: offload'
goes_on cpu-8bit cpu '' full ', optim: adamw_8bit'
goes_on cpu-bf16-states cpu '' full ', optim: adamw_bf16'
goes_on cpu-all-at-once cpu '' full ', precision: fp8, optim: adamw_8bit, recompute: offload, offload: optimizer, bucket_cap_mb: 0.05'

# A run directory's mode is its own: each of these changes the numbers.
other() { # NAME SECTION SETTING FROM TO [WORDS]
	sed -i "s/^\( *\)$3: $4\$/\1$3: $5/" "$1.killed/config.yaml"
	ok "$1 does not go on with $3: $5" expect 64 train --resume "$1.killed"
	ok ".. by name" says "${6:-$1.killed: it was begun with another configuration: $2: $3 was $4 and is $5; start a new run}" err
}
other cpu-8bit training optim adamw_8bit adamw_bf16
other cpu-nf4-fp8 model load_in_4bit true false
other cpu-fp4 model bnb_4bit_quant_type fp4 nf4
other cpu-fp8-some training precision fp8 fp32 'training: bf16: it contradicts precision'
other cpu-all-at-once training fp8_layers '\[\]' '\["1"\]' 'training: fp8_layers was \[\] and is \["1"\];'
sed -i 's/^ *learning_rate: .*/  learning_rate: 1/; s/^ *weight_decay: .*/  weight_decay: 1/; s/^ *seed: .*/  seed: 1/' cpu-bf16-states.killed/config.yaml
ok "of several changes three are named" eval 'expect 64 train --resume cpu-bf16-states.killed && says "learning_rate was 0.001 and is 1, training: weight_decay was 0 and is 1, training: seed was 42 and is 1;" err'
sed -i 's/"settings"/"set"/' cpu-bf16-states.killed/journal.jsonl
ok "a run of an earlier version does not name them" eval 'expect 64 train --resume cpu-bf16-states.killed && says "another configuration; start a new run" err'

if ! "$assay" list kernels | grep -q train_rows_f32; then
	finish
	exit
fi
goes_on gpu-fp8 gpu '' lora ', precision: fp8'
goes_on gpu-fp8-8bit-split gpu '' full ', precision: fp8, optim: adamw_8bit, master_weights: split'
goes_on gpu-nf4 gpu "$four" lora ''
goes_on gpu-bf16 gpu '' lora ''
goes_on gpu-fp4 gpu "$four, bnb_4bit_quant_type: fp4" lora ''
goes_on gpu-nf4-fp8 gpu "$four" lora ', precision: fp8, recompute: offload'
goes_on gpu-8bit-none gpu '' full ', optim: adamw_8bit, master_weights: none'
goes_on gpu-bf16-split gpu '' full ', optim: adamw_bf16, master_weights: split, offload: optimizer, bucket_cap_mb: 0.05'
goes_on gpu-tf32 gpu '' lora ', precision: tf32'
goes_on gpu-fp32 gpu '' full ', precision: fp32, optim: adamw_8bit'
other gpu-8bit-none training master_weights none split
finish
