#!/bin/sh
# tools/check-gpu-training with tiny models on the CPU, and two ranks by mpirun where it is installed.
# usage: check_gpu_training.sh ASSAY ROOT MODULE
set -u
assay=$(realpath "$1") root=$(realpath "$2") module=$(realpath "$3")
. "$root/tests/end2end/tap.sh"
scratch
export ASSAY="$assay" DEVICE=cpu LENGTH=128 LONG=256 STEPS=5 LOSS_STEPS=4 EXACT_STEPS=3 LINK_RATE=1e6 BUS_RATE=1e9 SMALL=tiny MIDDLE=tiny-64 LARGE=tiny HUGE=tiny-64 LLAMA=tiny-llama-64 FOURTEEN=tiny HOW=mpirun
export ASSAY_MODULE_DIR="$(dirname "$module")" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl_vader_single_copy_mechanism=none
# Open MPI otherwise loads every transport that it has in each rank (tests/mpi/mpirun.sh).
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=self,vader OMPI_MCA_osc=sm OMPI_MCA_coll=basic,libnbc,self,tuned
# Ranks that wait leave the cores to others (tests/fake/mpi_yield.c).
yield=$(dirname "$assay")/../tests/fake/mpi_yield.so
[ ! -e "$yield" ] || { LD_PRELOAD=$(realpath "$yield") OMPI_MCA_mpi_yield_when_idle=1 && export LD_PRELOAD OMPI_MCA_mpi_yield_when_idle; }
checked() { "$root/tools/check-gpu-training" "$@" > said 2>&1; }
line() { awk -F '\t' -v run="$1" '$1 == run && $2 > 0 && $4 > 0 && $6 > 0 { found = 1 } END { exit !found }' out/table.tsv; }
ok "one card's groups run" checked out low full offload bits rungs large long
if grep -q 'built without tokenizers' out/*.log; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for run in bf16 fp8 nf4 nf4-fp8 fp8-exact fp8-again nf4-full full-bf16-fp32 lora-full lora-offload states-device states-host states-host-f32 bits-full bits-again bits-offload bits-device bits-host rung-packed-fp32 rung-packed-fp8 nf4-tiny nf4-tiny-64 long; do
	ok "$run has a rate, memory and a loss" line $run
done
for file in bf16.yaml bf16.plan bf16.jsonl bf16/journal.jsonl; do ok "$file is there" [ -s out/$file ]; done
ok "a later setting replaces an earlier one" grep -q 'max_steps: 4' out/nf4-tiny.yaml
ok ".. which is there once" sh -c '[ "$(grep -o max_steps out/nf4-tiny.yaml | wc -l)" = 1 ]'
ok "rates are compared" grep -qE '^FP8 / BF16: [0-9]+\.[0-9]+ \([0-9.e+]+ and [0-9.e+]+\), target 1.25$' out/steps.txt
for run in fp8 nf4-fp8; do
	ok "deterministic runs are compared, $run" grep -q "$run-exact beside $run-again: losses of 3 steps within 0, norms of the gradient within 0\$" out/steps.txt
	ok ".. with their adapters" grep -q "^$run, deterministic: adapter_model.safetensors of two runs is the same" out/steps.txt
done
ok ".. which are gone" sh -c '! ls -d out/*/adapter 2> /dev/null'
ok "offload is compared with the copies of its states" grep -qE '^offload: optimizer, step / the larger of compute and copies, states-host: [0-9.]+, at most 1.15 .*[1-9][0-9]* B at 1e\+06 B/s' out/steps.txt
ok "losses of offload are those without" grep -q 'lora-full beside lora-offload: losses of 5 steps within 0, norms of the gradient within 0$' out/steps.txt
for pair in 'full beside bits-again' 'full beside bits-offload' 'device beside bits-host'; do
	ok "bits-$pair: the same bits" grep -q "^bits-$pair: 5 steps have the same bits" out/steps.txt
