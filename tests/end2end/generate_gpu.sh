#!/bin/sh
# The real binary makes text on a GPU that is not there: the fake driver, whose kernels are their references. The CPU's text is the
# measure. usage: generate_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json

expect 0 make-model --shape tiny-64 --seed 3 --out tiny || { cat err; exit 1; }
if ! expect 0 tokens tiny x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
if ! "$assay" list kernels | grep -q decode; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
expect 0 make-model --shape tiny-qwen3-64 --seed 3 --out tiny-qwen3
expect 0 make-model --shape tiny-llama-64 --seed 3 --out tiny-llama
text() { sed -n 's/^ "text": //p' "$1"; }
ids() { tr -d ' \n' < "$1" | sed -n 's/.*"ids":\[\([0-9,]*\)\].*/\1/p'; }
# same NAME ARGS..: the GPU says what the CPU says
same() {
	name=$1
	shift
	"$assay" generate "$@" --json --device cpu > cpu.out 2> err || { ok "$name: the CPU" false; return; }
	ok "$name: the GPU makes text" expect 0 generate "$@" --json --device gpu
	text cpu.out > cpu.text
	text out > gpu.text
	ok "$name: the same" cmp cpu.text gpu.text
}

for model in tiny tiny-qwen3 tiny-llama; do
	same "$model" "$model" "What is the weather in Oslo?" --raw --tokens 40
	# A GPU draws from logits in BF16, so its text at a temperature is its own; but the same again.
	for again in one two; do
		ok "$model, many other tokens" expect 0 generate "$model" "What is the weather in Oslo?" --raw --tokens 40 --temperature 1 --seed 2 --json --device gpu
		text out > "$again.text"
	done
	ok "$model, the same again" cmp one.text two.text
done
setsid "$assay" serve tiny --device gpu --deterministic --max-sequences 2 --context 256 --memory 128MB --port 0 > serve.out 2> err < /dev/null &
server=$!
for _ in $(seq 600); do grep -q '^run directory' serve.out && break; sleep 0.1; done
kill "$server"
wait "$server"
ok "a deterministic server says what that costs" says '^--deterministic: a step of 2 sequences takes [0-9.]* ms, and [0-9.]* ms without' serve.out
ok "the device is named" says '"device": "NVIDIA H100' out
ok "and the rate of its weights" says '"weights_gb_per_s"' out
same "one token" tiny x --raw --tokens 1
same "a prompt of one token" tiny x --raw --tokens 9
same "a conversation" tiny "What is the weather?" --chat-template qwen2.5 --tokens 20
# So many rows that attention takes them in tiles (kernel/paged/tiles.h).
long=$(printf 'all work and no play %.0s' $(seq 110))
same "a long prompt" tiny "$long" --raw --tokens 3

# The rate is that of the tokens behind the first.
figure() { sed -n "s/^ \"$1\": \([^,]*\),*/\1/p" out; }
ok "a text" expect 0 generate tiny "It rains" --raw --tokens 24 --json --device gpu --no-cache
ok "has the rate of all tokens but the first" eval '[ "$(figure steady_tokens)" = 23 ] && [ "$(figure tokens_per_s)" != null ]'
ok "with the time to the first token and that of tuning" eval '[ "$(figure tuning_s)" = 0.0 ] && awk -v s="$(figure first_token_s)" "BEGIN { exit !(s > 0 && s < 100) }"'
ok "one of a token" expect 0 generate tiny "It rains" --raw --tokens 1 --json --device gpu
ok "has none" eval '[ "$(figure steady_tokens)" = 0 ] && [ "$(figure tokens_per_s)" = null ]'
ok "as it says" eval 'expect 0 generate tiny "It rains" --raw --tokens 1 --device gpu && says "1 tokens after a prompt of [0-9]*: too short for a steady rate; [0-9.]* s to the first token, 0.00 s tuning; end: length" err'
ok "on a CPU as well" eval 'expect 0 generate tiny "It rains" --raw --tokens 8 --json --device cpu && [ "$(figure steady_tokens)" = 7 ]'

