#!/bin/sh
# What changes on a GPU while a run runs, staged in the fake NVML and CUDA: counters that rise, NVML that stops to answer, a
# GPU that is lost, a call of NVML that hangs in the worker, a reboot between start and resumption. Exit code, verdict, cause.
# usage: changes.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
FAKE_NVML_FILE=$root/tests/fake/h100.json
pci=0000:8d:00.0
gemm="probe gemm m=16 n=16 k=16 type=bf16 --engine cublaslt --target gpu0 --seconds 50ms"
reason() { # RUN TEXT: in the reasons of its table
	tr '\n' ' ' < "$1/results.csv" | grep -q -- "$2"
}

# A counter that rises between the reading before and the one after, of a suite with one timed case alone. The readings are
# the processes "__facts counters": the second of them answers otherwise.
rises() { # EXIT VERDICT CAUSE KEY=VALUE
	name=$4
	rm -rf run counted
	FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted FAKE_NVML_FROM=2 FAKE_NVML_VALUE=$4 expect "$1" $gemm --out run
	said=$?
	[ "$said" = 0 ] && judged 0 run "$2" "$3"
}
ok "a sound run holds" expect 0 $gemm --out sound
ok "it has a reading before its case and one after" [ "$(grep -c '"type":"health"' sound/journal.jsonl)" = 2 ]
ok "an uncorrected error that comes in the run fails it" rises 1 fail ecc ecc_volatile_uncorrected=1
ok "and names the GPU and the case" reason run "ecc_volatile_uncorrected rose by 1 to 1 on $pci in this case"
FAKE_NVML_RET=remapped_rows=3 # its fields answer then, one by one
export FAKE_NVML_RET
ok "a remap for an uncorrected error fails it" rises 1 fail ecc remapped_uncorrectable=1
ok "a remap that comes to wait fails it" rises 1 fail remap_pending remap_pending=1
ok "a remap that comes to fail fails it" rises 1 fail remap_failed remap_failed=1
unset FAKE_NVML_RET
ok "so does a recovery action" rises 1 fail recovery_action recovery_action=1
ok "two seconds slowed for heat fail it" rises 1 fail thermal_hw violation_hw_thermal=2e9
ok "two seconds under the power brake fail it" rises 1 fail power_brake violation_power_brake=2e9
rm -rf run counted
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted FAKE_NVML_FROM=2 FAKE_NVML_VALUE=violation_hw_thermal=5e8 "$assay" $gemm --out run > out 2> err
ok "half a second slowed for heat is no failure" [ $? = 0 ]
ok "corrected errors warn" rises 0 warn ecc ecc_volatile_corrected=5
ok "PCIe replays warn" rises 0 warn pcie_errors pcie_replays=50
rm -rf run counted
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted FAKE_NVML_FROM=2 FAKE_NVML_VALUE=violation_power=9e9 "$assay" $gemm --out run > out 2> err
ok "time under the power cap only explains" [ $? = 0 ]
ok "and is in the journal" says '"violation_power_s":9' run/journal.jsonl
sed 's/"ecc_volatile_uncorrected": \[0, 0\]/"ecc_volatile_uncorrected": [0, 4]/g' "$root/tests/fake/h100.json" > four.json
rm -rf run counted
FAKE_NVML_FILE=four.json FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted FAKE_NVML_FROM=2 \
	FAKE_NVML_VALUE=ecc_volatile_uncorrected=0 "$assay" $gemm --out run > out 2> err
ok "a count that fell is no pass" [ $? = 2 ]
ok "but counter_reset" judged 0 run unknown counter_reset

# Two cases, the first of which crashes: the reading after it tells whose it was.
cat > two.yaml << LIST
name: two
cases:
  - {probe: dispatch, target: gpu0, phases: burst, seconds: 60s, limit: 1s, options: {what: launch}}
  - {probe: dispatch, target: gpu0, phases: burst, require: nothing, options: {what: graph}}
LIST
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted2 FAKE_NVML_FROM=2 FAKE_NVML_VALUE=ecc_volatile_uncorrected=1 \
	"$assay" check --suite two.yaml --out two > out 2> err
ok "a case that ended badly and an error in it fail the run" [ $? = 1 ]
ok "the finding is that case's" judged 0 two fail ecc
ok "not the next one's" sh -c '! grep "^1," two/results.csv | grep -q "\"fail\""'
ok "a reading stands between the two" says '"type":"health","when":"between"' two/journal.jsonl

