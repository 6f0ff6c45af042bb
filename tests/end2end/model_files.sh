#!/bin/sh
# assay make-model and merge: files of models made, broken and refused. usage: model_files.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too

expect 0 make-model --out m
ok "a model is a folder with all that is needed" eval '[ "$(cd m && echo *)" = "config.json generation_config.json model.safetensors tokenizer.json tokenizer_config.json" ]'
ok "and says what it is" says "m: tiny, 253024 parameters, random numbers" out
"$assay" make-model --out again > /dev/null
"$assay" make-model --out other --seed 2 > /dev/null
ok "the same seed gives the same file" cmp m/model.safetensors again/model.safetensors
ok "another seed another one" eval '! cmp -s m/model.safetensors other/model.safetensors'
ok "a folder that holds something is left alone" expect 64 make-model --out m
ok "which is said" says "m exists and is not empty" err
ok "a shape that is none is refused" expect 64 make-model --shape qwen2-8b --out x
ok "with the nearest" says 'did you mean "qwen2-7b"' err
ok "a model needs a place" expect 64 make-model
small() (ulimit -f 100 && expect 2 "$@")
ok "a disk that is full ends it" small make-model --out full
ok "by the name of what was to be written, and leaves nothing" eval 'says "cannot write full/model.safetensors: " err && ! ls -d full* 2> /dev/null'
ok "a merge too" small merge m --out full
ok "likewise" eval 'says "cannot write full/model.safetensors: " err && ! ls -d full* 2> /dev/null'
gone=$(sh -c 'echo $$') here=$(cut -c1-13 /proc/sys/kernel/random/boot_id)-$(readlink /proc/self/ns/pid | tr -dc 0-9)
mkdir "late.$gone.$here.new" "late.$$.$here.new" "later.$gone.$here.new" "late.$gone.00000000-0000-1.new" "late.$gone.new"
ok "what a killed process left is swept" eval 'expect 0 make-model --out late && [ ! -e "late.$gone.$here.new" ]'
ok "what is another's stays" eval '[ -e "late.$$.$here.new" ] && [ -e "later.$gone.$here.new" ]'
ok "also another node's or container's, whose number nobody has here" [ -e "late.$gone.00000000-0000-1.new" ]
ok "and a folder that is called like that by chance" [ -e "late.$gone.new" ]

# Two containers, a PID namespace each, on one disk: one writes a model while the other begins the same one.
apart="unshare --pid --fork --mount-proc"
$apart true 2> /dev/null || apart="unshare --user --map-root-user --pid --fork --mount-proc"
# beside FIRST SECOND: the words before the commands of both; the first is halted while the second writes. 2: the first was over too soon.
beside() {
	rm -rf long shared shared.*
	"$assay" make-model --shape smollm2-135m --holes --out long > /dev/null || return 1
	$1 "$assay" merge long --out shared > first.out 2> first.err &
	until other=$(ls -d shared.*.new 2> /dev/null) && [ -e "$other" ] || ! kill -0 $! 2> /dev/null; do :; done
	writer=$(pgrep -f "^$assay merge long --out shared")
	kill -STOP $writer 2> /dev/null || return 2
	$2 "$assay" make-model --out shared > out 2> err
	second=$?
	stands=$(ls -d "$other" 2> /dev/null)
	kill -CONT $writer
	wait
	[ $second = 0 ] && [ "$stands" = "$other" ] && says "shared exists and is not empty" first.err
}
stays() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		beside "$@"
		stayed=$?
		[ $stayed = 2 ] || return $stayed
		wait
	done
}
if $apart true 2> /dev/null; then
	ok "what a container writes is not swept from outside" stays "$apart" ""
	ok "nor what is written outside from a container" stays "" "$apart"
	ok "nor one container's by another" stays "$apart" "$apart"
	rm -rf long shared
else
	ok "two containers on one disk # SKIP no PID namespaces here" true
fi

sed 's/"id": 266/"id": 999/' m/tokenizer.json > many.json
if "$assay" make-model --tokenizer m --out reads > /dev/null 2>&1; then # else it was built without tokenizers
	ok "a tokenizer with more ids than the model has rows is refused" expect 64 make-model --tokenizer many.json --out x
fi

# Another program cuts the base while a merge reads it. One that was over too soon is begun again.
cut_under_merge() {
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rm -rf long cut && "$assay" make-model --shape smollm2-135m --holes --out long > /dev/null || return 1
		"$assay" merge long --out cut > out 2> err &
		merging=$!
		until [ -n "$(ls -d cut.*.new/model.safetensors* 2> /dev/null)" ] || ! kill -0 $merging 2> /dev/null; do :; done
		kill -STOP $merging 2> /dev/null
		truncate -s 1000000 long/model.safetensors
		kill -CONT $merging 2> /dev/null
		wait $merging
		code=$?
		[ $code = 0 ] || return 0
	done
}
ok "a base that is cut under a merge ends it" eval 'cut_under_merge && [ "$code" = 64 ]'
ok "by the name of the file" says "long/model.safetensors: another program shortened the file while assay read it: 1000000 bytes instead of" err
ok "and leaves nothing" eval '! ls -d cut* 2> /dev/null'
rm -rf long

cp -r m marked
printf '\357\273\277' | cat - m/config.json > marked/config.json
ok "a byte order mark is passed over" expect 0 merge marked --out unmarked

# Through F32 and back every number is what it was, whatever the files are cut into.
ok "a model in another type and in shards" expect 0 merge m --dtype f32 --shard 300kB --out wide
ok "has an index" test -e wide/model.safetensors.index.json
ok "and comes back" eval 'expect 0 merge wide --dtype bf16 --out back && cmp m/model.safetensors back/model.safetensors'
ok "with its tokenizer" cmp m/tokenizer.json back/tokenizer.json