# Chosen at random, by the same rule from logits that differ in their last digits; and a text's own logits.
same "at a temperature" tiny "It rains" --raw --tokens 30 --temperature 0.7 --seed 5
same "of the likeliest" tiny "It rains" --raw --tokens 30 --temperature 0.7 --top-k 5 --top-p 0.9 --seed 6
same "with logarithms" tiny "It rains" --raw --tokens 8 --logprobs
ids cpu.out > cpu.ids
ids out > gpu.ids
ok "of the same ids" cmp cpu.ids gpu.ids
ok "which are there" [ "$(tr ',' '\n' < gpu.ids | grep -c .)" = 8 ]

# Adapters, beside the weights and in them; they learn where an answer ends.
for i in $(seq 8); do
	echo '{"messages":[{"role":"user","content":"town?"},{"role":"assistant","content":"ask"}]}'
done > rows.jsonl
for model in tiny tiny-qwen3; do
	cat > "$model.yaml" << CONFIG
model: {name_or_path: $model, chat_template: qwen2.5}
lora: {r: 8, alpha: 16, target_modules: [q_proj, k_proj, v_proj, o_proj, gate_proj, up_proj, down_proj]}
data: {train: rows.jsonl, max_seq_length: 128}
training: {learning_rate: 1e-2, max_steps: 60, device: cpu}
CONFIG
	expect 0 train "$model.yaml" --out "run-$model" || ok "$model is trained" false
	same "$model with an adapter" "$model" "town?" --chat-template qwen2.5 --adapter "run-$model/adapter" --tokens 24
	ok "which ends by its stop" says '"end": "stop"' out
	cp gpu.text beside.text
	ok "its text without is another" sh -c "'$assay' generate $model 'town?' --chat-template qwen2.5 --tokens 24 --json \
		--device gpu | sed -n 's/^ \"text\": //p' | cmp -s - beside.text && exit 1; exit 0"
	same "$model with the adapter merged" "$model" "town?" --chat-template qwen2.5 --adapter "run-$model/adapter" --merge --tokens 24
	ok "as beside the weights" cmp gpu.text beside.text
done

# Which device.
ok "auto takes the GPU" sh -c "'$assay' generate tiny x --raw --tokens 2 --device auto --json | grep -q NVIDIA"
ok "without one the CPU" sh -c "LD_LIBRARY_PATH= '$assay' generate tiny x --raw --tokens 2 --device auto --json 2> err | grep -q '\"cpu\"'"
ok "and says nothing" [ ! -s err ]
LD_LIBRARY_PATH='' "$assay" generate tiny x --raw --tokens 2 --device gpu > out 2> err
ok "a GPU that is asked for and not there is an error" [ $? = 2 ]
for refusal in 100 803 999; do
	FAKE_CUDA=cuInit=$refusal "$assay" generate tiny x --raw --tokens 2 --device auto --json > out 2> err
	ok "a CUDA that refuses to begin ($refusal): auto takes the CPU" says '"device": "cpu"' out
	ok "and says why" says "on the CPU (--device gpu would fail): cuInit: .*$refusal" err
	FAKE_CUDA=cuInit=$refusal "$assay" generate tiny x --raw --tokens 2 --device gpu > out 2> err
	ok "a GPU that is asked for ends it" [ $? = 2 ]
	ok "with the driver's answer" says "error: cuInit: .*$refusal" err
done
FAKE_CUDA=cuInit=100 CUDA_VISIBLE_DEVICES='' "$assay" generate tiny x --raw --tokens 2 --device auto --json > out 2> err
ok "cards that somebody hid are not missed" eval 'says "\"device\": \"cpu\"" out && [ ! -s err ]'

# Heads that its kernels do not take: the same weights in heads of 8.
cp -r tiny heads8
sed -i 's/"num_attention_heads": 6/"num_attention_heads": 48/; s/"num_key_value_heads": 2/"num_key_value_heads": 16/; s/"head_dim": 64/"head_dim": 8/' heads8/config.json
"$assay" generate heads8 x --raw --tokens 2 --device gpu > out 2> err
ok "heads that a GPU does not generate with are an error there" [ $? = 2 ]
ok "which names them" says 'heads of 64 or 128 elements, but this model has 8; use --device cpu, which supports any' err
"$assay" generate heads8 x --raw --tokens 2 --device auto --json > out 2> err
ok "auto goes to the CPU with them" says '"device": "cpu"' out
ok "and says why" says 'running on the CPU (--device gpu would fail): a GPU has a paged KV cache for heads of' err

