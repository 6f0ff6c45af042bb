#!/bin/sh
# the job's name in the queue
#SBATCH --job-name=assay
# stdout and stderr of all ranks, in the folder of the submission
#SBATCH --output=assay-%j.out
# the nodes of the run
#SBATCH --nodes=2
# one rank for each GPU
#SBATCH --ntasks-per-node=8
# all GPUs of each node
#SBATCH --gpus-per-node=8
# no other job may share the nodes: the slowest rank decides how long a step takes
#SBATCH --exclusive
# all memory of each node
#SBATCH --mem=0
# from --time
#SBATCH --time=240
# two minutes before the limit, this script gets USR1 and lets the ranks save a checkpoint.
# B: Slurm sends the signal to the script alone, which knows then that it has to queue the job again
#SBATCH --signal=B:USR1@120
# Slurm may begin the job again after a preemption or the failure of a node
#SBATCH --requeue
# the output of a job that begins again is appended
#SBATCH --open-mode=append
# the secret of this team's ranks: new at each start, passed by srun in the ranks' environment, not in a file
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=slurm-$SLURM_JOB_ID
export ASSAY_TEAM_SECRET ASSAY_JOB
# an error of srun itself ends the job with 2, inconclusive. Its default of 1 would read as a failed case
export SLURM_EXIT_ERROR=2
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
# the run directory, the same whenever this job begins
run=assay-runs/slurm-$SLURM_JOB_ID
# USR1 comes from --signal above. The ranks finish their step and save a checkpoint, and the job is queued again
requeue=no
trap 'requeue=yes; scancel --signal=TERM "$SLURM_JOB_ID"' USR1
# Slurm sends TERM to end the job: the script stays until the ranks have saved
trap : TERM
# --mpi=none: assay's ranks connect over TCP without MPI
# --cpu-bind=none: each rank binds itself to the NUMA node of its GPU; the first rank of a node measures all CPUs
# --gpu-bind=none: ranks must see each other's GPUs; each rank selects its own by its local rank
# --kill-on-bad-exit=0 --wait=0: the loss of one rank must not end the others before they close their journals
# --resume-if-exists: a job that begins again continues the run from its newest checkpoint
srun --mpi=none --cpu-bind=none --gpu-bind=none --kill-on-bad-exit=0 --wait=0 /opt/assay/assay __ranks --tell -- train run.yaml --resume-if-exists --out "$run" &
# a signal interrupts wait, so it is repeated until srun has ended
ranks=$!
while :; do
    wait $ranks
    told=$?
    kill -0 $ranks 2> /dev/null || break
done
# stopped before the end of the run: the job goes back to the queue under its number
[ $requeue = no ] || [ $told = 0 ] || scontrol requeue "$SLURM_JOB_ID"
# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110
# to 113; any other code comes from the program that started the ranks: inconclusive
case $told in
0) exit 0 ;;
100|110) exit 75 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
