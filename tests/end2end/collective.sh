#!/bin/sh
# The real binary on four and eight GPUs that are not there: what probe collective measures and checks, what it says of a
# wrong rank, of one that hangs, of an NCCL that is old or missing. usage: collective.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
unset NCCL_ALGO NCCL_PROTO NCCL_PROFILER_PLUGIN
# Eight GPUs: the four, and four more on the next buses.
awk 'NR < 6 || NR > 9 { if (NR == 10) for (i = 1; i <= 4; i++) print more[i] (i < 4 ? "," : ""); print; next }
	{ line = $0; sub(/,$/, "", line); print line ","; n++; more[n] = line
	  split("91 92 93 94", to, " "); split("8D 8E 8F 90", from, " ")
	  sub("00000000:" from[n], "00000000:" to[n], more[n]); sub("GPU-00000000-0000", "GPU-00000000-1000", more[n])
	  sub("\"serial\": \\[0, \"0", "\"serial\": [0, \"1", more[n]) }' "$FAKE_NVML_FILE" > h100x8.json
ended() { # RUN CASE: its end
	grep "\"type\":\"end\",\"case\":$2," "$1/journal.jsonl"
}
well() { # RUN: cases that ended well
	grep -c '"type":"end".*"status":"ok"' "$1/journal.jsonl"
}
near() { # VALUE EXPECTED: within 2 %
	[ -n "$1" ] && awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.98 * b && a < 1.02 * b) }'
}
suite() { # NAME OPTIONS..: a case a word, burst
	name=$1
	shift
	printf 'name: %s\ncases:\n' "$name" > "$name.yaml"
	for options in "$@"; do
		printf '  - {probe: collective, target: node, phases: burst, seconds: 1ms, limit: 4s, require: measured, options: {%s}}\n' \
			"$options" >> "$name.yaml"
	done
}
run() { # STAGED SUITE OUT
	FAKE_CUDA="devices=${gpus:-4}" FAKE_NCCL="$1" "$assay" check --suite "$2.yaml" --out "$3" > "$3.out" 2> "$3.err"
}

suite ops 'size: 1KiB, op: [allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv]' \
	'size: 1KiB, op: [broadcast, reduce], root: 3, type: fp32'
suite types 'size: 1KiB, reduce: [sum, min, max, avg], type: [fp32, bf16, fp16, e4m3, e5m2, int8, int32, fp64]'
suite moved 'size: 1KiB, op: [allgather, alltoall, sendrecv, broadcast], type: [fp32, e4m3, fp64]'
suite in 'size: 1KiB, place: in, op: [allreduce, allgather, reducescatter, broadcast, reduce]'
suite ways 'size: 8' 'size: 8, launch: graph' 'size: 8, launch: graph, buffers: window' 'size: 64KiB, buffers: registered' \
	'size: 64KiB, algorithm: tree, protocol: simple' 'size: 64KiB'
suite library 'size: 64KiB, buffers: library, op: [allgather, reducescatter]'
run "" ops ops
ok "every operation passes on four GPUs" [ $? = 0 ]
ok "all nine cases ended well" [ "$(well ops)" = 9 ]
ok "every element was checked, of all ranks" [ "$(value ops 0 wrong_checked)" = 2048 ]
ok "an all-gather's factor is 3/4" [ "$(value ops 1 bus_factor)" = 0.75 ]
ok "the function is told" [ "$(value ops 3 calls)" = ncclAlltoAll ]
run "" types types
ok "every type and reduction is exact" [ "$(well types)" = 32 ]
run "" moved moved
ok "every bit that moves arrives" [ "$(well moved)" = 12 ]
run "" in in
ok "in place too" [ "$(well in)" = 5 ]
run "" library library
run "" ways ways
ok "8 bytes take what LL takes" near "$(value ways 0 latency_ns)" 8200
ok "a graph's replay is shorter" near "$(value ways 1 latency_ns)" 7200
ok "symmetric windows are the shortest" near "$(value ways 2 latency_ns)" 3400
ok "NCCL tells what it chose" [ "$(value ways 0 algorithm) $(value ways 0 protocol) $(value ways 0 channels)" = "ring ll 24" ]
ok "by a stream call where a graph was timed" [ "$(value ways 1 told_by)" = "a stream call" ]
ok "of a symmetric kernel it tells nothing" [ "$(value ways 2 algorithm),$(value ways 2 protocol)" = symmetric, ]
ok "memory of the library is right, and not registered" [ "$(well library) $(value library 0 wrong_checked) $(value library 1 wrong_checked) $(value library 0 buffers_registered)" = "2 131072 32768 " ]
ok "the buffers were registered" [ "$(value ways 3 buffers_registered)" = 1 ]
ok "an algorithm that is asked for is taken" [ "$(value ways 4 algorithm) $(value ways 4 protocol)" = "tree simple" ]
ok "and no longer by the next" [ "$(value ways 5 algorithm)" = ring ]
ok "bus bandwidth is size by time by factor" near "$(value ways 5 link_rate)" \
	"$(awk -v t="$(value ways 5 time_ns_mean)" 'BEGIN { print 65536 * 1.5 / t * 1e9 }')"
