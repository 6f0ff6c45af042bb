#!/bin/sh
# What a new user writes first: options of other tools, dashes where words are options, a model where a configuration belongs.
# usage: first_words.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
# said 'PATTERN' WORDS..: wrong usage, and stderr has the pattern
said() {
	pattern=$1
	shift
	expect 64 "$@" && grep -qE -- "$pattern" err
}
mkdir smollm2 run
: > weights.safetensors
: > target=gpu0

# A configuration is a YAML file.
ok "a model's folder is no configuration" said 'smollm2/ is a model, not a configuration: give a YAML file, for example examples/train.yaml' train smollm2/
ok "and the setting for it is named" says 'model: {name_or_path: smollm2/}' err
ok "nor are weights" said 'give a YAML file' train weights.safetensors
ok "a folder where a file belongs is called one" said 'smollm2/: it is a folder, not a file' check ./smollm2/

# Names that other tools have.
ok "generate --max-tokens" said 'did you mean "--tokens"' generate M --max-tokens 5
ok "generate --max_new_tokens" said 'did you mean "--tokens"' generate M --max_new_tokens=5
ok "generate --lora" said 'did you mean "--adapter"' generate M --lora D
ok "check --gpus" said 'did you mean "--target"' check --gpus 0
ok "check --device" said 'did you mean "--target"' check --device 0
ok "probe --gpu" said 'did you mean "--target"' probe gemm --gpu 0
ok "check --dry-run" said 'did you mean "--plan"' check --dry-run
ok "check --output" said 'did you mean "--out"' check --output x
ok "check --duration" said 'did you mean "--seconds"' check --duration 5
ok "train --output_dir" said 'did you mean "--out"' train c.yaml --output_dir x
ok "launch --nproc_per_node" said 'did you mean "--ranks-per-node"' launch --nproc_per_node 4
ok "launch --nnodes" said 'did you mean "--nodes"' launch --nnodes 4
ok "top --delay" said 'did you mean "--interval"' top --delay 1
ok "rows --test-size" said 'did you mean "--share"' rows f --test-size 0.1
ok "profile --output" said 'did you mean "--out"' profile --output x -- true
ok "a slip is still told by its letters" said 'did you mean "--target"' check --targt cpu
ok "a name that nothing knows has no guess" said 'unknown option "--frobnicate"$' check --frobnicate

# Dashes where words are options, and the reverse.
ok "probe --type" said 'did you mean type=bf16' probe gemm --type bf16
ok "probe --type=" said 'did you mean type=bf16' probe gemm --type=bf16
ok "probe -type" said 'did you mean type=bf16' probe gemm -type bf16
ok "an option before the probe" said 'did you mean m=2048' probe --m 2048 gemm
ok "launched as well" said 'did you mean type=bf16' launch --print -- probe gemm --type bf16
ok "probe target=" said 'did you mean --target cpu' probe gemm target=cpu
ok "check target=" said 'did you mean --target cpu' check target=cpu
ok "check gpus=" said 'did you mean --target 0' check gpus=0
ok "generate tokens=" said 'did you mean --tokens 5' generate M tokens=5
ok "one dash" said 'did you mean --tokens' generate M -tokens 5
ok "one dash and a value" said 'did you mean --format json' report run -format=json
ok "a file of such a name is a file" said 'there is no suite|no run|cannot|is a file' report target=gpu0
ok "a sentence is a sentence" sh -c '"$1" tokens smollm2 "tokens=5 is what I want" > out 2> err; ! grep -q "two dashes" err' sh "$assay"

# The program to run comes after --.
ok "profile without --" said 'write -- before the program to run: -- python3 -c' profile python3 -c 'pass'
ok "a long option as well" said 'write -- before the program to run: -- torchrun --nproc' profile torchrun --nproc 2
ok "and without options" said 'unexpected word "python3"; write -- before the program to run' profile python3
ok "an option of ours is still ours" said 'did you mean "--out"' profile --outt x -- true

finish
