#!/bin/sh
# the job's name in the queue
#SBATCH --job-name=assay
# stdout and stderr of all ranks, in the folder of the submission
#SBATCH --output=assay-%j.out
# the nodes to test
#SBATCH --nodes=1
# ranks on each node
#SBATCH --ntasks-per-node=4
# no other job may run during a measurement
#SBATCH --exclusive
# all memory of each node: host memory is measured too
#SBATCH --mem=0
# half a minute before the limit each rank closes its journal, so that its results are saved
#SBATCH --signal=TERM@30
# the secret of this team's ranks: new at each start, passed by srun in the ranks' environment, not in a file
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=slurm-$SLURM_JOB_ID
export ASSAY_TEAM_SECRET ASSAY_JOB
# an error of srun itself ends the job with 2, inconclusive. Its default of 1 would read as a failed case
export SLURM_EXIT_ERROR=2
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
# --mpi=none: --mpi was given, but srun --mpi=list shows no pmix here: cases of engine mpi will be unavailable
# --cpu-bind=none: each rank binds itself to the NUMA node of its GPU; the first rank of a node measures all CPUs
# --kill-on-bad-exit=0 --wait=0: the loss of one rank must not end the others before they close their journals
srun --mpi=none --cpu-bind=none --kill-on-bad-exit=0 --wait=0 /opt/assay/assay __ranks --tell --mpi -- check quick
# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110
# to 113; any other code comes from the program that started the ranks: inconclusive
case $? in
0) exit 0 ;;
100|110) exit 75 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
