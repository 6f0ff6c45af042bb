#!/bin/sh
# The plan of a run on several GPUs, which needs none: bytes and time of its communication, NCCL's memory, and what is refused.
# usage: train_plan.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/train_bed.sh"
scratch
train_inputs
figure() { sed -n "s/.*\"$1\": *\([-0-9.e+]*\).*/\1/p" "${2:-out}" | head -n 1; }
is() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a > b * (1 - 1e-9) && a < b * (1 + 1e-9)) }'; } # FIGURE EXPECTED
plan() { expect 0 train "$@" --plan --json; }
train_config adapter.yaml gpu "max_steps: 4"
sed -i 's/global_batch_size: 4/global_batch_size: 16/' adapter.yaml
sed 's/^lora: .*//; $a\  full_finetuning: true\n  bucket_cap_mb: 0.1' adapter.yaml > full.yaml
sed '$a\  communication_data_type: bf16' full.yaml > halves.yaml

ok "a plan of one GPU" plan adapter.yaml --gpus 1
alone=$(figure memory_bytes)
ok ".. has no communication" eval '[ "$(figure communication_calls)" = 0.0 ] && ! says nccl out'
ok "a plan of 16 GPUs on two nodes" plan adapter.yaml --gpus 8 --nodes 2
ok ".. has one all-reduce of an adapter" [ "$(figure communication_calls)" = 1.0 ]
ok ".. of four bytes for each trained parameter" is "$(figure communication_bytes)" $((4 * $(figure trained)))
ok ".. and no time, because the links are not known" eval '! says communication_s out'
ok ".. counts NCCL, and a communicator" [ "$(figure nccl)" = $(((658 + 192) * 1024 * 1024)) ]
ok ".. in the memory of the GPU" [ "$(figure memory_bytes)" = $((alone + (658 + 192) * 1024 * 1024)) ]
# 2 (n - 1) / n of the bytes, over the slower of the links
at() { awk -v b="$(figure communication_bytes)" -v n="$1" -v rate="$2" 'BEGIN { printf "%.17g", 2 * (n - 1) / n * b / rate }'; }
ok "with rates" plan full.yaml --gpus 8 --nodes 2 --link-rate 350e9 --network-rate 50e9
ok ".. the network decides the time" is "$(figure communication_s)" "$(at 16 50e9)"
ok ".. full fine-tuning sends parts of the gradient" [ "$(figure communication_calls)" != 1.0 ]
bytes=$(figure communication_bytes)
time=$(figure communication_s)
ok "on one node" plan full.yaml --gpus 8 --link-rate 350e9
ok ".. the links between the GPUs do" is "$(figure communication_s)" "$(at 8 350e9)"
ok "gradients in BF16" plan halves.yaml --gpus 8 --nodes 2 --link-rate 350e9 --network-rate 50e9
ok ".. have half of the bytes" is "$(figure communication_bytes)" "$(awk -v b="$bytes" 'BEGIN { print b / 2 }')"
ok ".. and half of the time" is "$(figure communication_s)" "$(awk -v t="$time" 'BEGIN { printf "%.17g", t / 2 }')"
ok ".. and need 64 MiB more" [ "$(figure nccl)" = $(((658 + 192 + 64) * 1024 * 1024)) ]
ok "the text says so" expect 0 train halves.yaml --plan --gpus 8
ok ".. with the type" says 'in BF16; each rank sends' out
# A step of one micro-batch on one GPU: activations lie in the gradient's memory.
sed 's/global_batch_size: 16/global_batch_size: 4\n  per_device_train_batch_size: 4/' full.yaml > once.yaml
sed 's/global_batch_size: 4/global_batch_size: 8/' once.yaml > twice.yaml
ok "a step of two micro-batches" plan twice.yaml --gpus 1
ok ".. shares no memory" eval '! says shared_bytes out'
twice=$(figure arena_bytes)
ok "a step of one micro-batch" plan once.yaml --gpus 1
ok ".. does" eval '[ "$(figure shared_bytes)" -gt 0 ]'
ok ".. and needs less, by that" [ "$(figure arena_bytes)" = $((twice - $(figure shared_bytes))) ]
ok ".. unless two GPUs add their gradients" plan twice.yaml --gpus 2
ok ".. which share none" eval '! says shared_bytes out'
ok "the text has it too" expect 0 train once.yaml --plan --gpus 1
ok ".. and says where they are" says "shared .* activations that lie in the gradient's memory until it is written; not added" out
refused() { expect 64 train "$@" && says "$words" err; }
refuse() { # WORDS ARGS..
	words=$1
	shift
	ok "refused: $words" refused "$@"
}
refuse 'a step has 16 packs (training: global_batch_size), which 24 ranks' adapter.yaml --plan --gpus 8 --nodes 3
refuse 'nodes works only with --plan and --gpus' adapter.yaml --plan --nodes 2
refuse 'link-rate needs --plan --gpus' adapter.yaml --plan --link-rate 1e9
sed 's/device: gpu/device: cpu/' adapter.yaml > cpu.yaml
refuse 'gpus plans for GPUs, but training: device is cpu' cpu.yaml --plan --gpus 8
sed '$a\  communication_data_type: bf16' adapter.yaml > wrong.yaml
refuse 'ranks add the gradients of adapters in float32' wrong.yaml --plan --gpus 8
finish