# Weights in FP8. How GEMMs run is chosen before the first of many rows.
cp -r tiny heads64
ok "a text with FP8 weights" expect 0 generate heads64 "It rains" --raw --tokens 12 --device gpu --weights fp8
echo '{"messages":[{"role":"user","content":"a row"},{"role":"assistant","content":"an answer"}]}' > one.jsonl
for type in fp8 auto; do
	ok "rows with weights $type" expect 0 generate heads64 --rows one.jsonl --chat-template qwen2.5 --tokens 3 --device gpu \
		--weights $type --out "$type.jsonl"
done
ok "FP8 weights on a CPU are an error" sh -c "'$assay' generate tiny x --raw --tokens 2 --device cpu --weights fp8 > out 2> err; [ \$? = 2 ]"
ok "which says what takes them" says 'FP8 weights need a GPU of the Hopper generation (sm_90)' err

# What goes wrong.
FAKE_CUDA=memory=2400 "$assay" generate tiny x --raw --tokens 1000000 --device gpu > out 2> err
ok "too little memory ends it" [ $? = 2 ]
ok "with what is planned and what to turn" says 'the plan needs .* for weights, KV cache and work of .* --device cpu' err
FAKE_CUDA=memory=2049 "$assay" generate tiny x --raw --tokens 4 --device auto --json > out 2> err
ok "auto goes to the CPU then" says '"device": "cpu"' out
ok "with a warning" says 'on the CPU (--device gpu would fail): .* are free' err
FAKE_CUDA=cuLaunchCooperativeKernel=719@2 "$assay" generate tiny x --raw --tokens 20 --device gpu > out 2> err
ok "a launch that fails ends it" [ $? = 2 ]
ok "in the driver's words, and of the card" says 'error: NVIDIA H100 .*(0000:8D:00.0): cuLaunchCooperativeKernel: .*719' err
# Eight are answered together, as they have no page in common; the ninth is then alone, so that its tokens are steps of one row.
for i in 1 2 3 4 5 6 7 8 9; do
	echo '{"messages":[{"role":"system","content":"'$i' rows"},{"role":"user","content":"row"},{"role":"assistant","content":"an answer"}]}'
done > rows.jsonl
rows() { "$assay" generate tiny --rows rows.jsonl --chat-template qwen2.5 --tokens 3 --device gpu --out "$1" > out 2> err; }
rows all.jsonl
# At load 16 launches compare this kernel with the ordinary step, and by the clock of the fake driver it is faster.
FAKE_CUDA=cuLaunchCooperativeKernel=719@18 rows some.jsonl
ok "one among many rows ends them too" [ $? = 2 ]
ok "in the driver's words" says 'error: NVIDIA H100 .*: cuLaunchCooperativeKernel: .*719' err
ok "what was answered before it is kept" eval 'head -n 8 all.jsonl | cmp - some.jsonl'
ok "and said to be" says "some.jsonl: saved the answers to the first 8 of 9 rows" err
FAKE_CUDA=cuLaunchKernelEx=719 rows none.jsonl
ok "none is no file" [ ! -e none.jsonl ]
FAKE_CUDA=cuEventSynchronize=700 "$assay" generate tiny x --raw --tokens 20 --device gpu > out 2> err
ok "so does a wait that fails" [ $? = 2 ]
FAKE_CUDA=nan=step_rmsnorm "$assay" generate tiny "It rains" --raw --tokens 4 --device gpu > out 2> err
ok "a NaN of the prompt is found" [ $? != 0 ]
ok "and is told" says 'the logits of token 1 have NaN or infinity' err
FAKE_CUDA=nan=decode_token@1 "$assay" generate tiny "It rains" --raw --tokens 4 --device gpu > out 2> err
ok "so is one of a step of one row" says 'the logits of token 2 have NaN or infinity' err
"$assay" generate tiny "It rains" --raw --tokens 12 --temperature 0.7 --json --device cpu | sed -n 's/^ "text": //p' > cpu.text
FAKE_CUDA=optin=65536,cuLaunchCooperativeKernel=719 "$assay" generate tiny "It rains" --raw --tokens 12 --temperature 0.7 --json \
	--device gpu > out 2> err
ok "where a block lacks shared memory a step of one row is as any other" [ $? = 0 ]
text out > gpu.text
ok "of the same text" cmp cpu.text gpu.text
finish