done
ok "the precision that was computed in is right" sh -c '! grep -q "it computed in" out/steps.txt'
ok "its losses are compared" grep -q '^rung-packed-fp8 beside rung-packed-fp32, eval_loss: within' out/steps.txt
ok "models and rows of the check are gone" sh -c '! [ -e out/shapes ] && ! [ -e out/rows.jsonl ]'
# Calls of functions: a tiny model in place of a real one.
for i in $(seq 40); do
	tool='{"type":"function","function":{"name":"get_'$i'","parameters":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}}'
	call='{"type":"function","function":{"name":"get_'$i'","arguments":{"n":'$i'}}}'
	echo '{"messages":[{"role":"user","content":"'$i'?"},{"role":"assistant","content":"","tool_calls":['$call']}],"tools":['$tool']}'
done > calls.jsonl
"$assay" make-model --shape tiny --seed 1 --out model > /dev/null
export CALLS_STEPS=3 CALLS_LENGTH=1024 CALLS_EVAL=3 CALLS_ROWS=2
ok "function calls are taught" env ASSAY_SMOLLM2="$PWD/model" ASSAY_BFCL="$PWD/calls.jsonl" "$root/tools/check-gpu-training" calls calls
for run in fp8 nf4 nf4-fp8; do
	ok "$run has a loss beside float32's" grep -qE "^function calls, $run beside fp32: held-out loss [0-9.]+ and [0-9.]+," calls/steps.txt
	ok ".. and right calls" grep -qE "^function calls, $run beside fp32: share of right calls [0-9.e-]+ and [0-9.e-]+," calls/steps.txt
done
ok "losses differ from those of float32" sh -c '! grep -qE "held-out loss ([0-9.]+) and \1," calls/steps.txt'
ok "weights of the check are gone" sh -c '! [ -e calls/calls ]'
ok "without a model they are skipped" sh -c 'env -u ASSAY_SMOLLM2 "$0" skipped calls > said 2>&1' "$root/tools/check-gpu-training"
ok ".. which is said" grep -q '^calls: skipped, because ASSAY_SMOLLM2' skipped/steps.txt
ok "rows that are none fail" sh -c '! ASSAY_SMOLLM2=model ASSAY_BFCL=said "$0" none calls > /dev/null 2>&1' "$root/tools/check-gpu-training"
ok ".. by name" grep -q '^calls: .*said' none/steps.txt
if command -v python3 > /dev/null; then
	ok "peers without their packages are skipped" env PYTHON='python3 -S' PEERS='bf16 nf4 unsloth-nf4' "$root/tools/check-gpu-training" peers peers
	ok ".. which says what they lack" sh -c 'grep -q "^peers, bf16: skipped: Python has no package torch, transformers, peft, liger_kernel$" peers/steps.txt &&
		grep -q "^peers, nf4: skipped: .*bitsandbytes$" peers/steps.txt && grep -q "^peers, unsloth-nf4: skipped: .*unsloth$" peers/steps.txt'
fi
printf '#!/bin/sh\necho "{\\"peer\\": \\"x\\", \\"tokens_per_s\\": 0.5, \\"step_s\\": 1.0, \\"memory_bytes\\": 77, \\"ranks\\": 1}"\n' > peer && chmod +x peer
ok "a peer's rate is compared with the same run" env PYTHON="$PWD/peer" PEERS='nf4 adam8' "$root/tools/check-gpu-training" beside peers
for case in nf4 adam8; do
	ok ".. $case" grep -qE "^peers, $case: [0-9.]+ \([1-9][0-9.e+]* and 0.5 tokens/s\), target 1\.[0-9]+; arena [1-9][0-9]* B, peer 77 B\$" beside/steps.txt
