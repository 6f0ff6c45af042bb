#!/bin/sh
# Training by a real Slurm, on CPU ranks of two nodes: the losses of one rank, and a job that is told to end, saves, is queued again and goes
# on. usage: slurm_train.sh ASSAY MODULE     MODULE: libassay-mpi.so
set -u
assay=$(realpath "$1") module=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")
PATH=$PATH:/usr/sbin:/sbin
. "$here/tap.sh"
. "$here/ports.sh"
. "$here/slurm_cluster.sh"
. "$here/train_bed.sh"
. "$here/walk.sh"
cluster_programs
# Names of nodes that can be looked up, in a mount namespace of our own.
[ "${3:-}" = inside ] || { unshare -m true 2> /dev/null && exec unshare -m "$script" "$assay" "$module" inside; }
credential=,cred_expire=5 # a job that is queued again waits until its credential has expired
cluster_begin "${3:-}"
srun --mpi=list 2>&1 | grep -q pmix || lacks "this Slurm has no PMIx"
train_inputs
# Over TCP: the two nodes are one machine, and Open MPI's segments of shared memory, which both number from 0, would be the same ones.
export OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=lo OMPI_MCA_mpi_yield_when_idle=1
ASSAY_MODULE_DIR=$(dirname "$module")
export ASSAY_MODULE_DIR CUDA_VISIBLE_DEVICES=
launch() { # CODE ARGS..
	want=$1
	shift
	# shellcheck disable=SC2086
	expect "$want" launch --nodes 2 --gpus-per-node 0 --ranks-per-node 2 --time 5 $master "$@"
}
train_config run.yaml cpu "max_steps: 4"
ok "one rank trains" expect 0 train run.yaml --out one --real-names
journal_losses one > one.losses
ok "a job of two nodes trains on four ranks" launch 0 --wait -- train run.yaml --out four --real-names
journal_losses four > four.losses
ok ".. with the losses of one rank" near one.losses four.losses 4 1e-4
ok ".. on two nodes, as the journals of its ranks say" \
	eval '[ "$(ls -d four/nodes/proof1/rank-1 four/nodes/proof2/rank-2 four/nodes/proof2/rank-3 | wc -l)" = 3 ]'
ok ".. and on four ranks, as its result says" says '"ranks":4' four/journal.jsonl
ok ".. whose adapter is whole" [ -s four/adapter/adapter_model.safetensors ]

# The commands of how-to/launch-on-slurm.md: a script, and a job, which has no GPUs here and is cancelled.
mkdir bin
ln -s "$assay" bin/assay
PATH=$tmp/bin:$PATH
commands how-to/launch-on-slurm.md > walk
page_line() {
	sh -c "$1" > out 2> err < /dev/null || return 1
	case $1 in
	*--print*) sh -n out && says '^#SBATCH --requeue' out ;;
	*) grep -qx '[0-9][0-9]*' out && scancel "$(cat out)" ;;
	esac
}
ok "the page has its commands" [ "$(wc -l < walk)" = 2 ]
while read -r line; do ok "how-to/launch-on-slurm.md: ${line%%  *}" page_line "$line"; done < walk

# Without --out the job names the run directory, and it ends as what it started does.
ok "a job without --out has a folder of its number" eval 'launch 0 --wait -- train run.yaml && ls -d assay-runs/slurm-*/adapter'
sed 's/max_steps: 4/learning_rats: 4/' run.yaml > wrong.yaml
ok "a job with an error in its configuration ends with 64" launch 64 --wait -- train wrong.yaml --out wrong
ok ".. which the output names" says 'learning_rats' out

# USR1, as Slurm sends it before the time limit: the ranks save, and the job goes back to the queue and continues.
train_config long.yaml cpu "max_steps: 100000" "save_steps: 20"
ok "a long job begins" launch 0 -- train long.yaml --out long --real-names
job=$(cat out)
output=assay-$job.out
ok ".. and trains" comes sh -c 'ls -d long/checkpoint-*'
saved_by() { grep -q 'stopped on request; assay train --resume long continues from the newest checkpoint' "$output"; }
scancel --batch --signal=USR1 "$job"
ok "a signal to its script makes the ranks save" comes saved_by
stopped_at=$(sed -n 's/.*continues from the newest checkpoint, of step \([0-9]*\).*/\1/p' "$output" | head -n 1)
ok ".. the job is queued again under its number" comes sh -c 'scontrol show job '"$job"' | grep -q "Restarts=1"'
ok ".. and goes on where it was saved" comes grep -q "resumes from long/checkpoint-$stopped_at\$" "$output"
went_on() { [ "$(journal_values step long | sort -n | tail -n 1)" -gt "${stopped_at:-999999}" ]; }
ok ".. with more steps" comes went_on
ok ".. after what it had put out before" [ "$(grep -c 'training .* parameters' "$output")" = 2 ]
scancel "$job"
ok "a job that is cancelled ends" comes sh -c '[ -z "$(squeue -h)" ]'
ok ".. and is not queued again" sh -c 'scontrol show job '"$job"' | grep -q "JobState=CANCELLED"'
[ "$fail" = 0 ] || tail -n 5 log/* "$output" | sed 's/^/# /'
finish