ok "the links bound it" says '18 NVLinks x 26.5620 GB/s x 16/17' ways/results.json
ok "the library is told" [ "$(value ways 0 nccl_version)" = 2.28.9 ]
ok "all ranks worked" [ "$(value ways 0 ranks)" = 4 ]
samples=$(value ways 0 iteration_samples) # 512, or fewer where a busy machine's time for them is over
ok "single iterations were timed" [ "${samples%.*}" -ge 1 -a "${samples%.*}" -le 512 ]
ok "by stream each is a call's, and the device waited for them" \
	sh -c '[ "$1" = 1.0 ] && awk -v a="$2" "BEGIN { exit !(a > 8100 && a < 8300) }"' . "$(value ways 0 iteration_starved_share)" "$(value ways 0 iteration_ns_p99)"
ok "in a graph it waits for none" [ "$(value ways 1 iteration_starved_share)" = 0.0 ]
ok "who waits for whom is told of busy devices alone" \
	sh -c '[ -z "$1" ] && [ -n "$2" ]' . "$(value ways 0 skew_ns)" "$(value ways 1 skew_ns)"
ok "and its iterations are a replay's" near "$(value ways 1 iteration_ns_p50)" 7200
ok "those of windows too" near "$(value ways 2 iteration_ns_max)" 3400
ok "the report has a row of each" [ "$(sed -n '/^### Single iterations/,/^##/s/^| all-reduce.* us | [0-9]* |.*/x/p' ways/REPORT.md | grep -c x)" = 6 ]
ok "so have page and terminal" sh -c 'grep -q "<h3>Single iterations</h3>" ways/report.html && grep -q "^Single iterations" ways.out'

