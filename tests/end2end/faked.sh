#!/bin/sh
# The real binary on a GPU that is not there: the fake driver, cuBLASLt and NVML stage what a GPU's run meets. Searches and
# their budget, waiting for a busy GPU and for memory to come back, memory that does not suffice, a GPU lost on the way.
# usage: faked.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$tmp/nvml.json
cp "$root/tests/fake/h100.json" free.json
# 60 GB of its memory belong to somebody
sed 's/84980727808, 2162688\]/24980727808, 60002162688]/; s/84980727808, 540082176\]/24980727808, 60540082176]/' free.json > taken.json
put() { cp "$1" nvml.new && mv nvml.new nvml.json; } # at once: somebody may be reading
of_phase() { # RUN PHASE FIELD: of the last result of that phase
	sed -n "s/.*\"type\":\"result\".*\"phase\":\"$2\".*\"$3\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" "$1/journal.jsonl" | tail -n 1
}
stamp() { sed -n "s/.*\"t\":\\([0-9]*\\)[0-9]\\{6\\},\"type\":\"$2\",\"case\":$3,.*/\\1/p" "$1/journal.jsonl" | head -n 1; } # ms
wait_for() { # PATTERN FILE
	for _ in $(seq 1200); do
		grep -qs -- "$1" "$2" && return 0
		sleep 0.1
	done
	echo "# $1 never came to $2"
	return 1
}
gemm="probe gemm m=16 n=16 k=16 type=bf16 search=exhaustive --engine cublaslt --target gpu0 --seconds 50ms"

put free.json
"$assay" $gemm --search-seconds 60 --out search > out 2> err
ok "a search confirms its best in pairs" [ -n "$(of_phase search best best_ratio_low)" ]
ok "it has looked at all" [ "$(of_phase search best variants_left)" = 0 ]
ok "the faster heuristic has won" [ "$(of_phase search best variant)" = "algo66 128x128 stages64xauto" ]
ok "hopeless candidates were dropped" [ "$(of_phase search best variants_dropped)" -gt 0 ]
"$assay" $gemm --search-seconds 0.01 --out short > out 2> err
ok "a search over its budget says what is left" [ "$(of_phase short best variants_left)" -gt 0 ]
ok "and is no failure" says '"type":"end","case":0,"ending":"done","status":"ok"' short/journal.jsonl
FAKE_CUBLASLT=slow=1 "$assay" $(echo "$gemm" | sed "s,=16,=64,g") --search-seconds 60 --out stopped > out 2> err &
pid=$!
for _ in $(seq 1200); do # the case itself has been verified thrice, each variant once before it is timed: some have been by the eighth
	[ "$(cat stopped/journal.jsonl 2> /dev/null | grep -c '"phase":"verify","t0"')" -lt 8 ] || break
	sleep 0.1
done
kill -INT $pid
wait $pid
ok "a stopped search is inconclusive" [ $? = 2 ]
ok "and keeps the best so far" [ -n "$(of_phase stopped best nominated_ratio)" ]
ok "with its name" [ -n "$(of_phase stopped best variant)" ]
ok "and what was left" [ "$(of_phase stopped best variants_left)" -gt 0 ]
ok "the case itself was cancelled" says '"ending":"cancelled"' stopped/journal.jsonl

# A busy GPU blocks, unless told to wait or to run beside.
put taken.json
dispatch="probe dispatch what=launch --target gpu0"
"$assay" $dispatch --out busy > out 2> err
ok "a busy GPU is unknown" [ $? = 2 ]
ok "and says who" says '"cause":"busy"' busy/journal.jsonl
ok "nothing ran on it" sh -c '! grep -q "\"type\":\"begin\"" busy/journal.jsonl'
"$assay" $dispatch --wait --out waited > out 2> waited.err &
pid=$!
wait_for waiting: waited.err
ok "--wait says what it waits for" says 'waiting: .*GiB of its memory are in use' waited.err
ok "and measures nothing meanwhile" [ ! -e waited ]
put free.json
wait $pid
ok "when the GPU is free it runs" says '"type":"end","case":0,"ending":"done","status":"ok"' waited/journal.jsonl
put taken.json
"$assay" $dispatch --wait --out never > out 2> never.err &
pid=$!
wait_for waiting: never.err
kill -INT $pid
wait $pid
ok "waiting ends on request" [ $? = 2 ]
ok "and leaves nothing" [ ! -e never ]
"$assay" $dispatch --beside --out beside > out 2> err
ok "--beside runs, and does not trust it" says untrusted beside/results.csv

