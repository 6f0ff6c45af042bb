#!/bin/sh
# assay profile on programs that use a fake CUPTI: what they did is in the summary however they end.
# usage: profile.sh ASSAY FAKES     FAKES: the folder of the fake libraries
set -u
assay=$(realpath "$1") fakes=$(realpath "$2")
here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
all_libraries
scratch
ASSAY_MODULE_DIR=$(dirname "$assay")/profile
export ASSAY_MODULE_DIR
unset CUDA_INJECTION64_PATH NVTX_INJECTION64_PATH
p=$fakes/profiled
ranges=$(grep -q nvtxRangePushA "$p" && echo yes || echo no) # built with NVTX's headers

# profile CODE OPTIONS -- WORDS: the run directory is run; words of the program follow
profile() {
	want=$1
	shift
	rm -rf run
	"$assay" profile --out run --no-telemetry "$@" > out 2> err
	code=$?
	[ "$code" = "$want" ]
}
count() { awk -F, -v kind="$1" '$1 == kind { sub(/^[^"]*"[^"]*",/, ""); n += $1 } END { print n + 0 }' run/summary.csv; }
has() { # KIND NUMBER: so many events of it
	[ "$(count "$1")" = "$2" ] || { echo "$(count "$1") of $1, not $2"; return 1; }
}
field() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" run/summary.json | head -n 1; }
fields() { sed -n "s/^ *\"$1\": \([^,]*\),*$/\1/p" run/summary.json; }

opened() { gzip -dc "${1:-run/trace.json.gz}"; } # the trace, as viewers see it
traces() { opened > trace || return; for line; do says "$line" trace || { echo "not in the trace: $line"; return 1; }; done; }

work() {
	profile 0 -- "$p" init steps 10 nccl && has kernel 42 && has copy 20 && has set 10 && has runtime 52 && has sync 0 &&
		[ "$(field closed)" = true ] && [ "$(field overwritten)" = 0 ] && [ "$(field odd)" = 0 ]
}
# A program's command line may hold secrets (this one ends with 98 at words that it does not know): they are in none of the files, and others cannot look into them.
secrets() {
	profile 98 -- "$p" init steps 2 --password=Planted1 --token Planted2 --tokens 5 HF_TOKEN=Planted3 https://me:Planted4@host/x \
		'sh -c "A_KEY=Planted5 x --secret Planted6"' || return 1
	! grep -rla 'Planted[1-6]' run out err || return 1
	grep -q -- '--tokens 5' run/PROFILE.md && grep -q -- '--password=\[redacted\] --token \[redacted\]' run/summary.json &&
		says '"--password=\[redacted\]"' run/journal.jsonl && [ "$(stat -c %a run run/rings 2> /dev/null | head -n 1)" = 700 ]
}
ok "secrets in a program's words are written nowhere" secrets
again() { # from the rings alone
	"$assay" report run > out 2> err
	! grep -rla 'Planted[1-6]' run out err
}
ok "nor when the files are made again" again
ok "kernels, copies, sets, calls and waits of a program are counted" work
calls() { says '^runtime,"cudaLaunchKernel",22,' run/summary.csv && ! says cudaGetDevice run/summary.csv; }
ok "calls have their plain names, and those that do nothing are left out" calls
ok "the times are the program's" says '^kernel,"softmax_kernel",21,230000,10952.4,5000,' run/summary.csv
ok "names of C++ are told as people write them" says 'gemm_<128>\|_Z5gemm_' run/summary.csv
if [ $ranges = yes ]; then
	nvtx() { has range 12 && traces '"NCCL communicator ID":77,"Message size \[bytes\]":33554432'; }
	ok "ranges are there, and what NCCL says of a message" nvtx
	threads() { # a range of the program and its calls lie on one track
		opened > trace && tid=$(sed -n 's/.*"tid":\([0-9]*\).*"name":"step".*/\1/p' trace | sort -u) && [ "$(echo "$tid" | wc -l)" = 1 ] &&
			[ "$(sed -n 's/.*"tid":\([0-9]*\).*"cat":"cuda_runtime".*/\1/p' trace | sort -u)" = "$tid" ]
	}
	ok "calls and ranges of a thread have one track" threads
	joined() { says '^allreduce,4d,2,33554432,1,0,1,0,100000,' run/nccl.csv && says '| allreduce | 4d | 2 | 32 MiB | 1 |' run/PROFILE.md; }
	ok "an operation of NCCL's has its kernel, communicator and size" joined