suite one 'size: 1KiB'
NCCL_PROFILER_PLUGIN=mine run "" one mine
ok "a plug-in that the user named is kept, and nothing is told" [ "$(value mine 0 algorithm)" = "" ]
ok "the figure is the same" near "$(value mine 0 latency_ns)" 8230
suite untold 'size: 64KiB'
NCCL_PROFILER_PLUGIN=mine run "" untold untold
ok "whether the switch adds is not told either: its bound says so" says 'x 2 x 3 / 5: the switch may add (NCCL did not report it)' untold/results.json
NCCL_ALGO=tree run "" one asked
ok "what the user has forced holds" [ "$(value asked 0 algorithm)" = tree ]
gpus=8 FAKE_NVML_FILE=$tmp/h100x8.json run "" ops eight
ok "eight GPUs pass" [ "$(well eight)" = 9 ]
ok "eight ranks worked" [ "$(value eight 0 ranks)" = 8 ]
ok "their factor is 7/4" [ "$(value eight 0 bus_factor)" = 1.75 ]
printf 'name: best\ncases:\n  - {probe: collective, target: node, seconds: 1ms, require: measured, options: {size: 1KiB, search: top}}\n' > best.yaml
run "" best best
ok "a search ends well" [ $? = 0 ]
ok "its best is the windows" [ "$(sed -n 's/.*"phase":"best".*"variant":"\([^"]*\)".*/\1/p' best/journal.jsonl)" = windows ]
ok "by 2.4" near "$(value best 0 best_ratio)" 2.417
ok "what NCCL does in the winner's way is told too" [ "$(value best 0 best_algorithm),$(value best 0 algorithm)" = symmetric,ring ]
ok "the report has the winner and what it gains" grep -q '^| 1 KiB | windows | .* | x 2\.[34].* | symmetric | search of ' best/REPORT.md
ok "of three ways to run 8 bytes it has the best" grep -q '^| 8 B | window buffers, graph | 3\.4. us | x 2\.4.* | symmetric | fastest of 3 ways |' ways/REPORT.md
ok "on the terminal too" says '8 B  window buffers, graph' ways.out

suite switch 'size: 64KiB, algorithm: nvls'
run "nvls=1" switch switch
ok "an all-reduce that the switch adds says so" [ "$(value switch 0 algorithm) $(value switch 0 nvls)" = "nvls 1" ]
ok "and its bound is the switch's" says 'x 2 x 3 / 5: the switch adds' switch/results.json
run "" switch noswitch
ok "where there is none it is refused with NCCL's words" says 'ncclAllReduce: failed: staged by the fake NCCL' noswitch/journal.jsonl
suite sizes 'size: [8, 64, 512, 4KiB, 32KiB, 128KiB]'
run "" sizes sizes
ok "latency and bandwidth of a curve are told" grep -q 'all-reduce, bf16: [0-9]* B to 128 KiB by ring ll: 8.2 us' sizes/REPORT.md # a busy machine may cost a point
ok "on the terminal too" says 'by ring ll: 8.2 us' sizes.out
ok "and on the page" says 'by ring ll: 8.2 us' sizes/report.html
ok "results.json has the line" sh -c 'tr -d " \n" < sizes/results.json | grep -q "\"fits\":\[{\"name\":\"all-reduce,bf16\",\"told\":true,\"lines\":\[{\"from_bytes\":"'

suite two 'size: 1KiB' 'size: 2KiB, op: alltoall'
run "spoil=2:77" two spoil
ok "a wrong element fails the run" [ $? = 1 ]
ok "rank, index, expected and found are named" sh -c 'grep -q "rank 2 (gpu2): .*1 of 512 elements are wrong, the first is at element 77: expected -\{0,1\}[0-9]*, found" spoil/journal.jsonl'
ok "the sender too where it is moved" grep -q 'rank 2 (gpu2): .* the first is at element 77, from rank 0' spoil/journal.jsonl
run "missing=1:5" one missing
ok "a missing share is wrong" says '"status":"mismatch","cause":"wrong_result"' missing/journal.jsonl
ok "and its rank is named" says "rank 1's share is missing" missing/journal.jsonl
run "hang=2@40" two hang
ok "a rank that hangs makes the run inconclusive" [ $? = 2 ]
ok "who hangs is told, and who waits for it" sh -c 'grep "\"type\":\"end\",\"case\":0," hang/journal.jsonl | grep -q "timed_out.*rank 2 waited [0-9.]* s in enqueueing"'
ok "the others waited for their devices" sh -c 'grep "\"type\":\"end\",\"case\":0," hang/journal.jsonl | grep -q "in waiting for the device"'
run "ncclAllReduce=2@9" two failed
ok "a call that fails is named with the library's words" says 'ncclAllReduce: unhandled system error: staged by the fake NCCL' failed/journal.jsonl
ok "the next case goes on" [ "$(well failed)" = 1 ]

ASSAY_LIB_NCCL=/nowhere/libnccl.so.2 run "" one none
ok "without NCCL it is inconclusive" [ $? = 2 ]
ok "the library is named" says 'library_missing.*/nowhere/libnccl.so.2' none/journal.jsonl
ASSAY_LIB_NCCL=$fakes/libnccl_old.so.2 run "version=21703" one ancient
ok "one that is too old is named with its version" says 'version_mismatch.*NCCL 2.17.3 is too old: 2.18 or newer is needed' ancient/journal.jsonl
suite parts 'size: 1KiB' 'size: 1KiB, op: alltoall' 'size: 1KiB, buffers: window' 'size: 1KiB, type: e4m3'
ASSAY_LIB_NCCL=$fakes/libnccl_old.so.2 run "version=21805" parts old
ok "an older one does what it can" [ "$(well old)" = 2 ]
ok "all-to-all by sends and receives" [ "$(value old 1 calls)" = "grouped ncclSend + ncclRecv" ]
ok "windows are not there" says 'NCCL 2.18.5 does not support symmetric windows; use NCCL 2.27 or newer' old/journal.jsonl
ok "nor are 8-bit floats" says 'NCCL 2.18.5 does not support e4m3; it needs 2.24 or newer' old/journal.jsonl
suite refused 'size: 32GiB' 'size: 16GiB, op: alltoall, search: top' 'size: 8, op: allgather, type: fp64' 'size: 8, op: broadcast, root: 4'
"$assay" check --suite refused.yaml --plan > refused.out 2> refused.err
ok "a size beyond the table is refused" says 'size' refused.err
sed -i '/32GiB/d' refused.yaml
run "" refused refused
ok "a size beyond memory is a skip with its figures" says 'needs 103 GB of device memory, 0000:8d:00.0 has 85.5 GB' refused/journal.jsonl
ok "so is less than an element a rank" says 'allgather of 8 bytes has less than one element for each of 4 ranks' refused/journal.jsonl
ok "and a root that is no rank" says 'root=4 does not exist, there are 4 ranks' refused/journal.jsonl
expect 64 probe collective reduce=max op=allgather --target node
ok "a reduction of what only moves is wrong usage" [ $? = 0 ]
ok "and says why" says 'op=allgather does not reduce' err
preset() { # ENGINE TYPE: what it takes where nobody says
	expect 0 probe collective --engine "$1" --target team --plan --format json && says "\"collective engine=$1 .*type=$2\"" out
}
ok "the type that nobody names is bf16" preset nccl bf16
ok "of engine mpi one that MPI has" preset mpi fp32
# Four launched ranks on one node: what it does by threads is not done again by processes; three of them are another case.
cat > ranks.yaml << LIST
name: ranks
cases:
  - {probe: collective, engine: nccl, target: [node-doubling, team-doubling, "team:0-2"], phases: burst, seconds: 1ms, limit: 8s, require: measured, options: {size: 1KiB}}
LIST
mkdir meet
FAKE_CUDA=devices=4 FAKE_NCCL_MEET="$tmp/meet" "$assay" launch --ranks-per-node 4 -- check --suite ranks.yaml --out ranks > ranks.out 2> ranks.err
ok "two GPUs, all four and three ranks have measured" [ "$(well ranks)" = 3 ]
ok "the first two as threads of rank 0" says '"target":"node:0,1"' ranks/journal.jsonl
ok "the ranks of the node are the node" says '"target":"team",.*"reason":"case 1 is the same measurement"' ranks/journal.jsonl
ok "the others hear it from rank 0" [ "$(cat ranks/nodes/*/rank-*/journal.jsonl | grep -c '"type":"end",.*rank 0 on .*: case 1 is the same')" = 3 ]
# nccl-tests beside it: a stand-in that says what its rows say.
mkdir peer
printf '#!/bin/sh\nfor s in 8 64 512 4096 32768; do echo "  $s  2  bfloat16  sum  -1  12.80  0.00 0.00  N/A  12.80  0.00  0.00  N/A"; done\n' \
	> peer/all_reduce_perf
chmod +x peer/all_reduce_perf
FAKE_CUDA=devices=4 "$root/tools/peer_nccl" -t 2 -p 2 -o allreduce -w stream -l "$fakes/libnccl.so.2" "$assay" peer pairs > out 2> err
ok "the peer's script ends well" [ $? = 0 ]
ok "a pair of each size and turn" [ "$(grep -c '^allreduce,stream,' pairs/pairs.csv)" = 10 ]
ok "the peer took twice as long" near "$(sed -n 's/^allreduce,stream,8,2,\([^,]*\),.*/\1/p' pairs/ratios.csv)" 2
FAKE_CUDA=devices=4 FAKE_NCCL_MEET="$tmp/meet" "$root/tools/peer_nccl" -t 2 -p 1 -o allreduce -w stream -v "plain library process quiet unhooked tests data events" -l "$fakes/libnccl.so.2" "$assay" peer why > out 2> err
ok "what differs from the peer is tried" [ "$(grep -cE '^allreduce,[0-9]+,(plain|library|process|quiet|unhooked|tests|data|events),0,[0-9.]+$' why/variants.csv)" = 40 ]
ok "without telemetry there is none, and with it there is" sh -c '! grep -q "\"type\":\"telemetry\"" why/allreduce-quiet-0/journal.jsonl && grep -q "\"type\":\"telemetry\"" why/allreduce-plain-0/journal.jsonl'
ok "and held against it" [ "$(sed -n 's/^allreduce,8,library,1,.*,//p' why/medians.csv | cut -c 1-3) $(sed -n 's/^allreduce,8,tests,1,.*,//p' why/medians.csv)" = "2.0 1.0000" ]
"$root/tools/peer_nccl" -t 4 "$assay" nowhere pairs > out 2> err
ok "without nccl-tests it skips and says so" sh -c '[ $0 = 77 ] && grep -q "there is no nowhere/all_reduce_perf" err' $?
finish
