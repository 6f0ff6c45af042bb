#!/bin/sh
# assay launch: its scripts word for word, each way of starting on stand-ins of ssh, sbatch, srun, scontrol and mpirun, and
# each thing that can be wrong. usage: launch.sh ASSAY ROOT [--update]
set -u
assay=$(realpath "$1") root=$(realpath "$2") update=${3:-} here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/walk.sh"
unset OMP_NUM_THREADS NCCL_NVLS_ENABLE NCCL_SOCKET_IFNAME NCCL_IB_HCA ASSAY_TEAM_SECRET ASSAY_JOB SLURM_JOB_ID
mkdir bin
PATH=$tmp/bin:$PATH
stand_in() { # NAME: what it does comes on stdin
	{ echo '#!/bin/sh'; cat; } > "bin/$1"
	chmod +x "bin/$1"
}
machine=$root/tests/replay/derived-fabric-storage

# Scripts, word for word. The program's path and build are this build's own.
golden() { # NAME ARGS..
	want=$root/tests/data/launch/$1.sh name=$1
	shift
	"$assay" launch --print "$@" > out 2> err || return 1
	sed -e "s|$assay|/opt/assay/assay|g" -e "s|--folder $tmp|--folder /home/me/proof|g" -e 's/--build [0-9a-f]\{16\}/--build 0123456789abcdef/' out > "$name.sh"
	[ "$update" != --update ] || cp "$name.sh" "$want"
	sh -n "$name.sh" && diff "$want" "$name.sh"
}
stand_in srun << 'S'
echo 'MPI plugin types are...' >&2
echo '	none' >&2
echo '	pmix' >&2
S
stand_in mpirun << 'S'
echo 'mpirun (Open MPI) 4.1.4'
S
ok "the script of one node" golden plain --machine "$machine" --env "NCCL_DEBUG=WARN NOTE=it's" -- check quick
ok "the script of ssh" golden ssh --hosts gpu1,root@gpu2 --gpus-per-node 8 --env "NCCL_DEBUG=WARN" -- check --site "my site.yaml"
# Saved and run, it ends as assay launch would: with what says most of the hosts' exit codes.
mkdir shown
for codes in 0:0:0 0:1:1 1:0:1 2:1:1 255:0:2 0:64:64 64:1:64 1:64:64 112:103:1 111:102:2 0:102:1 101:102:1 102:103:64 111:255:2; do
	printf '#!/bin/sh\ncat > /dev/null\ncase " $* " in *" -- one "*) exit %s ;; esac\nexit %s\n' "${codes%%:*}" "$(echo $codes | cut -d: -f2)" > shown/ssh
	chmod +x shown/ssh
	ok "the script of ssh ends with ${codes##*:}, where hosts end with ${codes%:*}" eval '"$assay" launch --print --hosts one,two --ranks-per-node 1 > saved && { PATH=$tmp/shown:$PATH sh saved; [ $? = ${codes##*:} ]; }'
done
ok "the script of Slurm" golden slurm --how slurm --nodes 2 --machine "$machine" --time 30 --partition gpu --account us -- check quick
ok "the script of Slurm for training" golden slurm-train --how slurm --nodes 2 --gpus-per-node 8 --time 240 -- train run.yaml
ok ".. which names the run directory, or takes the one that is given" \
	eval 'expect 0 launch --print --how slurm --nodes 2 --gpus-per-node 8 -- train run.yaml --out mine && says "-- train run.yaml --out mine --resume-if-exists &$" out'
ok ".. and continues a run that is resumed" \
	eval 'expect 0 launch --print --how slurm --nodes 2 --gpus-per-node 8 -- train --resume mine && says "-- train --resume mine &$" out'
ok ".. a plan is no run" \
	eval 'expect 0 launch --print --how slurm --nodes 2 --gpus-per-node 8 -- train run.yaml --plan && ! says requeue out'
