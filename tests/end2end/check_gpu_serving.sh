#!/bin/sh
# tools/check-gpu-serving with a tiny model on the CPU; the peer is assay's own server.
# usage: check_gpu_serving.sh ASSAY ROOT GREEDY_WAYS FAKES
set -u
unset ASSAY_SMOLLM2 ASSAY_BFCL
assay=$(realpath "$1") root=$(realpath "$2") ways=$(realpath "$3") fakes=$(realpath "$4")
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
# GPUs that are not there, so that the runs have an energy
known='[0-9.e+-]+|not known'
[ ! -e "$fakes/libnvidia-ml.so.1" ] || { LD_LIBRARY_PATH=$fakes FAKE_NVML_FILE=$root/tests/fake/h100x4.json known='[0-9.e+-]+'; export LD_LIBRARY_PATH FAKE_NVML_FILE; }
ok "model, peer and own run" serving out model peer own table
for run in peer-auto-saturated peer-auto-50 peer-auto-80 peer-auto-capacity own-auto-saturated own-auto-50 own-auto-80 own-auto-capacity; do
	ok "$run has a summary and figures" run_there "out/$run"
done
ok "the peer's saturated rate is kept" sh -c 'awk "{ exit !(\$1 > 0) }" out/rate-auto'
ok "both run at the same rate" sh -c 'a=$(grep -o "\"achieved_rate\": [0-9.]*" out/peer-auto-50.json) b=$(grep -o "\"achieved_rate\": [0-9.]*" out/own-auto-50.json); [ -n "$a" ] && [ -n "$b" ] &&
	awk "BEGIN { r = ${a##* } / ${b##* }; exit !(r > 0.5 && r < 2) }"'
ok "the table compares each pair" sh -c '[ "$(grep -c "^== own-auto" out/table.txt)" = 4 ]'
ok "with the ratio of each percentile, its interval and the number of requests" sh -c '[ "$(grep -cE "^(TTFT|ITL|E2E) +P(50|90|95|99) +[0-9.]+ +[0-9.]+ +[0-9.]+  [0-9.]+ to [0-9.]+$" out/table.txt)" = 24 ] &&
	[ "$(grep -cE "^requests: [1-9][0-9]*, due in 1 s" out/table.txt)" = 2 ]'
ok "and with how many of those that were due" sh -c '[ "$(grep -cE "^(base|other): [1-9][0-9]* of [1-9][0-9]* requests answered$" out/table.txt)" = 4 ]'
cp -r out/own-auto-50 lost && sed -i 's/"status":200/"status":500/' lost/requests.jsonl && sed -i '1s/"status":500/"status":200/' lost/requests.jsonl
ok "a run that lost requests is told" sh -c '! "$0" out/peer-auto-50 lost > said 2>&1 && grep -q "other did not answer [1-9]" said || grep -q "no request was due" said' "$root/tools/latency-ratio"
for run in peer own; do
	ok "and ends with the capacity of the ${run}, its energy and its price" grep -qE "^$run-auto-capacity: [0-9.e+-]+ requests/s \(with 95 % confidence [0-9.e+-]+; missed at [0-9.e+-]+\); J per output token ($known), per token ($known); dollars per million output tokens ($known) to ($known), of electricity ($known)" out/table.txt
done
unset LD_LIBRARY_PATH FAKE_NVML_FILE
ok "starts of the server are timed until the first token" env FIRST_ROUNDS=3 "$root/tools/check-gpu-serving" out first
ok "which the steps say" grep -qE '^first: [1-9][0-9]* ms from the start of the process to the first token \(median of 3; slowest [1-9][0-9]*\), limit 5000$' out/steps.txt
ok "a start beyond the limit fails" sh -c '! FIRST_ROUNDS=1 FIRST_LIMIT=1 "$0" slow model first > said 2>&1 && grep -qE "^first: .* limit 1$" slow/steps.txt' "$root/tools/check-gpu-serving"
ok "so does a server that ends" sh -c '! MODEL=/dev/null "$0" none first > said 2>&1 && grep -q "^first: the server of start 0 ended or gave no token; see first-0.log" none/steps.txt' "$root/tools/check-gpu-serving"
# The persistent kernel: on a GPU that is not there, if this build has kernels.
export TIME_ENGINE="$(dirname "$ways")/time_engine"
ok "a CPU has no persistent kernel, which fails" env SEQUENCES=4 sh -c '! "$0" out single > said 2>&1 && grep -q "^single: bf16: time_engine: this model has no persistent kernel on cpu" out/steps.txt' "$root/tools/check-gpu-serving"
if [ -e "$fakes/libcuda.so.1" ] && "$assay" list kernels | grep -q decode; then
	single() (all_libraries; exec env LD_LIBRARY_PATH="$fakes" FAKE_NVML_FILE="$root/tests/fake/h100.json" DEVICE=gpu SHAPE=tiny-64 SEQUENCES=4 ROUNDS=2 STEPS=20 "$root/tools/check-gpu-serving" single model single > said 2>&1)
	ok "on a GPU both kinds of steps are timed" single
	for weights in bf16 fp8; do
		ok ".. $weights" grep -qE "^single: $weights: persistent kernel [0-9.]+ ms, ordinary step [0-9.]+ ms, ratio [0-9.]+ \([0-9.]+ to [0-9.]+\)$" single/steps.txt
	done
