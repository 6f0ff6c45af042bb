#!/bin/sh
# Several LoRA adapters behind one server: names, texts, and refusals. usage: serve_adapters.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP no curl" && exit 0; }
adapters=$root/tests/data/model/adapters
scratch
server=
trap '[ -z "$server" ] || kill "$server" 2> /dev/null; rm -rf "$tmp"' EXIT
"$assay" make-model --shape tiny --dtype f32 --out base > /dev/null || exit 1
"$assay" serve base --device cpu --port 0 --context 128 --adapter "a=$adapters/plain,b=$adapters/patterns,c=$adapters/dora" > up 2> serve.err < /dev/null &
server=$!
for _ in $(seq 600); do grep -q '^API' up && break; kill -0 "$server" 2> /dev/null || break; sleep 0.05; done
if grep -q 'built without' serve.err; then echo "1..0 # SKIP this build has no server" && exit 0; fi
url=$(sed -n 's/^API and chat page: //p' up)

# complete MODEL STATUS: asks for a greedy text
complete() {
	curl -s -m 60 -w '\n%{http_code}\n' "$url/v1/completions" -H 'Content-Type: application/json' -o body \
		-d "{\"model\": \"$1\", \"prompt\": \"town 7?\", \"max_tokens\": 8, \"temperature\": 0, \"ignore_eos\": true, \"logprobs\": 0}" > code
	cat code body > out
	grep -q "^$2\$" code
}
# same MODEL ARGS..: the server's text has the log probabilities that `assay generate` gives
same() {
	model=$1
	shift
	complete "$model" 200 || return 1
	"$assay" generate --no-cache --device cpu base "town 7?" --raw --tokens 8 --json --logprobs "$@" > made 2> err || return 1
	python3 "$root/tests/oracles/same_logprobs.py" body made
}

ok "the base model and its adapters are listed" sh -c "curl -s -m 60 $url/v1/models > out && for m in base a b c; do grep -q '\"id\":\"'\$m'\"' out || exit 1; done && grep -q '\"id\":\"a\".*\"parent\":\"base\"' out"
if python3 -c '' 2> /dev/null; then
	ok "the base model's name gives its text" same base
	ok "an adapter's name gives the text of the model with this adapter" same a --adapter "$adapters/plain"
	ok "the same for ranks by pattern" same b --adapter "$adapters/patterns"
	ok "the same for DoRA" same c --adapter "$adapters/dora"
fi
ok "another name is not found" complete nosuch 404
ok "and the answer names it" says 'the model \\"nosuch\\" is not served here' body
kill "$server" && wait "$server"
server=
ok "adapters need names" expect 64 serve base --adapter "$adapters/plain,$adapters/dora"
ok "which are said" says 'several adapters are NAME=DIR,NAME=DIR' err
ok "a name is given once" expect 64 serve base --adapter "a=$adapters/plain,a=$adapters/dora"
ok "not that of the base model" expect 64 serve base --adapter "base=$adapters/plain,b=$adapters/dora"
ok "and has no blank" expect 64 serve base --adapter "a b=$adapters/plain"
ok "17 adapters are too many" expect 64 serve base --adapter "$(seq -f "a%g=x" -s , 17)"
ok "which is said" says 'more than 16 adapters' err
ok "one adapter has one name" expect 64 serve base --adapter "a=$adapters/plain" --served-model-name b
ok "several cannot have heads of their own" expect 2 serve base --device cpu --port 0 --context 128 --adapter "a=$adapters/plain,b=$adapters/whole"
ok "which says why" says 'modules_to_save' err

# An adapter that `assay train` wrote knows the weights of its base model.
. "$here/train_bed.sh"
train_inputs
train_config short.yaml cpu 'max_steps: 1'
ok "an adapter is trained" expect 0 train short.yaml --no-telemetry --out short
expect 0 make-model --shape tiny --seed 2 --out second
other=$(realpath short/adapter)
ok "an adapter of another base model is refused" expect 64 serve second --device cpu --port 0 --context 128 --adapter "$other"
ok "with both names" says "short/adapter: it is an adapter of .*/model, but second has other weights.*--any-base uses it anyway" err
"$assay" serve second --device cpu --port 0 --context 128 --adapter "$other" --any-base > up 2> serve.err < /dev/null &
server=$!
for _ in $(seq 600); do grep -q '^API' up && break; kill -0 "$server" 2> /dev/null || break; sleep 0.05; done
url=$(sed -n 's/^API and chat page: //p' up)
ok "--any-base serves it" complete second 200
ok "with a warning" says 'warning: .*short/adapter: it is an adapter of .*/model, but second has other weights' serve.err
kill "$server" && wait "$server"
server=
finish
