#!/bin/sh
# the job's name in the queue
#SBATCH --job-name=assay
# one task for each node
#SBATCH --array=1-20
# stdout and stderr of each task, in the folder of the submission
#SBATCH --output=%x-%A-%a.out
# a task has one node
#SBATCH --nodes=1
# and one process, which measures all devices of the node
#SBATCH --ntasks=1
# all GPUs of the node
#SBATCH --gpus-per-node=8
# no other job may run during a measurement, and two tasks never share a node
#SBATCH --exclusive
# all memory of the node: host memory is measured too
#SBATCH --mem=0
# do not run a failed task again: this would hide a fault that comes and goes
#SBATCH --no-requeue
# from --time; for each task
#SBATCH --time=30
# half a minute before the limit Slurm sends TERM. assay then closes its journal, so that its results are saved.
# B: Slurm sends the signal to this script only. The last line replaces the script by assay
#SBATCH --signal=B:TERM@30
# from --partition
#SBATCH --partition=gpu
# from --account
#SBATCH --account=us
# a folder for each node, named by the job and the node
node=$SLURM_SUBMIT_DIR/assay-$SLURM_ARRAY_JOB_ID/$SLURMD_NODENAME
# Slurm may give a node to a second task after the first one has ended. That task ends here, because the
# node has been checked. If there are fewer folders than tasks at the end, submit the array again for the other nodes
mkdir -p "${node%/*}" || exit 2
mkdir "$node" 2> /dev/null || { [ -d "$node" ] || exit 2; echo "$SLURMD_NODENAME was checked by another task of this array"; exit 0; }
cd "$node" || exit 2
# the exit code of assay is that of the task: 0 passed, 1 failed, 2 inconclusive
exec /opt/assay/assay check quick --site 'my site.yaml'
# afterwards, in the same folder: assay roofline assay-JOB/*/assay-runs/*; assay compare --as fleet assay-JOB/*/assay-runs/*
