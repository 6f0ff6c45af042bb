#!/bin/sh
# assay health and assay history as people run them: fake GPUs that are healthy, broken, lost and hanging, a helper that hangs in the
# kernel, states that are cut, newer and on a full disk, commands that drain and resume, and the commands of docs/how-to/gate-a-node.md.
# usage: health.sh ASSAY FAKES ROOT STUCK CLOCK-STEPS KERNELS     KERNELS: none if the build has none
stuck=$(realpath "$4") clock_steps=$(realpath "$5") kernels=$6
. "$(dirname "$0")/gpus.sh"
export FAKE_CUDA=devices=4 ASSAY_FACTS_LIMIT_MS=20000 # a busy machine is late
h() { # CODE ARGS..
	want=$1
	shift
	expect "$want" health --state h.json --node n1 "$@"
}
gate() { h "$1" --json && says "\"state\":\"$2\"" out; }

stepped=yes # a sanitizer's runtime must be loaded first
objdump -T "$assay" 2> /dev/null | grep -q __asan_init && stepped=no

# Without GPUs and with four healthy ones.
ok "a machine without a GPU passes" env FAKE_NVML_INIT=9 FAKE_CUDA=devices=0 "$assay" health --state none.json
ok "four healthy GPUs pass" h 0
ok ".. in one line" [ "$(wc -l < out)" = 1 ]
ok ".. that says so" says '^pass: ' out
ok ".. and leave no run behind" [ "$(ls)" = "$(printf 'err\nh.json\nnone.json\nok.out\nout')" ]
ok "the state is private" [ "$(stat -c %a h.json)" = 600 ]
ok "as JSON" h 0 --json
ok ".. in one object" says '^{"verdict":"pass","hardware":false,"cause":"","part":"node",.*"node":"n1","action":"","gate":{"state":"clear","sightings":0,"passes":0}}$' out

# A fault of one GPU: its own file of answers.
healthy=$FAKE_NVML_FILE
sed '0,/"remapped_rows": \[0, \[0, 0, 0, 0\]\]/s//"remapped_rows": [0, [0, 0, 1, 0]]/' "$healthy" > pending.json
drain="sh -c 'echo \"\$1: \$2\" >> did; exit \$(cat drain.code)' drain %n %r"
resume="sh -c 'echo \"resumed \$1: \$2\" >> did; exit \$(cat resume.code)' resume %n %r"
g() { # CODE STATE ARGS..
	want=$1 state=$2
	shift 2
	expect "$want" health --state g/h.json --node n1 --json --drain-with "$drain" --resume-with "$resume" "$@" && says "\"state\":\"$state\"" out
}
echo 1 > drain.code
echo 1 > resume.code
export FAKE_NVML_FILE="$tmp/pending.json"
ok "a pending remap is a failure" g 1 suspect
ok ".. of hardware" says '"verdict":"fail","hardware":true,"cause":"remap_pending","part":"0000:8d:00.0"' out
ok ".. and one sighting drains nothing" [ ! -e did ]
ok "a second one calls the command" g 1 suspect
ok ".. which failed, so the node is not drained" says 'drain-with: sh ended with exit code 1; the next run tries again' err
echo 0 > drain.code
ok "the next run tries again" g 1 drained
ok ".. with the node and the reason as words" says '^n1: assay health: fail: 0000:8d:00.0: remap_pending: a row remap waits for a reset' did
ok ".. and says so" says 'drained node n1: assay health: fail' err
ok "a drained node is not drained again" g 1 drained
ok ".. nothing was called" [ "$(wc -l < did)" = 2 ]
FAKE_NVML_FILE=$healthy
ok "one pass resumes nothing" g 0 drained
ok ".. and an unknown verdict interrupts the passes" env FAKE_NVML_RET=ecc_volatile_uncorrected=4,ecc_aggregate_uncorrected=4 "$assay" health --state g/h.json --for readiness
ok "a pass" g 0 drained
ok "the second pass in a row calls the command" g 0 drained
ok ".. which failed" says 'resume-with: sh ended with exit code 1' err
echo 0 > resume.code
ok "the next pass resumes" g 0 clear
ok ".. with the reason it was drained with" says '^resumed n1: assay health: fail: 0000:8d:00.0: remap_pending' did
ok "a healthy node is not resumed" g 0 clear
ok ".. nothing was called" [ "$(grep -c resumed did)" = 2 ]

