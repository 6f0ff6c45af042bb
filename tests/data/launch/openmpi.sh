#!/bin/sh
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
# what the ranks of this team know and nobody else: new at each start, in a file of the home that the nodes share.
# mpirun sends the ranks' environment to its daemons as it is, so that says only where
ASSAY_TEAM_SECRET_FILE=$HOME/.cache/assay/team/$ASSAY_JOB
(umask 077 && mkdir -p "$HOME/.cache/assay/team" &&
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$ASSAY_TEAM_SECRET_FILE") || exit 2
trap 'rm -f "$ASSAY_TEAM_SECRET_FILE"' EXIT
trap 'exit 2' HUP INT TERM
export ASSAY_TEAM_SECRET_FILE ASSAY_JOB
# each node sets what its own machine asks for as its ranks start, and says why on stderr
# Open MPI's words; a node's number of ranks is told, so --oversubscribe may pass over its slots
# bind-to none: a GPU's rank binds itself to the GPU's NUMA node
# --shield: mpirun ends all ranks when one fails, so its exit code is rank 0's, the last to end. The others
# say theirs on stderr: what is read there is passed on and counted
exec 3>&1
codes=$({ { mpirun -n 8 --map-by ppr:4:node --bind-to none --oversubscribe --host gpu1:4,gpu2:4 -x ASSAY_TEAM_SECRET_FILE -x ASSAY_JOB -x A=1 /opt/assay/assay __ranks --master gpu1 --shield --mpi -- check quick 2>&1 >&3 3>&- 4>&-
    echo $? >&4; } | {
    trap '' HUP INT TERM
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line" >&2
        case $line in
        (*'rank '[1-9]*' ended with exit code 1') echo 102 ;;
        (*'rank '[1-9]*' ended with exit code 64') echo 103 ;;
        (*'rank '[1-9]*' ended with exit code '*) echo 101 ;;
        esac
    done; }; } 4>&1)
told=0
for code in ${codes:-101}; do
    case $code in 0|10[123]|11[123]) ;; *) code=101 ;; esac
    [ $code -le $told ] || told=$code
done
# 2, 1 and 64 are told as 101, 102 and 103, by rank 0 of a team that met as 111, 112 and 113;
# another one is of who started the ranks, and nothing is known
case $told in
0) exit 0 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
