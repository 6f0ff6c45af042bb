#!/bin/sh
# assay launch by a real Open MPI and a real MPICH, whichever are here, on this node. The ranks meet over TCP; no MPI is
# needed of assay itself. usage: mpirun.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/walk.sh"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
mkdir bin
PATH=$tmp/bin:$PATH
unset OMP_NUM_THREADS
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # of this test alone: launch does not say so
comes() { # COMMAND..: true within 20 s
	for _ in $(seq 1200); do
		"$@" > /dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}
cat > fails.yaml << 'S'
name: fails
cases:
  - {probe: "null", phases: burst, require: judged, options: {time: 1ms, wrong: data}}
S
# Open MPI's own exit code of an error that it finds before it starts anything is 1, as assay's of a failed case.
unreachable() { # MPICH's waits for such a host for ever
	expect 2 launch --how mpirun --hosts nosuch.invalid --ranks-per-node 1 --master 127.0.0.1 -- __team && says 'mpirun itself failed' err
}
refused_root() (
	unset OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
	code=0
	mpirun -n 1 true > /dev/null 2>&1 || code=$?
	[ $code = 1 ] && expect 2 launch --how mpirun --ranks-per-node 1 -- __team && says 'mpirun itself failed (exit code 1)' err
)
long=67.$$s # tells our ranks from others'
nothing_left() { ! pgrep -f "__team --time $long"; }
proved=0

prove() { # NAME
	proved=$((proved + 1))
	ok "$1: four ranks" expect 0 launch --how mpirun --ranks-per-node 4 --env "ASSAY_LIB_X=1 NOTE=here" -- __team
	ok ".. meet and part" [ "$(grep -c '"size":4.*"ending":"done"' out)" = 4 ]
	ok ".. and are told their threads once" [ "$(grep -c 'OMP_NUM_THREADS=1: ' err)" = 1 ]
	"$assay" launch --how mpirun --ranks-per-node 2 --print --env "NOTE=here" -- __team > script
	sh script > out 2> err
	ok "$1: the script that is shown does the same" [ "$(grep -c '"size":2.*"ending":"done"' out)" = 2 ]
	ok "$1: wrong usage of the ranks" expect 64 launch --how mpirun --ranks-per-node 2 -- __team --nonsense
	ok ".. and of the script that is shown" sh -c 'sed "s/ -- __team\>/ -- __team --nonsense/" script | sh 2> err; [ $? = 64 ]'
	ok "$1: a case that fails" expect 1 launch --how mpirun --ranks-per-node 2 -- check --suite fails.yaml --out "fails-$1"
	ok "$1: a program that is not there: nothing is known" sh -c 'sed "s|[^ ]*/assay __ranks|/nowhere/assay __ranks|" script | sh 2> err; [ $? = 2 ]'
	: > err
	"$assay" launch --how mpirun --ranks-per-node 4 -- __team --time "$long" --limit 90s > out 2> err &
	pid=$!
	comes sh -c '[ "$(cat out err | grep -c "case 1 begins")" = 4 ]'
	kill -TERM $pid
	wait $pid
	code=$?
	ok "$1: a request to stop ends inconclusive" [ $code = 2 ]
	ok ".. and leaves nothing" comes nothing_left
	: > err
	"$assay" launch --how mpirun --ranks-per-node 4 -- __team --time "$long" --limit 90s > out 2> err &
	pid=$!
	comes sh -c '[ "$(cat out err | grep -c "case 1 begins")" = 4 ]'
	kill -KILL "$(pgrep -f "^assay __team --time $long" | head -n 1)"
	wait $pid
	code=$?
	ok "$1: a rank that is killed ends inconclusive" [ $code = 2 ]
	ok ".. and leaves nothing" comes nothing_left
}
ln -s "$assay" bin/assay
export HOME="$tmp" # where ranks started by hand keep their secret
unset XDG_RUNTIME_DIR
ln -s "$here/torchrun.sh" bin/torchrun
# torchrun itself, where PyTorch is; its wheel is too large to fetch for this. tools/check-gpu runs it too.
if python3 -c 'import importlib.util as u, sys; sys.exit(not u.find_spec("torch"))' 2> /dev/null; then
	real="python3 -m torch.distributed.run --nproc-per-node 4 --no-python"
	ok "torchrun itself: four ranks" sh -c "$real assay __team > out 2> err"
	ok ".. meet and part" [ "$(grep -c '"size":4.*"from":"torchrun.*"ending":"done"' out)" = 4 ]
else
	n=$((n + 1))
	echo "ok $n - torchrun itself # SKIP python3 has no torch"
fi
for kind in openmpi mpich; do
	program=$(command -v "mpirun.$kind") || continue
	printf '#!/bin/sh\nexec "%s" "$@"\n' "$program" > bin/mpirun && chmod +x bin/mpirun
	prove "$kind"
	[ "$kind" != openmpi ] || ok "a host that cannot be reached: nothing is known" unreachable
	[ "$kind" != openmpi ] || [ "$(id -u)" != 0 ] || ok "an mpirun that refuses root by exit code 1 is no case that failed" refused_root
	[ "$kind" != openmpi ] || walks 4 1 how-to/launch-with-mpirun.md
done
if [ $proved = 0 ] && command -v mpirun > /dev/null; then prove "$(mpirun --version | head -n 1)"; fi
[ $proved != 0 ] || lacks "mpirun is not installed (package openmpi-bin)"
finish