ok "the script of Slurm with MPI" golden slurm-mpi --how slurm --nodes 2 --ranks-per-node 4 --mpi --sbatch --nodelist=n1,n2 --no-derive
ok "the script of Open MPI" golden openmpi --how mpirun --hosts gpu1,gpu2 --ranks-per-node 4 --mpi --env "A=1"
stand_in mpirun << 'S'
echo 'HYDRA build details:'
S
ok "the script of MPICH" golden mpich --how mpirun --hosts gpu1,gpu2 --ranks-per-node 4 --env "A=1"
stand_in srun << 'S'
echo 'MPI plugin types are...	none' >&2
S
ok "a Slurm without pmix says so" golden slurm-no-pmix --how slurm --nodes 1 --ranks-per-node 4 --mpi
expect 0 launch --exports --how slurm --nodes 2 --machine "$machine"
ok "what a machine asks for can be had for other programs" sh -c '. ./out && [ "$OMP_NUM_THREADS" = 2 ] &&
	[ "$NCCL_IB_HCA" = "=mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1" ]'

# Wrong usage: what is wrong is named, nothing is started.
wrong() { # PATTERN ARGS..
	pattern=$1
	shift
	ok "refused: $pattern" expect 64 launch "$@"
	ok ".. and named" says "$pattern" err
}
wrong 'names no host' --hosts ''
for how in 'plain' 'slurm --nodes 2' 'ssh --hosts a,b' 'mpirun'; do # shellcheck disable=SC2086
	wrong 'there is no suite "nosuch"' --how $how --ranks-per-node 1 --print -- check nosuch
done
wrong 'unknown option "--targt"' --print -- check --quiet full --targt team
wrong 'gemmm' --ranks-per-node 1 -- probe gemmm
wrong 'two suites given' --ranks-per-node 1 -- check quick --suite full
wrong '"team,cpu" is not one of cpu, ' --ranks-per-node 2 -- check quick --target team,cpu
wrong 'names rank 1 twice' --ranks-per-node 2 --print -- probe gemm --target team:0,1,1
ok "a GPU that may be on the nodes alone is theirs to miss" expect 0 launch --print --ranks-per-node 1 -- probe p2p --target 'gpu6>gpu7'
ok "a file that may lie on the nodes alone is theirs to miss" expect 0 launch --print --ranks-per-node 1 -- check --suite ./of_the_nodes.yaml
ok "what another command takes is let through" expect 0 launch --print --ranks-per-node 1 -- check --help --targt
wrong 'empty host name' --hosts a,,b --ranks-per-node 1
wrong 'host a is listed twice' --hosts a,b,a --ranks-per-node 1
wrong 'characters that no host name has' --hosts '-oProxyCommand=touch${IFS}x' --ranks-per-node 1
wrong 'is not written as HOST' --hosts=-x --ranks-per-node 1
wrong 'needs --hosts' --how ssh
wrong 'empty host name' --hosts 'a[1-2],,b' --ranks-per-node 1
wrong 'node list "gpu.1-"' --hosts 'me@gpu[1-' --ranks-per-node 1
ok "lists in brackets, with a user and among other hosts" eval '"$assay" launch --print --hosts "a,me@gpu[01-02,4],b-[1-2]" --ranks-per-node 1 > out && [ "$(grep -o -- "-- [a-z@0-9-]* .*__ranks" out | cut -d" " -f2 | tr "\n" " ")" = "a me@gpu01 me@gpu02 me@gpu4 b-1 b-2 " ]'
wrong 'give one' --hosts a --hostfile b
: > empty
wrong 'empty names no host' --hostfile empty
printf 'gpu1\ngpu2 slots=8\n' > slots
wrong 'slots:2: host "gpu2 slots=8"' --hostfile slots
wrong '"30m" is not a time that Slurm accepts' --how slurm --nodes 1 --ranks-per-node 1 --time 30m
wrong 'the number of GPUs per node is not known' --how slurm --nodes 2
wrong '"eight" is not a whole number' --how slurm --nodes 2 --gpus-per-node eight
wrong '0 ranks per node' --ranks-per-node 0
wrong '\-\-time works only with --how slurm' --time 30
wrong '\-\-wait works only with --how slurm' --hosts a --ranks-per-node 1 --wait
wrong '2 nodes' --how plain --nodes 2
wrong '\-\-nodes is 3, but there are 2 hosts' --nodes 3 --hosts a,b --ranks-per-node 1
wrong 'is not written as NAME=value' --env 'A'
wrong '--sbatch has 1001 bytes; the limit is 1000' --how slurm --nodes 1 --ranks-per-node 1 --sbatch "$(printf '%01001d' 0)"
long=$(printf '%05000d' 0)
ok "a folder whose name is too long is refused, not cut" eval 'expect 64 check quick --out "$long" && says "out: the path is too long" err'
ok "so is a node whose name is" eval 'expect 64 check quick --node "$(printf "%0100d" 0)" --out x && says "has more than 63 characters" err'
wrong 'script: the path is too long' --how slurm --nodes 1 --ranks-per-node 1 --script "$long"
wrong '--partition has 1001 bytes; the limit is 1000' --how slurm --nodes 1 --ranks-per-node 1 --partition "$(printf '%01001d' 0)"
wrong '--account has 1001 bytes; the limit is 1000' --how slurm --nodes 1 --ranks-per-node 1 --account "$(printf '%01001d' 0)"
wrong 'assay launch sets this variable itself' --env 'ASSAY_TEAM_SECRET=x'
wrong '"chek" after -- is not an assay command' -- chek
wrong '"launch" after -- is not an assay command' -- launch
wrong 'compare after -- would do the same on every rank' -- compare a b
wrong 'contains control characters' --sbatch "a
b" --how slurm --nodes 1 --ranks-per-node 1
ok "a hostfile that is not there is named" sh -c '! "$0" launch --hostfile nowhere 2> err && grep -q "nowhere: No such file" err' "$assay"
ok "nothing was started by any of them" [ ! -e x ]

