#!/bin/sh
# The commands of docs/tutorial/train-on-a-cluster.md as they are written, on one machine.
# usage: train_cluster.sh ASSAY ROOT MODULE     MODULE: libassay-mpi.so
set -u
assay=$(realpath "$1") root=$(realpath "$2") module=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
. "$here/walk.sh"
. "$here/train_bed.sh"
case $(mpirun --version 2> /dev/null) in
*"Open MPI"* | *OpenRTE*) ;;
*) lacks "mpirun is not Open MPI's (package openmpi-bin)" ;;
esac
scratch
ASSAY_MODULE_DIR=$(dirname "$module")
TMPDIR=$tmp/mpi # also for sockets of mpirun
mkdir bin mpi
unset LD_LIBRARY_PATH
export TMPDIR ASSAY_MODULE_DIR CUDA_VISIBLE_DEVICES= OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# Shared memory copies need rights that a container may lack.
export OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1
ln -s "$assay" bin/assay
ln -s "$root/examples" examples
PATH=$tmp/bin:$PATH
commands tutorial/train-on-a-cluster.md > walk
shown() { sh -c "$1" > out 2> err < /dev/null; }
ok "the tutorial has its commands" [ "$(wc -l < walk)" = 10 ]
while read -r line; do
	ok "train-on-a-cluster.md: $line" shown "$line"
	cp out "out.$n" && cp err "err.$n"
	case $line in
	*make-model*)
		if ! "$assay" tokens model x > out 2> err && says 'built without tokenizers' err; then
			echo "1..$n # no tokenizers in this build"
			exit 0
		fi
		;;
	esac
done < walk
for run in one four; do journal_losses $run > $run.losses; done
ok "four ranks have the losses of one" near one.losses four.losses 8 1e-4
ok "the held-out loss goes down" sh -c 'echo "$1" | awk "NR == 1 { a = \$1 } { b = \$1 } END { exit !(NR > 1 && b < a) }"' sh "$(journal_values eval_loss four)"
ok "the plan for 16 GPUs names their communication" grep -q 'communication of a step: 16 ranks on 2 nodes' out.*
ok "the job script asks for a signal before its end" grep -q '#SBATCH --signal=B:USR1@120' out.*
finish
