#!/bin/sh
# Training in FP8 on a CPU, beside float32: a hundred steps, the same bits again, a run that is killed and goes on, and what
# is refused. usage: train_fp8.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too

# Calls of functions: short, so that a hundred steps take seconds.
rows() {
	for i in $(seq "$2" "$3"); do
		echo '{"messages":[{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask(station='"$i"')"}]}'
	done > "$1"
}
# config NAME PRECISION LINES..
config() {
	name=$1 precision=$2
	shift 2
	cat > "$name" << CONFIG
model: {name_or_path: ${model:-model}, chat_template: qwen2.5}
${lora-lora: {r: 8, alpha: 16\}}
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 144}
training:
  device: ${device:-cpu}
  precision: $precision
  max_steps: ${steps:-100}
  learning_rate: ${rate:-3e-3}
  per_device_train_batch_size: 2
CONFIG
	for line; do echo "  $line" >> "$name"; done
}
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "$2" | head -n 1; }
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; if (d < 0) d = -d; exit !(a != "" && b != "" && a > 0 && d <= 0.01 * b) }'; }

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
rows rows.jsonl 1 24
rows held.jsonl 101 106

config f32.yaml fp32
config fp8.yaml fp8 "save_steps: 40"
ok "float32 trains" expect 0 train f32.yaml --out f32 --no-telemetry
ok "FP8 trains" expect 0 train fp8.yaml --out fp8 --no-telemetry
ok "no scale overflowed" says '^fp8_overflows  *0 ' out
"$assay" report f32 --format json > f32.json
"$assay" report fp8 --format json > fp8.json
ok "its held-out loss is within 1 % of float32's" near "$(figure eval_loss fp8.json)" "$(figure eval_loss f32.json)"
ok "and is not the same" [ "$(figure eval_loss fp8.json)" != "$(figure eval_loss f32.json)" ]
ok "the setting is kept" says '^ *precision: fp8$' fp8/config.yaml
ok "the same again" expect 0 train fp8.yaml --out again --no-telemetry
ok "has the same bits" cmp fp8/adapter/adapter_model.safetensors again/adapter/adapter_model.safetensors

# Killed behind the checkpoint of step 40, and gone on with.
"$assay" train fp8.yaml --out killed --no-telemetry > out 2> err &
pid=$!
while [ ! -e killed/checkpoint-40/checkpoint.json ] && kill -0 "$pid" 2> /dev/null; do sleep 0.05; done
kill -9 "$pid"
wait "$pid" 2> /dev/null
ok "one that is killed goes on" expect 0 train --resume killed --no-telemetry
ok "and has the same bits" cmp fp8/adapter/adapter_model.safetensors killed/adapter/adapter_model.safetensors
sed -i 's/^ *precision: fp8$/  precision: fp32/' killed/config.yaml
ok "it cannot go on in another precision" expect 64 train --resume killed
ok "which is said" says 'killed/config.yaml' err

steps=4 config some.yaml fp8 "fp8_layers: [1]"
ok "some layers alone" expect 0 train some.yaml --out some --no-telemetry
ok "their setting is kept" says '^ *fp8_layers: \[.*1.*\]' some/config.yaml
steps=4 config gone.yaml fp8 "fp8_layers: [1-2]"
ok "layers that the model lacks are refused" expect 64 train gone.yaml --out gone
ok "by name" says 'gone.yaml:.*: training: fp8_layers: the model has no layer 2; its layers are 0 to 1' err
rate=1e-3 lora= config full32.yaml fp32 "full_finetuning: true"
rate=1e-3 lora= config full.yaml fp8 "full_finetuning: true"
ok "all parameters, in float32" expect 0 train full32.yaml --out full32 --no-telemetry
ok "and in FP8" expect 0 train full.yaml --out full --no-telemetry
ok "give a model" [ -s full/model/model.safetensors ]
"$assay" report full32 --format json > full32.json
"$assay" report full --format json > full.json
ok "its held-out loss too is within 1 % of float32's" near "$(figure eval_loss full.json)" "$(figure eval_loss full32.json)"
ok "and is not the same either" [ "$(figure eval_loss full.json)" != "$(figure eval_loss full32.json)" ]

# Near the largest number of BF16, the weights of a norm make numbers that F32 cannot hold.
cp -r model large
head=$(od -An -tu8 -N8 large/model.safetensors | tr -d ' ')
norm=$(head -c $((8 + head)) large/model.safetensors |
	sed -n 's/.*"model.layers.1.post_attention_layernorm.weight":{[^}]*"data_offsets":\[\([0-9]*\),.*/\1/p')
printf '\177\177\177\177\177\177\177\177' | dd of=large/model.safetensors bs=1 seek=$((8 + head + norm)) conv=notrunc 2> /dev/null
steps=4 model=large config large.yaml fp8
ok "a run that overflows ends" expect 1 train large.yaml --out overflows --no-telemetry
ok "its finding names the layer" says 'fp8_saturates: step 1: [1-9][0-9]* scales of FP8 are not finite, .* layer 1, inputs of gate and up' err
"$assay" report overflows --format json > overflows.json
ok "and its report counts the scales" eval 'says "\"fp8_overflows\": [1-9]" overflows.json'

steps=4 model="model, load_in_4bit: true" config four.yaml fp8 "recompute: full"
ok "a base model in 4 bits" expect 0 train four.yaml --out four --no-telemetry
ok "keeps both settings" eval "says '^ *precision: fp8$' four/config.yaml && says 'load_in_4bit: true' four/config.yaml"
ok "is planned too" expect 0 train four.yaml --plan
ok "with memory of slots" says '^ *slots ' out
steps=4 model="model, load_in_4bit: true" config mixed.yaml fp8 "fp8_layers: [1]"
ok "and some of its layers alone" expect 0 train mixed.yaml --out mixed --no-telemetry

device=auto steps=4 config auto.yaml fp8
ok "without a GPU it is not computed on a CPU unasked" expect 2 train auto.yaml --out auto
ok "and the setting that does is named" says 'precision: fp8 needs a GPU of sm_90 (Hopper); device: cpu gives the same numbers' err
finish