# NVML stops to answer in the sampler. The fake driver's waits make the cases as long as telemetry needs to show it, whatever the machine is.
cat > dark.yaml << LIST
name: dark
cases:
  - {probe: dispatch, target: gpu0, phases: burst, require: measured, seconds: 1s, options: {what: launch}}
  - {probe: dispatch, target: gpu0, phases: burst, require: measured, seconds: 1s, options: {what: graph}}
  - {probe: dispatch, target: gpu0, phases: burst, require: measured, seconds: 1s, options: {what: graph, nodes: 10}}
LIST
sed 's/seconds: 1s/seconds: 2s/' dark.yaml > long.yaml
FAKE_CUDA_WAIT_MS=4 "$assay" check --suite long.yaml --out lit > out 2> err
ok "between cases it reads every five seconds" says '"type":"health","when":"between"' lit/journal.jsonl
export FAKE_CUDA_WAIT_MS=1
FAKE_NVML_IN=__sample FAKE_NVML_AFTER=0.2 FAKE_NVML_LOST=0 "$assay" check --suite dark.yaml --out dark > out 2> err
code=$?
ok "NVML alone silent is inconclusive" [ "$code" = 2 ]
ok "the case in which it fell silent is telemetry_lost" judged 0 dark unknown telemetry_lost
ok "because CUDA still reaches the GPU" reason dark "CUDA still reaches it"
ok "a later case whose window has no sample is unknown" judged 1 dark unknown telemetry_lost
ok "stderr says that NVML does not answer" says "$pci: NVML has stopped answering for this GPU" err
ok "and what that means" says 'its telemetry is lost, and later cases' err
ok "the later cases ran" says '"type":"end","case":1,"ending":"done","status":"ok"' dark/journal.jsonl
FAKE_NVML_IN=__sample FAKE_NVML_AFTER=0.2 FAKE_NVML_LOST=0 FAKE_CUDA_IN=alive FAKE_CUDA="cuDevicePrimaryCtxRetain=999" \
	"$assay" check --suite dark.yaml --out gone > out 2> err
code=$?
ok "NVML and CUDA silent is inconclusive" [ "$code" = 2 ]
ok "the GPU is lost" judged 0 gone error gpu_lost
ok "by what both say" reason gone 'CUDA does not reach it (cuDevicePrimaryCtxRetain answers 999)'
ok "its later cases are not run" says '"type":"end","case":1,"ending":"not_run".*"cause":"quarantined"' gone/journal.jsonl
ok "stderr says so" says "the GPU is lost" err
for answer in cuInit=803 cuMemAlloc_v2=2 cuDevicePrimaryCtxRetain=46; do
	FAKE_NVML_IN=__sample FAKE_NVML_AFTER=0.2 FAKE_NVML_LOST=0 FAKE_CUDA_IN=alive FAKE_CUDA=$answer \
		"$assay" check --suite dark.yaml --out "kept.$answer" > out 2> err
	ok "CUDA's $answer does not say that the GPU is lost" judged 0 "kept.$answer" unknown telemetry_lost
	ok "but why CUDA could not be asked" reason "kept.$answer" "CUDA could not be queried: ${answer%=*} answers ${answer#*=}"
	ok "its later cases run" says '"type":"end","case":1,"ending":"done"' "kept.$answer/journal.jsonl"
done
unset FAKE_CUDA_WAIT_MS
FAKE_NVML_IN=__sample FAKE_NVML_CRASH=count "$assay" $gemm --out unheard > out 2> err
ok "a sampler that dies before a word leaves a GPU's case unknown" [ $? = 2 ]
ok "as telemetry_lost" judged 0 unheard unknown telemetry_lost
ok "stderr says that telemetry has a gap" says 'telemetry has a gap: the sampler died' err
ok "without telemetry nothing is missed" expect 0 $gemm --no-telemetry --out without
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted3 FAKE_NVML_FROM=2 FAKE_NVML_LOST=0 "$assay" $gemm --out helper > out 2> err
ok "NVML that answers the reading after no more is lost telemetry" [ $? = 2 ]
ok "as the table says" judged 0 helper unknown telemetry_lost
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted4 FAKE_NVML_FROM=2 FAKE_NVML_RET=pci=999 FAKE_CUDA_IN=alive \
	FAKE_CUDA=cuDevicePrimaryCtxRetain=999 "$assay" $gemm --out refused > out 2> err
ok "NVML that refuses without a word of a lost GPU is lost telemetry, even if CUDA fails" judged 0 refused unknown telemetry_lost
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted5 FAKE_NVML_FROM=2 FAKE_NVML_RET=pci=18 "$assay" $gemm --out exchanged > out 2> err
ok "other releases of driver and NVML are lost telemetry while CUDA answers" judged 0 exchanged unknown telemetry_lost
FAKE_NVML_IN=counters FAKE_NVML_COUNTED=counted6 FAKE_NVML_FROM=2 FAKE_NVML_UNTIL=2 FAKE_NVML_HANG=init ASSAY_FACTS_LIMIT_MS=5000 \
	"$assay" $gemm --out late > out 2> err