done
printf '#!/bin/sh\necho "{\\"peer\\": \\"x\\", \\"failed\\": \\"out of memory\\"}"\nexit 1\n' > peer
ok "a peer that fails is told" sh -c '! PYTHON=$PWD/peer PEERS=fp8 "$0" failed peers > said 2>&1 && grep -q "^peers, fp8: .*out of memory" said' "$root/tools/check-gpu-training"
if mpirun --version 2> /dev/null | grep -q 'Open MPI\|OpenRTE'; then
	ok "two ranks run" checked two zero tensor rates
	for kind in lora full; do ok "tensor parallel is compared, $kind" grep -q "tensor-one-$kind beside tensor-two-$kind: losses of 4 steps within" two/steps.txt; done
	for stage in 1 2 3; do ok ".. with zero_stage: $stage" grep -q "tensor-one-full beside tensor-zero$stage-full: losses of 4 steps within" two/steps.txt; done
	ok ".. and with gradients in BF16" grep -q 'tensor-one-full beside tensor-bf16: losses of 4 steps within' two/steps.txt
	ok ".. and with states in host memory" grep -q 'tensor-two-full beside tensor-host: losses of 4 steps within 0, norms of the gradient within 0$' two/steps.txt
	ok ".. and of one copy" grep -q 'tensor-two-full beside tensor-stage: losses of 4 steps within' two/steps.txt
	for from in 1 2; do ok ".. and after a resume of $from rank(s)" grep -q "tensor-from-$from-rest beside tensor-from-$from-on: losses of 4 steps within" two/steps.txt; done
	for run in data tensor zero3-none zero3-full zero3-14b; do ok "rates-$run has a rate" grep -qE "^rates-$run	[0-9.e+]+	" two/table.tsv; done
	ok "rates are compared" grep -qE '^tensor parallel / data parallel, equal tokens: [0-9]' two/steps.txt
	for run in data zero3-none zero3-full; do
		ok "contention is reported, $run" grep -qE "^rates-$run: step [0-9.]+ s, without collectives [0-9.]+ s, exposed communication [0-9.]+ s, contention -?[0-9.]+ s, -?[0-9.]+ % of the step" two/steps.txt
		ok ".. as the difference of the two steps without the exposed part" awk -v run="rates-$run:" '$1 == run && $2 == "step" { d = $3 - $7 - $11 - $14; found = d > -3e-4 && d < 3e-4 } END { exit !found }' two/steps.txt
		ok ".. in whose second run no gradient was added after the first step" sh -c 'loss() { sed -n "s/.*\"type\":\"step\".*\"loss\":\([^,]*\),.*/\1/p" "two/$1.jsonl" | sed -n "$2p"; }
			[ "$(loss $0 1)" = "$(loss $0-alone 1)" ] && [ -n "$(loss $0 3)" ] && [ "$(loss $0 3)" != "$(loss $0-alone 3)" ]' rates-$run
	done
	for run in data tensor zero3-none zero3-full zero3-14b; do
		ok "the plan's communication is beside the wait, $run" grep -qE "^rates-$run: communication of the plan [0-9.e-]+ s a step \(at 1e9 B/s\), waited [0-9.e-]+ s, waited / planned [0-9.]+" two/steps.txt
		ok ".. with the ratio of both" awk -v run="rates-$run:" '$1 == run && $2 == "communication" { d = $14 / $6 / $19 - 1; found = $6 > 0 && $14 > 0 && d > -1e-2 && d < 1e-2 } END { exit !found }' two/steps.txt
	done
	ok ".. and a target where nothing hides it" grep -qE '^rates-tensor: communication .*, target 0.9 to 1.1$' two/steps.txt
	for stage in 3 2; do ok "shard groups are compared, zero_stage: $stage" grep -q "zero-one beside zero-groups-$stage: losses of 4 steps within" two/steps.txt; done
	ok "more than two ranks have rates" env CUDA_VISIBLE_DEVICES=0,1,2,3 RATES_RANKS=4 RATES_RUNS=data "$root/tools/check-gpu-training" more rates
	ok ".. and contention" grep -qE '^rates-data-4: step [0-9.]+ s, without collectives [0-9.]+ s' more/steps.txt
	ok ".. and communication" grep -qE '^rates-data-4: communication of the plan [0-9.e-]+ s a step' more/steps.txt
	ok "faults are planted" env KINDS=lost STAGE=0 CHECK_TRIALS=1 "$root/tools/check-gpu-training" faulty faults
	ok ".. and named" grep -q '^# lost  *1  *1  *1 ' faulty/steps.txt
	# In place of NVIDIA's: it runs the program, and writes one log for all processes, as NVIDIA's does. It writes a report for each word of FOUND. HIDDEN:
	# so many more are in its summary alone. NONE: it has no summary. LEFT: it starts another process, in a session of its own, which ends last.
	# SLOW: it never ends.
	mkdir tools
	cat > tools/compute-sanitizer <<- 'SANITIZER'
		#!/bin/sh
		limit=100
		while [ "$#" -gt 0 ]; do
			case $1 in
			--tool) tool=$2 && shift 2 ;;
			--log-file) log=$2 && shift 2 ;;
			--print-limit) limit=$2 && shift 2 ;;
			--*) shift 2 ;;
			*) break ;;
			esac
		done
		{
			echo "========= COMPUTE-SANITIZER"
			all=0 shown=0
			for kernel in ${FOUND:-}; do
				all=$((all + 1))
				[ "$limit" = 0 ] || [ $all -le "$limit" ] || continue
				shown=$((shown + 1))
				case $tool in
				memcheck) printf '========= Invalid __global__ write of size 4 bytes\n=========     at %s(int*)+0x40\n=========     by thread (0,0,0) in block (0,0,0)\n' "$kernel" ;;
				racecheck) printf '========= Error: Race reported between Write access at %s(int*)+0x40\n=========     and Read access at %s(int*)+0x80 [16 hazards]\n' "$kernel" "$kernel" ;;
				esac
				echo "========= "
			done
			all=$((all + ${HIDDEN:-0}))
			case ${NONE:+none}$tool in
			memcheck) echo "========= ERROR SUMMARY: $all errors" && { [ $all = $shown ] || echo "========= ERROR SUMMARY: $((all - shown)) errors were not printed. Use --print-limit option to adjust the number of printed errors"; } ;;
			racecheck) echo "========= RACECHECK SUMMARY: $shown hazards displayed ($((all - all / 2)) errors, $((all / 2)) warnings)" ;;
			esac
		} > "$(echo "$log" | sed "s/%p/$$/")"
		[ -z "${LEFT:-}" ] || { setsid sh -c 'echo $$ > "$LEFT" && exec sleep 300' & }
		[ -z "${SLOW:-}" ] || exec sleep 300
		exec "$@"
	SANITIZER
	chmod +x tools/compute-sanitizer
	under() { # FOLDER [FOUND [NONE [HIDDEN]]]
		PATH="$PWD/tools:$PATH" FOUND=${2:-} NONE=${3:-} HIDDEN=${4:-0} "$root/tools/check-gpu-training" "$1" sanitizer > said 2>&1
	}
	export SANITIZER_RUNS=zero3
	ok "ranks run under compute-sanitizer" under clean
	for run in memcheck-zero3 racecheck-zero3; do
		ok ".. and $run has no report" grep -qx "sanitizer-$run: 1 log with a summary, 0 reports" clean/steps.txt
		ok ".. of a run with a rate" grep -qE "^sanitizer-$run	[0-9.e+]+	" clean/table.tsv
	done
	export SANITIZER_RUNS=lora SANITIZER_TOOLS=racecheck
	ok "an error of a kernel fails" eval '! under raced train_rows'
	ok ".. which is named" grep -qx 'sanitizer-racecheck-lora: 1 log with a summary, 1 reports in train_rows (2)' raced/steps.txt
	for kernel in ncclDevKernel_AllReduce cudnn_sdpa; do
		ok "a library's kernel is said" eval "under $kernel $kernel && grep -qx 'sanitizer-racecheck-lora: 1 log with a summary, 1 reports in $kernel (2)' $kernel/steps.txt"
	done
	# the tool shows 100 reports unless it is told otherwise
	many=$(for _ in $(seq 120); do printf 'cudnn_sdpa '; done)
	ok "all reports are shown" eval 'under many "$many" && grep -qx "sanitizer-racecheck-lora: 1 log with a summary, 120 reports in cudnn_sdpa (240)" many/steps.txt'
	ok ".. so one that is not a library's fails" eval '! under last "$many train_rows" && grep -q "121 reports in cudnn_sdpa (240), train_rows (2)$" last/steps.txt'
	ok "a report without a kernel fails" eval '! under hidden cudnn_sdpa "" 3'
	ok ".. by numbers" grep -qx 'sanitizer-racecheck-lora: the summary counts 4 reports, and the log shows the kernels of 1' hidden/steps.txt
	ok "a log without a summary fails" eval '! under half "" yes && grep -q "^sanitizer-racecheck-lora: 0 log with a summary" half/steps.txt'
	export SANITIZER_TOOLS=memcheck
	ok "memcheck forgives no library" eval '! under nvjet nvjet_hsh && grep -qx "sanitizer-memcheck-lora: 1 log with a summary, 1 reports in nvjet_hsh (1)" nvjet/steps.txt'
	# All processes of a run end with it, also one that left its group.
	gone() { [ -s "$1" ] && ! grep -q '^State:.*[^Z] (' "/proc/$(cat "$1")/status" 2> /dev/null; } # a process that nobody waited for may be left
	ok "a run's limit ends its processes" eval '! LEFT="$PWD/left.1" SLOW=yes SANITIZER_LIMIT=2 under limited && gone left.1'
	ok ".. and is said" grep -q '^sanitizer-memcheck-lora: exit code 124' limited/steps.txt
	ok "a process that outlives its run fails" eval '! LEFT="$PWD/left.2" under outlived && gone left.2'
	ok ".. by name" grep -qx 'sanitizer-memcheck-lora: 1 of its processes did not end by themselves' outlived/steps.txt
	PATH="$PWD/tools:$PATH" LEFT=$PWD/left.3 SLOW=yes setsid "$root/tools/check-gpu-training" stopped sanitizer > said 2>&1 &
	check=$!
	for _ in $(seq 600); do [ ! -s left.3 ] || break; sleep 0.1; done
	kill -s TERM $check # alone
	wait $check
	ok "a time limit of the check ends them too" [ $? = 143 ]
	ok ".. all" gone left.3
	for stage in 0 1 2 3; do ok "zero_stage: $stage is compared" grep -q "zero-one beside zero-$stage: losses of 4 steps within" two/steps.txt; done
