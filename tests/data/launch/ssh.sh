#!/bin/sh
# the secret of this team's ranks: new at each start, passed through ssh's stdin, not on a command line
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# the team's name: a rank that finds rank 0 of another team on these hosts tries the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
# each node sets the variables that its machine needs when its ranks start, and prints the reasons on stderr
# ssh: only keys and known hosts, no questions; no terminal, agent or X11 forwarding
# (assay launch also keeps each stdin open, with --lifeline: ranks that lose it end)
pids=
# node 1 of 2: ranks 0 to 7
echo "$ASSAY_TEAM_SECRET $ASSAY_JOB" | ssh -oBatchMode=yes -oPreferredAuthentications=publickey -oPasswordAuthentication=no -oStrictHostKeyChecking=yes -oConnectTimeout=10 -oServerAliveInterval=5 -Tax -- gpu1 '/opt/assay/assay __ranks --count 8 --size 16 --master gpu1 --build 0123456789abcdef --secret-stdin --folder /home/me/proof --env NCCL_DEBUG=WARN --tell -- check --site '\''my site.yaml'\''' &
pids="$pids $!"
# node 2 of 2: ranks 8 to 15
echo "$ASSAY_TEAM_SECRET $ASSAY_JOB" | ssh -oBatchMode=yes -oPreferredAuthentications=publickey -oPasswordAuthentication=no -oStrictHostKeyChecking=yes -oConnectTimeout=10 -oServerAliveInterval=5 -Tax -- root@gpu2 '/opt/assay/assay __ranks --first 8 --count 8 --size 16 --master gpu1 --build 0123456789abcdef --secret-stdin --folder /home/me/proof --env NCCL_DEBUG=WARN --tell -- check --site '\''my site.yaml'\''' &
pids="$pids $!"
# wait until all nodes have ended: the largest code is the team's
code=0
for pid in $pids; do
    wait "$pid"
    told=$?
    case $told in 0|10[0-3]|11[0-3]) ;; 1) told=102 ;; 64) told=103 ;; 75) told=100 ;; *) told=101 ;; esac
    [ $told -le $code ] || code=$told
done
# ranks exit with 100, 101, 102 and 103 for 75, 2, 1 and 64; rank 0 of a team that has joined with 110
# to 113; any other code comes from the program that started the ranks: inconclusive
case $code in
0) exit 0 ;;
100|110) exit 75 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
