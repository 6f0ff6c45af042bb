#!/bin/sh
# its name in the queue
#SBATCH --job-name=assay
# stdout and stderr of all ranks, in the folder it was submitted from
#SBATCH --output=assay-%j.out
# the nodes to prove
#SBATCH --nodes=2
# ranks of each node
#SBATCH --ntasks-per-node=4
# nothing else may run beside a measurement
#SBATCH --exclusive
# all memory of each node: host memory is measured too
#SBATCH --mem=0
# half a minute before the limit each rank closes its journal, so that what was measured is kept
#SBATCH --signal=TERM@30
# told by --sbatch
#SBATCH --nodelist=n1,n2
# what the ranks of this team know and nobody else: new at each start, told by srun in the ranks' environment; it stands in no file
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=slurm-$SLURM_JOB_ID
export ASSAY_TEAM_SECRET ASSAY_JOB
# what srun itself cannot do ends the job with 2: nothing is known. Its own 1 would read as a case that failed
export SLURM_EXIT_ERROR=2
# --no-derive: the environment stays as it is
# --mpi=pmix: --mpi was told, and srun lists pmix
# --cpu-bind=none: a GPU's rank binds itself to the GPU's NUMA node; the node's first one measures all CPUs
# --kill-on-bad-exit=0 --wait=0: a rank that is lost must not take the others' journals with it
srun --mpi=pmix --cpu-bind=none --kill-on-bad-exit=0 --wait=0 /opt/assay/assay __ranks --tell --no-derive --mpi -- check quick
# 2, 1 and 64 are told as 101, 102 and 103, by rank 0 of a team that met as 111, 112 and 113;
# another one is of who started the ranks, and nothing is known
case $? in
0) exit 0 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