# One node.
ports
ok "one node: four ranks meet" expect 0 launch --ranks-per-node 4 --env "A=b" -- __team
ok ".. all four" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
ok ".. and the secret is not told" sh -c '! grep -q SECRET out err'
launch_two() { # two teams at once, of one host and its ports
	"$assay" launch --ranks-per-node 3 -- __team > other.out 2> other.err &
	other=$!
	expect 0 launch --ranks-per-node 2 -- __team && wait $other
}
ok "two teams at once do not meet" launch_two
ok ".. and each has its own ranks" [ "$(grep -c '"size":2.*"ending":"done"' out) $(grep -c '"size":3.*"ending":"done"' other.out)" = "2 3" ]
ok "an exit code of the ranks is ours" expect 2 launch --ranks-per-node 2 -- __team --build other --rank 0 --size 2 --join 300ms --master "127.0.0.1:$port"
ok "wrong usage of a rank is wrong usage" expect 64 launch --ranks-per-node 2 -- __team --nonsense
: > err
"$assay" launch --ranks-per-node 2 -- __team --time 60s --limit 90s > out 2> err &
pid=$!
for _ in $(seq 1200); do [ "$(grep -c 'case 1 begins' err)" = 2 ] && break; sleep 0.1; done
kill -TERM $pid
wait $pid
code=$?
ok "a request to stop reaches each rank" [ "$(grep -c 'stopped on request' err)" -ge 2 ]
ok ".. and the exit code says that nothing is known" [ $code = 2 ]
ln -s "$assay" bin/assay
cpus=$(nproc)
# What says that a run is sound must see one that is not: a crash is no matter of speed, nor is wrong data.
printf 'name: fell\ncases:\n  - {probe: "null", phases: burst, require: measured, options: {time: 1ms, crash: prepare}}\n' > fell.yaml
printf 'name: false\ncases:\n  - {probe: "null", phases: burst, require: measured, options: {time: 1ms, wrong: data}}\n' > false.yaml
for run in fell:2 false:1; do
	expect "${run#*:}" check --suite "${run%:*}.yaml" --no-telemetry --out "${run%:*}"
	ok "a run that is not sound is seen: ${run%:*}" eval '! sound "${run#*:}" "${run%:*}"'
