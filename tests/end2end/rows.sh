#!/bin/sh
# assay rows and assay tokens: rows of every format counted, converted, divided, shown and refused; answers to rows, made and judged.
# usage: rows.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
model=$root/tests/data/tokenizer/qwen.json
"$assay" tokens "$model" x > out 2> err || {
	grep -q 'built without tokenizers' err || cat err
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
}
ok "a text's tokens have ids and pieces" eval 'expect 0 tokens "$model" "hello world" && says "\"hello\"" out'
ok "a text that begins with a dash stands behind two" eval 'expect 0 tokens "$model" -- "-x" && says "\"-\"" out'
if [ -w /dev/full ]; then
	"$assay" tokens "$model" "hello world" --json > /dev/full 2> err
	code=$?
	ok "what cannot be written is told as it is" eval '[ "$code" = 2 ] && says "stdout: No space left on device" err'
fi
ok "a text of people has no control token" eval 'expect 0 tokens "$model" "<|im_end|>" && ! says "902 " out'
ok "unless asked" eval 'expect 0 tokens "$model" "<|im_end|>" --control && says "902  \"<|im_end|>\"" out'
printf 'hello\377' > bad
ok "what is no UTF-8 is refused with its place" eval 'expect 64 tokens "$model" --file bad || expect 2 tokens "$model" --file bad; says "byte 5" err'
ok "a model that is not there is named" eval '! expect 0 tokens no/such x && says "no/such" err'

for i in 1 2 3 4 5 6 7 8 9 10; do
	printf '{"messages":[{"role":"user","content":"q%s"},{"role":"assistant","content":"a<|im_end|>"}],"tools":[{"name":"f%s"}]}\n' $i $((i / 2))
done > chat.jsonl
printf '{"conversations":[{"from":"human","value":"x"},{"from":"gpt","value":"y"}]}\n' > share.jsonl
cp chat.jsonl copy.jsonl
ok "rows are not written over what is read" eval 'expect 64 rows copy.jsonl --out half --held-out ./copy.jsonl && cmp chat.jsonl copy.jsonl'
ok "nor two halves into one file" expect 64 rows copy.jsonl --out half --held-out half
ln -s . link
ok "however it is written" eval 'expect 64 rows copy.jsonl --out half --held-out ./half && expect 64 rows copy.jsonl --out link/half --held-out "$PWD/half" && [ ! -e half ]'
printf '[{"system":"SYSTEM: Be kind.",\n"chat":"USER: x\\n\\n\\nASSISTANT: y <|endoftext|>"}]' > glaive.json
ok "every format is read by its keys" eval 'expect 0 rows chat.jsonl share.jsonl glaive.json --json && says "\"rows\": 12" out'
ok "tokens are counted as training counts them" expect 0 rows share.jsonl glaive.json --model "$model" --chat-template chatml
ok "with what is trained" eval 'says "^rows  *2$" out && says "^targets  *4$" out'
ok "and at what rate ids were made" says '^bytes_per_s  *[0-9.]* *[kMG]*B/s$' out
ok "a row is shown with what of it is trained" eval 'expect 0 rows glaive.json --model "$model" --chat-template chatml --show 1 && says "^\[\[y<|im_end|>\]\]$" out'
ok "tools without a place for them name the setting" eval '! expect 0 rows chat.jsonl --model "$model" --chat-template chatml && says "chat.jsonl:1: .*set --chat-template to" err'
ok "a template that files do not carry is asked for" eval '! expect 0 rows share.jsonl --model "$model" && says "with --chat-template" err'
ok "what only a model's tokenizer can count needs one" eval 'expect 64 rows share.jsonl --max-length 5 && says "max-length needs --model" err'

ok "rows are written, and a share of them apart" expect 0 rows chat.jsonl share.jsonl --out a.jsonl --held-out b.jsonl --share 0.3
ok "each in one of the two" [ "$(cat a.jsonl b.jsonl | wc -l)" = 11 ]
ok "at most that share" eval '[ "$(wc -l < b.jsonl)" -gt 0 ] && [ "$(wc -l < b.jsonl)" -le 3 ]'
functions() { grep -o '"f[0-9]"' "$1" | sort -u; }
ok "no function in both" [ -z "$(functions a.jsonl > fa; functions b.jsonl > fb; comm -12 fa fb)" ]

printf '{"messages":[{"role":"user","content":"q"}]}\n\n{"messages":5}\n' > wrong.jsonl
ok "a wrong row ends it, with file and line" eval '! expect 0 rows wrong.jsonl && says "wrong.jsonl:3: messages is not an array" err'
ok "rows of which none is left are told by what became of them" eval 'sed 1q wrong.jsonl > no.jsonl; expect 64 rows no.jsonl --model "$model" --chat-template chatml && says "no usable row: 1 without an assistant message, with" err'
ok "unless so many may be wrong" eval 'expect 0 rows wrong.jsonl --max-bad 1 && says "^bad  *1$" out && says "wrong.jsonl:3: .*left out" err'

call() { printf '<tool_call>\\n{\\"name\\": \\"f\\", \\"arguments\\": {\\"a\\": %s}}\\n</tool_call>' "$1"; }
for i in 1 2 3; do
	printf '{"messages":[{"role":"user","content":"q%s"},{"role":"assistant","content":"","tool_calls":[{"name":"f","arguments":{"a":%s}}]}],' $i $i
	printf '"tools":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}]}\n'
