#!/bin/bash
# Faults planted in one rank of a training run: a hang of its host or of its GPU, another collective, a late rank, a lost rank. Each must be named,
# within its limit and five seconds, and runs without a fault name nobody. If a collective hangs on all ranks, nobody is named either. Ends with a
# table. Ranks are on the CPU under mpirun, or with DEVICE=gpu on GPUs of this machine, started as HOW says (plain).
# usage: train_faults.sh ASSAY MODULE FAKE [TRIALS [SEED]]: so many of each kind
# variables: KINDS of faults, RANKS, LIMIT of silence in seconds. With DEVICE=gpu also kernel; link needs fake GPUs, whose clock does not
# show a late rank.
device=${DEVICE:-cpu} how=${HOW:-mpirun}
if [ "$how" = mpirun ]; then
	. "$(dirname "$0")/mpirun.sh"
	only_open_mpi
else
	program=$(realpath "$1")
	. "$(dirname "$0")/../end2end/tap.sh"
	scratch
	all_libraries
fi
assay=$program trials=${4:-1} RANDOM=${5:-17}
table='' ranks=${RANKS:-3} limit=${LIMIT:-20} spare=5 # seconds
patient=300 # for runs without a hang: a busy machine may make a step long
# A late rank is known from 16 steps, whose figures travel with the next one. A trial may take so many seconds.
window=17 late_limit=${LATE_LIMIT:-180}
[ "$device" = gpu ] || export CUDA_VISIBLE_DEVICES=

expect 0 make-model --shape tiny --seed 1 --out model || { cat err; exit 1; }
if ! expect 0 tokens model x && says 'built without tokenizers' err; then
	echo "1..0 # SKIP this build has no tokenizers"
	exit 0
fi
for i in $(seq 24); do echo '{"messages":[{"role":"system","content":"s"},{"role":"user","content":"town '"$i"'?"},{"role":"assistant","content":"ask '"$i"'"}]}'; done > rows.jsonl
mkfifo rows.fifo
config() { # NAME STEPS
	cat > "$1" << CONFIG
model: {name_or_path: model, chat_template: qwen2.5}
${zero:+#}lora: {r: 4, alpha: 8}
data: {train: rows.jsonl, max_seq_length: 128}
training:
  device: $device
  tune: $([ "$device" = cpu ] && echo true || echo false)
  learning_rate: 1e-3
  per_device_train_batch_size: 1
  global_batch_size: $ranks
  max_steps: $2
CONFIG
	[ -z "$zero" ] || printf '  full_finetuning: true\n  bucket_cap_mb: 0.1\n  zero_stage: %s\n  %s\n' "$zero" "$more" >> "$1"
}
# What the ranks divide; empty: an adapter, of which they divide nothing.
zero=${STAGE:-} more=${MORE:-}
config short.yaml 8
config long.yaml 22
now() { date +%s%N; }
# stamped NAME PATTERN: copies lines to NAME, and the time of the first one that matches to NAME.at
stamped() {
	while IFS= read -r line; do
		printf '%s\n' "$line"
		case $line in *$2*) [ -s "$1.at" ] || now > "$1.at" ;; esac
	done > "$1"
}
# run PLANT CONFIG [LIMIT [SECONDS]]: rank 0's lines in out, the words of all in err; $code, and $after: nanoseconds from the fault to the error, or
# to the finding that names a late rank. It may take so many SECONDS.
run() {
	rm -rf run fault.at err.at out.at
	(
		[ -z "$1" ] || export ASSAY_TEST=1 ASSAY_TEST_PLANT="$1" ASSAY_TEST_PLANT_AT="$tmp/fault.at"
		timeout ${4:-600} "$assay" launch --how $how --ranks-per-node $ranks -- train "$2" --silence ${3:-$limit}s --no-telemetry --json --out run \
			> >(stamped out '"straggler"') 2> >(stamped err 'error: ')
		echo $? > code
	)
	for _ in $(seq 100); do # the copies end a little later
		[ -s err.at ] || { [ "$(cat code)" = 0 ] && grep -q '"type":"end"' out; } || { sleep 0.1; continue; }
		break
	done
	code=$(cat code)
	after=$(($(cat err.at out.at 2> /dev/null | head -n 1 || echo 0) - $(cat fault.at 2> /dev/null || echo 0)))
}
# Work of others that delays ranks: as long as there is any, a run may name nobody. It must never name another rank.
busy() {
	load=$(cut -d ' ' -f 1 /proc/loadavg)
	awk -v load="$load" -v cores="$(nproc)" 'BEGIN { exit !(load > cores) }'
}
# within SECONDS: the error came so soon after the fault
within() { [ $after -le $(($1 * 1000000000)) ]; }

