#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The figures of tools/watch-cost against their targets, each a test. usage: watch_cost.sh BUILD ROOT [SECONDS]
set -u
build=$(realpath "$1") root=$(realpath "$2") seconds=${3:-60}
. "$root/tests/end2end/tap.sh"
scratch
for program in curl script; do
	command -v $program > /dev/null || lacks "$program is not installed"
done
"$root/tools/watch-cost" "$build" "$seconds" > figures 2> err
code=$?
sed 's/^/# /' figures
while IFS=: read -r verdict figure rest; do
	case $verdict in met | missed) ok "$figure:$rest" [ "$verdict" = met ] ;; esac
done < figures
ok "all figures were measured" [ "$(grep -cE '^(met|missed): ' figures)" -ge 5 ]
ok "and the tool says so" [ "$code" = 0 ]
finish