fi
# In place of vLLM, a program with figures of its own.
printf '#!/bin/sh\n[ "$2" != b1 ] || { echo "no such thing" >&2; exit 3; }\necho "{\\"what\\": \\"start\\", \\"seconds\\": 1}"\necho "{\\"what\\": \\"b2\\", \\"by\\": \\"peer\\", \\"batch\\": 2, \\"step_ms\\": 100000, \\"tokens_per_s\\": 2}"\necho "{\\"what\\": \\"smoke\\", \\"out_per_s\\": 1, \\"all_per_s\\": 0.5}"\necho "$1 $2 $SEQUENCES" >> asked\n' > faster && chmod +x faster
engine() (exec env PEER_ENGINE="$tmp/faster" OWN_SEQUENCES=4 PEER_SEQUENCES=3 MODEL="$tmp/out/model" ENGINE_RUNS="$1" "$root/tools/check-gpu-serving" steps engine > said 2>&1)
ok "the engine's steps are timed beside a peer's" engine bf16:b2,smoke
for line in 'bf16 b2: [0-9.]+ ms, the peer 100000, ratio 0\.[0-9]+' 'bf16 smoke: [0-9]+ tokens/s, the peer 0.5, ratio [0-9.]+'; do
	ok ".. $line" grep -qxE "$line" steps/engine.txt
done
ok "each with its own sequences" grep -qx "bf16 b2,smoke 3" asked
ok "a ratio is that of the figures" sh -c 'ms=$(sed -n "s/^bf16 b2: \([0-9.]*\) ms.*/\1/p" steps/engine.txt) && grep -qx "bf16 b2: $ms ms, the peer 100000, ratio $(awk "BEGIN { printf \"%.3f\", $ms / 100000 }")" steps/engine.txt'
ok "a peer that fails fails the step" eval '! engine bf16:b1 && grep -qxE "bf16 b1: [0-9.]+ ms" steps/engine.txt && grep -q "^engine: no such thing" steps/steps.txt'
ok "so does an engine without this precision" eval '! engine fp8:b2 && grep -q "^engine: time_engine: .*FP8 weights need a GPU" steps/steps.txt'
ok "so does a precision that is none" eval '! engine int3:b2 && grep -q "^engine: int3 is no precision" steps/steps.txt'
ok "adapters and schema run" serving out adapters schema
ok "the adapters' rate is compared with the one without" grep -qE 'ratio [0-9]+\.[0-9]+' out/adapters.txt
ok "the answers under a schema are measured" run_there out/schema-json
ok "clients that leave are timed" env CANCEL_TOKENS=8000 CANCEL_LIMIT=60000 "$root/tools/check-gpu-serving" out cancel
ok "which the steps say" grep -qE '^cancel: the next client has its token after [0-9]+ ms \(median of [0-9]+; [0-9]+ at most\)' out/steps.txt
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
# 55 requests by a width of 1, at a rate that makes it three seconds and more.
mkdir wide narrow
echo 20 > wide/rate-auto
echo 20 > narrow/rate-auto
ok "a wanted width of the interval gives the length of a run" env SWEEP_SECONDS=0 SATURATED_SECONDS=1 MODEL="$tmp/out/model" WIDTH=1 PERCENTS=80 SECONDS_MOST=3 "$root/tools/check-gpu-serving" narrow own
ok "up to the most that a run may take" grep -q '"window_s": 3.0' narrow/own-auto-80.json
ok "and not beyond what it needs" env SWEEP_SECONDS=0 SATURATED_SECONDS=1 MODEL="$tmp/out/model" WIDTH=1 PERCENTS=80 "$root/tools/check-gpu-serving" wide own
ok "which is 55 requests divided by the square of the width" grep -q '"window_s": 4.0' wide/own-auto-80.json
ok "there is no capacity" sh -c '[ -s quick/own-auto-80.json ] && ! [ -e quick/own-auto-capacity ]'
ok "without a peer its step is skipped" serving third peer
ok "and says why" grep -q "peer: skipped, PEER names no command" third/steps.txt
cp out/model/tokenizer.json alone.json
ok "with a tokenizer of the user's" env TOKENIZER="$tmp/alone.json" "$root/tools/check-gpu-serving" fourth model adapters schema
ok "there are rates with adapters" grep -qE 'ratio [0-9]+\.[0-9]+' fourth/adapters.txt
ok "and answers under a schema" run_there fourth/schema-json
# Accuracy of a tiny model in place of a real one, and greedy requests in all ways.
for i in $(seq 40); do
	tool='{"type":"function","function":{"name":"get_'$i'","parameters":{"type":"object","properties":{"n":{"enum":['$i']}},"required":["n"],"additionalProperties":false}}}'
	call='{"type":"function","function":{"name":"get_'$i'","arguments":{"n":'$i'}}}'
	echo '{"messages":[{"role":"user","content":"'$i'?"},{"role":"assistant","content":"","tool_calls":['$call']}],"tools":['$tool']}'
