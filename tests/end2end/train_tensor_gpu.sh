#!/bin/bash
# Tensor parallel on GPU ranks that are not there, with the fake driver and the fake NCCL: losses beside one GPU, a mesh of copies, and a run
# that goes on with another number of ranks that share a model. usage: train_tensor_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
. "$here/train_ranks.sh"
patience=300
# The same matrices as 12 heads of 16 columns, which four ranks can divide.
sed -i 's/"num_attention_heads": 6/"num_attention_heads": 12/; s/"num_key_value_heads": 2/"num_key_value_heads": 4/; s/"head_dim": 32/"head_dim": 16/' \
	model/config.json
config() { # NAME SIZE LINES..: SIZE ranks share a model; lines are added to its training
	yaml=$1 size=$2
	shift 2
	cat > "$yaml" << CONFIG
model: {name_or_path: model, chat_template: chatml}
$([ "${full:-no}" = yes ] || echo "lora: {r: 8, alpha: 16, dropout: ${dropout:-0}}")
data: {train: rows.jsonl, eval: held.jsonl, max_seq_length: 48}
training:
  device: gpu
  tune: false
  learning_rate: 1e-3
  global_batch_size: 2
  max_steps: 4
  eval_steps: 2
  save_steps: 2
  tensor_parallel_size: $size
$([ "${full:-no}" = no ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n')
CONFIG
	for line; do echo "  $line" >> "$yaml"; done
}
history() { tr ',{' '\n\n' < "$1" | sed -n 's/^ *"loss": *\([-0-9.e+]*\).*/\1/p' | head -n 4; }
near() { paste one two | awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > '"${1:-1e-3}"' * $1) bad = 1 } END { exit bad || NR != 4 }'; }
# lora: fused with its base layers; apart: separate GEMMs with dropout.
for kind in lora apart full; do
	full=$([ $kind = full ] && echo yes || echo no) dropout=$([ $kind = apart ] && echo 0.1 || echo 0)
	config $kind.yaml 1
	ok "one GPU trains, $kind" expect 0 train $kind.yaml --out $kind.1 --json
	losses out > one
	config $kind.2.yaml 2
	ranked 2 $kind.2.yaml --out $kind.2 --json
	ok "two GPUs share a model" codes '0 0'
	losses out > two
	ok ".. with its losses" near
done
# Collectives that begin when the pass waits for them: the fake device has one clock for all streams.
full=no
config late.yaml 2
for r in 0 1; do own[$r]="FAKE_CUDA=devices=4,late=1,pace=1"; done # the device keeps to the clock of the host, which times the step
ranked 2 late.yaml --out late --json
own=()
ok "two GPUs wait for collectives within a pass" codes '0 0'
ok ".. which is communication and no part of the pass" waits out
# Memory of a device: 560 MiB of context and kernels, and NCCL as measured on two H200 (results/2026-11-29-h200-x2/ranks): 0.89 GB with one
# communicator, 1.09 GB with two.
planned() { # RUN: its memory is within 2 % of the plan
	"$assay" report "$1" --format json | sed -n 's/.*"memory_planned_share": *\([-0-9.e+]*\).*/\1/p' | head -n 1 > share
	awk '{ exit !($1 > 0.98 && $1 < 1.02) } END { exit !NR }' share || { cat share; return 1; }
}
full=no
for size in 1 2; do
	config memory.yaml $size
	for r in 0 1; do own[$r]="FAKE_CUDA=devices=4,context=560 FAKE_NCCL=base=690,each=201"; done
	ranked 2 memory.yaml --out memory.$size
	own=()
	ok "two GPUs with $size communicator(s)" codes '0 0'
	ok ".. take the planned memory within 2 %" planned memory.$size
done
for kind in lora full; do
	full=$([ $kind = full ] && echo yes || echo no) dropout=0
	config $kind.32.1.yaml 1 "precision: fp32"
	ok "one GPU trains in float32, $kind" expect 0 train $kind.32.1.yaml --out $kind.32.1 --json
	losses out > one
	config $kind.32.4.yaml 4 "precision: fp32"
	ranked 4 $kind.32.4.yaml --out $kind.32.4 --json
	ok "four GPUs share a model" codes '0 0 0 0'
	losses out > two
	ok ".. with its losses" near 1e-5
	config $kind.mesh.yaml 2 "precision: fp32" "recompute: full"
	ranked 4 $kind.mesh.yaml --out $kind.mesh --json
	ok "two copies of two GPUs each" codes '0 0 0 0'
	losses out > two
	ok ".. with its losses" near 1e-5
done
# Meshes of tensor x shard: two copies of two GPUs each divide what the stage says.
for kind in full lora; do
	full=$([ $kind = full ] && echo yes || echo no)
	history $kind.32.1/checkpoint-4/trainer_state.json > one
	for stage in $([ $kind = full ] && echo 1 $(in_long 2) 3 || echo 3); do
		config $kind.zero.yaml 2 "precision: fp32" "zero_stage: $stage"
		ranked 4 $kind.zero.yaml --out $kind.zero.$stage --json
		ok "two copies of two GPUs each in stage $stage, $kind" codes '0 0 0 0'
		losses out > two
		ok ".. with the losses of one GPU" near 1e-5
	done
done
full=yes
# States in host memory: the bits of the same mesh with states on the GPUs.
same_run() { cmp one two && cmp "$1/model/model.safetensors" "$2/model/model.safetensors"; }
for stage in 0 $(in_long 1 2) 3; do
	for host in none optimizer; do
		config host.yaml 2 "zero_stage: $stage" "offload: $host" "recompute: cheap"
		ranked 4 host.yaml --out host.$stage.$host --json
		ok "two copies of two GPUs each, stage $stage, offload: $host" codes '0 0 0 0'
		losses out > $([ $host = none ] && echo one || echo two)
	done
	ok ".. have the same bits" same_run host.$stage.none host.$stage.optimizer
	history full.32.1/checkpoint-4/trainer_state.json > one
	ok ".. and losses near those of one GPU in float32" near 1e-2
done
cp -r host.0.optimizer host.cut
rm -rf host.cut/checkpoint-4 host.cut/model
sed -i '/"type":"end"/d; /"type":"close"/d' host.cut/journal.jsonl
ranked 4 --resume host.cut --json
ok ".. also after a resume" eval 'codes "0 0 0 0" && says "resumes from .*host.cut/checkpoint-2" err && cmp host.0.none/model/model.safetensors host.cut/model/model.safetensors'
# Gradients that the copies send in BF16.
history full.32.1/checkpoint-4/trainer_state.json > one
for stage in 0 2; do
	config halves.yaml 2 "precision: fp32" "zero_stage: $stage" "communication_data_type: bf16"
	ranked 4 halves.yaml --out halves.$stage --json
	ok "two copies of two GPUs send gradients in BF16, stage $stage" codes '0 0 0 0'
	losses out > two
	ok ".. with losses near those of one GPU" near 1e-3
	ok ".. that are not those of float32" eval '! near 1e-7'
done
# A run goes on with another number of GPUs that share a model.
full=yes
cp -r full.32.1 chain
rm -rf chain/checkpoint-4 chain/model
sed -i '/"type":"end"/d; /"type":"close"/d' chain/journal.jsonl
sed -i 's/tensor_parallel_size: .*/tensor_parallel_size: 2/' chain/config.yaml
ranked 2 --resume chain --json
ok "two GPUs go on with the run of one" eval 'codes "0 0" && says "resumes from .*chain/checkpoint-2" err'
history full.32.1/checkpoint-4/trainer_state.json > one
history chain/checkpoint-4/trainer_state.json > two
ok ".. with its losses" near 1e-5
# Every rank writes its shard of its parts, and another mesh goes on from them.
cp -r full.zero.3 shards
rm -rf shards/checkpoint-4 shards/model
sed -i '/"type":"end"/d; /"type":"close"/d' shards/journal.jsonl
sed -i 's/tensor_parallel_size: .*/tensor_parallel_size: 1/; s/zero_stage: .*/zero_stage: 2/' shards/config.yaml
ok "each GPU's rank has written a shard" [ "$(find shards/checkpoint-2 -name 'optimizer-0000?-of-00004.bin' | wc -l)" = 4 ]
ranked 2 --resume shards --json
ok "two GPUs that share nothing go on" eval 'codes "0 0" && says "resumes from .*shards/checkpoint-2" err'
history shards/checkpoint-4/trainer_state.json > two
ok ".. with the losses of one" near 1e-5
finish
