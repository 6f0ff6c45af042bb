#!/bin/bash
# `assay serve` with its real engine on the CPU: requests whose clients leave at random, while the engine is killed again and again.
# Each request ends once: the clients see COUNT ends, and the server has counted as many ends as requests.
# usage: serve_kills.sh ASSAY ROOT STREAMS [COUNT [EVERY]]     EVERY: seconds from an engine that is ready to its end
set -u
assay=$(realpath "$1") root=$(realpath "$2") streams=$(realpath "$3") count=${4:-100000} every=${5:-1}
. "$root/tests/end2end/tap.sh"
command -v curl > /dev/null || { echo "1..0 # SKIP curl is not installed"; exit 0; }
scratch
server=
trap '[ -z "$server" ] || pkill -KILL -s "$server"; rm -rf "$tmp"' EXIT
"$assay" make-model --shape tiny --seed 3 --out tiny > out 2> err || { cat err; exit 1; }
"$assay" serve tiny --device cpu --port 0 --memory 1MB > out 2> err
if grep -q 'built without' err; then echo "1..0 # SKIP this build has no tokenizers" && exit 0; fi
setsid "$assay" serve tiny --port 0 --device cpu --chat-template qwen2.5 --max-queue 4096 > serve.out 2> serve.err < /dev/null &
server=$!
tries() { for _ in $(seq 600); do "$@" && return 0; kill -0 "$server" 2> /dev/null || return 1; sleep 0.1; done; return 1; }
has_url() { grep -q '^API' serve.out; }
is_ready() { curl -s --max-time 10 "$url/ready" | grep -q '"ready"'; }
tries has_url || { cat serve.err; exit 1; }
url=$(sed -n 's/^API and chat page: //p' serve.out)
engine() { pgrep -P "$server" -f __engine; }
kill_engines() { # a line of `killed` for each
	while sleep "$every"; do
		is_ready && kill -KILL "$(engine)" && echo killed
	done > killed 2> /dev/null
}
metric() { curl -s --max-time 10 "$url/metrics" | sed -n "s/^assay_requests_$1{.*} //p"; }
idle() { [ "$(metric running)" = 0 ] && [ "$(metric waiting)" = 0 ]; }
ends() { # of all kinds
	sum=0
	for kind in success refused limited failed left; do sum=$((sum + $(metric ${kind}_total))); done
	echo $sum
}
chaos() {
	kill_engines &
	killer=$!
	timeout 3000 "$streams" "${url##*:}" "$count" '{"messages":[{"role":"user","content":"Hello"}],"stream":true,"max_tokens":50,"ignore_eos":true}' chaos > ended
	code=$?
	kill "$killer"
	return $code
}
all_counted() { tries idle && [ "$(metric total)" = "$count" ] && [ "$(ends)" = "$count" ]; }
ok "the server is ready" tries is_ready
ok "every client sees one end" chaos
cat ended | sed 's/^/# /'
echo "# $(grep -c . killed) engines killed"
ok "which are all ends" [ "$(awk '{ print $1 + $3 + $5 + $7 }' ended)" = "$count" ]
ok "some requests are done, and some fail with the engine" grep -qE '^[1-9][0-9]* done, [0-9]+ refused, [1-9][0-9]* failed, [1-9][0-9]* left, 0 other' ended
ok "engines were killed" [ -s killed ]
ok "the server counts each request and one end of it; none runs or waits" all_counted
ok "and starts another engine" tries is_ready
kill "$server"
wait "$server"
ok "it ends well" [ $? = 0 ]
server=
finish
