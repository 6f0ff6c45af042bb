#!/bin/sh
# Starts ranks on one node as torchrun does, for tests: its words, its variables, a store at MASTER_PORT.
pids=
[ "$1" = --nproc-per-node ] && [ "$3" = --no-python ] || exit 64
size=$2 rank=0 code=0
shift 3
while [ $rank -lt "$size" ]; do
	RANK=$rank WORLD_SIZE=$size LOCAL_RANK=$rank LOCAL_WORLD_SIZE=$size MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 \
		TORCHELASTIC_RUN_ID=none OMP_NUM_THREADS=1 "$@" &
	pids="$pids $!"
	rank=$((rank + 1))
done
for p in $pids; do wait "$p" || code=1; done
exit $code
