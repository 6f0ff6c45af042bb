#!/bin/bash
# The launch commands of docs/how-to and docs/tutorial as they are written, and four ranks under mpirun, with suite quick. The ordinary tests run a small
# suite in its place, because several nodes on one small machine take minutes and more memory than it has. The training example with all
# its steps, and its real model where ASSAY_SMOLLM2 and ASSAY_BFCL name it.
# usage: walks.sh ASSAY ROOT BUILD
set -u
export ASSAY_WALKS=written ASSAY_TEST_DAEMONS=yes
. "$2/tests/end2end/tap.sh"
for test in launch ssh slurm mpirun mpi_check train_example; do
	ok "$test, as written" meson test -C "$3" --no-rebuild --num-processes 1 --timeout-multiplier 5 --logbase "walks-$test" "$test"
done
finish