slower() { # keeps the longest time
	ms=$((after / 1000000))
	[ $ms -le "$slowest" ] || slowest=$ms
}
# trial KIND: whether it was named, and in time; says why not
trial() {
	odd=${ODD:-$((RANDOM % ranks))} step=$((3 + RANDOM % 3))
	case $1 in
	hang | layer)
		run "$1:$odd@$step:$tmp/rows.fifo" short.yaml
		words="error: rank $odd on .* never entered collective [0-9]* (.*waits in read() of rows.fifo" most=$((limit + spare))
		;;
	kernel)
		run "kernel:$odd@$step" short.yaml
		words="error: rank $odd on .* never entered collective [0-9]* (.*\(its last kernel has not ended\|the work that its GPU got\)" most=$((limit + spare))
		;;
	link)
		export FAKE_NCCL=stall=$step
		run "" short.yaml
		unset FAKE_NCCL
		words="error: all ranks have been in collective [0-9]* (.*, on the communication stream) for .*: no rank is behind by the records, so a link, NCCL or a kernel that occupies a whole GPU hangs"
		most=
		;;
	other)
		run "other:$odd@$step" short.yaml
		words="error: ranks $((odd / 2 * 2)) and $((odd / 2 * 2 + 1)) entered different collectives: collective [0-9]* (.* within its copy of the model, .*) and collective " most=$((limit + spare))
		;;
	mismatch | size | type | order | weights)
		kinds=(size type order)
		planted=$1
		[ $1 != mismatch ] || planted=${kinds[RANDOM % 3]}
		run "$planted:$odd@$step" short.yaml
		words="error: rank $odd .*asks for another collective: number [0-9]* of step $step is (" most=$spare
		;;
	lost)
		run "lost:$odd@$step" short.yaml
		words="error: \(rank $odd on .*: \)\?the training process ended in phase train: signal 9 (Killed)" most=$spare
		;;
	late)
		for begin in 1 2 3; do
			run "late:$odd@$step" long.yaml $patient $late_limit
			cp err words.err
			grep '"finding":"straggler"' out > err
			named_at=$(sed -n 's/.*"step":\([0-9]*\).*/\1/p' err | head -n 1)
			[ ! -s err ] || says "wait for rank $odd in " err || break
			[ "$code" = 0 ] && [ "${named_at:-99}" -gt $((step + window)) ] && [ $begin -lt 3 ] && busy || break
			echo "# late rank $odd: named in step ${named_at:-none}, late from step $step; begins again, because the load is $load on $(nproc) cores"
		done
		words="the others wait for rank $odd in .*The likeliest cause is: host\."
		[ "$code" = 0 ] && says "$words" err || {
			echo "# late rank $odd: code $code after at most $late_limit s: $(head -n 2 err; grep 'error: ' words.err)"
			return 1
		}
		slower
		[ "$named_at" -le $((step + window)) ] || { echo "# late rank $odd was named in step $named_at, late from step $step"; return 2; }
		return 0
		;;
	none)
		run "" long.yaml $patient
		grep -o '"finding":"no_free_cpu".*which wait for it[^.]*' out | sed 's/^/# clean run on busy CPUs: /'
		[ "$code" = 0 ] && ! grep '"finding":"straggler"' out > named && ! says 'error: ' err && return
		echo "# clean run: code $code: $(cat named; grep 'error: ' err)"
		return 1
		;;
	esac
	[ "$code" = 2 ] || { echo "# $1 of rank $odd: code $code"; return 1; }
	grep 'assay: error: ' err | head -n 1 > first
	says "$words" first || { echo "# $1 of rank $odd: $(cat first)"; return 1; }
	[ -n "$most" ] || return 0
	slower
	within "$most" || { echo "# $1 of rank $odd was named after $ms ms"; return 2; }
}
all_trials() {
	for kind in ${KINDS:-hang $([ "$device" = cpu ] || echo kernel) mismatch lost late none}; do
		named=0 soon=0 slowest=0
		for _ in $(seq "$trials"); do
			trial $kind
			case $? in
			0) named=$((named + 1)) soon=$((soon + 1)) ;;
			2) named=$((named + 1)) ;;
			esac
		done
		table="$table$(printf '# %-9s %6d %6d %8d %12s' $kind "$trials" $named $soon "$( [ $slowest = 0 ] && echo - || echo "$((slowest / 1000)).$(printf '%03d' $((slowest % 1000)))")")"$'\n'
		case $kind in
		none) ok "$trials runs without a fault name nobody" [ $soon = "$trials" ] ;;
		link) ok "a collective that hangs on all ranks, $trials times: nobody is named" [ $soon = "$trials" ] ;;
		*) ok "$kind, $trials times: the rank is named" [ $named = "$trials" ] ;;
		esac
		case $kind in
		none | link) ;;
		late) ok ".. within $window steps" [ $soon = "$trials" ] ;;
		hang | kernel | layer | other) ok ".. within the limit and $spare s" [ $soon = "$trials" ] ;;
		*) ok ".. within $spare s" [ $soon = "$trials" ] ;;
		esac
	done
}
show() {
	echo "# kind      trials  named  in time  longest s    limit of silence $limit s"
	printf '%s' "$table"
	table=
}
all_trials
show
# The same at the collectives of ranks that divide weights, gradient and states, and of two groups of two ranks.
dividing() { # RANKS STAGE [LINE]
	ranks=$1 zero=$2 more=${3:-}
	config short.yaml 8
	config long.yaml 22
	echo "# zero_stage: $zero, $ranks ranks${more:+, $more}"
	all_trials
	show
}
if [ "$how" != mpirun ]; then
	[ "$ranks" -lt 4 ] || ODD=1 KINDS="layer kernel" dividing 4 0 "tensor_parallel_size: 2"
	finish
