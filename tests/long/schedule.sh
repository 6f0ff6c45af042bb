#!/bin/bash
# A million requests through the scheduler in a world of clients and a device, with 0, 1, 2 and 16 plans in flight; then the
# time of planning on this machine, and latencies by simulation. These are printed and not judged.
# usage: schedule.sh BUILD ROOT [REQUESTS]
set -u
build=$(realpath "$1") root=$(realpath "$2") requests=${3:-1000000}
. "$root/tests/end2end/tap.sh"
scratch
many() { CMOCKA_MESSAGE_OUTPUT=STDOUT "$build/tests/unit/test_schedule_simulation" "$requests"; }
ok "$requests requests: each ends once, and no page is lost" many
sed 's/^/# /' ok.out
"$build/tests/unit/schedule_speed" > out 2>&1
code=$?
grep '^#' out
ok "planning time was measured" [ "$code" = 0 ]
# Latencies by simulation (docs/explanation/design/engine.md, "Scheduler"): they do not depend on this machine, and are not judged.
latencies() {
	for load in 13.9 23.4 users:256; do
		for rules in "" backlog=2048 backlog=1000000 every=0 mixed=896 "mixed=1024 few=0 prompt=984 backlog=1536" "mixed=1152 few=0 prompt=576 backlog=2048"; do
			echo "$load ${rules:-as in the engine}: $("$build/tests/unit/schedule_latency" "$load" 400 $rules)" || return
		done
	done
}
latencies > out 2>&1
code=$?
sed 's/^/# /' out
ok "latencies were simulated" eval '[ "$code" = 0 ] && [ "$(grep -c requests out)" = 18 ]'
finish