fi
trace() {
	traces '"deviceProperties":\[{"id":0,"name":"Fake H100"' '"schemaVersion":1' \
		'"cat":"kernel","name":"softmax_kernel","args":{"queued":0,"device":0,"context":1,"stream":7,"correlation":2,' \
		'"blocks per SM":2,"warps per SM":16,"est. achieved occupancy %":25,"cluster":\[2,1,1\]' \
		'"name":"Memcpy HtoD (Pinned -> Device)"' '"graph id":9,"graph node id":4000000009' &&
		[ "$(grep -c '"ph":"s"' trace)" = "$(grep -c '"ph":"f"' trace)" ] && tail -n 1 trace | grep -q '^\]}$'
}
ok "the trace has Kineto's keys" trace
packed() { # of gzip's header: no flags, so no name, and no time; compared with the text it is small
	[ "$(od -An -tx1 -N 8 run/trace.json.gz | tr -d ' ')" = 1f8b080000000000 ] && [ ! -e run/trace.json ] &&
		[ "$(opened | wc -c)" -gt $((5 * $(wc -c < run/trace.json.gz))) ]
}
ok "it is packed, without a time or a name of its own" packed
reads() { "$assay" report run > report 2>&1; says '1 case: 1 measured' report && says '"type":"close"' run/journal.jsonl; }
ok "the run directory is a run like any other" reads
if [ $ranges = yes ]; then
	held() { # two ranks of one communicator
		mkdir -p one && rm -rf one && mv run one &&
			profile 0 -- sh -c "RANK=0 WORLD_SIZE=2 '$p' init nccl & RANK=1 WORLD_SIZE=2 '$p' init nccl; wait" &&
			says '^allreduce,4d,2,33554432,1,0,2,2,200000,' run/nccl.csv && says 'of rank 1, pid' run/PROFILE.html
		good=$?
		rm -rf run && mv one run
		return $good
	}
	ok "ranks of a communicator are held against each other" held
