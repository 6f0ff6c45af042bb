#!/bin/sh
# what the ranks of this team know and nobody else: new at each start, told by environment
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET ASSAY_JOB
# told by --env
export NCCL_DEBUG=WARN
# told by --env
export NOTE='it'\''s'
# each node sets what its own machine asks for as its ranks start, and says why on stderr
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: OMP_NUM_THREADS=2: 16 physical cores for 8 ranks on this node; OpenMP would start 16 threads in each (cpu: cores, affinity, quota)
#   derived: h100-sxm-1, eight of it, two interfaces up, eight InfiniBand ports and a RoCE port for storage: NCCL_SOCKET_IFNAME [not set]: one node: NCCL's ranks meet by any interface (ports, route to rank 0)
# 8 ranks on this node; each gets ASSAY_RANK, ASSAY_SIZE, ASSAY_LOCAL_RANK, ASSAY_LOCAL_SIZE, ASSAY_HOST
/opt/assay/assay __ranks --count 8 --size 8 -- check quick
