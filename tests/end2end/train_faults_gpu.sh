#!/bin/bash
# The fault trials of training (tests/mpi/train_faults.sh) on GPU ranks that are not there, with the fake driver and the fake NCCL.
# usage: train_faults_gpu.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
if ! says '^train_rows ' "$root/src/kernel/list" || ! "$assay" list kernels | grep -q train_rows; then
	echo "1..0 # SKIP this build has no kernels"
	exit 0
fi
DEVICE=gpu HOW=plain RANKS=4 LIMIT=12 KINDS='hang kernel link type lost none' "$root/tests/mpi/train_faults.sh" "$assay" none none 1
