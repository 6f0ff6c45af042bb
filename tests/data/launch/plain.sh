#!/bin/sh
# the secret of this team's ranks: new at each start, passed in the environment
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET ASSAY_JOB
# from --env
export NCCL_DEBUG=WARN
# from --env
export NOTE='it'\''s'
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: OMP_NUM_THREADS=2: 16 physical cores for 8 ranks on this node; OpenMP would start 16 threads in each (cpu: cores, affinity, quota)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_SOCKET_IFNAME [not set]: one node: NCCL can use any interface (ports, route to rank 0)
# 8 ranks on this node; each gets ASSAY_RANK, ASSAY_SIZE, ASSAY_LOCAL_RANK, ASSAY_LOCAL_SIZE, ASSAY_HOST
/opt/assay/assay __ranks --count 8 --size 8 -- check quick
