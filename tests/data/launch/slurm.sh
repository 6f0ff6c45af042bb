#!/bin/sh
# the job's name in the queue
#SBATCH --job-name=assay
# stdout and stderr of all ranks, in the folder of the submission
#SBATCH --output=assay-%j.out
# the nodes to test
#SBATCH --nodes=2
# one rank for each GPU
#SBATCH --ntasks-per-node=8
# all GPUs of each node
#SBATCH --gpus-per-node=8
# no other job may run during a measurement
#SBATCH --exclusive
# all memory of each node: host memory is measured too
#SBATCH --mem=0
# from --time
#SBATCH --time=30
# half a minute before the limit each rank closes its journal, so that its results are saved
#SBATCH --signal=TERM@30
# from --partition
#SBATCH --partition=gpu
# from --account
#SBATCH --account=us
# the secret of this team's ranks: new at each start, passed by srun in the ranks' environment, not in a file
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=slurm-$SLURM_JOB_ID
export ASSAY_TEAM_SECRET ASSAY_JOB
# an error of srun itself ends the job with 2, inconclusive. Its default of 1 would read as a failed case
export SLURM_EXIT_ERROR=2
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: OMP_NUM_THREADS=2: 16 physical cores for 8 ranks on this node; OpenMP would start 16 threads in each (cpu: cores, affinity, quota)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_SOCKET_IFNAME [not set]: 2 are up (eno1, eno2), and the one that leads to rank 0 is not known (ports, route to rank 0)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_IB_HCA==mlx5_0:1,mlx5_1:1,mlx5_2:1,mlx5_3:1,mlx5_4:1,mlx5_5:1,mlx5_6:1,mlx5_7:1: mlx5_8:1 (roce, 100 Gbit/s) differs from the infiniband ports of 400 Gbit/s: it would slow them or cannot connect to them (ports)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: memlock=8192 KiB [no variable can fix it]: InfiniBand and RoCE lock the memory they send from: raise the limit with ulimit -l unlimited, or with LimitMEMLOCK=infinity in the service of slurmd or sshd (limits, ports)
# --mpi=none: assay's ranks connect over TCP without MPI
# --cpu-bind=none: each rank binds itself to the NUMA node of its GPU; the first rank of a node measures all CPUs
# --gpu-bind=none: ranks must see each other's GPUs; each rank selects its own by its local rank
# --kill-on-bad-exit=0 --wait=0: the loss of one rank must not end the others before they close their journals
srun --mpi=none --cpu-bind=none --gpu-bind=none --kill-on-bad-exit=0 --wait=0 /opt/assay/assay __ranks --tell -- check quick
# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110
# to 113; any other code comes from the program that started the ranks: inconclusive
case $? in
0) exit 0 ;;
100|110) exit 75 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
