#!/bin/sh
# tools/peer_ncu with an ncu and an assay that only print: what agrees passes, what does not is named. usage: peer_ncu.sh ROOT
set -u
root=$(realpath "$1")
. "$root/tests/end2end/tap.sh"
scratch
mkdir bin
# Rows as Nsight Compute 2025 writes them: names with commas, thousands set apart, lines that are not its table's.
cat > bin/ncu << 'NCU'
#!/bin/sh
echo "==PROF== Connected to process 1"
for word; do
	case ${last:-} in --metrics) metrics=$word ;; --launch-count) count=$word ;; esac
	last=$word
done
echo '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"'
for i in $(seq "$count"); do
	case $((i % 3)) in 1) name=copy_v4 ;; 2) name='void gemm<1, 2>(int, int)' ;; 0) name=attention ;; esac
	for metric in $(echo "$metrics" | tr , ' '); do
		case $metric in *pct*) value=91.25 ;; *bytes*) value=1,000,000; [ "$i" -gt 3 ] || value=900,000 ;; *bf16*) value=$([ "$name" = copy_v4 ] && echo 0 || echo 100) ;; *) value=1,234.5 ;; esac
		case $metric in *cycles_elapsed.max) value=1,200 ;; esac
		case $metric in *fp16*) value=0 ;; esac
		echo "\"$i\",\"1\",\"launches\",\"host\",\"$name\",\"1\",\"7\",\"(256, 1, 1)\",\"(1, 1, 1)\",\"0\",\"9.0\",\"Command line profiler metrics\",\"$metric\",\"\",\"$value\""
	done
done
case "$*" in *product*) sleep 0.5 ;; esac # what is timed
NCU
cat > bin/assay << 'ASSAY'
#!/bin/sh
flop=
for word; do
	case ${last:-} in --out) out=$word ;; esac
	[ "$word" != --counters-flop ] || flop=100
	last=$word
done
mkdir -p "$out"
case "$*" in *product*) sleep "${ASSAY_SLEEP:-0}" ;; esac
{
	echo name,pid,device,at_ns,sm_active_share,tensor_active_share,occupancy_share,dram_share,dram_read_bytes,dram_write_bytes,sm_cycles,time_ns,clock_hz,l2_bytes,l2_hit_share,tensor_flop
	n=3
	[ -z "$flop" ] || n=1
	for i in $(seq $n); do
		for name in copy_v4 'void gemm<1, 2>(int, int)' attention; do
			w=${WRITTEN:-1010000}
			[ "$i" != 2 ] || w=${OUTLIER:-9000000} # one that is far off moves no median
			echo "\"$name\",1,0,$i,0.91,0.92,0.9,${SHARE:-0.9},1000000,$w,${CYCLES:-1205},1200,1200,,,$flop"
		done
	done
} > "$out/counters_launches.csv"
ASSAY
chmod +x bin/*
peer() { PATH="$tmp/bin:$PATH" "$root/tools/peer_ncu" -n 3 bin/assay launches out > log 2> err; }
ok "counters that agree pass" peer
ok "medians of both stand beside each other, by kernel" says '"void gemm<1, 2>(int, int)",dram_write_bytes,1.01e+06,1e+06,+0.01000,3/3,ok' out/counters.csv
ok "a share is held to two points" says '"copy_v4",dram_share,0.9,0.9125,-0.01250,3/3,ok' out/counters.csv
ok "executed FLOP to a two-hundredth" says '"attention",tensor_flop,100,100,+0.00000,1/1,ok' out/counters.csv
ok "and so are cycles" says '"copy_v4",sm_cycles,1205,1200,+0.00417,3/3,ok' out/counters.csv
ok "times are told" says ',time_ns,1200,1234.5,-0.02795,3/3,told' out/counters.csv
ok "the tools' wall times are compared" says '"ratio": 0\.[0-9]*, "counters_of_ncu": 6,' out/counters-time.json
many() { ! WRITTEN=1060000 peer && says '"copy_v4",dram_write_bytes,.*,WRONG' out/counters.csv; }
ok "bytes that are 6 % off are not within" many
share() { ! SHARE=0.89 peer && says '"copy_v4",dram_share,.*,WRONG' out/counters.csv; }
ok "nor is a share that is more than two points off" share
cycles() { ! CYCLES=1207 peer && says '"copy_v4",sm_cycles,.*,WRONG' out/counters.csv; }
ok "nor are cycles that are 0.6 % off" cycles
slow() { ! ASSAY_SLEEP=0.8 peer && ! says WRONG out/counters.csv; }
ok "nor is a tool that is as slow as ncu" slow
none() { PATH=/usr/bin:/bin "$root/tools/peer_ncu" bin/assay launches out > log 2> err; [ $? = 77 ] && says 'ncu is not installed' log; }
command -v ncu > /dev/null || ok "without ncu there is nothing to compare" none
finish