fi
again() { # the files are a function of the rings and the journal
	mkdir -p kept && cp run/PROFILE.* run/*.csv run/summary.json run/trace.json.gz kept && rm run/PROFILE.* run/*.csv run/summary.json &&
		: > run/trace.json.gz &&
		"$assay" report run --write > /dev/null && (cd kept && for f in *; do cmp "$f" "../run/$f" || return 1; done)
}
ok "report --write makes the same files of the rings" again
older() {
	rm run/trace.json.gz && : > run/trace.json && "$assay" report run --write > /dev/null && rm run/trace.json &&
		cmp kept/trace.json.gz run/trace.json.gz
}
ok "and packs the trace of a run that has an unpacked one" older
page() { says 'ended with exit code 0' run/PROFILE.md && says '^trace.json.gz opens in Perfetto' run/PROFILE.md && ! says 'Missing data' run/PROFILE.md && says 'softmax' run/PROFILE.md; }
ok "the page tells it, and of nothing missing" page

untraced() { profile 0 --no-trace -- "$p" init steps 2 && ! says 'trace.json' run/PROFILE.md && ! says 'trace.json' run/PROFILE.html && [ ! -e run/trace.json.gz ]; }
ok "a page without a trace tells of none" untraced
kernels_only() { profile 0 --kernels-only -- "$p" init steps 10 && has kernel 40 && has runtime 0 && has sync 0; }
ok "--kernels-only records what devices do alone" kernels_only
api() {
	profile 0 --api -- "$p" init steps 10 && says '^runtime,"cudaGetDevice",10,' run/summary.csv && has sync 10 &&
		traces '"cat":"cuda_sync","name":"Context Sync","args":{"device":0,"context":1,"stream":-1,'
}
ok "--api records every call, and what waits waited for" api
graphs() { profile 0 --graphs whole -- "$p" init steps 10 && says '^graph,"CUDA graph",10,550000,' run/summary.csv; }
ok "--graphs whole has graphs as one event" graphs

for version in 17 18 130001 140002; do # records of 176, 208 and 216 bytes a kernel
	old() {
		FAKE_CUPTI_VERSION=$version profile 0 -- "$p" init steps 3 && has kernel 12 && has copy 6 && has runtime 15 &&
			[ "$(field cupti_version)" = $version ] || return 1
		clusters=$(opened | grep -c '"cluster":\[2,1,1\]')
		[ "$clusters" = "$([ $version = 17 ] && echo 0 || echo 12)" ]
	}
	ok "records of CUPTI's version $version are read as it writes them" old
done
ancient() { FAKE_CUPTI_VERSION=9 profile 0 -- "$p" init steps 1 && has kernel 0 && says "version 9 is too old" err; }
ok "a version that is too old is said" ancient
refused() { FAKE_CUPTI_REFUSE=39 profile 0 -- "$p" init steps 1 && says "another profiler uses CUPTI" err; }
ok "another profiler in the program is said" refused
dropped() { FAKE_CUPTI_DROP=123 profile 0 -- "$p" init steps 1 && says "CUPTI dropped 123 records" err; }
ok "what CUPTI dropped is said" dropped
elsewhere() { ASSAY_LIB_CUPTI=/nonexistent/libcupti.so profile 0 -- "$p" init steps 1 && has kernel 0 && says "cannot be loaded" err; }
ok "a CUPTI that cannot be loaded is said, and the program goes on" elsewhere

# The CUPTI of the program's own CUDA: of its wheels, of one folder, of a toolkit; each place has one.
user=$fakes/cuda_user
place() { mkdir -p "$1" && cp "$fakes/$(basename "$2")" "$1/$2"; }
place wheels/cublas/lib libcublasLt.so.13 && place wheels/cuda_cupti/lib libcupti.so.13 && place cu13/lib libcublasLt.so.13 &&
	place cu13/lib libcupti.so.13 && place toolkit/extras/CUPTI/lib64 libcupti.so.13 && place path libcupti.so.13
takes() { # END OF THE PATH LIBRARY
	CUDA_HOME=$tmp/toolkit profile 0 -- "$user" $2 && says "\"cupti\": \".*$1\"" run/summary.json
}
wheels() { takes 'wheels/cublas/lib/../../cuda_cupti/lib/libcupti.so.13' wheels/cublas/lib/libcublasLt.so.13; }
ok "a program with CUDA's wheels has the CUPTI of its wheels" wheels
together() { takes 'cu13/lib/libcupti.so.13' cu13/lib/libcublasLt.so.13; }
ok "one whose libraries lie in one folder, that of the folder" together
loaded() { takes path/libcupti.so.13 "path/libcupti.so.13 wheels/cublas/lib/libcublasLt.so.13"; }
ok "one that has loaded one, that" loaded
toolkit() { # also where the one beside its libraries cannot be used
	takes "$tmp/toolkit/extras/CUPTI/lib64/libcupti.so.13" "" && : > cu13/lib/libcupti.so.13 &&
		takes "$tmp/toolkit/extras/CUPTI/lib64/libcupti.so.13" cu13/lib/libcublasLt.so.13
}
if [ -e /usr/local/cuda/lib64/libcupti.so.13 ] || ldconfig -p 2> /dev/null | grep -q 'libcupti.so.1[23]'; then
	n=$((n + 1))
	echo "ok $n - one with none, the toolkit's # SKIP the loader finds a CUPTI of this machine's first"
else
	ok "one with none, the toolkit's" toolkit
fi

FAKE_CUPTI=sm_active_share=0.91,dram_read_bytes=1e12,dram_write_bytes=5e11,clock_hz=1.7e9,tensor_flop=1e14
export FAKE_CUPTI
counted() { # a step launches two kernels; those of graphs are not counted, nor are NCCL's
	profile 0 --counters . --counters-skip 3 --counters-count 10 -- "$p" init steps 10 nccl && has kernel 0 &&
		says '^"void gemm_<128>(float const\*, float\*)",5,0.91,.*,500000000,250000000,850000,500000,1.7e+09,,,,' run/counters.csv &&
		says '^"softmax_kernel",5,' run/counters.csv && ! says nccl run/counters.csv && says 'counters of 10 kernels' err &&
		[ "$(grep -cE '^"(void gemm_<128>\(float const\*, float\*\)|softmax_kernel)",[0-9]+,0,[0-9]+,0.91,' run/counters_launches.csv)" = 10 ]
}
ok "--counters counts the kernels that match, behind those it is to skip, and not more" counted
in_graphs() { profile 0 --counters nothing_like_it -- "$p" init steps 10 && says 'no counters of kernels that CUDA graphs launch' err && says 'no counters were taken; "Missing data" says why' run/PROFILE.md; }
ok "kernels that graphs launch have none, which is said instead of advice to count them" in_graphs
matched() { profile 0 --counters 'soft|none' -- "$p" init steps 10 nccl && says '^"softmax_kernel",11,' run/counters.csv && ! says gemm run/counters.csv; }
ok "by a regular expression of their names" matched
flop() {
	profile 0 --counters gemm --counters-flop -- "$p" init steps 10 && says 'FLOP per byte' run/PROFILE.md && says '| 600 TFLOP/s | 400 |' run/PROFILE.md &&
		says '<svg' run/PROFILE.html && says 'PROFILE.html shows it' run/PROFILE.md
}
ok "with FLOP there is a roofline" flop
pipes() { FAKE_CUPTI=xu_active_share=0.42,issue_active_share=0.31 profile 0 --counters gemm -- "$p" init steps 10 && says '| 42.0 % | 31.0 % |' run/PROFILE.md && ! says 'L2 hit share' run/PROFILE.md; }
ok "exponentials and issue slots are told with the core" pipes
l2() {
	FAKE_CUPTI=l2_bytes=2e12,l2_hit_share=0.75,clock_hz=1.7e9 profile 0 --counters gemm --counters-l2 -- "$p" init steps 10 && says '| 2.00 TB/s | 75.0 % |' run/PROFILE.md &&
		says '^"void gemm_<128>(float const\*, float\*)",10,.*,1.7e+09,2e+09,0.75,,' run/counters.csv
}
ok "--counters-l2 tells what crossed L2, and what was found there" l2
for refusal in cuptiRangeProfilerEnable=35:NVreg_RestrictProfilingToAdminUsers=0 cuptiRangeProfilerStart=26:dcgmi cuptiSubscribe=39:callbacks \
	cuptiRangeProfilerDecodeData=1:range_decode; do
	refused_counters() {
		FAKE_CUPTI=${refusal%%:*} profile 0 --counters . -- "$p" init steps 10 && says "no counters: .*${refusal#*:}" err && [ "$(wc -l < run/counters.csv)" = 1 ] &&
			[ "$(count kernel)" -ge 39 ] && says '^runtime,"cudaLaunchKernel",' run/summary.csv
	}
	ok "counters that are refused (${refusal%%:*}) are said, and there is a timeline" refused_counters
done
slowly() { # WORDS of the program
	FAKE_CUPTI=slow=400,sm_active_share=0.5 profile 0 --counters . -- "$p" init "$@" && ! says 'fake CUPTI' err
}
prepared() { slowly steps 10 && says 'counters of 20 kernels' err && says '^"softmax_kernel",10,0.5,' run/counters.csv; }
ok "a launch waits for counters that a thread still prepares" prepared
ok "so does a context's end" slowly sleep 100 leave
ok "and the program's" slowly sleep 100 exit 0
early_child() { slowly fork steps 2; }
ok "a child of fork does not wait for its parent's thread" early_child
at_once() { profile 0 --counters . --counters-skip 150 --counters-count 300 -- "$p" init threads 8 && says 'counters of 300 kernels' err; }
ok "threads that launch at once take turns" at_once
at_once_refused() { FAKE_CUPTI=cuptiRangeProfilerStart=26 profile 0 --counters . --counters-skip 150 -- "$p" init threads 8 && says 'no counters' err; }
ok "none of them waits for ever where counters end" at_once_refused
lingering() { # ends of launches that were let go are still told while the last one's counters are read
	FAKE_CUPTI=linger=30 profile 0 --counters . --counters-skip 150 --counters-count 300 -- "$p" init threads 8 && says 'counters of 300 kernels' err &&
		! says 'no counters' err
}
ok "one that is let go ends no other's counting" lingering
ok "a regular expression that is none is wrong usage" profile 64 --counters '(' -- "$p" init
ok "so are counters with a timeline" profile 64 --counters . --api -- "$p" init
ok "and L2's of no kernels" profile 64 --counters-l2 -- "$p" init
ok "so is passing over kernels that nobody counts" profile 64 --counters-skip 3 -- "$p" init
unset FAKE_CUPTI

# Beside the program: NVML's and GPM's, and what CUPTI samples by time.
tracked() {
	rm -rf run
	FAKE_CUPTI=$1 ASSAY_LIB_NVML=$fakes/libnvidia-ml.so.1 ASSAY_LIB_CUDA=$fakes/libcuda.so.1 ASSAY_LIB_CUPTI=$fakes/libcupti.so.13 \
		FAKE_NVML_FILE=$here/../fake/h100.json "$assay" profile --out run --tracks-every 10ms -- "$p" init steps 2 sleep 900 steps 2 > out 2> err
}
track() { for name; do traces "\"ph\":\"C\".*\"name\":\"$name\"" || return; done; }
tracks() {
	tracked real=1,sm_active_share=0.5,nvlink_tx_rate=1e9,pcie_read_rate=2e9 &&
		track power_w sm_clock_mhz gpm_sm_share gpm_dram_share gpm_pcie_rx_rate pm_sm_active_share pm_tensor_active_share pm_dram_share \
			pm_nvlink_tx_rate pm_pcie_read_rate && traces '"pm_nvlink_tx_rate":1e+09' &&
		[ "$(grep -c '"name":"pm_sm_active_share"' trace)" -gt 50 ] && "$assay" report run 2> /dev/null | grep -q '1 measured'
}
ok "power, clocks, SM, DRAM, NVLink and PCIe are tracks, CUPTI's where they are asked for" tracks
untracked() { tracked real=1,cuptiPmSamplingEnable=35 && says "no sampled hardware counters, GPM telemetry continues" err && track gpm_sm_share && ! says '"name":"pm_' trace; }
ok "where they are refused it is said, and GPM's stay" untracked
both() { profile 64 --counters . --tracks-every 10ms -- true; }
ok "one program holds the counters: not both" both

ok "the program's exit code is ours" profile 42 -- "$p" init steps 1 exit 42
ok "what it did is there all the same" has kernel 4
ok "128 and the signal's number where one ended it" profile 139 -- "$p" init steps 1 segv
told() { says 'signal 11' err && says 'signal 11' run/PROFILE.md && says '"text":"signal 11' run/journal.jsonl; }
ok "and the signal is told" told
killed() { profile 137 --flush 20ms -- "$p" init steps 50 sleep 400 kill && has kernel 200 && [ "$(field closed)" = false ] && says "last half second" err; }
ok "a killed program keeps what it did" killed
left() { profile 3 --flush 20ms -- "$p" init steps 50 sleep 400 _exit 3 && has kernel 200; }
ok "so does one that leaves by _exit" left
ok "no such program: 127, as a shell says" profile 127 -- ./nonexistent-program
ok "and it is said" says "nonexistent-program" err
ok "not a program: 126" profile 126 -- /dev/null
nothing() { profile 0 -- true && says "no process of the program used CUDA" err && ! says 'Cost of recording' run/PROFILE.md && ! says 'Cost of recording' run/PROFILE.html; }
ok "a program without CUDA is said to be one" nothing
ok "no program at all is wrong usage" profile 64
forked() { profile 0 -- "$p" fork init steps 5 && has kernel 40 && [ "$(fields pid | sort -u | wc -l)" = 2 ]; }
ok "a child of fork has a file of its own" forked
late() { profile 0 -- "$p" init steps 5 fork steps 5 && has kernel 40; }
ok "a child of a program that uses CUDA leaves its parent's file alone" late
execed() { profile 0 --flush 20ms -- "$p" init steps 5 sleep 200 exec init steps 7 && has kernel 48 && ls run/rings | grep -q -- '-2.ring'; }
ok "a program that becomes another keeps both" execed
ok "a program that closes all descriptors is none the worse" profile 0 -- "$p" init steps 5 close kernels 30000
ok "and is recorded" has kernel 30020
shell() { profile 5 -- sh -c "'$p' init steps 2; '$p' init steps 3; exit 5" && has kernel 20; }
ok "children of a shell are recorded" shell
left_behind() { # by a program that ends before it
	profile 0 --flush 20ms -- sh -c "'$p' init steps 2 sleep 20000 & while [ ! -e run/rings/\$!.ring ]; do sleep 0.05; done; sleep 0.3"
	code=$?
	pid=$(basename run/rings/*.ring .ring)
	kill "$pid"
	[ $code = 0 ] && has kernel 8 && says "pid $pid, profiled: still running: .*assay report run --write" err &&
		says "ended with exit code 0 (pid $pid, profiled: still running) after" run/PROFILE.md
}
ok "a child that outlives its program is named" left_behind
alone() { shell && ! says "still running" err; }
ok "one that ended is not" alone
rubbish() {
	profile 0 -- sh -c 'echo rubbish > run/rings/9.ring' && says '9.ring is not a ring file' err && says 'no process left readable records' err &&
		! says 'used CUDA' err && ! says 'used CUDA' run/PROFILE.md
}
ok "a ring of rubbish is told as that" rubbish
ranks() {
	profile 0 -- sh -c "RANK=0 WORLD_SIZE=2 '$p' init steps 2 & RANK=1 WORLD_SIZE=2 '$p' init steps 3; wait" && has kernel 20 &&
		opened run/ranks/rank-1-pid-*.json.gz | grep -q '"distributedInfo":{"backend":"nccl","rank":1,"world_size":2}' &&
		[ "$(opened run/ranks/rank-0-pid-*.json.gz | grep -c '"cat":"kernel"')" = 8 ] &&
		[ "$(opened run/ranks/rank-1-pid-*.json.gz | grep -c '"cat":"kernel"')" = 12 ] && [ "$(opened | grep -c '"cat":"kernel"')" = 20 ] &&
		[ "$(opened | grep -o '"pid":1000[01]000,"tid":7' | sort -u | wc -l)" = 2 ]
}
ok "ranks have a trace each, and devices of their own in the common one" ranks

million() { # 96 MB of kernels into 8
	profile 0 --limit-size 8MiB --no-trace -- "$p" init kernels 1000000 || return 1
	kept=$(count kernel) lost=$(field overwritten)
	[ $((kept + lost)) = 1000000 ] && [ "$kept" -gt 50000 ] && says "overwritten by later ones" err &&
		[ "$(du -sm run/rings | cut -f 1)" -le 9 ]
}
ok "a million kernels in a small ring: the last are kept, the rest counted" million
sed -n 's|^- pid.*: \([0-9]* activity records\)|# \1|p' run/PROFILE.md
limited() { (ulimit -f 6144 && profile 0 -- "$p" init kernels 100000) && [ "$(field stop)" = '"file_limit"' ] && says "ulimit -f" err; }
ok "a limit on the size of files kills nobody" limited
small_files() {
	rm -rf run
	(ulimit -f 1 && "$assay" profile --out run --no-telemetry -- "$p" init steps 2 > out 2> err)
	[ $? = 2 ] && says 'run/.*: File too large' err
}
ok "and not us: which file is too large is said" small_files
# on_disk SIZE WORDS: with the run directory on a small disk; its files are in listing
on_disk() {
	mount -t tmpfs -o "size=$1" tmpfs small || return 1
	shift
	"$assay" profile --out small/run --no-telemetry -- "$p" "$@" > out 2> err
	code=$?
	ls small/run > listing
	umount small
}
if mkdir small && mount -t tmpfs -o size=3m tmpfs small 2> /dev/null; then
	umount small
	ring_full() { on_disk 3m init kernels 100000 && [ $code = 0 ] && says "the disk is full" err && says PROFILE.md listing; }
	ok "a disk too small for the records: the program ends well, and it is said" ring_full
	trace_full() {
		# 5132 KiB are the ring's, 80 the other files'; the trace's 280 find no room.
		on_disk 5300k init kernels 40000 exit 0 && [ $code = 2 ] && says "trace.json.gz: No space left" err &&
			says PROFILE.md listing && ! says trace listing
	}
	ok "a disk too small for the trace: 2, no half trace, and the page is there" trace_full
else
	n=$((n + 2))
	echo "ok $((n - 1)) - a disk too small for the records # SKIP no tmpfs can be mounted here"
	echo "ok $n - a disk too small for the trace # SKIP no tmpfs can be mounted here"
fi
signals() {
	rm -rf run
	"$assay" profile --out run --no-telemetry -- "$p" init steps 2 trap > out 2> err &
	pid=$!
	for _ in $(seq 1200); do
		says trapping out 2> /dev/null && break
		sleep 0.05
	done
	kill -TERM $pid
	wait $pid
	[ $? = 7 ] && has kernel 8
}
ok "a signal for us is the program's, and it ends as it likes" signals
stopped() { # it waits for CONT, and TERM would wait with it
	rm -rf run halted
	"$assay" profile --out run --no-telemetry -- sh -c 'echo $$ > halted; kill -STOP $$; exit 9' > out 2> err &
	pid=$!
	until [ -s halted ] && grep -qs '^State:[[:space:]]*T' "/proc/$(cat halted)/status"; do sleep 0.05; done
	kill -TERM $pid
	for _ in $(seq 200); do
		kill -0 $pid 2> /dev/null || break
		sleep 0.1
	done
	kill -KILL "$(cat halted)" 2> /dev/null && echo "it was still there"
	wait $pid
	[ $? = 143 ] && [ -e run/PROFILE.md ]
}
ok "one that is stopped is ended too" stopped
twice() { "$assay" profile --out run -- true > out 2> err; [ $? = 64 ] && says "already holds a run" err; }
ok "a run directory is not written over" twice
json() { rm -rf run; "$assay" profile --out run --no-telemetry --json -- "$p" init steps 1 > out 2> err && says '"rows"' out; }
ok "--json tells the summary" json

python=${ASSAY_TEST_PYTHON:-python3}
[ -z "${ASSAY_TEST_HTA_PATH:-}" ] || export PYTHONPATH="$ASSAY_TEST_HTA_PATH"
if "$python" -c 'import hta' 2> /dev/null; then
	agrees() { "$python" -B "$here/../oracles/profile_hta.py" run; }
	analysed() { profile 0 -- "$p" init steps 200 nccl nccl nccl && agrees; }
	ok "Holistic Trace Analysis reads the trace, and finds what the summary says: counts, times, idle, overlap" analysed
	analysed_ranks() {
		profile 0 -- sh -c "RANK=0 WORLD_SIZE=2 '$p' init steps 40 nccl & RANK=1 WORLD_SIZE=2 '$p' init steps 60 nccl; wait" && agrees
	}
	ok "of two ranks too" analysed_ranks
else
	n=$((n + 2))
	for of in $((n - 1)) $n; do
		echo "ok $of - Holistic Trace Analysis reads the trace # SKIP HolisticTraceAnalysis (PyPI) is not installed for $python"
	done
fi
finish
