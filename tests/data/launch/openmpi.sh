#!/bin/sh
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
# the secret of this team's ranks: new at each start, in the home folder that the nodes share
# mpirun sends the ranks' environment unencrypted to its daemons, so it holds only the file's path
ASSAY_TEAM_SECRET_FILE=$HOME/.cache/assay/team/$ASSAY_JOB
(umask 077 && mkdir -p "$HOME/.cache/assay/team" &&
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' > "$ASSAY_TEAM_SECRET_FILE") || exit 2
trap 'rm -f "$ASSAY_TEAM_SECRET_FILE"' EXIT
trap 'exit 2' HUP INT TERM
export ASSAY_TEAM_SECRET_FILE ASSAY_JOB
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
# Open MPI's options; ppr limits the ranks on each node, so --oversubscribe can safely ignore its slots
# bind-to none: each rank binds itself to the NUMA node of its GPU
# --shield: mpirun ends all ranks when one fails, so only rank 0, the last to end, returns its exit code. The others
# print theirs on stderr, which is passed on and counted
exec 3>&1
codes=$({ { mpirun -n 8 --map-by ppr:4:node --bind-to none --oversubscribe --host gpu1:4,gpu2:4 -x ASSAY_TEAM_SECRET_FILE -x ASSAY_JOB -x A=1 /opt/assay/assay __ranks --master gpu1 --shield --mpi -- check quick 2>&1 >&3 3>&- 4>&-
    echo $? >&4; } | {
    trap '' HUP INT TERM
    while IFS= read -r line || [ -n "$line" ]; do
        printf '%s\n' "$line" >&2
        case $line in
        (*'rank '[1-9]*' ended with exit code 1') echo 102 ;;
        (*'rank '[1-9]*' ended with exit code 64') echo 103 ;;
        (*'rank '[1-9]*' ended with exit code 75') echo 100 ;;
        (*'rank '[1-9]*' ended with exit code '*) echo 101 ;;
        esac
    done; }; } 4>&1)
told=0
for code in ${codes:-101}; do
    case $code in 0|10[0-3]|11[0-3]) ;; *) code=101 ;; esac
    [ $code -le $told ] || told=$code
done
# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110
# to 113; any other code comes from the program that started the ranks: inconclusive
case $told in
0) exit 0 ;;
100|110) exit 75 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
