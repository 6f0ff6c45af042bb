#!/bin/sh
# Reports, verdicts and comparisons of recorded load tests: tests/data/load. No server and no load are needed.
# usage: load_report.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2")
. "$root/tests/end2end/tap.sh"
scratch
loads=$root/tests/data/load
cp -r "$loads/met" "$loads/slower" "$loads/same" "$loads/sweep" .
chmod -R u+w .

# changed NAME SED: the run "met" with other figures
changed() {
	mkdir "$1"
	sed "$2" met/journal.jsonl > "$1/journal.jsonl"
	! cmp -s met/journal.jsonl "$1/journal.jsonl"
}
ok "a run whose limits are met passes" expect 0 report met
ok "the headline is its verdict" eval 'head -n 1 out | grep -q "^pass  100.00 % of the requests met chat"'
ok "with intervals" says '29.9 ms (29.6–30.2 ms)' out
ok "its files are written" eval 'expect 0 report met --write && [ -s met/SUMMARY.md ] && [ -s met/load.json ] && [ -s met/load.csv ] && [ -s met/load-ttft.svg ]'
ok "there is no roofline" [ ! -e met/roofline.svg ]
ok "SUMMARY.md begins with the verdict" eval 'head -n 1 met/SUMMARY.md | grep -qx "# Load test: pass"'
ok "REPORT.md names the charts" says '!\[time to first token over time\](load-ttft.svg)' met/REPORT.md
cp -r met again
ok "a second time" expect 0 report again --write
ok "gives the same bytes" diff -r met again
rm -rf again
ok "the manifest names all of them" eval 'for f in SUMMARY.md load.json load.csv load-power.svg; do says "\"$f\"" met/manifest.json || exit 1; done'
ok "so does an archive" eval 'expect 0 archive met --out met.tar.zst && { ! command -v zstd > /dev/null || zstd -q -d -c met.tar.zst | tar -tf - | grep -q SUMMARY.md; }'

ok "a run with a lower share" changed missed 's/"share":1.0,"share_low":[0-9.]*,"share_high":1.0,"met":true/"share":0.95,"share_low":0.94,"share_high":0.96,"met":false/g'
ok "fails" expect 1 report missed
ok "and says by how much" says '95.00 % of the requests met chat (94.00 .. 96.00 %), required 99 %' out
ok "a run with few requests" changed few 's/"share":1.0,"share_low":[0-9.]*/"share":1.0,"share_low":0.95/g'
ok "is inconclusive" expect 2 report few
ok "and says why" says 'too few requests' out
ok "a run with a late client" changed late 's/"untrusted":\[\]/"untrusted":["The client sent late, 99th percentile of its own delay: 3 ms, limit 1 ms"]/'
ok "is untrusted" expect 2 report late
ok "with value and limit" eval 'head -n 1 out | grep -q "^untrusted  The client sent late.*: 3 ms, limit 1 ms"'
ok "a run with errors" changed errors 's/"answered":6400,"failed":0/"answered":6300,"failed":100/;s/"errors":{}/"errors":{"limited":100}/'
ok "fails too" expect 1 report errors
ok "with the count" says '100 of 6400 requests failed (1.56 %, allowed 1 %)' out
ok "and the class" eval 'grep -qE "^limited +100  status 429" out'
ok "a sweep" expect 0 report sweep
ok "has its rate" says 'met up to 192/s and missed at 201/s' out

ok "a run without readings of memory" [ ! -e met/load-memory.svg ]
ok "and one with them" changed memory 's/gpm_nvlink_tx_rate/memory_used_bytes/g'
ok "draws them beside the load" eval 'expect 0 report memory --write && [ -s memory/load-memory.svg ] && says "memory in use on the GPUs over time" memory/report.html'
ok "and has the most" eval 'grep -q "most memory" memory/SUMMARY.md || grep -q "most memory" memory/REPORT.md'

ok "a server of an unknown number of GPUs is inconclusive by the marks d2" expect 2 report met --expectations d2
ok "which the reason says" eval 'tr -s "\n " " " < out | grep -q "the number of the server.s GPUs is not known, .*: give the number with --gpus"'
ok "with one GPU" changed one 's/"output_tokens_per_s":10240/"server_gpus":1,"output_tokens_per_s":10240/'
ok "they are met" expect 0 report one --expectations d2
ok "a median above them" changed above 's/"ttft_p95_s":[0-9.e-]*/"ttft_p95_s":0.12/'
ok "passes without them" expect 0 report above
ok "and fails by them" expect 1 report above --expectations d2
ok "which the reason says" says '95th percentile of the time to first token is above 100 ms (ttft_p95_s 0.12)' out
ok "a server on eight GPUs with fewer tokens" changed tokens 's/"output_tokens_per_s":10240/"server_gpus":8,"output_tokens_per_s":9000/'
ok "fails" expect 1 report tokens --expectations d2
ok "one on four GPUs" changed four 's/"output_tokens_per_s":10240/"server_gpus":4,"output_tokens_per_s":9000/'
ok "has no mark of tokens" expect 0 report four --expectations d2
ok "a run without P99" changed noninety 's/"ttft_p99_s":[0-9.e-]*,//;s/"output_tokens_per_s":10240/"server_gpus":1,"output_tokens_per_s":10240/'
ok "is inconclusive by them" expect 2 report noninety --expectations d2
ok "unknown marks are refused" expect 64 report met --expectations d3

ok "two equal servers" expect 0 compare met same
ok "do not differ" says '0 of 8 cases slower' out
ok "a slower one" expect 1 compare met slower
ok "is found" eval 'grep -qE "^load: TTFT, median .*\+40.6 % .* slower" out'
ok "the other way it is faster" expect 0 compare slower met
ok "which is said" says ' faster$' out
ok "as JSON" eval 'expect 1 compare met slower --json && says "\"field\": \"ttft_p50_s\"" out'
ok "a missed limit is a new failure" expect 1 compare met missed
ok "named once" says '1 newly fail' out
ok "an untrusted run is not compared" expect 2 compare met late
ok "with its reason" says 'after: The client sent late' out

# What the options of the command refuse, before anything is sent.
ok "a load with unknown expectations is refused" expect 64 load http://127.0.0.1:9 --expectations nowhere --out run
ok "and leaves nothing" [ ! -e run ]
finish
