#!/bin/bash
# Launched ranks with a GPU each that is not there: collectives and training steps over their processes, what is said of a wrong
# element, a rank without NCCL or with another, one that hangs or dies; and whose a GPU is that several ranks see.
# usage: team_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
gpu_of() { # RANK BUS: what it works on in the first case
	grep '"type":"plan"' "$(journal "$1")" | grep -o '"gpus":\["[^]]*' | head -n 1 | grep -q "\"0000:$2:00.0\""
}
chosen() { # ENGINE: of the first case, on every rank
	for ((r = 0; r < ranks; r++)); do grep '"type":"plan"' "$(journal "$r")" | grep -q "\"collective engine=$1 " || { cat err.*; return 1; }; done
}
well() { # CASES: so many ended well on every rank
	for ((r = 0; r < ranks; r++)); do
		[ "$(grep -c '"type":"end".*"status":"ok"' "$(journal "$r")")" = "$1" ] || { grep '"type":"end"' "$(journal "$r")"; return 1; }
	done
}
told() { # RANK CASE FIELD
	value "$(of_rank "$1")" "$2" "$3"
}
near() { # VALUE EXPECTED: within 2 %
	[ -n "$1" ] && awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.98 * b && a < 1.02 * b) }'
}
collective() { # OPTIONS [MORE]
	printf '  - {probe: collective, engine: nccl, target: team, phases: burst, seconds: 5ms, limit: 4s, require: measured%s, options: {%s}}\n' \
		"${2:-}" "$1"
}
scaling='  - {probe: scaling, target: team, phases: burst, seconds: 2ms, require: measured, options: {m: 16, width: 16, layers: 4, buckets: 1}}'