done
walks $((cpus < 4 ? cpus : 4)) 1 how-to/launch-ranks-on-one-node.md
sed "s|/opt/assay/assay|$assay|; s|check quick|__team|; s|--count [0-9]* --size [0-9]*|--count 3 --size 3|" plain.sh > own.sh
ok "the script that is shown can be run" sh own.sh
sh own.sh > out 2> err
ok ".. and does the same" [ "$(grep -c '"size":3.*"ending":"done"' out)" = 3 ]

# ssh: the last argument is what the host's shell gets, the one before it the host.
stand_in ssh << 'S'
while [ $# -gt 2 ]; do
	echo "$1" >> words
	shift
done
echo "$1" >> hosts
echo "$2" >> remote
case $1 in
refuses) echo 'Warning: something before'  >&2; echo 'refuses: Permission denied (publickey).' >&2; exit 255 ;;
nowhere) echo 'ssh: Could not resolve hostname nowhere: Name or service not known' >&2; exit 255 ;;
silent) exit 255 ;;
no-assay) echo 'sh: 1: /opt/assay: not found' >&2; exit 127 ;;
older) exec sh -c "$(echo "$2" | sed 's/--build [0-9a-f]*/--build 0000000000000000/')" ;;
lost) exec 3<&0; sh -c "$2" <&3 & sleep 1; echo 'client_loop: send disconnect: Broken pipe' >&2; exit 255 ;;
esac
exec env SSH_HOST="$1" sh -c "$2"
S
local_team="--master 127.0.0.1:$port"
ok "ssh: two ranks on each of two hosts" expect 0 launch --hosts one,two --ranks-per-node 2 $local_team --env "A=1" -- __team
ok ".. all four" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
ok ".. each host was asked once" [ "$(sort hosts | tr '\n' ' ')" = "one two " ]
ok ".. without a question" sh -c 'grep -qx -- -oBatchMode=yes words && grep -qx -- -oStrictHostKeyChecking=yes words && grep -qx -- -- words'
ok ".. and no secret on a command line" sh -c '! grep -E "[0-9a-f]{32}" remote words'
ok ".. what they say carries their names" says 'assay: two: assay: case 1 begins' err
refused() { # HOST WORDS
	ok "ssh: $1 is named" expect 2 launch --hosts "one,$1" --ranks-per-node 1 $local_team -- __team
	ok ".. with its last words" says "$1 cannot be used: $2" err
}
refused refuses 'refuses: Permission denied (publickey). (exit code 255)'
refused nowhere 'ssh: Could not resolve hostname nowhere'
refused silent 'it printed nothing (exit code 255)'
refused no-assay '.*/opt/assay: not found (exit code 127)'
refused older '.*version_mismatch: assay on this node is build'
ok "ssh: a connection that is lost ends inconclusive" expect 2 launch --hosts one,lost --ranks-per-node 1 $local_team -- __team --time 60s --limit 90s
ok ".. and is named with its last words" says 'lost ended with exit code 255: client_loop: send disconnect' err
ok ".. and the ranks that were left end by themselves" sh -c 'for _ in $(seq 1200); do pgrep -f "[m]aster 127.0.0.1:'"$port"'" > /dev/null || exit 0; sleep 0.1; done; exit 1'
many=$(seq -s, -f 'h%.0f' 40)
stand_in ssh << 'S'
shift $(($# - 2))
echo "$1" >> hosts
if [ "$1" = h1 ]; then # a while longer than until 32 are here, for those that should not come
	while [ "$(wc -l < hosts)" -lt 32 ]; do sleep 0.1; done
	sleep 1
	wc -l < hosts > at_once
	exit 255
fi
exec sleep 300
S
rm -f hosts
ok "ssh: of forty hosts that do not answer one gives up" expect 2 launch --hosts "$many" --ranks-per-node 1 -- __team
ok ".. when 32 were on the way" [ "$(cat at_once)" = 32 ]
rm bin/ssh
mkdir -p empty_path
ok "no ssh: it is named" sh -c 'PATH=$1/empty_path "$0" launch --hosts a --ranks-per-node 1 -- __team 2> err; [ $? = 2 ] && grep -q "cannot start ssh: No such file" err' "$assay" "$tmp"
ok "no mpirun: it is named" sh -c 'PATH=$1/empty_path "$0" launch --how mpirun --ranks-per-node 1 -- __team 2> err; [ $? = 2 ] && grep -q "cannot start mpirun: No such file" err' "$assay" "$tmp"
ok ".. but for a script that is only shown, of Open MPI's words" sh -c 'PATH=$1/empty_path "$0" launch --print --how mpirun --nodes 2 --ranks-per-node 1 > out 2> err && grep -q "cannot start mpirun: .*: showing the command for Open MPI" err && grep -q "oversubscribe.* --shield -- check quick" out && grep -q "give --master HOST" out' "$assay" "$tmp"
ok "no sbatch: it is named" sh -c 'PATH=$1/empty_path "$0" launch --how slurm --nodes 1 --ranks-per-node 1 -- __team 2> err; [ $? = 2 ] && grep -q "cannot start sbatch: No such file" err' "$assay" "$tmp"
ok "nodes without hosts or sbatch: what to give is told" sh -c 'PATH=$1/empty_path "$0" launch --nodes 2 --ranks-per-node 1 -- __team 2> err; [ $? = 64 ] && grep -q "sbatch is not installed here" err' "$assay" "$tmp"

# Slurm.
stand_in sbatch << 'S'
echo "$@" > sbatch.words
for script; do :; done
cp "$script" submitted
echo 4711
S
ok "Slurm: a job is submitted" expect 0 launch --how slurm --nodes 2 --ranks-per-node 2 -- __team
ok ".. its number is the answer" [ "$(cat out)" = 4711 ]
"$assay" launch --how slurm --nodes 2 --ranks-per-node 2 --print -- __team > printed
ok ".. and what was submitted is what --print shows" cmp submitted printed
ok ".. of which nothing is left lying about" sh -c '! ls "${TMPDIR:-/tmp}"/assay-launch-* 2> /dev/null'
ok "Slurm is chosen where nodes are asked for" expect 0 launch --nodes 2 --ranks-per-node 2 --script kept.sh -- __team
ok ".. and its script kept where that is wanted" cmp kept.sh printed
rm kept.sh
ok "with --print it is kept too" eval '"$assay" launch --how slurm --nodes 2 --ranks-per-node 2 --script kept.sh --print -- __team > out && cmp kept.sh out && cmp out printed'
ok "a script that cannot be written is named" expect 2 launch --nodes 1 --ranks-per-node 1 --script /proc/nowhere/script.sh -- __team
ok ".. with its path" says '/proc/nowhere/script.sh' err
TMPDIR=$tmp/nowhere expect 2 launch --nodes 1 --ranks-per-node 1 -- __team
ok "nor one without a folder for it" says 'cannot write the script .*/nowhere/assay-launch-' err
job() { # states, one a call; the last stays
	rm -f states
	for state; do echo "$state" >> states; done
}
stand_in scontrol << 'S'
line=$(head -n 1 states)
[ "$(wc -l < states)" = 1 ] || sed -i 1d states
case $line in error) echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1 ;; esac
set -- $line
echo "what the job says, ${1}" >> job.out
echo "JobId=4711 JobName=assay JobState=$1 Reason=Resources ExitCode=${2:-0:0} NodeList=n[1-2] StdOut=$PWD/job.out"
S
stand_in scancel << 'S'
echo "$@" > cancelled
echo 'CANCELLED 0:15' > states
S
follow() { # CODE
	rm -f job.out
	expect "$1" launch --nodes 2 --ranks-per-node 1 --wait -- __team
}
job 'PENDING' 'RUNNING' 'COMPLETED 0:0'
ok "--wait: a job that passes" follow 0
ok ".. its states are told" sh -c 'grep -q "job 4711: PENDING, Resources" err && grep -q "job 4711: RUNNING on n\[1-2\]" err'
ok ".. and its output passed on, once" [ "$(cat out)" = "$(cat job.out)" ]
job 'FAILED 1:0'
ok "--wait: one that fails" follow 1
job 'RUNNING' 'TIMEOUT 0:15'
ok "--wait: one over its time is inconclusive" follow 2
ok ".. and told" says 'job 4711 ended as TIMEOUT (exit code 0, signal 15)' err
job 'RUNNING' error error 'COMPLETED 0:0'
ok "--wait: a controller that is away for a while" follow 0
job 'nonsense'
sed -i 's/JobState=/State=/' bin/scontrol
( sleep 4; sed -i 's/ State=/ JobState=/' bin/scontrol; echo 'COMPLETED 0:0' > states ) &
ok "--wait: an answer that cannot be read is asked for again" follow 0
wait
job 'RUNNING'
: > err
"$assay" launch --nodes 2 --ranks-per-node 1 --wait -- __team > out 2> err &
pid=$!
for _ in $(seq 1200); do grep -q RUNNING err && break; sleep 0.1; done
kill -TERM $pid
wait $pid
code=$?
ok "--wait: a request to stop cancels the job" [ "$(cat cancelled)" = 4711 ]
ok ".. and waits for its end" says 'job 4711 ended as CANCELLED' err
ok ".. which proves nothing" [ $code = 2 ]
stand_in sbatch << 'S'
echo 'sbatch: error: invalid partition specified: gpus' >&2
exit 1
S
ok "sbatch that refuses" expect 2 launch --nodes 2 --ranks-per-node 1 -- __team
ok ".. is named, with its reason above" sh -c 'grep -q "invalid partition" err && grep -q "sbatch failed (exit code 1)" err'
stand_in sbatch << 'S'
echo 'welcome to the cluster'
S
ok "sbatch that says no number" expect 2 launch --nodes 2 --ranks-per-node 1 -- __team
ok ".. is quoted" says 'sbatch printed "welcome to the cluster' err

# Commands that do all of their work on each rank are refused on several.
ok "several ranks of generate are refused" expect 64 launch --how plain --ranks-per-node 4 -- generate model text
ok ".. with the reason" says 'generate after -- does not work on several ranks yet, and 4 are requested' err
ok ".. a script of them is not shown either" expect 64 launch --print --how slurm --nodes 2 --ranks-per-node 1 -- generate model text
ok ".. one rank may" expect 0 launch --print --how plain --ranks-per-node 1 -- generate model text
ok "generate is refused as one of four ranks too" env RANK=1 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 \
	sh -c '"$0" generate none hello > out 2> err; [ $? = 64 ]' "$assay"
ok ".. with the reason" says 'generate does not support several ranks yet, but this is rank 1 of 4, started by' err

# Training on CPU ranks needs MPI, so launch starts them by mpirun, and Slurm's script asks for it.
ok "ranks of train without GPUs are started by mpirun" expect 0 launch --print --gpus-per-node 0 --ranks-per-node 4 -- train run.yaml
ok ".. as the script shows" says 'mpirun -n 4' out
ok ".. by srun with PMIx in a job of Slurm" expect 0 launch --print --how slurm --nodes 2 --gpus-per-node 0 --ranks-per-node 2 -- train run.yaml
ok ".. as the script shows" says 'srun --mpi=.* __ranks .*--mpi -- train run.yaml' out
ok "ranks with a GPU each need no MPI" expect 0 launch --print --how slurm --nodes 2 --gpus-per-node 4 -- train run.yaml
ok ".. as the script shows" sh -c 'grep -q "__ranks .* -- train run.yaml" out && ! grep -q -- "--mpi -- train" out'

# timeout(1) sends TERM to the launcher and then to its group: that is one request, and the report is written.
small_suite
setsid "$assay" launch --how plain --ranks-per-node 2 -- check --suite small.yaml --rounds 400 --out termed > out 2> err &
pid=$!
for _ in $(seq 600); do
	grep -qs '"type":"end"' termed/journal.jsonl && break
	sleep 0.1
done
kill -TERM $pid
sleep 0.02
kill -TERM -- -$pid
wait $pid
ok "TERM for the launcher and its group is one request" [ $? = 2 ]
ok ".. so the run has its report" [ -s termed/REPORT.md ]
ok ".. and its journal is closed" grep -q '"type":"close"' termed/journal.jsonl

# mpirun.
stand_in mpirun << 'S'
case $1 in --version) cat version; exit ;; esac
echo "$@" > mpirun.words
echo "${NO_COLOR-unset}" > mpirun.colour
[ ! -e refuses ] || { echo 'There are not enough slots available' >&2; exit 213; }
while [ "${1#/}" = "$1" ]; do shift; done
for r in 0 1; do
	OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$r OMPI_COMM_WORLD_LOCAL_SIZE=2 "$@" &