ok "a reading that is late once is asked for again" [ $? = 0 ]
ok "and journaled" [ "$(grep -c '"type":"health"' late/journal.jsonl)" = 2 ]

# A counter that one reading lacks: the next one that tells it is held against the one before.
cp "$FAKE_NVML_FILE" sound.json
sed 's/"ecc_volatile_uncorrected": \[0, 0\]/"ecc_volatile_uncorrected": [0, 1]/g' sound.json > one.json
cp sound.json live.json
FAKE_NVML_FILE=$PWD/live.json FAKE_NVML_IN=counters FAKE_NVML_COUNTED=$PWD/counted7 FAKE_NVML_FROM=2 FAKE_NVML_UNTIL=2 \
	FAKE_NVML_RET=ecc_volatile_uncorrected=4 "$assay" check --suite two.yaml --out gap > out 2> err &
pid=$!
until grep -qs '"type":"begin","case":0' gap/journal.jsonl || ! kill -0 $pid; do sleep 0.05; done
mv one.json live.json
wait $pid
code=$?
ok "a rise beyond a reading that lacks the counter fails the run" [ $code = 1 ]
ok "as ecc" judged 0 gap fail ecc
# lacks_after RUN SETTINGS..: the reading after the case, and it alone, answers otherwise
lacks_after() {
	dir=$1
	shift
	rm -f counted8
	env FAKE_NVML_IN=counters FAKE_NVML_COUNTED="$PWD/counted8" FAKE_NVML_FROM=2 ASAN_OPTIONS=handle_segv=0 "$@" \
		"$assay" $gemm --out "$dir" > out 2> err
	[ $? = 2 ] && judged 0 "$dir" unknown telemetry_lost
}
ok "a counter that the last reading lacks is unknown" lacks_after refused2 FAKE_NVML_RET=ecc_volatile_uncorrected=4
ok "by its name" reason refused2 'NVML reported ecc_volatile_uncorrected of'
ok "so is one with an impossible value" lacks_after impossible FAKE_NVML_VALUE=ecc_volatile_uncorrected=1.8e19
ok "an NVML that crashes in the reading after the case is lost telemetry" lacks_after crashed FAKE_NVML_CRASH=ecc_volatile_uncorrected
ok "so is one that crashes in all readings" lacks_after never FAKE_NVML_FROM=1 FAKE_NVML_CRASH=init
ok "and one that tells the GPU in no reading" lacks_after mute FAKE_NVML_FROM=1 FAKE_NVML_RET=pci=999
ok "stderr says so" says 'NVML has stopped answering for this GPU' err

# Xid events that NVML refuses.
FAKE_NVML_RET=event_register=4 "$assay" $gemm --out unwatched > out 2> err
ok "refused Xid events are told on stderr" says "$pci: NVML provides no Xid events (permission denied)" err
ok "and journaled" says '"xid_unwatched"' unwatched/journal.jsonl

# A call of NVML that hangs inside the worker.
cat > hangs.yaml << LIST
name: hangs
cases:
  - {probe: gemm, engine: cublaslt, target: gpu0, seconds: 2s, limit: 4s, options: {m: 16, n: 16, k: 16, type: bf16}}
LIST
FAKE_NVML_IN=__worker FAKE_NVML_HANG=init "$assay" check --suite hangs.yaml --out hangs > out 2> err
ok "NVML that hangs in the worker is inconclusive" [ $? = 2 ]
ok "it is timed out" judged 0 hangs error timed_out
ok "and the call is named" reason hangs 'the call nvmlInit_v2 did not return'

# A reboot between start and resumption: the ids of the boot differ, and the case that ran is named.
cp -r two rebooted
grep -v '"type":"close"' two/journal.jsonl | sed 's/"boot":"[^"]*"/"boot":"another"/; s/"boot_id":"[^"]*"/"boot_id":"another"/' \
	| sed '/"type":"end","case":1/,$d' > rebooted/journal.jsonl
"$assay" check --resume rebooted > out 2> err
ok "a resumed run judges on: the error of its first part still fails it" [ $? = 1 ]
ok "stderr names the reboot and the case" says 'the machine was rebooted since this run began: during case 1' err
ok "so does the report" sh -c 'tr "\n" " " < out | tr -s " " | grep -q "rebooted while"'
ok "the case that ran then is named" reason rebooted 'the machine rebooted while this case ran'
finish