{
	printf 'name: clean\ncases:\n'
	collective 'size: 1KiB, op: [allreduce, allgather, reducescatter, alltoall, broadcast, reduce, sendrecv]'
	collective 'size: 1KiB, place: in, op: [allreduce, allgather]'
	collective 'size: 64KiB, type: fp32'
	collective 'size: 64KiB, buffers: registered, algorithm: tree, protocol: simple'
	collective 'size: 64KiB'
	collective 'size: 8, launch: graph'
	collective 'size: 8, launch: graph, buffers: window'
	collective 'size: 1KiB' | sed 's/: team/: "team:0,2"/'
	echo "$scaling"
} > clean.yaml
for r in 0 1 2 3; do own[$r]="SLURMD_NODENAME=n$((r / 2)) NCCL_HOSTID=n$((r / 2))"; done
team 4 --suite clean.yaml
ok "collectives of four processes pass on every rank" codes '0 0 0 0'
ok "all cases ended well, two without the ranks that are not in them" eval '[ "$(grep -c "\"type\":\"end\".*\"ok\"" run/journal.jsonl)" = 16 ] &&
	[ "$(grep -c "\"type\":\"end\".*\"ok\"" run/nodes/*/rank-1/journal.jsonl)" = 15 ]'
ok "each rank has looked at all of its elements" eval '[ "$(told 0 0 wrong_checked) $(told 1 0 wrong_checked) $(told 3 0 wrong_checked)" = "2048 512 512" ]'
ok "time is what LL takes" near "$(told 0 0 latency_ns)" 8230
ok "on every rank" near "$(told 3 0 time_ns_mean)" 8230
ok "an all-gather's factor is 3/4" [ "$(told 0 1 bus_factor)" = 0.75 ]
ok "bandwidth is size by time by factor" near "$(told 0 11 link_rate)" \
	"$(awk -v t="$(told 0 11 time_ns_mean)" 'BEGIN { print 65536 * 1.5 / t * 1e9 }')"
ok "NCCL tells what it chose" [ "$(told 0 0 algorithm) $(told 0 0 protocol) $(told 0 0 channels)" = "ring ll 24" ]
ok "an algorithm that is asked for is set in every process" [ "$(told 0 10 algorithm) $(told 0 10 protocol)" = "tree simple" ]
ok "and put back" [ "$(told 0 11 algorithm)" = ring ]
ok "buffers are registered" [ "$(told 0 10 buffers_registered)" = 1 ]
ok "a graph's replay is shorter" near "$(told 0 12 latency_ns)" 7200
ok "symmetric windows are the shortest" near "$(told 0 13 latency_ns)" 3400
ok "two of four ranks work alone" [ "$(told 0 14 ranks) $(told 0 0 ranks)" = "2 4" ]
ok "the journal tells who is on which node" says '"nodes":\[{"name":"[^"]*","ranks":\[0,1\],.*{"name":"[^"]*-rank-2","ranks":\[2,3\],' run/journal.jsonl
ok "each rank has the GPU of its number" eval 'for r in 0 1 2 3; do gpu_of $r $(printf %x $((0x8d + r))) || exit 1; done'
ok "gradients were looked at on every rank" [ "$(told 0 15 wrong_checked)" = 128 ]
ok "training over processes is efficient" awk -v e="$(told 0 15 efficiency)" 'BEGIN { exit !(e > 0.9 && e < 1.001) }'
ok "nobody meets any more: no file is left" eval '! ls nccl-*'

# The same as assay launch starts it. The fakes have no GPUs on the PCI bus, where it counts them.
{
	printf 'name: launched\ncases:\n'
	collective 'size: 1KiB, op: [allreduce, alltoall]'
} > launched.yaml
echo "$scaling" >> launched.yaml
rm -rf run run.*
ok "assay launch starts a rank a GPU" expect 0 launch --ranks-per-node 4 -- check --suite launched.yaml --no-telemetry --out run
ok "which all end well" eval 'ranks=4; well 3'
ok "and have looked at what they received" [ "$(told 0 0 wrong_checked) $(told 3 0 wrong_checked)" = "2048 512" ]

{
	printf 'name: faults\ncases:\n'
	collective 'size: 1KiB'
	collective 'size: 2KiB, op: alltoall'
	echo "$scaling"
} > faults.yaml
export FAKE_NCCL=spoil=2:77
FAKE_CUBLASLT=late=210 team 4 --suite faults.yaml
ok "a wrong element fails the run on every rank" codes '1 1 1 1'
ok "rank, index, expected and found are named by all" all_end 0 'rank 2 on .*: .*1 of 512 elements are wrong, the first is at element 77: expected -\{0,1\}[0-9]*, found'
ok "the sender too where it is moved" end 0 1 'rank 2 on .* the first is at element 77, from rank 0'
ok "a slow GPU is named by its rank" says '"slowest_rank":"2 on ' run/journal.jsonl
head -n 3 faults.yaml > first.yaml
FAKE_NCCL=missing=1:5 team 4 --suite first.yaml
ok "a missing share's rank is named" all_end 0 "wrong_result.*rank 1's share is missing"
FAKE_NCCL=hang=2@40 team 4 --suite first.yaml
ok "a rank that hangs is ended at the limit on every rank" eval 'codes "2 2 2 2" && all_end 0 timed_out'
ok "who hangs is told" end 2 0 'rank 2 waited [0-9.]* s in enqueueing'
ok "who waits for it too" end 1 0 'in waiting for the device'
unset FAKE_NCCL

{
	printf 'name: one\ncases:\n'
	collective 'size: 1KiB'
	printf '  - {probe: "null", engine: ranks, target: team, phases: burst, seconds: 50ms, require: measured, options: {time: 2ms}}\n'
} > one.yaml
own[1]=ASSAY_LIB_NCCL=/nowhere/libnccl.so.2
team 3 --suite one.yaml
ok "a rank without NCCL is named on every rank" eval 'codes "2 2 2" && grep -q "rank 1 on .*: .*/nowhere/libnccl.so.2" run/journal.jsonl &&
	end 2 0 "library_missing.*rank 1 on "'
own[2]=FAKE_NCCL=version=22703
team 3 --suite one.yaml
ok "so is one with another" all_end 0 'version_mismatch.*rank 2 on .*: NCCL 2.27.3 here does not work with 2.28.9 on rank 0'
ok "and the team goes on" all_end 1 '"ok"'

sed '3s/engine: nccl, //' one.yaml > choice.yaml
own[1]=ASSAY_LIB_NCCL=/nowhere/libnccl.so.2
team 3 --suite choice.yaml
ok "where none is named, all choose NCCL" chosen nccl
ok "and a rank without it is named" eval 'end 0 0 "library_missing.*rank 1 on " && end 2 0 "library_missing.*rank 1 on " && all_end 1 "\"ok\""'
FAKE_CUDA=devices=0 FAKE_NVML_FILE='' team 3 --suite choice.yaml
ok "ranks without a GPU choose MPI, although NCCL is here" chosen mpi

# A worker is killed in a window; then a whole rank.
sed -i '3s/5ms, limit: 4s/100s, limit: 30s/' one.yaml
started() { # RANK: pid of its worker, in the window
	for ((i = 0; i < 1200; i++)); do
		grep -q '"phase":"ramp"' run/journal.jsonl 2> /dev/null && break
		sleep 0.1
	done
	sleep 0.3
	sed -n 's/.*"type":"begin","case":0,.*"pid":\([0-9]*\).*/\1/p' "$(journal "$1")" | head -n 1
}
start 3 --suite one.yaml
kill -KILL "$(started 1)"
wait
ok "a worker that is killed is a crash there" end 1 0 '"ending":"crashed".*rank 1 on .*: signal 9'
ok "and a lost team to the others, before the limit" eval 'end 0 0 team_lost && end 2 0 team_lost'
ok "who meet again" all_end 1 '"ok"'
start 3 --suite one.yaml
kill -KILL "$(sed -n 's/^PPid:[^0-9]*//p' "/proc/$(started 2)/status")"
wait
ok "a rank that is killed ends the team, before the limit and by name" eval 'end 0 0 "team_lost.*rank 2 on " && end 1 0 "team_lost"'
ok "the others are inconclusive" eval '[ "$(cat code.0) $(cat code.1)" = "2 2" ]'

# A bit that one rank turns: groups with and without rank 0, each of new processes and a communicator of their own.
{
	printf 'name: bad\ncases:\n'
	collective 'op: allreduce, size: 64KiB'
} > bad.yaml
for bad in 0 3; do
	own[$bad]="ASSAY_TEST=1 ASSAY_TEST_PLANT=wrong:$bad"
	team 4 --suite bad.yaml
	ok "rank $bad, which puts in a wrong bit, is named with its GPU" eval 'says "\"isolated_place\":\"rank $bad on host-[^\"]*\",\"isolated_pci\":\"0000:" run/journal.jsonl'
done
ok "the others worked without it, and without rank 0" says '"target":"team:1-3"' run/journal.jsonl

# Four nodes of one rank each, the last of which is slow: no band and no port's rate is known, so what the first two reach is
# what all are held against. By the built-in expectations.
{
	printf 'name: between\ncases:\n'
	collective 'op: allreduce, size: 64KiB' | sed 's/: team/: team-doubling/; s/4s/20s/'
} > between.yaml
each_alone() {
	for r in 0 1 2 3; do own[$r]="SLURMD_NODENAME=n$r NCCL_HOSTID=n$r ASSAY_LOCAL_SIZE=1 ASSAY_LOCAL_RANK=0 CUDA_VISIBLE_DEVICES=$r"; done
}
each_alone
FAKE_NCCL=slow=3:4 team 4 --suite between.yaml
ok "a slow node fails the run, and nobody brought a band" [ "$(cat code.0)" = 1 ]
ok "half of what two nodes reach is what four are held against" says 'under [0-9.]* GB/s: no expected range fits this case, and team:0,1 reaches [0-9.]* GB/s in this run' run/results.csv
ok "the node is searched for, and named" says '"isolated":"member","isolated_of":"node","isolated_place":"host-[^"]*rank 3)' run/journal.jsonl
ok "with the evidence" says 'rank 3).* is slow: without it [0-9.]* GB/s, with it [0-9.]* GB/s' run/results.csv
ok "the case fails for it" grep -q '^1,.*"fail","node_slow"' run/results.csv
ok "nodes on one machine have no ports between them" says '"layout":{"nodes":\[{"nodes":4,"ranks":1,"gpus":[0-9]*,"next":1,"network":0.0}\]}' run/journal.jsonl
each_alone
team 4 --suite between.yaml
ok "of four that are alike none is searched" sh -c '! grep -q "\"type\":\"extend\"" run/journal.jsonl'

# One GPU.
unset FAKE_NVML_FILE
export FAKE_CUDA=devices=1
{
	printf 'name: single\ncases:\n'
	collective 'size: 1KiB' ', options: {}' | sed 's/, options: {}, /, /'
	printf '  - {probe: dispatch, phases: burst, seconds: 5ms, require: nothing}\n  - {probe: ecc}\n'
	printf '  - {probe: "null", engine: ranks, target: team, phases: burst, seconds: 50ms, require: nothing, options: {time: 2ms}}\n'
} > single.yaml
# (what a busy machine disturbs is not the subject: nothing is required of what is timed by the host)
team 4 --suite single.yaml
ok "a GPU that all ranks of a node see is the first one's" eval 'codes "0 0 0 0" && end 0 1 "\"ok\"" && end 0 3 "\"ok\""'
ok "the others have none" says 'rank 1 has no GPU' run/results.csv
sed '/collective/s/engine: nccl, //; 4,$d' single.yaml > choice.yaml
team 3 --suite choice.yaml
ok "whoever has one, all choose the same engine" end 0 0 'rank 1 has no GPU'
CUDA_VISIBLE_DEVICES=0 team 8 --suite single.yaml
ok "a GPU that eight ranks were given fails the run on every rank" codes '1 1 1 1 1 1 1 1'
ok "the report names ranks and GPU" grep -q '"fail","gpu_shared".*ranks 0-7 of .* all have the GPU 0000:8d:00.0' run/results.csv
ok "once" [ "$(grep -c '"dispatch".*"gpu_shared"' run/results.csv)" = 1 ]
ok "every rank says it" eval '[ "$(grep -l "ranks 0-7 of .* share the GPU 0000:8d:00.0" err.? | wc -l)" = 8 ]'
ok "what needs none is measured" all_end 3 '"ok"'
finish
