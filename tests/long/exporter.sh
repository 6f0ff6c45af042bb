#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The exporter under load: 1,000 scrapes a second, 10,000 connections, and what a scrape costs. Its memory stays. The figures go to
# the output; only what does not depend on the speed of the machine is judged. usage: exporter.sh BUILD ROOT [SECONDS [COUNT]]
set -u
build=$(realpath "$1") root=$(realpath "$2") seconds=${3:-30} count=${4:-10000} assay=$(realpath "$1")/src/assay
. "$root/tests/end2end/tap.sh"
scratch
exporter=
trap '[ -z "$exporter" ] || kill "$exporter"; rm -rf "$tmp"' EXIT
"$build/tests/watch/recording" 8 600 > machine.rec
"$assay" exporter --replay machine.rec --port 0 > exporter.out 2>&1 < /dev/null &
exporter=$!
for _ in $(seq 300); do grep -q '/metrics' exporter.out && break; sleep 0.1; done
port=$(sed -n 's,.*:\([0-9]*\)/metrics.*,\1,p' exporter.out)
kib() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$exporter/status"; }
ticks() { awk '{ print $14 + $15 }' "/proc/$exporter/stat"; } # user and system time, in 1/100 s
metric() { curl -s --max-time 20 "http://127.0.0.1:$port/metrics" | sed -n "s/^$1 //p"; }
# scraped RATE: scrapes over 50 connections at RATE for $seconds; prints what one cost
scraped() {
	before=$(ticks)
	"$build/tests/watch/scrapes" "$port" 50 "$1" "$seconds" > scraped.out
	code=$?
	after=$(ticks)
	echo "# at $1 per second: $(cat scraped.out), $(((after - before) * 10000 / $(awk '{ print $1 }' scraped.out))) us of CPU each"
	return $code
}
before=$(ticks)
sleep "$seconds"
echo "# without scrapes: $((($(ticks) - before) * 1000 / seconds)) us of CPU per second (a recording that is replayed)"
for rate in 10 1000; do
	scraped $rate
	code=$?
	ok "$rate scrapes a second" [ $code = 0 ]
done
memory=$(kib VmRSS)
scraped 1000 > again.out
cat again.out
ok "memory stays" [ "$(kib VmRSS)" -lt $((memory + 1024)) ]
mkfifo hold
"$build/tests/watch/scrapes" "$port" "$count" idle < hold > held.out &
holder=$!
exec 9> hold
for _ in $(seq 600); do grep -q open held.out && break; sleep 0.1; done
cat held.out
ok "$count connections, and it answers" [ "$(metric assay_exporter_series)" -gt 100 ]
exec 9>&-
wait "$holder"
"$build/tests/watch/scrapes" "$port" "$count" unread < hold > held.out &
holder=$!
exec 9> hold
for _ in $(seq 600); do grep -q open held.out && break; sleep 0.1; done
ok "$count clients that do not read, and it answers" [ "$(metric assay_exporter_series)" -gt 100 ]
exec 9>&-
wait "$holder"
echo "# memory: $(kib VmRSS) KiB resident, $(kib VmHWM) KiB at most"
ok "at most 25 MB resident" [ "$(kib VmHWM)" -lt 25000 ]
finish