done > calls.jsonl
export ACCURACY_STEPS=2 ACCURACY_BATCH=2 ACCURACY_TOKENS=300 ACCURACY_TEMPERATURE=1
ok "the accuracy of a model is measured" env ASSAY_SMOLLM2="$tmp/out/model" ASSAY_BFCL="$tmp/calls.jsonl" "$root/tools/check-gpu-serving" right accuracy
for precision in file fp8-cache; do ok ".. in $precision" grep -qE "^accuracy: $precision .* (reference|pass)$" right/steps.txt; done
ok "with a grammar, answers that are not cut have calls" grep -qE '^accuracy: grammar required: 6 answers, [0-5] cut, 0 refused; ([1-6]) of the other \1 have readable calls' right/steps.txt
ok "and without one they have none" grep -qE '^accuracy: grammar none: 6 answers, [0-9] cut, 0 refused; 0 of' right/steps.txt
ok "without a model it is skipped" serving skipped accuracy
ok ".. which is said" grep -q '^accuracy: skipped, because ASSAY_SMOLLM2' skipped/steps.txt
ok "rows that are none fail" sh -c '! ASSAY_SMOLLM2="$1" ASSAY_BFCL=said "$0" wrong accuracy > /dev/null 2>&1' "$root/tools/check-gpu-serving" "$tmp/out/model"
export GREEDY_WAYS="$ways" GREEDY_SHAPE=tiny GREEDY_PROMPTS=24
ok "greedy requests run in all ways" serving ways greedy
for mode in deterministic ordinary; do
	ok "$mode: their ids are equal" grep -qx "greedy: random, $mode: 12 of 12 ways pass, 0 answers differ, exit code 0" ways/steps.txt
done
ok "with preemptions" grep -q '"what": "preempted", "deterministic": false, "adapters": 3, .*"preemptions": [1-9]' ways/greedy/random-ordinary.jsonl
ok "a planted fault is found" sh -c '! PLANT=batched "$0" planted greedy > /dev/null 2>&1 && grep -q "^greedy: random, deterministic: 10 of 12 ways pass, [1-9]" planted/steps.txt' "$root/tools/check-gpu-serving"
ok ".. by the reference too" grep -qE '^\{"what": "batched", "deterministic": false, .*"different": ([0-9]+), "beyond_error": \1, .*"verdict": "fail"' planted/greedy/random-ordinary.jsonl
# A fault in the run that measures the error: the other ways are then within twice that error.
ERROR_MOST=0.001 PLANT=alone "$ways" out/model cpu 24 > strict 2>&1
ok "an error beyond its limit fails" [ $? = 1 ]
ok ".. and is named" grep -qE '^\{"what": "error", .*"bf16_error": 0.001000, "limit": 0.001000, "within_limits": false' strict
BF16_ERROR=100 PLANT=batched "$ways" out/model cpu 24 > stated 2>&1
ok "unless the error may be that large" grep -qE '^\{"what": "batched", .*"different": [1-9][0-9]*, "beyond_error": 0, .*"verdict": "pass"' stated

# A program in place of assay that ends with each code of `assay comprehensive`.
printf '#!/bin/sh\necho "stage 2 failed"\nexit $CODE\n' > ended && chmod +x ended
comprehensive() { env CODE="$1" ASSAY="$tmp/ended" "$root/tools/check-gpu-serving" "ended$1" comprehensive > said 2>&1; }
ok "a failed stage of the acceptance test fails its step" eval "! comprehensive 1"
ok "which the steps say" grep -qx "comprehensive: exit code 1: stage 2 failed" ended1/steps.txt
ok "an inconclusive one does not" comprehensive 2
ok "but is said" grep -q "^comprehensive: exit code 2: a core stage" ended2/steps.txt
ok "and one that passes" comprehensive 0
ok "any other end fails" eval '! comprehensive 75'

ok "an unknown step is refused" sh -c '"$0" third nothing > said 2>&1; [ $? = 64 ]' "$root/tools/check-gpu-serving"
finish
