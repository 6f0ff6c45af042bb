#!/bin/sh
# assay launch by a real Slurm: a controller and two nodes of this machine, with their own munge, all in a scratch folder on
# ports of their own. usage: slurm.sh ASSAY [MODULE]     MODULE: libassay-mpi.so, for collectives by MPI
set -u
assay=$(realpath "$1") module=${2:+$(realpath "$2")} here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/walk.sh"
. "$here/slurm_cluster.sh"
cluster_programs
# Names of nodes that can be looked up, in a mount namespace of our own.
[ "${3:-}" = inside ] || { unshare -m true 2> /dev/null && exec unshare -m "$script" "$assay" "$module" inside; }

cluster_begin "${3:-}"
launch() { # CODE ARGS..
	want=$1
	shift
	# shellcheck disable=SC2086
	expect "$want" launch --nodes 2 --ranks-per-node 2 --time 5 $master "$@"
}
ok "a job of two nodes, and its end waited for" launch 0 --wait -- __team
ok ".. its four ranks meet and part" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
ok ".. on two nodes" says '"name":"proof1".*"name":"proof2"' out
ok ".. and what it said lies in the folder" grep -q '"ending":"done"' assay-1.out
ok "its script told the way before" sh -c '"$0" launch --nodes 2 --ranks-per-node 2 --time 5 --print -- __team > script && grep -q "^srun --mpi=none" script' "$assay"
if srun --mpi=list 2>&1 | grep -q pmix; then
	ok "with --mpi, by PMIx" launch 0 --mpi --wait -- __team
	ok ".. four ranks meet too" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
	ok ".. as its script says" sh -c '"$0" launch --nodes 2 --ranks-per-node 2 --mpi --print -- __team | grep -q "^srun --mpi=pmix"' "$assay"