refused() { # NAME WORDS: merge of `broken` is refused with words
	ok "$1 is refused" eval 'expect 64 merge broken --out x || expect 2 merge broken --out x'
	ok "$1 is named" says "$2" err
	[ ! -e x ] || ok "$1 leaves nothing" false
	rm -rf broken
}
cp -r wide broken
rm broken/model-00003-of-*.safetensors
refused "a missing shard" "cannot open broken/model-00003-of-0000..safetensors"
cp -r wide broken
truncate -s -1 broken/model-00002-of-*.safetensors
refused "a shard cut by a byte" "broken/model-00002-of-0000..safetensors: model.layers..* ends at byte"
cp -r m broken
printf x >> broken/model.safetensors
refused "a byte too many" "1 bytes after the last tensor, lm_head.weight"
cp -r m broken
sed -i 's/"intermediate_size": 160/"intermediate_size": 128/' broken/config.json
refused "a size that does not fit" "broken/model.safetensors: model.layers.0.mlp.gate_proj.weight is 2-dimensional, 160 x 96"
cp -r m broken
sed -i 's/"model_type": "qwen2"/"model_type": "qwen9"/' broken/config.json
refused "a family that is not done" "model_type qwen9 is not supported; llama, qwen2 and qwen3 are"
cp -r m broken
echo '{' > broken/config.json
refused "a configuration that is no JSON" "broken/config.json:"
cp -r m broken
head -c 500 m/tokenizer.json > broken/tokenizer.json
refused "a tokenizer that is cut" "broken/tokenizer.json:"
cp -r m broken
echo '{{' > broken/generation_config.json
refused "settings of generation that are no JSON" "broken/generation_config.json:1:"
cp -r m broken
printf '\377\377' | dd of=broken/model.safetensors bs=1 seek=$(($(stat -c %s broken/model.safetensors) - 2)) conv=notrunc 2> /dev/null
refused "a number that is none" "broken/model.safetensors: lm_head.weight: row .* has NaN"
cp -r m broken
sed -i 's/^{/{"eos_token_id": [2, 99999],/' broken/config.json
refused "an end that is none of its tokens" "broken/config.json: eos_token_id is not an id of a vocabulary of 320"
cp -r m broken
printf '{"model_type": "qwen2", "model_type": "llama"}' > broken/config.json
refused "a key that stands twice" "broken/config.json:1: a key occurs twice"
mkdir broken
refused "an empty folder" "broken is not a model: it has no config.json"
mkdir broken
ln -s config.json broken/config.json # which can be looked at by nobody, not even root
refused "a folder that cannot be read" "cannot open broken/config.json: Too many levels of symbolic links"
mkdir broken
echo "{}" > broken/adapter_config.json
refused "an adapter in place of a model" "broken is an adapter, not a model"
printf 'GGUF\003\000\000\000' > broken
refused "a GGUF that is cut" "broken: ends inside its head"

mkdir adapter
printf '\002\0\0\0\0\0\0\0{}' > adapter/adapter_model.safetensors
adapter() { # CONFIG WORDS
	echo "$1" > adapter/adapter_config.json
	ok "an adapter is refused: $2" eval 'expect 64 merge m adapter --out x || expect 2 merge m adapter --out x'
	ok "in these words" says "$2" err
}
adapter '{"peft_type": "LORA", "rank_pattern": {"q_proj": 4}}' "it contains no matrix"
adapter '{"peft_type": "LORA", "r": 0}' "r is 0"
adapter '{"peft_type": "LORA", "target_modules": ["query"]}' "target_modules has query"
adapter '{"peft_type": "LORA"}' "adapter/adapter_model.safetensors: it contains no matrix"
adapter '{"peft_type": "LORA", "target_modules": ["q_proj"]}' "q_proj is listed in target_modules, but not in the file"

# Headers of a 7B model: read whole, with files that take no disk.
ok "a shape of 7B is made of holes" expect 0 make-model --shape qwen2-7b --holes --out big
ok "with as many parameters as it has" says "7615616512 parameters" out
ok "which take no disk" eval '[ "$(du -sk big | cut -f 1)" -lt 1000 ]'

# Its plan: LoRA of rank 16 on all maps, rows of 2048, by what METHODS derives ("Models: a training step").
echo '{"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]}' > rows.jsonl
cat > big.yaml << CONFIG
model: {name_or_path: big, chat_template: qwen2.5}
lora: {r: 16, alpha: 32}
data: {train: rows.jsonl, max_seq_length: 2048}
training: {device: cpu, per_device_train_batch_size: 1, max_steps: 10}
CONFIG
figure() { sed -n "s/^ *\"$1\": *\([0-9]*\).*/\1/p" out | head -n 1; }
ok "training of 7B is planned by its headers" expect 0 train big.yaml --plan --json
ok "rank 16 on all maps is 16 x 28 layers x 90112 parameters" [ "$(figure trained)" = $((16 * 28 * 90112)) ]
ok "weights are numbers of four bytes and RoPE's table" [ "$(figure weights)" = $((4 * 7615616512 + 2048 * 128 * 4)) ]
ok "gradient and moments are three times what is trained" [ $(($(figure gradient) + $(figure optimizer))) = $((3 * 4 * 40370176)) ]
ok "FLOP a token are 4 N, 6 P and attention's, within 0.5 %" awk -v found="$(figure flop_per_token)" \
	'BEGIN { due = 4 * 7.0703e9 + 6 * 40370176 + 3.5 * 2 * 28 * 2048 * 3584; exit !(found > 0.995 * due && found < 1.005 * due) }'
finish
