#!/bin/sh
# AIPerf, GuideLLM, vllm bench serve and bfcl-eval's runner against assay serve on the CPU with a tiny model. ASSAY_CLIENTS names a folder with a
# virtual environment for each: aiperf, guidellm, vllm, bfcl (results/2026-11-28-cpu-2core/clients/README.md). usage: serve_load_clients.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
if [ -z "${ASSAY_CLIENTS:-}" ]; then
	echo "1..0 # SKIP ASSAY_CLIENTS names no folder with AIPerf, GuideLLM, vllm and bfcl-eval"
	exit 0
fi
clients=$(realpath "$ASSAY_CLIENTS")
scratch
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
"$assay" serve tiny --device cpu --port 0 --memory 1MB > out 2> err
if grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi

# up NAME OPTION..: the server is ready at $url and serves the model under this name
up() {
	name=$1
	shift
	: > serve.out # what the one before said is not this one's
	: > serve.err
	"$assay" serve tiny --served-model-name "$name" --device cpu --port 0 --no-telemetry --out "run$n" "$@" > serve.out 2> serve.err < /dev/null &
	server=$!
	for _ in $(seq 600); do grep -q '^API' serve.out && grep -q 'is ready' serve.err && break; sleep 0.1; done
	url=$(sed -n 's/^API and chat page: //p' serve.out)
}
down() {
	kill "$server" && wait "$server"
	server=
}
# asks CLIENT SCRIPT ARG..: its checks become those of this test
asks() {
	client=$1 script=$2
	shift 2
	if ! [ -x "$clients/$client/bin/python" ]; then
		n=$((n + 1))
		echo "ok $n - $client # SKIP $clients/$client is no virtual environment"
		return
	fi
	"$clients/$client/bin/python" -W ignore "$root/tests/oracles/$script" "$@" > lines 2> err
	code=$?
	cp lines out
	while read -r word rest; do
		case $word in ok) ok "$rest" true ;; not) ok "${rest#ok }" false ;; esac
	done < lines
	ok "$client came to its end" [ "$code" = 0 ]
}

up tiny --context 2048
asks vllm client_vllm.py "$url" tiny "$tmp/tiny" "$tmp/vllm"
asks aiperf client_aiperf.py "$url" tiny "$tmp/tiny" "$tmp/aiperf"
asks guidellm client_guidellm.py "$url" tiny "$tmp/tiny" "$tmp/guidellm"
down
for entry in gpt-4o-2024-11-20-FC openbmb/MiniCPM-SALA-FC Qwen/Qwen3-0.6B-FC; do
	case $entry in gpt*) name=${entry%-FC} ;; Qwen*) name=$tmp/tiny ;; *) name=$entry ;; esac
	up "$name" --context 8192 --chat-template qwen2.5
	asks bfcl client_bfcl.py "$url" "$entry" "$tmp/tiny" "$tmp/bfcl$n" 2
	down
done
finish
