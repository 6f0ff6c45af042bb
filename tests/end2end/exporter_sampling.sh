#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# assay exporter reads the driver at its own interval, however often it is scraped; and without options it listens on one address.
# usage: exporter_sampling.sh BUILD NVML-FAKE NVML-PROXY ROOT
set -u
build=$(realpath "$1") nvml=$(realpath "$2") proxy=$(realpath "$3") root=$(realpath "$4") assay=$(realpath "$1")/src/assay
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || lacks "curl is not installed"
scratch
exporter=
trap '[ -z "$exporter" ] || kill "$exporter" 2> /dev/null; rm -rf "$tmp"' EXIT
export ASSAY_LIB_NVML="$proxy" NVML_PROXY_REAL="$nvml" NVML_PROXY_DIR="$tmp/sums" FAKE_NVML_FILE="$root/tests/fake/h100x4.json"
up() { # COMMAND OPTION..
	: > exporter.out
	"$@" > exporter.out 2>&1 < /dev/null &
	exporter=$!
	for _ in $(seq 300); do grep -q '/metrics' exporter.out && break; kill -0 "$exporter" 2> /dev/null || break; sleep 0.05; done
	port=$(sed -n 's,.*:\([0-9]*\)/metrics.*,\1,p' exporter.out)
	[ "$port" ]
}
down() {
	kill "$exporter"
	wait "$exporter"
	code=$?
	exporter=
	[ "$code" = 0 ]
}
# Calls of the driver so far: of each process a file with a head of 64 bytes, then three numbers per function, the first of which counts.
calls() { for sum in sums/*.sum; do od -An -v -t u8 -w24 -j64 "$sum"; done | awk '{ all += $1 } END { print all }'; }
# Rows that are read every five seconds are in each window once, because it begins two seconds after such a reading.
in_window() { # COMMAND..: the calls in five seconds, while the command runs
	before=$(calls)
	"$@" > scraped.out 2>&1
	echo $(($(calls) - before))
}

mkdir sums
: > sums/control
ok "it starts" up "$assay" exporter --port 0 --interval 100ms
ok "with four GPUs" sh -c "for _ in \$(seq 300); do curl -s --max-time 20 http://127.0.0.1:$port/metrics | grep -q '^assay_gpu_power_watts{gpu=\"3\"} [0-9]' && exit 0; sleep 0.1; done; exit 1"
sleep 2
quiet=$(in_window sleep 5)
busy=$(in_window "$build/tests/watch/scrapes" "$port" 20 200 5)
echo "# $quiet calls of the driver in 5 s without scrapes, $busy with $(cat scraped.out)"
ok "it was scraped" [ "$(cut -d ' ' -f 1 scraped.out)" -ge 900 ]
ok "the driver is called all the time" [ "$quiet" -ge 500 ]
ok "scrapes change the number of calls by less than 10 %" [ $((quiet > busy ? quiet - busy : busy - quiet)) -lt $((quiet / 10)) ]
ok "it ends" down

# The default port may be taken on this machine, so it is tried in a network of its own. An address of /proc/net/tcp is hexadecimal, its bytes in reverse;
# 0A is the state of a listening socket.
user='' users=''
[ "$(id -u)" = 0 ] || user=-r users='--preserve-credentials -U'
alone() { exec unshare $user -n sh -c 'ip link set lo up && ip addr add 10.9.8.1/32 dev lo && exec "$@"' - "$@"; }
inside() { nsenter $users -n -t "$exporter" -- "$@"; }
if (alone true) 2> /dev/null; then
	ok "without options it starts" up alone "$assay" exporter
	inside cat /proc/net/tcp /proc/net/tcp6 > sockets
	ok "it listens on 127.0.0.1:19841 only" [ "$(awk '$4 == "0A" { print $2 }' sockets)" = 0100007F:4D81 ]
	ok "it answers there" inside curl -sf --noproxy '*' --max-time 20 -o page http://127.0.0.1:19841/-/healthy
	ok "another address of this machine is refused" eval 'inside curl -s --noproxy "*" --max-time 20 -o page http://10.9.8.1:19841/-/healthy; [ $? = 7 ]'
	ok "it ends there" down
else
	untested "the default address" "network namespaces cannot be made here"
fi
finish