done > asked.jsonl
for i in 1 2 3; do printf '{"row":%s,"text":"%s"}\n' $i "$(call 2)"; done > said.jsonl
ok "answers are held against what rows accept" expect 0 rows asked.jsonl --answers said.jsonl --chat-template qwen2.5
ok "and counted" eval 'says "^answers  *3$" out && says "^expected functions  *3  100.0 %$" out && says "^accepted  *1  33.3 %$" out'
ok "each with its verdict in JSON" eval 'expect 0 rows asked.jsonl --answers said.jsonl --chat-template qwen2.5 --json && says "\"exact\": 1" out && says "f: a: 2 is not accepted" out'
ok "which need a template by which calls are read" eval 'expect 64 rows asked.jsonl --answers said.jsonl && says "needs --chat-template" err && expect 64 rows asked.jsonl --answers said.jsonl --chat-template auto'
ok "and one file of rows" eval 'expect 64 rows asked.jsonl chat.jsonl --answers said.jsonl --chat-template qwen2.5 && says "works with one file" err'
printf '{"row":4,"text":""}\n' > beyond.jsonl
ok "an answer to no row is told by its line" eval 'expect 64 rows asked.jsonl --answers beyond.jsonl --chat-template qwen2.5 && says "beyond.jsonl:1: row 4: asked.jsonl has 3 rows" err'
printf '\n{"row":1}\n' > beyond.jsonl
ok "nor is one without a text" eval 'expect 64 rows asked.jsonl --answers beyond.jsonl --chat-template qwen2.5 && says "beyond.jsonl:2: expected an answer" err'

expect 0 make-model --shape tiny-llama --out model || cat err
ok "a model answers each row of a file" eval 'expect 0 generate model --rows asked.jsonl --chat-template qwen2.5 --tokens 5 --out made.jsonl && says "^answers  *3$" out && says "3 answers were cut at 5 tokens" err'
ok "what it said is kept with its verdict" eval '[ "$(grep -c "\"row\":[123],\"text\":.*\"exact\":false,\"why\":" made.jsonl)" = 3 ]'
ok "the same again, and judged from the file as it was" eval 'cp out first; expect 0 generate model --rows asked.jsonl --chat-template qwen2.5 --tokens 5 --out again.jsonl && cmp made.jsonl again.jsonl && expect 0 rows asked.jsonl --answers made.jsonl --chat-template qwen2.5 && head -n 4 first | cmp - out'
ok "the first so many" eval 'expect 0 generate model --rows asked.jsonl --chat-template qwen2.5 --tokens 5 --max-rows 2 --json && says "\"rows\": 2" out && says "\"cut\": 2" out && says "\"tokens\": 10" out && says "\"device\": \"cpu\"" out'
ok "an answer is that of generate alone" eval 'sed "1s/,{\"role\":\"assistant\".*}],\"tools\"/],\"tools\"/; q" asked.jsonl > ask.json && expect 0 generate model --messages ask.json --chat-template qwen2.5 --tokens 5 --json && sed -n "s/^ \"text\": //p" out | sed "s/,$//" > alone && grep -qF "$(cat alone)" made.jsonl'
ok "rows with nothing to hold an answer against are told before a model is loaded" eval 'expect 64 generate model --rows wrong.jsonl --chat-template qwen2.5 && says "wrong.jsonl:1: there is no ground_truth, and the last message is not the assistant" err'
ok "where answers cannot be written, nothing is made" eval '! expect 0 generate model --rows asked.jsonl --chat-template qwen2.5 --out no/made.jsonl && says "no/made.jsonl" err'
ok "what contradicts rows is refused" eval 'expect 64 generate model text --rows asked.jsonl && says "give exactly one of TEXT" err && expect 64 generate model --rows asked.jsonl --raw && says "cannot be combined" err && expect 64 generate model x --out a && says "out needs --rows" err'
printf '%s' "{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}{# no tools #}" > own.jinja
ok "a file is the chat template of generate" eval 'expect 0 generate model hi --chat-template own.jinja --tokens 3 --json && says "\"prompt_tokens\": 9," out'
ok "which is the template of rows as well" eval 'expect 0 generate model --rows asked.jsonl --chat-template own.jinja --tokens 3 && says "^answers  *3$" out'
printf 'a\n{%% if x %%}' > open.jinja
ok "a template with an error is refused with line and column" eval 'expect 64 generate model hi --chat-template open.jinja && says "open.jinja:2:4: {% if %} has no {% endif %}" err'
printf '%s' "{{ raise_exception('no system text') }}" > strict.jinja
ok "a template can refuse a conversation" eval 'expect 64 generate model hi --chat-template ./strict.jinja && says "strict.jinja:1:4: the chat template refuses the conversation: no system text" err'
ok "an unknown name is refused" eval 'expect 64 generate model hi --chat-template chatmi && says "\"chatmi\" is not a chat template; did you mean chatml?" err'
: > empty.jsonl
ok "a file without rows is refused" eval '! expect 0 rows empty.jsonl && says "empty.jsonl: no rows" err'
finish
