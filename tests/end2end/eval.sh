#!/bin/sh
# assay eval: the table of precisions, its JSON and exit code; a planted worse model; everything that is refused.
# usage: eval.sh ASSAY BASE_GGUF
set -u
assay=$(realpath "$1") base_gguf=${2:+$(realpath "$2")} here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
"$assay" make-model --out tiny > out 2> err && "$assay" make-model --out other --seed 2 > out 2> err || {
	echo "1..0 # SKIP no model can be made: $(cat err)"
	exit 0
}
"$assay" tokens tiny x > out 2> err || {
	grep -q 'built without tokenizers' err || cat err
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
}
weather='"tools":[{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]'
cat > rows.jsonl << END
{"messages":[{"role":"user","content":"Weather in Paris?"},{"role":"assistant","content":"","tool_calls":[{"name":"weather","arguments":{"city":"Paris"}}]}],$weather}
{"messages":[{"role":"user","content":"Weather in Rome?"}],"ground_truth":[{"weather":{"city":["Rome"]}}],$weather}
{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hello, how can I help?"}]}
{"text":"Water boils at 100 degrees Celsius at sea level."}
END
i=0
while [ $i -lt 20 ]; do
	echo "The quick brown fox number $i jumps over the lazy dog."
	i=$((i + 1))
done > text.txt
chat="--chat-template qwen2.5 --tokens 8"

ok "rows of all kinds are measured" expect 0 eval tiny --data rows.jsonl $chat
ok "with a row per precision" eval 'says "^file .* 0 of 2 .* reference$" out && says "^fp8-cache .* pass$" out'
ok "questions and windows are counted" says "in 3 windows of at most 2048 tokens, stride 2048; 2 questions" out
ok "and planned memory beside used" eval 'says "^memory of file .*planned MB .*used MB$" out && says "KV cache for generation  *[0-9.]*  *[0-9.]*$" out'
ok "cut answers are told" says "2 answers were cut at 8 tokens" err
ok "rows can be limited" eval 'expect 2 eval tiny --data rows.jsonl --max-rows 1 $chat && says "1 windows .*; 1 questions" out'
ok "one window is too little to decide" eval 'says "^fp8-cache .* unknown$" out && says "fp8-cache: one window is too little to decide, because its interval has no end. Use more rows or a smaller --context" err'
ok "in JSON too" eval 'expect 2 eval tiny --data rows.jsonl --max-rows 1 $chat --json && says "^ \"verdict\": \"unknown\"" out'
ok "without answers, there are no questions" eval 'expect 0 eval tiny --data rows.jsonl --chat-template qwen2.5 --tokens 0 && says "; 0 questions" out'
ok "a text is one document, in windows" eval 'expect 0 eval tiny --data text.txt --context 64 && says "windows of at most 64 tokens, stride 64; 0" out'
scored=$(sed -n 's/^text.txt: \([0-9]*\) tokens scored.*/\1/p' out)
ok "that may overlap, so that only the first token has no score" eval 'expect 0 eval tiny --data text.txt --context 64 --stride 16 &&
	[ "$(sed -n "s/^text.txt: \([0-9]*\) tokens scored.*/\1/p" out)" -gt "$scored" ] && says "stride 16" out'
ok "the first precision is the reference" eval 'expect 0 eval tiny --data text.txt --context 512 --precisions f32,file && says "^f32 .* reference$" out && says "^file .* pass$" out'

ok "JSON has the same" expect 0 eval tiny --data rows.jsonl --json $chat
for key in model data documents questions windows scored_tokens context stride marks perplexity_percent calls_points precisions precision device verdict \
	perplexity value half_width calls exact_share perplexity_difference_percent calls_difference_points uncertain tokens_per_s load_s memory component \
	planned used; do
	ok "JSON has $key" says "\"$key\": " out
done

# Answers of random numbers, which are calls by a grammar alone.
i=0
while [ $i -lt 8 ]; do
	echo '{"messages":[{"role":"user","content":"Weather in town '$i'?"}],"ground_truth":[{"weather":{"city":["Rome"]}}],"tools":[{"name":"weather","parameters":{"type":"object","properties":{"city":{"enum":["Rome","Oslo"]}},"required":["city"],"additionalProperties":false}}]}'
	i=$((i + 1))
done > calls.jsonl
asked="generate tiny --rows calls.jsonl --chat-template qwen2.5 --temperature 1 --tokens 300 --device cpu"
figure() { sed -n "s/^ *\"$1\": \([0-9.]*\),*$/\1/p" out; }
ok "a required call is asked for" expect 0 $asked --grammar required --json --out answers
ok "which some answers end with" [ "$(figure ended)" -ge 3 ]
ok "and each of these can be read" [ "$(figure ended_valid)" = "$(figure ended)" ]
ok "an answer that is cut is no such one" [ "$((8 - $(figure ended)))" = "$(figure cut)" ]
ok "the enumeration is kept" eval '! grep -o "\"city\":\"[^\"]*" answers | grep -vE "Rome|Oslo"'
ok "the same for people" eval 'expect 0 $asked --grammar required && says "^readable calls of these .* 100.0 %$" out'
ok "without a grammar, none" eval 'expect 0 $asked --json && [ "$(figure ended_valid)" = 0 ]'
ok "a conversation with tools" eval 'head -n 1 calls.jsonl > ask.json && expect 0 generate tiny --messages ask.json --chat-template qwen2.5 --grammar required --tokens 60 && says "tool call: weather" err'
ok "eval has the same" eval 'expect 0 eval tiny --data calls.jsonl --chat-template qwen2.5 --tokens 90 --precisions file --grammar required && says "^function calls, grammar: required$" out'
ok "with what was cut" says "^file: [0-9] of 8 answers were cut, 0 refused; [0-9] of the other [0-9] have readable calls$" out
sed 's/"enum":\["Rome","Oslo"\]/"type":"integer","enum":["Rome"]/' ask.json > contradicts.jsonl
cat calls.jsonl >> contradicts.jsonl
ok "a row whose schema contradicts itself has no answer" eval 'expect 0 $(echo $asked | sed s/calls/contradicts/) --grammar required --json && [ "$(figure refused)" = 1 ] && [ "$(figure rows)" = 9 ]'
ok "and is named" says "contradicts.jsonl:1: no answer, because there is no grammar of its tools: " err
refusing="--chat-template qwen2.5 --tokens 5 --device cpu --grammar required"
ok "in eval too" eval 'expect 2 eval tiny --data contradicts.jsonl --max-rows 2 $refusing --precisions file && says "^file: 1 of 2 answers were cut, 1 refused.*; not measured: too few answers$" out && says "contradicts.jsonl:1: no answer" err'
ok ".. which says that function calls are not measured" says "file: function calls are not measured. The grammar of 1 of 2 questions was refused, so these have no answer. At least 90 % must have one" err
for i in 1 2 3; do head -n 1 contradicts.jsonl; done > refused.jsonl
ok "if all grammars are refused, nothing passes" eval 'expect 2 eval tiny --data refused.jsonl $refusing && says "^fp8-cache .* unknown$" out && says "^fp8-cache: 0 of 3 answers were cut, 3 refused" out'
ok ".. nor in JSON" eval 'expect 2 eval tiny --data refused.jsonl $refusing --json && says "^ \"verdict\": \"unknown\"" out'
ok ".. nor with the reference alone" eval 'expect 2 eval tiny --data refused.jsonl $refusing --precisions file --json && says "^ \"verdict\": \"unknown\"" out'
{ head -n 1 contradicts.jsonl; cat calls.jsonl; head -n 2 calls.jsonl; } > one_refused.jsonl
ok "one refused row of eleven leaves a verdict" eval 'expect 0 eval tiny --data one_refused.jsonl $refusing && says "^fp8-cache .* pass$" out && says "^file: 10 of 11 answers were cut, 1 refused; 0 of the other 0 have readable calls$" out'
ok "a grammar needs tools" eval 'expect 64 generate tiny hello --grammar required && says "grammar needs tools" err'
head -n 1 calls.jsonl > toolless.jsonl
sed 's/,"tools":.*/}/' ask.json >> toolless.jsonl && sed 's/,"tools":.*/}/' ask.json > ask_toolless.json
ok "a required call needs them in each row" eval 'expect 64 $(echo $asked | sed s/calls/toolless/) --grammar required && says "toolless.jsonl:2: --grammar required: there are no tools" err'
ok "in each conversation" eval 'expect 64 generate tiny --messages ask_toolless.json --chat-template qwen2.5 --grammar required && says "no tools, so no call" err'
ok "eval asks only rows with tools" eval 'expect 0 eval tiny --data toolless.jsonl --chat-template qwen2.5 --tokens 5 --precisions file --grammar required && says "; 1 questions$" out'
ok "but auto does not" expect 0 $(echo $asked | sed 's/calls/toolless/; s/300/5/') --grammar auto
ok "and a template that has them" eval 'expect 64 generate tiny --rows calls.jsonl --chat-template chatml --grammar auto && says "chatml has no tool calls" err'

# The model's own text, which no other model expects as much.
"$assay" generate tiny "The quick" --raw --tokens 200 --temperature 0.3 --seed 3 --json --logprobs > made 2> err
printf '{"input_ids": [%s]}\n' "$(tr -d ' \n' < made | sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/')" > own.jsonl
ok "a worse model misses its mark" eval 'expect 1 eval tiny --data own.jsonl --context 64 --compare other && says "^other .* FAIL$" out && says "^fp8-cache .* pass$" out'
ok "in JSON too" eval 'expect 1 eval tiny --data own.jsonl --context 64 --compare other --json && says "^ \"verdict\": \"fail\"" out'
ok "unless the mark is that wide" eval 'expect 0 eval tiny --data own.jsonl --context 64 --compare other --perplexity-mark 1000000 && says "^other .* pass$" out'
# A GGUF file of the same weights in Q8_0, and one of other weights.
if [ -n "$base_gguf" ]; then
	"$assay" make-model --out base --dtype f32 --seed 1 > out 2> err && "$base_gguf" same.gguf 1 && "$base_gguf" strange.gguf 2
	"$assay" generate base "The quick" --raw --tokens 200 --temperature 0.3 --seed 3 --json --logprobs > made 2> err
	printf '{"input_ids": [%s]}\n' "$(tr -d ' \n' < made | sed 's/.*"ids":\[\([0-9,]*\)\].*/\1/')" > base.jsonl
	ok "a GGUF file of the same weights meets the mark" eval 'expect 0 eval base --data base.jsonl --context 64 --precisions f32 --compare same.gguf && says "^same.gguf .* pass$" out'
	ok ".. with other figures, which are those of its blocks" eval '[ "$(awk "/^f32/ { print \$2 }" out)" != "$(awk "/^same.gguf/ { print \$2 }" out)" ]'
	ok ".. and other memory" eval '[ "$(grep "frozen parameters" out | awk "{ print \$(NF - 1) }" | sort -u | wc -l)" = 2 ]'
	ok "one of other weights misses it" eval 'expect 1 eval base --data base.jsonl --context 64 --precisions f32 --compare strange.gguf && says "^strange.gguf .* FAIL$" out'
fi
ok "token ids need no tokenizer" eval 'mkdir bare && cp tiny/config.json tiny/model.safetensors bare && expect 0 eval bare --data own.jsonl --context 64'
ok "a text does" eval '! expect 0 eval bare --data text.txt && says "bare/tokenizer.json: No such file" err'

ok "no model" eval 'expect 64 eval && says "no model given" err'
ok "no data" eval 'expect 64 eval tiny && says "no data given: assay eval MODEL --data FILE" err'
ok "a file that is not there" eval '! expect 0 eval tiny --data none && says "none: No such file" err'
: > empty
ok "an empty file" eval 'expect 64 eval tiny --data empty && says "empty: there is nothing to measure" err'
ok "an unknown precision" eval 'expect 64 eval tiny --data text.txt --precisions fp4 && says "unknown precision .fp4.; use auto" err'
ok "a precision of GPUs on a CPU" eval 'expect 64 eval tiny --data text.txt --precisions file,fp8-weights && says "fp8-weights exists only on a GPU, but file asks for a CPU" err'
ok "the same by --device" eval 'expect 64 eval tiny --data text.txt --precisions bf16 --device cpu && says "bf16 exists only on a GPU, but --device asks for a CPU" err'
ok "a GPU that is not there" eval '! expect 0 eval tiny --data text.txt --precisions bf16 && says "error: " err'
ok "a context above the model's" eval 'expect 64 eval tiny --data text.txt --context 1000000 && says "the model.s context has" err'
ok "a window of one token" eval 'expect 64 eval tiny --data text.txt --context 1 && says "at least two tokens" err'
ok "a stride above the context" eval 'expect 64 eval tiny --data text.txt --context 8 --stride 9 && says "some tokens would be left out" err'
ok "also above the preset context" eval 'expect 64 eval tiny --data text.txt --stride 5000 && says "some would be left out" err'
ok "a template that has no tools" eval 'expect 64 eval tiny --data rows.jsonl && says "rows.jsonl:1: .*set --chat-template" err'
echo '{"text":5}' > number.jsonl && echo '{"a":"b"}' > unknown.jsonl
ok "a text that is none" eval 'expect 64 eval tiny --data number.jsonl $chat && says "number.jsonl:1: \"text\" is not a text" err'
ok "a row of no known kind" eval 'expect 64 eval tiny --data unknown.jsonl $chat && says "has none of \"text\", \"input_ids\", \"messages\"" err'
ok "another model without files" eval '! expect 0 eval tiny --data text.txt --compare none && says "none" err'
"$assay" make-model --out strange2 --tokenizer "$here/../data/tokenizer/qwen.json" > out 2> err &&
	ok "another tokenizer" eval 'expect 64 eval tiny --data text.txt --compare strange2 && says "text.txt:1: the two models. tokenizers or chat templates give different tokens" err'
ok "a row that is none, with its line" eval 'printf "{\"text\": \"abc\"}\n{\"text\": 5}\n" > bad.jsonl && expect 64 eval tiny --data bad.jsonl && says "bad.jsonl:2: " err'
ok "a text that is no UTF-8" eval 'printf "hello\377" > bad.txt && ! expect 0 eval tiny --data bad.txt && says "bad.txt:1: .*byte 5" err'
if [ -w /dev/full ]; then
	"$assay" eval tiny --data text.txt --json > /dev/full 2> err
	code=$?
	ok "what cannot be written is told" [ "$code" = 2 ]
fi
cat text.txt text.txt > longer.txt
"$assay" eval tiny --data longer.txt --stride 1 > out 2> err &
pid=$!
sleep 0.3
kill -TERM $pid 2> /dev/null
wait $pid
code=$?
ok "TERM ends it" eval '[ "$code" = 0 ] || { [ "$code" != 1 ] && says "stopped on request" err; }'

if [ -n "${ASSAY_SMOLLM2:-}" ]; then
	ok "a real model: an FP8 cache costs little" eval 'head -12 text.txt > few && expect 0 eval "$ASSAY_SMOLLM2" --data few --context 64 --perplexity-mark 4 &&
		says "^fp8-cache .* pass$" out'
fi
finish
