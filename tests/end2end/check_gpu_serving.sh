#!/bin/sh
# tools/check-gpu-serving with a tiny model on the CPU; the peer is assay's own server.
# usage: check_gpu_serving.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
export ASSAY="$assay" SHAPE=tiny DEVICE=cpu INPUT=40 OUTPUT=4 SECONDS_EACH=1 WARMUP=0 SWEEP_SECONDS=1 USERS=2 SLO=chat
. "$root/tests/end2end/ports.sh"
ports
export PORT=$port
export ASSAY_TELEMETRY_LIMIT_MS=5000
serving() { "$root/tools/check-gpu-serving" "$@" > said 2>&1; }
run_there() { [ -s "$1/SUMMARY.md" ] && [ -s "$1.json" ]; }

export PEER="'$assay' serve \$MODEL --device cpu --port \$PORT --served-model-name m --out '$tmp/peer-server'"
ok "model, peer and own run" serving out model peer own table
for run in peer-auto-saturated peer-auto-50 peer-auto-80 peer-auto-capacity own-auto-saturated own-auto-50 own-auto-80 own-auto-capacity; do
	ok "$run has a summary and figures" run_there "out/$run"
done
ok "the peer's saturated rate is kept" sh -c 'awk "{ exit !(\$1 > 0) }" out/rate-auto'
ok "both run at the same rate" sh -c 'a=$(grep -o "\"achieved_rate\": [0-9.]*" out/peer-auto-50.json) b=$(grep -o "\"achieved_rate\": [0-9.]*" out/own-auto-50.json); [ -n "$a" ] && [ -n "$b" ] &&
	awk "BEGIN { r = ${a##* } / ${b##* }; exit !(r > 0.5 && r < 2) }"'
ok "the table compares each pair" sh -c '[ "$(grep -c "^== own-auto" out/table.txt)" = 4 ]'
ok "adapters and schema run" serving out adapters schema
ok "the adapters' rate is compared with the one without" grep -qE 'ratio [0-9]+\.[0-9]+' out/adapters.txt
ok "the answers under a schema are measured" run_there out/schema-json
ok "clients that leave are timed" env CANCEL_TOKENS=8000 CANCEL_LIMIT=60000 "$root/tools/check-gpu-serving" out cancel
ok "which the steps say" grep -qE '^cancel: idle after [0-9]+ ms \(median of [0-9]+; [0-9]+ at most\)' out/steps.txt
echo 5 > out/rate-auto
# Too short for its verdict on memory: a CPU's engine still takes new pages of its cache.
env SOAK_SECONDS=4 "$root/tools/check-gpu-serving" out soak > said 2>&1
ok "a soak runs without errors" grep -qE '^soak: # [0-9]+ answers, [0-9]+ clients that left, 0 errors' out/steps.txt
ok ".. and tells its memory" grep -q '^soak: # memory in KiB, front end, engine and perhaps GPU: [0-9]' out/steps.txt
ok "and with its load" grep -q '^soak: # load: exit code [02], .*failed:0' out/steps.txt
ok "no server is left" sh -c '! curl -sf "http://127.0.0.1:$PORT/v1/models"'

PEER="echo no such server; exit 3"
ok "a peer that does not start fails its step" sh -c '! "$0" other peer > said 2>&1' "$root/tools/check-gpu-serving"
ok "which the steps say" grep -q "peer-auto: its server did not start; see peer-auto.log" other/steps.txt
unset PEER
ok "without a search" env SWEEP_SECONDS=0 "$root/tools/check-gpu-serving" quick model own
ok "there is no capacity" sh -c '[ -s quick/own-auto-80.json ] && ! [ -e quick/own-auto-capacity ]'
ok "without a peer its step is skipped" serving third peer
ok "and says why" grep -q "peer: skipped, PEER names no command" third/steps.txt
cp out/model/tokenizer.json alone.json
ok "with a tokenizer of the user's" env TOKENIZER="$tmp/alone.json" "$root/tools/check-gpu-serving" fourth model adapters schema
ok "there are rates with adapters" grep -qE 'ratio [0-9]+\.[0-9]+' fourth/adapters.txt
ok "and answers under a schema" run_there fourth/schema-json
ok "an unknown step is refused" sh -c '"$0" third nothing > said 2>&1; [ $? = 64 ]' "$root/tools/check-gpu-serving"
finish