# Faults that are none of the hardware never drain.
rm -f did
for _ in 1 2 3; do FAKE_NVML_VALUE=power_limit=400000 "$assay" health --state p.json --drain-with "$drain" > out 2> err; done
ok "a lowered power limit is a failure" says '^fail: .*power_limit_lowered' out
ok ".. that drains nothing" [ ! -e did ]

# What each caller gets.
callers() { # FILE WANTED..: codes for nobody, prolog, epilog, healthcheck, npd, readiness
	FAKE_NVML_FILE=$1
	shift
	for caller in nobody slurm-prolog slurm-epilog slurm-healthcheck npd readiness; do
		"$assay" health --state c.json --for $caller > out 2> err
		code=$?
		[ $code = "$1" ] || { echo "# $caller: $code, not $1"; return 1; }
		[ -s out ] || return 1
		shift
	done
}
ok "pass is 0 to everybody" callers "$healthy" 0 0 0 0 0 0
ok "a failure is 0 to Slurm" callers "$tmp/pending.json" 1 0 0 0 1 1
FAKE_NVML_FILE=$tmp/pending.json
ok "node-problem-detector gets at most 80 bytes" sh -c '"$0" health --for npd --state c.json | head -c -1 | wc -c | grep -qx 80' "$assay"
FAKE_NVML_FILE=$healthy
ok "unknown is 0 to Slurm and to readiness" env FAKE_NVML_RET=ecc_volatile_uncorrected=4,ecc_aggregate_uncorrected=4 sh -c '
	for caller in nobody:2 slurm-prolog:0 slurm-epilog:0 slurm-healthcheck:0 npd:2 readiness:0; do
		"$0" health --state c.json --for ${caller%:*} > out 2> err
		[ $? = ${caller#*:} ] || exit 1
		grep -q "^unknown: " out || exit 1
	done' "$assay"
usage() { # CODE ARGS..
	want=$1
	shift
	expect "$want" health "$@"
}
ok "wrong usage is 64" usage 64 --nonsense
ok ".. but never drains a node of Slurm" usage 0 --for slurm-prolog --nonsense
ok ".. and says what is wrong" says 'nonsense' err
ok ".. nor does a misspelt mode" usage 0 --for=slurm-prolg
ok ".. nor a wrong topic" usage 0 --for slurm-epilog --debug=nonsense
ok ".. it is unknown to node-problem-detector" usage 2 --for npd --nonsense
if [ -w /dev/full ]; then
	ok "output that is lost drains no node either" sh -c '"$0" health --for slurm-prolog --state c.json > /dev/full 2> err' "$assay"
else
	untested "output that is lost drains no node either" "there is no /dev/full"
fi
ok "a command with an open quote is refused before anything is read" usage 64 --state c.json --drain-with "a 'b"
ok ".. and named" says 'drain-with: a . is not closed' err
ok "a recording is not this node" usage 64 --machine "$root/tests/replay/derived-ecc-errors" --drain-with true
ok "an empty --state is an unset variable" usage 64 --state ''
ok "--active and --run" usage 64 --state c.json --active --run x
ok "--out without --active" usage 64 --state c.json --out x
ok "a run that is not there" usage 64 --state c.json --run nowhere
ok "what was ordered is missed" usage 1 --state c.json --expect h100-sxm:8
ok ".. and named" says '^fail: the machine is not as stated: ' out

# A node without a GPU passes, unless one is stated. A GPU on the bus whose driver or NVML is gone never passes.
ok "without --expect, a machine without GPUs passes" env FAKE_NVML_INIT=9 FAKE_CUDA=devices=0 "$assay" health --state none.json
ok "with it, it fails" sh -c 'FAKE_NVML_INIT=9 FAKE_CUDA=devices=0 "$0" health --state none.json --expect h100-sxm:8 > out 2> err; [ $? = 1 ]' "$assay"
ok ".. and says what is missing" says '^fail: the machine is not as stated: 8 x h100-sxm stated, 0 found' out
ok "a GPU on the PCI bus without its driver is unknown" expect 2 health --machine "$root/tests/replay/derived-driver-missing"
ok ".. and says so" says '^unknown: gpu_count: driver_missing: there are GPUs on the PCI bus, but no NVIDIA driver is loaded' out
ok ".. to Slurm too, which drains nothing" expect 0 health --machine "$root/tests/replay/derived-driver-missing" --for slurm-healthcheck
ok ".. and with what is stated it is no pass" sh -c '"$0" health --machine "$1/tests/replay/derived-driver-missing" --expect h100-sxm:1 > out 2> err; [ $? != 0 ] && ! grep -q "^pass" out' "$assay" "$root"
mkdir nvml-gone # the driver is loaded, and only its library is missing
cp -r "$root/tests/replay/h100-sxm-1" .
grep -v '"/host/\|"/cuda/\|"/software/libraries/cuda' "$root/tests/replay/derived-driver-missing/recording.json" > nvml-gone/recording.json
ok "a loaded driver without NVML is unknown" expect 2 health --machine nvml-gone
ok ".. and says so" says '^unknown: gpu_count: library_missing: .*libnvidia-ml.so.1 not found' out
rm -r nvml-gone h100-sxm-1

# A job's GPUs are not all of the node's.
FAKE_NVML_FILE=$tmp/pending.json
ok "in a prolog, a GPU that the job did not get counts too" env CUDA_VISIBLE_DEVICES=3 sh -c '"$0" health --for slurm-prolog --state c.json | grep -q "^fail: 0000:8d:00.0"' "$assay"
FAKE_NVML_FILE=$healthy

# A lost GPU: NVML and CUDA must agree.
export FAKE_NVML_LOST=1 FAKE_NVML_LOST_NAMED=1
ok "a GPU that NVML alone calls lost is unknown" h 2
ok ".. and named" says '^unknown: 0000:8e:00.0: gpu_lost: .*but CUDA does' out
FAKE_CUDA=devices=4,cuDevicePrimaryCtxRetain=700 "$assay" health --state l.json > out 2> err
ok "lost to CUDA too, it is a failure" [ $? = 1 ]
FAKE_CUDA=devices=4,cuDevicePrimaryCtxRetain=700 "$assay" health --state l.json --json > out 2> err
ok ".. of hardware, and seen twice" says '"verdict":"fail","hardware":true,"cause":"gpu_lost","part":"0000:8e:00.0".*"sightings":2' out
unset FAKE_NVML_LOST FAKE_NVML_LOST_NAMED
ok "a GPU that came back passes" expect 0 health --state l.json --json
ok ".. and clears the suspicion" says '"state":"clear"' out

# Hanging drivers and GPUs.
none_left() {
	sleep 0.2
	for p in $(grep -ls '(assay-facts)' /proc/[0-9]*/stat); do
		p=${p%/stat}
		if tr '\0' '\n' < "$p/environ" | grep -q "^TEST_OF=$tmp"; then echo "$p" && return 1; fi
	done 2> /dev/null
	return 0
}
export TEST_OF="$tmp"
ASSAY_FACTS_LIMIT_MS=3000 FAKE_NVML_HANG=init "$assay" health --state h.json > out 2> err
ok "a driver that hangs is unknown" [ $? = 2 ]
ok ".. and said" says '^unknown: the driver hangs: NVML did not list its GPUs within 3.0 s' out
ASSAY_FACTS_LIMIT_MS=3000 FAKE_NVML_HANG=temperature FAKE_NVML_HANG_ON=2 "$assay" health --state h.json > out 2> err
ok "one GPU that hangs is unknown" [ $? = 2 ]
ok ".. and named" says '^unknown: 0000:8f:00.0: does not answer NVML within 3.0 s; 1 of 4 GPUs hang' out
ok "no helper is left" none_left
began=$(date +%s)
# Eight of them: the four again, at other addresses.
awk '/^  \{"by_index"/ { sub(/,$/, ""); gpu[++n] = $0; gsub(/00000000:8/, "00000000:1"); gsub(/00000000:9/, "00000000:2"); gsub(/-8000-/, "-9000-"); gpu[n + 4] = $0; next }
	n && !done++ { for (i = 1; i <= 8; i++) print gpu[i] (i < 8 ? "," : "") } { print }' "$healthy" > eight.json
ok "with the limits of everyday, a hung GPU of eight ends within Slurm's 60 s" sh -c 'unset ASSAY_FACTS_LIMIT_MS
	FAKE_NVML_FILE=$1/eight.json FAKE_CUDA=devices=8 FAKE_NVML_HANG=temperature FAKE_NVML_HANG_ON=6 timeout 60 "$0" health --for slurm-healthcheck --state h.json > out 2> err' "$assay" "$tmp"
ok ".. with a verdict" says '^unknown: 0000:1f:00.0: does not answer NVML within 6.0 s; 1 of 8 GPUs hang' out
echo "# $(($(date +%s) - began)) s"
FAKE_NVML_HANG=temperature FAKE_NVML_HANG_ON=2 "$assay" health --within 2s --state h.json > out 2> err
ok "--within ends it earlier" [ $? = 2 ]
ok ".. and says so" says '^unknown: the readings did not end within 2 s' out
FAKE_NVML_HANG=init "$assay" health --state h.json > out 2> err &
pid=$!
sleep 1
kill -TERM $pid
wait $pid
ok "a request to stop ends it as unknown" [ $? = 2 ]

# A helper that hangs in the kernel: the stand-in has its name and is in state D.
no_state_d="a process that waits for its vfork() is not in state D here"
hangs() { # starts the stand-in as $pid; true once it is in state D
	"$stuck" assay-facts 60 &
	pid=$!
	for _ in $(seq 100); do
		[ "$(sed 's/.*) \(.\).*/\1/' "/proc/$pid/stat")" = D ] && return 0
		sleep 0.05
	done
	return 1
}
if hangs; then
	ok "while an earlier helper hangs in the kernel" h 2
	ok ".. no new one starts" says "^unknown: helper process $pid of an earlier run hangs in the kernel (state D), so no new one starts" out
	kill -KILL $pid
	wait $pid 2> /dev/null
	ok "after its end it reads again" h 0
else
	kill -KILL $pid
	untested "a helper of an earlier run that hangs in the kernel" "$no_state_d"
fi

# A helper that begins to hang in the kernel while it is asked: GPU 2 hangs, and meanwhile the stand-in appears.
helper() { # its facts helper runs
	for p in $(pgrep -f ' __facts nvml'); do # a look at each process of the machine takes longer than the helper has
		tr '\0' '\n' < "/proc/$p/environ" | grep -q "^TEST_OF=$tmp" && return 0
	done 2> /dev/null
	return 1
}
ASSAY_FACTS_LIMIT_MS=15000 FAKE_NVML_HANG=temperature FAKE_NVML_HANG_ON=2 "$assay" health --state h.json > out 2> err &
run=$!
for _ in $(seq 200); do helper && break; sleep 0.05; done
hangs
hung=$?
wait $run
code=$?
kill -KILL $pid
wait $pid 2> /dev/null
if [ $hung = 0 ]; then
	ok "a helper that cannot be killed is unknown" [ $code = 2 ]
	ok ".. and no further one starts" says "^unknown: NVML gave no facts in time, and its helper process $pid cannot be killed" out
else
	untested "a helper that cannot be killed" "$no_state_d"
fi

# One run at a time.
mkdir -p locked
flock locked sleep 8 &
pid=$!
sleep 0.5
ok "a second run waits, and is unknown" expect 2 health --state locked/h.json
ok ".. and says why" says '^unknown: another assay health holds the lock of locked' out
wait $pid
ok "then it is free" expect 0 health --state locked/h.json

# States that cannot be used.
printf '{"format":1,"gate":{"sta' > cut.json
chmod 600 cut.json
ok "a cut state is set aside" expect 0 health --state cut.json
ok ".. and said" says 'cut.json:1:.*cut.json.bad' err
ok ".. and kept" [ "$(cat cut.json.bad)" = '{"format":1,"gate":{"sta' ]
ok ".. and a new one is written" says '"format": 1' cut.json
mkdir folder.json
mkfifo fifo.json
ln -s cut.json.bad link.json
for it in folder fifo link; do
	ok "a $it is no state" expect 0 health --state $it.json
	ok ".. which is said" says "no state is kept: .*$it.json" err
	ok ".. and it stays" [ ! -e $it.json.bad ]
done
ok ".. as it was" [ -d folder.json -a -p fifo.json -a -L link.json ]
printf '{"format":7}' > newer.json
chmod 600 newer.json
FAKE_NVML_FILE=$tmp/pending.json
rm -f did
for _ in 1 2 3; do "$assay" health --state newer.json --drain-with "$drain" > out 2> err; done
ok "a newer state is not overwritten" [ "$(cat newer.json)" = '{"format":7}' ]
ok ".. and nothing is drained without a state" [ ! -e did ]
ok ".. which is said" says 'no state is kept: newer.json: its format is 7' err
if mkdir small && mount -t tmpfs -o size=16k tmpfs small 2> /dev/null; then
	expect 1 health --state small/h.json
	cp small/h.json kept.json
	dd if=/dev/zero of=small/rest bs=4k count=8 2> /dev/null
	for _ in 1 2 3; do "$assay" health --state small/h.json --drain-with "$drain" > out 2> err; done
	ok "a full disk changes no verdict" says '^fail: 0000:8d:00.0: remap_pending' out
	ok ".. is said" says 'the state is not saved, so this run neither drains nor resumes the node: ' err
	ok ".. loses nothing" cmp small/h.json kept.json
	ok ".. and drains nothing" [ ! -e did ]
	rm small/rest
	"$assay" health --state small/h.json --drain-with "$drain" > out 2> err
	ok "with room again, the second sighting drains" [ -s did ]
	umount small
else
	untested "a full disk" "no tmpfs can be mounted: only root may"
fi
FAKE_NVML_FILE=$healthy
ok "a state that cannot be made changes no verdict" sh -c '"$0" health --state /proc/nowhere/h.json > out 2> err && grep -q "^pass" out && grep -q "no state is kept" err' "$assay"
# The wall clock steps by hours while it runs: the state holds no times, and limits are of the monotonic clock.
stepping() { # CODE STATE: with the commands above
	LD_PRELOAD=$clock_steps "$assay" health --state steps.json --node n1 --json --drain-with "$drain" --resume-with "$resume" > out 2> err
	code=$?
	[ $code = "$1" ] && says "\"state\":\"$2\"" out
}
rm -f did
if [ "$stepped" = yes ]; then
	FAKE_NVML_FILE=$tmp/pending.json
	ok "a clock that steps changes nothing" stepping 1 suspect
	ok ".. two sightings drain" stepping 1 drained
	FAKE_NVML_FILE=$healthy
	ok ".. one pass does not resume" stepping 0 drained
	ok ".. two do" stepping 0 clear
else # the ordinary build tests it
	ok "a clock that steps changes nothing # SKIP a sanitizer's runtime must be loaded first" true
fi

# --active beside a job.
sed 's/"compute_processes": *\[[^]]*\]\]*/"compute_processes": [0, [{"pid": 77, "bytes": 8589934592}]]/' "$healthy" > busy.json
FAKE_NVML_FILE=$tmp/busy.json
expect 2 health --state h.json --active
ok "--active beside a job is unknown" says '^unknown: --active: nothing was measured: 0000:8d:00.0: 1 other process uses it' out
FAKE_NVML_FILE=$healthy
ok "--active without a GPU is unknown" sh -c 'FAKE_NVML_INIT=9 FAKE_CUDA=devices=0 "$0" health --state h.json --active > out 2> err; [ $? = 2 ] && grep -q "no GPU to load" out' "$assay"

# --active on four fake GPUs. The built-in load needs kernels; without them the verdict says so. A fake GPU with kernels computes on the
# CPU, so the load there has small sizes.
active() { # CODE OUT ARGS..
	want=$1 out=$2
	shift 2
	FAKE_CUDA=devices=4 expect "$want" health --state "$out.json" --active --out "$out" "$@"
}
if [ "$kernels" = none ]; then
	ok "--active in a build without kernels is unknown" active 2 builtin --json
	ok ".. because they are missing" says '^{"verdict":"unknown","hardware":false,"cause":"library_missing","part":"0000:8d:00.0"' out
	ok ".. on each of the four GPUs" [ "$(grep -c '"cause":"library_missing"' builtin/journal.jsonl)" -ge 4 ]
else
	sed 's/m: 8192, n: 8192, k: 8192/m: 16, n: 16, k: 16/; s/size: 1GiB/size: 64KiB/; s/seconds: [12]s/phases: burst, seconds: 2ms/' "$root/suites/health-active.yaml" > small.yaml
	ok "--active loads four GPUs, and judges them" active 0 small --suite ./small.yaml
	ok ".. and keeps their figures" [ "$(grep -c '"values": \[' small.json)" -ge 8 ]
	ok ".. which no foreign process disturbs" sh -c '! grep -q "\"busy\"" small/journal.jsonl'
fi
# The cases of the GPUs must overlap in time: the last one begins before the first one ends.
load() { # FILE OPTIONS: a case on each GPU, in lockstep
	printf 'name: load\ncases:\n  - lockstep:\n    - {probe: "null", target: gpu, phases: burst, seconds: 1s, limit: 90s, options: {%s}, require: measured}\n' "$2" > "$1"
}
at() { sed -n "s/.*\"t\":\([0-9]*\),\"type\":\"$1\",\"case\":\([0-9]*\),.*/\1 \2/p" together/journal.jsonl | sort -n; } # time and case, by time
load together.yaml 'time: 1ms'
active 0 together --suite ./together.yaml
# These cases wait on the host, so on a busy machine one GPU may seem slower than the others, or not settled.
ok "a load of one's own runs on all GPUs" \
	grep -qE '^(pass: 4 figures, 0 compared with earlier runs|fail: 0000:[0-9a-f]{2}:00.0: sibling_outlier|unknown: 0000:[0-9a-f]{2}:00.0: null: unsettled)' out
ok ".. with four cases that began and ended" [ "$(at begin | wc -l) $(at end | wc -l)" = "4 4" ]
ok ".. each of them well" [ "$(grep -c '"type":"end",.*"status":"ok"' together/journal.jsonl)" = 4 ]
ok ".. all at the same time" [ "$(at begin | tail -n 1 | cut -d ' ' -f 1)" -lt "$(at end | head -n 1 | cut -d ' ' -f 1)" ]
load slow.yaml 'time: 1ms, hang: enqueue, culprit: 2'
ok "a GPU that is not done after 30 s makes --active unknown" active 2 slow --suite ./slow.yaml --json
ok ".. and says so" says '"verdict":"unknown","hardware":false,"cause":"timed_out","part":"node","text":"unknown: --active did not end within 30 s"' out
ok ".. and keeps no figure" sh -c '! grep -q "\"values\": \[" slow.json'
ok "a suite that is not there is wrong usage" active 64 none --suite ./nowhere.yaml
ok ".. and named" says 'nowhere.yaml' err
ok "a suite without --active is wrong usage" expect 64 health --state h.json --suite quick

# A baseline: runs of a real H100, and the same 6 % slower.
. "$root/tests/journal_of.sh"
slower() { # FACTOR: each rate of the run times FACTOR, as a run of its own
	mkdir -p "run-$1"
	journal_of "$root/results/2026-11-23-h100-sxm/quick" | scaled_rates "$1" > "run-$1/journal.jsonl"
}
for factor in 1 1.002 0.998 0.94; do slower $factor; done
ok "a run gives figures" expect 0 health --state base.json --run run-1
ok ".. that are kept" says '^pass: [1-9][0-9]* figures, 0 compared with earlier runs' out
expect 0 health --state base.json --run run-1.002
expect 0 health --state base.json --run run-0.998
ok "a node 6 % below its own history is reported" expect 1 health --state base.json --run run-0.94
ok ".. with figure and median" says '^fail: .*: 6.0 % below its own history: .* median of 3 earlier runs ' out
ok ".. and still is the next time" expect 1 health --state base.json --run run-0.94
ok ".. but never drains" sh -c '! grep -q suspect base.json'
ok "a new baseline begins anew" expect 0 health --state base.json --run run-0.94 --new-baseline

# History: the three healthy runs, the slow one, and one of another machine.
mkdir -p assay-runs
i=0
for factor in 1 1.002 0.998 0.94; do
	i=$((i + 1))
	cp -r run-$factor assay-runs/$i
	sed -i "1s/\"wall\":\"[^\"]*\"/\"wall\":\"2026-11-2$((i + 4))T00:00:00Z\"/" assay-runs/$i/journal.jsonl
done
cp -r "$root/results/2026-11-21-cpu-2core/quick" assay-runs/0-other
mkdir assay-runs/empty
ok "history finds the change" expect 1 history
ok ".. of each GPU case" says 'slower.* (-6.0 %) .*from 3 earlier figures' out
ok ".. in the right run" says '^2026-11-28T00:00:00Z  assay-runs/4' out
ok ".. marked below the sparkline" says '^ *v$' out
ok ".. without the other machine" says '1 run of another machine than the last one left out' err
ok ".. as JSON" expect 1 history --json
ok ".. with the same" says '"marked": true' out
ok "healthy runs have no change" expect 0 history assay-runs/1 assay-runs/2 assay-runs/3
ok ".. and say so" says '^0 significant changes' out
ok "one run has nothing to compare" expect 2 history assay-runs/1
ok "no run is wrong usage" sh -c 'mkdir bare && cd bare && "$0" history > ../out 2> ../err; [ $? = 64 ]' "$assay"
ok "a plot is drawn" expect 1 history --plot h.svg
ok ".. with the change" says 'significant change' h.svg
ok "another ending is refused" expect 64 history --plot h.gif

# The page.
cp -r run-1 assay-runs/today
ln -s "$assay" assay
sh_of() { awk -v marker="<!-- run: tests/end2end/health.sh -->" '/^```/ { inside = !inside && $0 == "```sh" && before == marker } !/^```/ && inside { print } { before = $0 }' "$root/docs/how-to/gate-a-node.md"; }
sh_of > page
ok "the page has commands" [ "$(wc -l < page)" -ge 4 ]
rm -rf assay-runs/4 # the slow one
while read -r line; do
	ok "how-to: ${line%%  *}" env PATH="$tmp:$PATH" sh -c "$line"
done < page
ok ".. and the plot is there" says '<svg' history.svg
# The configurations of other programs call it too.
npd=$(sed -n 's/.*"args": \[\(.*\)\],$/\1/p' "$root/docs/how-to/gate-a-node.md" | tr -d '",' | sed 's,/var/lib/assay,.,')
ok "node-problem-detector's arguments: $npd" env FAKE_NVML_FILE="$healthy" "$assay" $npd
probe=$(sed -n 's/.*command: \[assay, \(.*\)\]$/\1/p' "$root/docs/how-to/gate-a-node.md" | tr -d ',' | sed 's,/tmp,.,')
ok "the readiness probe's command: $probe" env FAKE_NVML_FILE="$healthy" "$assay" $probe
finish