# A worker that was ended by force: the next case waits until its memory is back.
cat > ended.yaml << LIST
name: ended
cases:
  - {probe: dispatch, target: gpu0, phases: burst, seconds: 60s, limit: 1s, options: {what: launch}}
  - {probe: dispatch, target: gpu0, phases: burst, options: {what: graph}}
LIST
put free.json
"$assay" check --suite ended.yaml --out back > out 2> err &
pid=$!
wait_for '"type":"begin","case":0' back/journal.jsonl
put taken.json
wait_for '"type":"end","case":0,"ending":"timed_out"' back/journal.jsonl
sleep 0.3
ok "the next case waits for the memory" sh -c '! grep -q "\"type\":\"begin\",\"case\":1" back/journal.jsonl'
put free.json
wait $pid
ok "and runs when it is back" says '"type":"end","case":1,"ending":"done","status":"ok"' back/journal.jsonl
ok "in a worker of its own" [ "$(grep -o '"pid":[0-9]*' back/journal.jsonl | sort -u | wc -l)" = 2 ]
"$assay" check --suite ended.yaml --out gone > out 2> err &
pid=$!
wait_for '"type":"begin","case":0' gone/journal.jsonl
put taken.json
wait $pid
ok "memory that never comes back is said after five seconds" says 'GiB of GPU memory are still in use after a worker was ended' err
ok "and the case runs all the same" says '"type":"end","case":1,"ending":"done"' gone/journal.jsonl
waited=$(($(stamp gone begin 1) - $(stamp gone end 0)))
ok "not earlier" [ "$waited" -ge 5000 ]
put free.json

# Memory that does not suffice, a call that fails, a GPU that is lost: cause and exit code.
FAKE_CUDA="cuMemAlloc_v2=2" "$assay" probe memory op=read --target gpu0 --out full > out 2> err
ok "device memory that is refused is inconclusive" [ $? = 2 ]
ok "its verdict is error, its cause no_memory" judged 0 full error no_memory
ok "as it ended" says '"status":"no_resource","cause":"no_memory"' full/journal.jsonl
cat > lost.yaml << LIST
name: lost
cases:
  - {probe: dispatch, target: gpu0, phases: burst, seconds: 1s, options: {what: launch}}
  - {probe: dispatch, target: gpu0, phases: burst, options: {what: graph}}
  - {probe: memory, target: cpu, phases: burst, options: {op: read, size: 1MiB}}
LIST
FAKE_CUDA="cuLaunchKernel=999@500" "$assay" check --suite lost.yaml --out lost > out 2> err
code=$?
ok "a GPU lost in a case is in the journal" says '"type":"end","case":0,.*"status":"lost","cause":"gpu_lost"' lost/journal.jsonl
ok "its later cases are not run" says '"type":"end","case":1,"ending":"not_run".*"cause":"quarantined"' lost/journal.jsonl
ok "the others go on" says '"type":"end","case":2,"ending":"done","status":"ok"' lost/journal.jsonl
ok "the verdict is error, the cause gpu_lost" judged 0 lost error gpu_lost
ok "what was not run is unknown, quarantined" judged 1 lost unknown quarantined
ok "and the run is inconclusive" [ "$code" = 2 ]
FAKE_CUDA="cuLaunchKernel=700@500" "$assay" check --suite lost.yaml --out broken > out 2> err
code=$?
ok "a kernel's fault is its case's own" says '"type":"end","case":0,"ending":"done","status":"vendor","cause":"vendor_call"' broken/journal.jsonl
ok "the verdict is error, the cause vendor_call" judged 0 broken error vendor_call
ok "and the run is inconclusive" [ "$code" = 2 ]
ok "the next case has a context of its own" says '"type":"end","case":1,"ending":"done","status":"ok"' broken/journal.jsonl
finish
