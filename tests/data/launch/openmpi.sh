#!/bin/sh
# what the ranks of this team know and nobody else: new at each start, told by mpirun in the ranks' environment
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
export ASSAY_TEAM_SECRET ASSAY_JOB
# each node sets what its own machine asks for as its ranks start, and says why on stderr
# Open MPI's words; a node's number of ranks is told, so --oversubscribe may pass over its slots
# bind-to none: a GPU's rank binds itself to the GPU's NUMA node
# --shield: mpirun ends all ranks when one fails, so the exit code is rank 0's, the last to end; others' are
# told on stderr (assay launch counts them too)
mpirun -n 8 --map-by ppr:4:node --bind-to none --oversubscribe --host gpu1:4,gpu2:4 -x ASSAY_TEAM_SECRET -x ASSAY_JOB -x A=1 /opt/assay/assay __ranks --master gpu1 --shield --mpi -- check quick
# 2, 1 and 64 are told as 101, 102 and 103, by rank 0 of a team that met as 111, 112 and 113;
# another one is of who started the ranks, and nothing is known
case $? in
0) exit 0 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
