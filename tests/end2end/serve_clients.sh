#!/bin/sh
# The Python clients openai, LangChain, litellm and anthropic, and requests as lm-eval sends them, against the front end, where python3 has them or
# ASSAY_PYTHON_CLIENTS is their folder. usage: serve_clients.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
PYTHONPATH=${ASSAY_PYTHON_CLIENTS:-}${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
if ! python3 -c 'import openai' 2> /dev/null; then
	echo "1..0 # SKIP python3 has no openai"
	exit 0
fi
scratch
front=
trap '[ -z "$front" ] || kill "$front"; rm -rf "$tmp"' EXIT
mkdir model && cp "$root/tests/data/tokenizer/qwen.json" model/tokenizer.json
echo '{"eos_token": "<|im_end|>"}' > model/tokenizer_config.json
ASSAY_MODULE_DIR=$build/src/serve
export ASSAY_MODULE_DIR
"$build/tests/serve/serve_front" model --chat-template qwen2.5 -- "$build/tests/serve/stand_in_engine" step_us=500 answer="$tmp/answer" \
	> port.out 2> front.err < /dev/null &
front=$!
for _ in $(seq 300); do grep -q port port.out && break; sleep 0.05; done
if grep -q 'built without' front.err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
for _ in $(seq 300); do grep -q ready front.err && break; sleep 0.05; done
python3 -W ignore "$root/tests/oracles/serve_clients.py" "http://127.0.0.1:$(sed -n 's/^port //p' port.out)" "$tmp/answer" > lines 2> err
code=$?
cp lines out
while read -r word rest; do
	case $word in ok) ok "$rest" true ;; not) ok "${rest#ok }" false ;; esac
done < lines
ok "the clients came to their end" [ "$code" = 0 ]
finish
