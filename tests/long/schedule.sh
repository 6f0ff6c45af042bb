#!/bin/bash
# A million requests through the scheduler in a world of clients and a device, with 0, 1, 2 and 16 plans in flight; then the
# time of planning on this machine, which is printed and not judged.
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
finish
