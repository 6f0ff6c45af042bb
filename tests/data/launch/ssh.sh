#!/bin/sh
# what the ranks of this team know and nobody else: new at each start, told through ssh's input, on no command line
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
# its name: who meets rank 0 of another team on these hosts goes on to the next port
ASSAY_JOB=launch-$(od -An -N4 -tx1 /dev/urandom | tr -d ' \n')
# each node sets what its own machine asks for as its ranks start, and says why on stderr
# ssh: keys and known hosts alone, no question is asked; no terminal, agent or X11 goes along
# (assay launch keeps each input open as well, with --lifeline: ranks that lose it end)
pids=
# node 1 of 2: ranks 0 to 7
echo "$ASSAY_TEAM_SECRET $ASSAY_JOB" | ssh -oBatchMode=yes -oPreferredAuthentications=publickey -oStrictHostKeyChecking=yes -oConnectTimeout=10 -oServerAliveInterval=5 -Tax -- gpu1 '/opt/assay/assay __ranks --count 8 --size 16 --master gpu1 --build 0123456789abcdef --secret-stdin --folder /home/me/proof --env NCCL_DEBUG=WARN --tell -- check --site '\''my site.yaml'\''' &
pids="$pids $!"
# node 2 of 2: ranks 8 to 15
echo "$ASSAY_TEAM_SECRET $ASSAY_JOB" | ssh -oBatchMode=yes -oPreferredAuthentications=publickey -oStrictHostKeyChecking=yes -oConnectTimeout=10 -oServerAliveInterval=5 -Tax -- root@gpu2 '/opt/assay/assay __ranks --first 8 --count 8 --size 16 --master gpu1 --build 0123456789abcdef --secret-stdin --folder /home/me/proof --env NCCL_DEBUG=WARN --tell -- check --site '\''my site.yaml'\''' &
pids="$pids $!"
# until all nodes have ended: the largest of what they tell is the team's
code=0
for pid in $pids; do
    wait "$pid"
    told=$?
    case $told in 0|10[123]|11[123]) ;; 1) told=102 ;; 64) told=103 ;; *) told=101 ;; esac
    [ $told -le $code ] || code=$told
done
# 2, 1 and 64 are told as 101, 102 and 103, by rank 0 of a team that met as 111, 112 and 113;
# another one is of who started the ranks, and nothing is known
case $code in
0) exit 0 ;;
102|112) exit 1 ;;
103|113) exit 64 ;;
*) exit 2 ;;
esac
