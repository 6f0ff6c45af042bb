#!/bin/sh
# Every public function of src/ has a caller in src/, or stands here with what it is for: what tests alone call is no part
# of the program. usage: callers.sh LIBASSAY SOURCE
set -eu
# For tests and tools, sorted.
meant_for_tests() {
	cat << LIST
collective_table_gathers the messages that a comparison of collectives costs
engine_check the engine's tables against themselves
engine_finish the end of a request at a stop string
gguf_parse one file's bytes, for the fuzzer
gpu_backend_replay_refused the error that prevented the graph of a step
grammar_is_complete whether a text may end here
grammar_state_copy a state beside brute force
grammar_warning which keywords of a schema are not enforced, beside jsonschema
info_gpu_shows every fact of a GPU is shown somewhere
load_content_template_tokens the tokens around a first message
model_logits logits of a training pass, beside PyTorch's
paged_step_logits logits of a step, beside PyTorch's
peft_load parts of an adapter, one by one
web_config_parse one file's text, for the fuzzer
weights_load tensors of a model in host memory
LIST
}
LC_ALL=C
export LC_ALL
library=$(realpath "$1")
cd "$2"
# A name is used where it stands a second time in a .c file, comments and strings apart (the first is its definition), or
# a second time in headers (the first is its declaration): an inline function or a macro.
words() { # SUFFIX: words and how often they stand in the files of that name
	find src -name "*.$1" -exec cat {} + | awk '
		{ gsub(/"([^"\\]|\\.)*"/, " ") }
		inside { if (!sub(/^.*\*\//, " ")) next; inside = 0 }
		{ gsub(/\/\*[^*]*\*+([^\/*][^*]*\*+)*\//, " "); sub(/\/\/.*/, " ") }
		sub(/\/\*.*/, " ") { inside = 1 }
		{ gsub(/[^A-Za-z0-9_]+/, " "); n = split($0, w, " "); for (i = 1; i <= n; i++) count[w[i]]++ }
		END { for (name in count) if (count[name] > 1) print name }'
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
nm --defined-only "$library" 2> /dev/null | awk '$2 == "T" { print $3 }' | sort -u > "$tmp/public"
{ words c; words h; } | sort -u > "$tmp/used"
[ -s "$tmp/public" ] || { echo "$1: nm shows no functions" >&2; exit 1; }
[ -s "$tmp/used" ] || { echo "no words in src/" >&2; exit 1; }
meant_for_tests | cut -d ' ' -f 1 > "$tmp/meant"
comm -23 "$tmp/public" "$tmp/used" > "$tmp/uncalled"
comm -23 "$tmp/uncalled" "$tmp/meant" > "$tmp/alone"
comm -13 "$tmp/uncalled" "$tmp/meant" > "$tmp/stale"
sed 's/$/: listed here as meant for tests, but src\/ calls it or it is gone/' "$tmp/stale"
sed 's/$/: no caller in src\//' "$tmp/alone"
echo "callers: $(wc -l < "$tmp/public") public functions, $(wc -l < "$tmp/meant") meant for tests, $(wc -l < "$tmp/alone") without a caller"
[ ! -s "$tmp/alone" ] && [ ! -s "$tmp/stale" ]