fi
# A script of faults that skips itself
mkdir -p other/tools other/tests/mpi
cp "$root/tools/check-gpu-training" other/tools
faults() { # LINE: what the script says
	printf '#!/bin/sh\necho "%s"\n' "$1" > other/tests/mpi/train_faults.sh
	chmod +x other/tests/mpi/train_faults.sh
	rm -rf planted
	other/tools/check-gpu-training planted faults > said 2>&1
}
ok "faults that are held pass" faults 1..4
ok "faults that are skipped fail" eval '! faults "1..0 # SKIP no ranks"'
ok ".. which is said" sh -c 'grep -qx "1..0 # SKIP no ranks" planted/steps.txt && grep -q "^faults: not held" planted/steps.txt'
cat > assay-slow <<- 'SLOW'
	#!/bin/sh
	case $1 in make-model) exec "$REAL" "$@" ;; esac
	for word; do [ "$word" != --plan ] || exit 0; done
	echo $$ > "$PID"
	exec sleep 60
SLOW
chmod +x assay-slow
REAL=$assay PID=$PWD/pid ASSAY=$PWD/assay-slow setsid "$root/tools/check-gpu-training" slow low > said 2>&1 &
check=$!
for _ in $(seq 600); do [ ! -s pid ] || break; sleep 0.1; done
kill -s TERM -- "-$check" # as timeout does with its group
wait $check
ok "a time limit of the check ends the run that it is in" sh -c '[ -s pid ] || exit 1
	for _ in $(seq 50); do kill -0 "$(cat pid)" 2> /dev/null || exit 0; sleep 0.1; done; exit 1'
ok "a shape that is none fails" sh -c '! MIDDLE=none "$0" bad low > said 2>&1' "$root/tools/check-gpu-training"
ok ".. and is named" grep -q 'none' bad/steps.txt
ok "a rate that was not measured is no ratio" grep -q '^FP8 / BF16: not measured' bad/steps.txt
ok "an unknown group is refused" sh -c '"$0" third nothing > said 2>&1; [ $? = 64 ]' "$root/tools/check-gpu-training"
ok ".. with the known ones" grep -q 'known: low full offload bits rungs adapters' said
ok "no program is said" sh -c '! env -u ASSAY sh ./check-gpu-training fourth > said 2>&1' "$(cp "$root/tools/check-gpu-training" .)"
ok ".. so" grep -q 'set ASSAY to the program' said
finish