done
wait
S
echo 'mpirun (Open MPI) 4.1.4' > version
ok "mpirun: two ranks" expect 0 launch --how mpirun --ranks-per-node 2 -- __team
ok ".. meet" [ "$(grep -c '"size":2.*"ending":"done"' out)" = 2 ]
ok ".. and print no colours, because the output is a file" [ "$(cat mpirun.colour)" = 1 ]
ok ".. without a secret on a command line" sh -c '! grep -E "[0-9a-f]{32}" mpirun.words'
# Ranks but the first end with 0 for mpirun and say on stderr how they ended: the team's code is made of both.
cp bin/mpirun mpirun.kept
while IFS='|' read -r own said code; do
	stand_in mpirun << S
case \$1 in --version) cat version; exit ;; esac
echo 'assay: warning: rank 3 ended with exit code $said' >&2
exit $own
S
	ok "mpirun: rank 0 tells $own, another one $said: $code" expect "$code" launch --how mpirun --ranks-per-node 4 -- __team
	ok ".. whose words are passed on" says "rank 3 ended with exit code $said" err
	"$assay" launch --print --how mpirun --ranks-per-node 4 -- __team > script.sh 2> err
	HOME=$tmp PATH=$tmp/bin:$PATH sh script.sh > out 2> err
	ok ".. and the script that is shown ends alike" [ $? = "$code" ]
	ok ".. and passes the words on" says "rank 3 ended with exit code $said" err