fi
if [ -z "$zero" ]; then
	was=$ranks all=$trials trials=$(((trials + 1) / 2))
	asked=${KINDS:-}
	KINDS=${asked:-hang size type order weights lost late none} dividing 3 3
	# Each kind of mismatch is planted in one of the two, and with --long in both.
	KINDS=${asked:-hang size $(in_long type order) weights lost $(in_long late) none} dividing 4 2 "dp_shard_size: 2"
	KINDS=${asked:-hang $(in_long size) type order $(in_long weights lost) late none} dividing 4 3 "tensor_parallel_size: 2"
	# Two copies of two ranks: the rank that hangs is named, and not the other one of its copy, which waits for it.
	ODD=1 KINDS="layer other" dividing 4 3 "tensor_parallel_size: 2"
	ODD=3 KINDS="hang layer" dividing 4 0 "tensor_parallel_size: 2"
	ranks=$was zero='' more='' trials=$all
	config short.yaml 8
	config long.yaml 22
fi
# One rank beside several with a slow network: the finding, and where compare says that the time went.
run "network:0" long.yaml $patient
grep '"finding":"communication_bound"' out > err
ok "a slow network is found" says 'communication that no computation hides' err
ok ".. with the settings to change" says 'bucket_cap_mb; NCCL_NVLS_ENABLE' err
mv run slow
ok "one rank trains" expect 0 train long.yaml --out one --no-telemetry
ok "runs with other numbers of ranks are compared" expect 0 compare one slow
ok ".. with efficiency and loss" says ''$ranks' ranks reach .* The largest loss is communication: .* It depends on gradient_accumulation_steps' out
plant() { ASSAY_TEST=$1 ASSAY_TEST_PLANT=$2 started $ranks "$assay" train short.yaml --no-telemetry --out refused > out 2> err; }
ok "a fault is planted in tests alone" eval '! plant 0 late:1'
ok ".. which is said" says 'ASSAY_TEST_PLANT=late:1 plants a fault, which only tests may do' err
ok "an unknown fault is refused" eval '! plant 1 rust:1'
ok ".. with the known ones" says 'is not KIND:RANK\[@STEP\]\[:MORE\] with a kind of size, type, order' err
finish
