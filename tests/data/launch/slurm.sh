#!/bin/sh
# its name in the queue
#SBATCH --job-name=assay
# stdout and stderr of all ranks, in the folder it was submitted from
#SBATCH --output=assay-%j.out
# the nodes to prove
#SBATCH --nodes=2
# a rank a GPU
#SBATCH --ntasks-per-node=8
# all GPUs of each node
#SBATCH --gpus-per-node=8
# nothing else may run beside a measurement
#SBATCH --exclusive
# all memory of each node: host memory is measured too
#SBATCH --mem=0
# told by --time
#SBATCH --time=30
# half a minute before the limit each rank closes its journal, so that what was measured is kept
#SBATCH --signal=TERM@30
# told by --partition
#SBATCH --partition=gpu
# told by --account
#SBATCH --account=us
# what the ranks of this team know and nobody else: new at each start, told by srun in the ranks' environment; it stands in no file
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=slurm-$SLURM_JOB_ID
export ASSAY_TEAM_SECRET ASSAY_JOB
# what srun itself cannot do ends the job with 2: nothing is known. Its own 1 would read as a case that failed
export SLURM_EXIT_ERROR=2
# each node sets what its own machine asks for as its ranks start, and says why on stderr
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: OMP_NUM_THREADS=2: 16 physical cores for 8 ranks on this node; OpenMP would start 16 threads in each (cpu: cores, affinity, quota)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_SOCKET_IFNAME [not set]: 2 are up (eno1, eno2), and which of them leads to rank 0 is not known (ports, route to rank 0)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1: mlx5_8:1 (roce, 100 Gbit/s) is no peer of the infiniband ports of 400 Gbit/s: it would slow them or refuse them (ports)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: memlock=8192 KiB [no variable mends it]: InfiniBand and RoCE lock the memory they send from: raise it with ulimit -l unlimited, or LimitMEMLOCK=infinity where slurmd or sshd is started (limits, ports)
# --mpi=none: assay's ranks meet over TCP by themselves
# --cpu-bind=none: a GPU's rank binds itself to the GPU's NUMA node; the node's first one measures all CPUs
# --gpu-bind=none: peers must see each other's GPUs; each rank takes its own by its local rank
# --kill-on-bad-exit=0 --wait=0: a rank that is lost must not take the others' journals with it
srun --mpi=none --cpu-bind=none --gpu-bind=none --kill-on-bad-exit=0 --wait=0 /opt/assay/assay __ranks --tell -- check quick
# 2, 1 and 64 are told as 101, 102 and 103, by rank 0 of a team that met as 111, 112 and 113;
# another one is of who started the ranks, and nothing is known
case $? in
0) exit 0 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
