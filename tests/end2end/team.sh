#!/bin/sh
# Teams of real processes on one host: 64 of them, each launcher's environment, one killed, journals sent. Between hosts:
# team_net.sh. usage: team.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
# rank R SIZE ARGS..: one rank of a team, in the background; its words are in out.R, its exit code in code.R
rank() {
	r=$1 size=$2
	shift 2
	(
		"$assay" __team --rank "$r" --size "$size" "$@" > "out.$r" 2> "err.$r" &
		echo $! > "pid.$r"
		wait $!
		echo $? > "code.$r"
	) 2> /dev/null &
}
forget() { rm -f out.* err.* pid.* code.*; }
all() { # SIZE CODE PATTERN: each rank ended so and says so; but for those in $but
	bad=0
	for r in $(seq 0 $(($1 - 1))); do
		case " ${but:-} " in *" $r "*) continue ;; esac
		[ "$(cat "code.$r" 2> /dev/null)" = "$2" ] && grep -q -- "$3" "out.$r" && continue
		echo "rank $r: exit code $(cat "code.$r"), $(cat "out.$r" "err.$r")"
		bad=1
	done
	return $bad
}
begun() { # SIZE: all are in the first case
	for r in $(seq 0 $(($1 - 1))); do grep -q 'case 1 begins' "err.$r" || return 1; done
}
comes() { # COMMAND..: true within two minutes
	for _ in $(seq 1200); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
. "$here/tap.sh"
. "$here/ports.sh"
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET

tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
ports

for r in $(seq 0 63); do rank "$r" 64 --master "127.0.0.1:$port"; done
wait
joined() { sed -n 's/.*"join_ms":\([0-9]*\).*/\1/p' out.0; }
ok "64 ranks meet, agree and part" all 64 0 '"ending":"done"'
echo "# 64 ranks: $(joined) ms until all had joined, as rank 0 saw it"
forget

# A case of a minute, and a rank killed in it; at last rank 0 itself.
for victim in $(($(od -An -N1 -tu1 /dev/urandom) % 7 + 1)) 0; do
	for r in $(seq 0 7); do rank "$r" 8 --master "127.0.0.1:$port" --time 60s --limit 90s; done
	comes begun 8
	kill -9 "$(cat pid.$victim)"
	wait
	but=$victim
	ok "rank $victim killed: all others end and name it" all 8 2 "lost rank $victim .*last: begin of case 1"
	ok ".. by its closed connection, not by its silence" eval '! grep -q "silent for" out.*'
	but=
	forget
done

# One that stands still answers nothing, and its descriptors live.
for r in 0 1 2; do rank $r 3 --master "127.0.0.1:$port" --time 60s --limit 90s --silence 1s; done
comes begun 3
kill -STOP "$(cat pid.1)"
comes sh -c '[ -s code.0 ] && [ -s code.2 ]'
kill -KILL "$(cat pid.1)"
wait
but=1
ok "a rank that stands still is named by its silence" all 3 2 'lost rank 1.*silent for'
but=
forget

for r in 0 1 2; do rank $r 3 --master "127.0.0.1:$port" --cases 2 --fall $((r == 2)) --skip $((r == 1 ? 2 : 0)) --time 1s; done
wait
ok "a worker that falls takes the case with it, and nothing else" all 3 0 '"ending":"crashed","rank":2'
ok "a case that one rank skips is skipped by all" all 3 0 'this rank was told to skip case 2","generation":1'
forget

for r in 0 1 2; do rank $r 3 --master "127.0.0.1:$port" --build $((r == 1 ? 2 : 1)); done
wait
ok "mixed builds: every rank says so and fails" all 3 2 'version_mismatch.*rank 1 on .* build 2'
forget
for r in 0 1 2; do rank $r $((r == 1 ? 4 : 3)) --master "127.0.0.1:$port"; done
wait
ok "a wrong world size: every rank says so and fails" all 3 2 'team_refused.*rank 1 on .*a team of 4 ranks'
forget
expect 2 __team --rank 1 --size 2 --master "127.0.0.1:$port" --join 300ms
ok "nobody there is told with where he was looked for" says "rank 1 did not reach rank 0 within 0.3 s: 127.0.0.1, port $port: Connection refused" out
RANK=1 expect 64 __team
ok "half an environment is refused" says 'RANK is set and WORLD_SIZE is not' err

# Journals to rank 0. The large one of rank 1 is under way when its sender is killed.
for r in 0 1 2; do rank $r 3 --master "127.0.0.1:$port" --node "n$r" --send d; done
wait
ok "journals of three ranks come to rank 0" all 3 0 '"missing":""'
ok ".. each as its sender has it" sh -c 'for r in 1 2; do cmp d.rank-$r/journal.jsonl d/nodes/n$r/rank-$r/journal.jsonl || exit; done'
truncate -s 250M d.rank-1/journal.jsonl
forget
for r in 0 1 2; do rank $r 3 --master "127.0.0.1:$port" --node "n$r" --send d; done
comes sh -c 'ls d/nodes/n1/rank-1/*.new'
kill -9 "$(cat pid.1)"
wait
but=1
ok "a rank killed while it sends is named, and the others' journals come" all 3 0 '"rank":[02]'
but=
ok ".. by name" grep -q 'no complete files from rank 1 on n1: ' out.0
ok ".. and nothing of it lies there" sh -c '[ -z "$(ls d/nodes/n1/rank-1)" ] && cmp d.rank-2/journal.jsonl d/nodes/n2/rank-2/journal.jsonl'
rm -rf d d.rank-*
forget

# The launchers' own words; the secret then lies in a file of the job.
unset ASSAY_TEAM_SECRET
HOME=$tmp/home
export HOME
mkdir "$HOME"
launched() { # NAME COMMAND: two ranks, each started by `COMMAND` with $r set
	for r in 0 1; do
		( eval "$2" > "out.$r" 2> "err.$r"; echo $? > "code.$r" ) &
	done
	wait
	ok "$1" all 2 0 '"size":2.*"ending":"done"'
	forget
}
launched "as torchrun starts ranks" "RANK=\$r WORLD_SIZE=2 LOCAL_RANK=\$r LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$((port - 1)) \$assay __team"
launched "as mpirun starts ranks" "OMPI_COMM_WORLD_RANK=\$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=\$r OMPI_COMM_WORLD_LOCAL_SIZE=2 \$assay __team"
launched "as srun starts ranks" "SLURM_STEP_ID=0 SLURM_JOB_ID=$$ SLURM_PROCID=\$r SLURM_NTASKS=2 SLURM_LOCALID=\$r SLURM_NODEID=0 SLURM_STEP_TASKS_PER_NODE=2 SLURM_STEP_NODELIST=n1 \$assay __team"
launched "as a PMI starts ranks" "PMI_RANK=\$r PMI_SIZE=2 MPI_LOCALRANKID=\$r MPI_LOCALNRANKS=2 \$assay __team"
ok "no secret is left behind" sh -c '[ -z "$(find home -type f)" ]'
HOME=$tmp/nowhere RANK=1 WORLD_SIZE=2 MASTER_ADDR=nosuch.invalid "$assay" __team --join 300ms > out 2>&1
ok "a host that nobody knows is named before a secret that is missed" says 'rank 0.s host "nosuch.invalid"' out

finish
