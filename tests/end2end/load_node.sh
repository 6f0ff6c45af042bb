#!/bin/sh
# `assay load --node` over real ssh, to an sshd of the test's own: a good host, hosts that are refused, and hosts that die during the run.
# usage: load_node.sh BUILD ROOT
set -u
build=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
. "$root/tests/end2end/load_bed.sh"
hit=
trap 'down; sshd_end; [ -z "$hit" ] || kill -KILL $hit 2> /dev/null; rm -rf "$tmp"' EXIT
. "$here/sshd.sh"
host good 127.0.0.1 user host
host changed 127.0.0.1 user other
host new 127.0.0.1 user host
sed -i '/^new /d' known_hosts # nobody has connected to it
host refused 127.0.0.1 stranger host
mkdir remote bin
echo "SetEnv PATH=$tmp/remote:/usr/bin:/bin" >> sshd_config
sshd_begin
fakes=
[ ! -e "$build/tests/fake/libnvidia-ml.so.1" ] || fakes="LD_LIBRARY_PATH=$build/tests/fake FAKE_NVML_FILE=$root/tests/fake/h100x4.json"
printf '#!/bin/sh\n%s exec "%s" "$@"\n' "$fakes" "$assay" > remote/assay
printf '#!/bin/sh\nexec "%s" -F "%s" "$@"\n' "$(command -v ssh)" "$tmp/ssh_config" > bin/ssh
chmod +x remote/assay bin/ssh
PATH=$tmp/bin:$PATH
measured() { # NODE OPTION..: what happens to the node costs its telemetry, not the run
	node=$1
	shift
	sound --node "$node" --rate 10 --duration 2 "$@" && holds "$(value answered) > 0 && $(value failed) == 0"
}
# tells CAUSE: journal and summary have the time without telemetry
tells() { says '"node_silences":\[{[^]]*"cause":"'"$1"'"' "$dir/journal.jsonl" && says "Times without telemetry of the server's node" "$dir/SUMMARY.md"; }
lacks_telemetry() { ! says cpu_busy_share "$dir/journal.jsonl"; }
# during NODE SIGNAL: a run of 8 s, in which the sessions of sshd get the signal once telemetry has come
during() {
	runs=$((runs + 1)) dir=run$runs
	timeout 120 "$assay" load "$url" --out "$dir" --no-telemetry --idle 0 --json --input 20 --output 8 --rate 10 --arrival constant --duration 8 --warmup 0 --node "$1" > out 2> err &
	run=$!
	for _ in $(seq 400); do says cpu_busy_share "$dir/journal.jsonl" 2> /dev/null && break; sleep 0.05; done
	sessions=$(pgrep -P "$(cat sshd.pid)") # the server has other sessions of nobody
	hit="$sessions $(for s in $sessions; do pgrep -P "$s"; done)"
	# shellcheck disable=SC2086
	kill "-$2" $hit
	wait $run
	code=$?
	[ -n "$sessions" ]
}

up --ttft-ms 20 --itl-ms 5
ok "a good host" measured good
ok "has telemetry" says cpu_busy_share "$dir/journal.jsonl"
ok "all the time" eval '! says node_silences "$dir/journal.jsonl" && ! says "Times without telemetry" "$dir/SUMMARY.md"'
[ -z "$fakes" ] || ok "and its GPUs are the server's" [ "$(value server_gpus)" = 4 ]
ok "nothing is left running there" sh -c 'for _ in $(seq 100); do pgrep -f "^[^ ]*$0 __sample all" > /dev/null || exit 0; sleep 0.1; done; exit 1' "$assay"
ok "a host with another key" measured changed
ok "gives no telemetry" lacks_telemetry
ok "and ssh says why" says 'Host key for changed has changed' err
ok "a host that nobody has connected to" measured new
ok "gives no telemetry either" lacks_telemetry
ok "with ssh's reason" says 'Host key verification failed' err
ok "and stays unknown" sh -c '! grep -q "^new " known_hosts'
ok "a host that refuses our key" measured refused
ok "is told" eval 'says "Permission denied" err && says "no telemetry of refused" err'
ok "also in the journal and the summary" tells "no answer"
ok "a connection that is lost" during good KILL
ok "does not end the load" holds "$(value answered) >= 60 && $(value failed) == 0"
ok "but is told" says 'no telemetry of good any more: ssh or the assay there ended' err
ok "also in the journal and the summary" tells ended
ok "the telemetry before it is kept" says cpu_busy_share "$dir/journal.jsonl"
ok "energy without the end of the run is not known" eval '"$assay" cost "$dir" > cost 2>&1; ! grep -q "per output token.* J" cost'
ok "a host that falls silent" during good STOP
ok "does not hold up the end" [ "$code" != 124 ]
ok "nor the load" holds "$(value answered) >= 60 && $(value failed) == 0"
ok "and is told too" says 'no telemetry of good for 5 s' err
ok "also in the journal and the summary" tells silent
# shellcheck disable=SC2086
kill -KILL $hit 2> /dev/null # they would stay stopped
hit=
finish
