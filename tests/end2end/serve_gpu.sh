#!/bin/sh
# assay serve on a GPU that is not there (the fake driver): its plan is for the GPU, and a GPU that is lost in the middle of an answer costs this
# answer and a start of the engine. usage: serve_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
server=
trap '[ -z "$server" ] || kill "$server"; rm -rf "$tmp"' EXIT
expect 0 make-model --shape tiny-64 --seed 3 --out tiny || { cat err; exit 1; }
if ! expect 0 tokens tiny x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
if ! "$assay" list kernels | grep -q decode; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi

ok "a plan" expect 0 serve tiny --plan
ok "is for the GPU" says '^device  *NVIDIA H100' out
ok "one for the GPU needs no --memory" expect 0 serve tiny --plan --device gpu --json
ok "and has its name" says '"device": "NVIDIA H100' out
all=$(sed -n 's/^ "bytes": \([0-9]*\),/\1/p' out)
ok "less memory is planned as stated" expect 0 serve tiny --plan --memory 130MB --json
ok "on the same GPU" eval 'says "\"device\": \"NVIDIA H100" out && [ "$(sed -n "s/^ \"bytes\": \([0-9]*\),/\1/p" out)" -lt "$all" ]'
ok "the CPU if that is asked for" eval 'expect 0 serve tiny --plan --device cpu && says "^device  *cpu$" out'
# taken MIB: what the plan takes of a GPU with so much memory. Some of it is the driver's.
taken() { FAKE_CUDA=memory=$1 "$assay" serve tiny --plan --json --max-sequences 512 2> err | sed -n 's/^ "bytes": \([0-9]*\),/\1/p'; }
more=$(($(taken 20000) - $(taken 10000)))
ok "of 10,000 MiB more, the plan takes 90 %" [ $((more / 1048576)) = 9000 ]
FAKE_CUDA=memory=2049 "$assay" serve tiny --plan > out 2> err
ok "a GPU that is full leaves the CPU, as in the server" says '^device  *cpu$' out
ok "which is told" says 'on the CPU (--device gpu would fail)' err

# Each engine process loses the GPU in its 30th step of one row. Other programs have 3000 MiB of its memory.
export FAKE_CUDA=cuLaunchCooperativeKernel=719@30,context=3000 FAKE_CUDA_IN=__engine
tries() { for _ in $(seq 600); do "$@" && return 0; sleep 0.1; done; return 1; }
export FAKE_NVML_XID=48,79@0
"$assay" serve tiny --device gpu --port 0 --context 256 --max-sequences 1 --memory 128MB > serve.out 2> serve.err < /dev/null &
server=$!
tries grep -q '^API' serve.out
url=$(sed -n 's/^API and chat page: //p' serve.out)
ready() { curl -s "$url/ready" > out; says '"ready"' out; }
complete() { curl -sN "$url/v1/completions" -d "{\"prompt\":\"Hello\",\"ignore_eos\":true,$1}" > out; } # MEMBERS
# For half a second, until the next engine begins to load.
refused() { for _ in $(seq 1000); do curl -s "$url/ready" > out; says '719' out && return 0; done; return 1; }
ok "the server is ready" tries ready
ok "it says that others use the GPU" says '^another program has memory on this GPU' serve.out
for xid in 48 79; do ok "Xid $xid of the driver is logged" tries grep -q "warning: the driver reported Xid $xid on GPU " serve.err; done
ok "each once" [ "$(grep -c "reported Xid" serve.err)" = 2 ]
ok "an answer" eval 'complete "\"max_tokens\":5" && says "\"completion_tokens\":5" out'
ok "a stream in which the GPU is lost has tokens" eval 'complete "\"max_tokens\":100,\"stream\":true" && says "\"text\":\"" out'
ok "and ends with the error" says '^data: {"error":{.*"code":"engine_lost"' out
ok "the server says why it is not ready, in the driver's words" refused
ok "with the code" says '"code":"engine_unavailable"' out
ok "and with the Xid before it" says 'the driver reported Xid 79 on GPU [0-9a-f:.]* [0-9.]* s before' out
ok "the engine comes back" tries ready
ok "and answers" eval 'complete "\"max_tokens\":5" && says "\"completion_tokens\":5" out'
ok "its second start is counted" eval 'curl -s "$url/metrics" > out && says "^assay_engine_starts_total{.*} 2$" out'
ok "the log names the call that failed" says 'the engine ended: cuLaunchCooperativeKernel: .*719.*; it starts again' serve.err
kill "$server"
wait "$server"
ok "it ends well" [ $? = 0 ]
server=
finish
