#!/bin/sh
# INT, TERM and QUIT before the first case: while a large suite is planned, while a driver hangs, while a GPU is waited for.
# usage: early_signals.sh ASSAY HANG     HANG: a libnvidia-ml whose calls never return
set -u
assay=$(realpath "$1") hang=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$here/tap.sh"
scratch
# stopped SIGNAL LIMIT: it ends with 2 within LIMIT tenths of a second
stopped() {
	kill "-$1" "$pid"
	for _ in $(seq "$2"); do
		kill -0 "$pid" 2> /dev/null || break
		sleep 0.1
	done
	kill -0 "$pid" 2> /dev/null && { kill -KILL "$pid"; return 1; }
	wait "$pid"
	[ $? = 2 ]
}
mkdir libs
cp "$hang" libs/libnvidia-ml.so.1
for signal in INT TERM QUIT; do
	LD_LIBRARY_PATH=$PWD/libs ASSAY_FACTS_LIMIT_MS=60000 "$assay" check quick --out "hung$signal" > out 2> err &
	pid=$!
	for _ in $(seq 100); do pgrep -P "$pid" > /dev/null && break; sleep 0.05; done
	ok "$signal while a driver hangs ends it within two seconds" stopped $signal 20
	ok "and leaves no run behind" [ ! -e "hung$signal/journal.jsonl" ]
done
{ # as many cases as a plan may have, which take their time to be written
	echo 'name: large'
	echo 'cases:'
	echo "  - {probe: 'null', phases: burst, options: {time: 1ms, slot: [$(seq -s, 1 9999)]}}"
} > large.yaml
"$assay" check --suite large.yaml --out large > out 2> err &
pid=$!
catches() { [ $((0x$(sed -n 's/^SigCgt:[[:space:]]*\([0-9a-f]*\)$/\1/p' "/proc/$pid/status") & 0x4000)) != 0 ]; } # TERM
until catches 2> /dev/null; do :; done
ok "TERM while a large suite is planned ends it within two seconds" stopped TERM 20
finish