fi
# A job that is judged: by a rule that its ranks hold, then by one that they cannot.
mkdir rules
judged_by() { # MOST(ns)
	cat > rules/proof.yaml <<- RULE
		sources:
		  proof: {title: "what the case is told to take", date: 2026-11-22}
		rules:
		  - name: an iteration of 50 ms
		    field: time_ns_mean
		    when: {probe: "null", target: team}
		    above: $1
		    judges: true
		    verdict: fail
		    cause: below_band
		    text: "the ranks took longer than they were allowed"
		    action: "look at who else uses the CPUs"
		    source: proof
		    confidence: high
	RULE
}
printf 'name: judged\ncases:\n  - {probe: "null", engine: ranks, target: team, phases: burst, require: judged, options: {time: 50ms}}\n' > judged.yaml
judged_by 5e9
passes() { # a machine whose CPUs others use gives no verdict: once more
	for _ in 1 2 3 4 5; do
		rm -rf judged
		launch 0 --wait -- check --suite judged.yaml --expectations rules --out judged && return 0
		grep -q '"null probe, ranks",.*"cpu_contended"' judged/results.csv || return 1
	done
	return 1
}
ok "a job that is judged, and passes" passes
ok ".. as its report says" grep -q '"null probe, ranks",.*"burst",1,"pass",' judged/results.csv
judged_by 40e6
ok "one that fails ends with 1" launch 1 --wait -- check --suite judged.yaml --expectations rules --out fails
ok ".. for that reason" grep -q '"null probe, ranks",.*"burst",1,"fail","below_band"' fails/results.csv
# Collectives by MPI, whose ranks srun starts by PMIx. Over TCP: the two nodes are one machine, and Open MPI's segments of shared
# memory, which both number from 0, would be the same ones.
if [ -n "$module" ] && srun --mpi=list 2>&1 | grep -q pmix; then
	cat > mpi.yaml <<- 'SUITE'
		name: mpi
		cases:
		  - {probe: collective, engine: mpi, target: team, phases: burst, require: nothing, limit: 20s, options: {type: fp32, size: 64KiB, op: [allreduce, alltoall]}}
	SUITE
	ASSAY_MODULE_DIR=$(dirname "$module")
	export ASSAY_MODULE_DIR OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo
	ok "collectives by MPI, in a job" launch 0 --mpi --wait -- check --suite mpi.yaml --out mpi
	ok ".. end well on each of four ranks" \
		[ "$(cat mpi/journal.jsonl mpi/nodes/*/rank-*/journal.jsonl | grep '"type":"end"' | grep -c '"status":"ok"')" = 8 ]
	ok ".. with the right results" [ "$(grep -cE ', fp32, MPI","passed","success",.*"burst"' mpi/results.csv)" = 2 ]
fi
if [ -z "$master" ]; then
	mkdir bin
	ln -s "$assay" bin/assay
	PATH=$tmp/bin:$PATH
	walks 16 2 how-to/launch-on-slurm.md
	comes sh -c '[ -z "$(squeue -h)" ]'
fi
ok "a job that is not waited for" launch 0 -- __team
job=$(cat out)
ok ".. says its number" says '^[1-9][0-9]*$' out
ok ".. and runs" comes grep -q '"ending":"done"' "assay-$job.out"
ok "a job whose ranks refuse their words" launch 64 --wait -- __team --nonsense
ok "a step that srun refuses by itself is no failed case" launch 2 --env SLURM_NTASKS=999 --wait -- __team
ok ".. and srun says why" says "srun: error: Unable to create step" out
ok "a partition that is not there" launch 2 --partition nowhere -- __team
ok ".. is refused with sbatch's reason" says 'invalid partition' err
ok "more nodes than there are" expect 2 launch --nodes 3 --ranks-per-node 2 --time 5 -- __team
ok ".. are refused with sbatch's reason" says 'sbatch failed' err
# The array job that `assay deploy --as slurm-array` prints: each node by itself, in a folder of its own.
printf 'name: one\ncases:\n  - {probe: limits}\n' > "$tmp/array.yaml"
"$assay" deploy --as slurm-array --nodes 2 --gpus-per-node 0 --time 5 --name each -- check --suite "$tmp/array.yaml" > array.sh 2> err
ok "an array job of each node by itself" eval 'job=$(sbatch --parsable array.sh 2> err) && comes sh -c "[ -z \"\$(squeue -h)\" ]"'
ok ".. a folder for each node, with a whole run" eval 'runs=$(cat each-$job/*/assay-runs/*/journal.jsonl | grep -c "\"type\":\"close\",\"ending\":\"done\""); [ "$runs" -ge 1 ] && [ "$runs" = "$(ls each-$job | wc -l)" ]'
ok ".. unless one node had both tasks, which is told" eval '[ -d each-$job/proof1 ] && [ -d each-$job/proof2 ] || grep -q "was checked by another task" each-$job-*.out'
begin() { # TIME: a team of four in a case of that time
	: > out
	# shellcheck disable=SC2086
	"$assay" launch --nodes 2 --ranks-per-node 2 --time 5 $master --wait -- __team --time "$1" --limit 90s > out 2> err &
	pid=$!
	comes sh -c '[ "$(grep -c "case 1 begins" out)" = 4 ]'
}
begin 60s
kill -TERM $pid
wait $pid
code=$?
ok "a request to stop cancels the job" says 'ended as CANCELLED' err
ok ".. each rank has heard it" [ "$(grep -c 'error: .*stopped on request' out)" -ge 4 ]
ok ".. and nothing is known" [ $code = 2 ]
ok ".. and nobody waits in the queue" comes sh -c '[ -z "$(squeue -h)" ]'
long=67.$$s # tells our ranks from others'
begin "$long"
kill -KILL "$(pgrep -f "assay __team --time $long" | head -n 1)"
wait $pid
code=$?
ok "a rank that is killed ends the job inconclusive" [ $code = 2 ]
ok ".. srun tells of the signal" says 'srun: error: proof[12]: task [0-3]: Killed' out
ok ".. named by the three others" [ "$(grep -c '"error":"team_lost"' out)" = 3 ]
[ "$fail" = 0 ] || tail -n 5 log/* | sed 's/^/# /'
finish