done << 'LIST'
0|2|2
0|1|1
0|64|64
101|1|1
111|64|2
112|2|1
112|64|1
LIST
cp mpirun.kept bin/mpirun
touch refuses
ok "mpirun that refuses is inconclusive" expect 2 launch --how mpirun --ranks-per-node 2 -- __team
ok ".. and told" says 'mpirun itself failed (exit code 213)' err
echo 'mpirun of another kind 1.0' > version
ok "an mpirun of an unknown kind" expect 2 launch --how mpirun --ranks-per-node 2 -- __team
ok ".. is quoted" says 'neither Open MPI.s nor MPICH.s: mpirun --version prints "mpirun of another kind 1.0"' err

# What the nodes run.
ok "__ranks: no words" expect 64 __ranks --count 1 --size 1
ok "__ranks: ranks past the size" expect 64 __ranks --first 1 --count 2 --size 2 -- __team
ok "__ranks: no secret on stdin" sh -c '"$0" __ranks --count 1 --size 1 --secret-stdin -- __team < /dev/null 2> err; [ $? = 64 ] && grep -q "secret is missing" err' "$assay"
ok "__ranks: a lifeline that is cut ends the ranks" sh -c '(echo 0123456789abcdef0123; sleep 2) | "$0" __ranks --count 2 --size 2 --secret-stdin --lifeline -- __team --time 60s --limit 90s > out 2> err; [ $? = 2 ] && grep -q "the program that started these ranks asked them to end" err' "$assay"
finish
