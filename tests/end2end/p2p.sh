#!/bin/sh
# The real binary on four GPUs that are not there: what probe p2p measures, what it says of a slow direction, of a driver that
# gives no access, of a wrong bit and of a copy that never arrives. usage: p2p.sh ASSAY FAKES ROOT
set -u
assay=$(realpath "$1") fakes=$(realpath "$2") root=$(realpath "$3") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
LD_LIBRARY_PATH=$fakes${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH FAKE_NVML_FILE="$root/tests/fake/h100x4.json"
value() { # RUN CASE FIELD: of a case's last result that has it
	sed -n "s/.*\"type\":\"result\",\"case\":$2,.*\"$3\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" "$1/journal.jsonl" | tail -n 1
}
judged() { # CASE RUN VERDICT CAUSE: in every row that the case has
	grep "^$1," "$2/results.csv" > rows && ! grep -v ",\"$3\",\"$4\"," rows
}
cat > to.yaml << LIST
name: to
cases:
  - {probe: p2p, engine: driver, target: pair, phases: burst, seconds: 5ms, require: known, options: {size: 64KiB}}
LIST
cat > ways.yaml << LIST
name: ways
cases:
  - {probe: p2p, engine: [driver, store, load], target: gpu1>gpu3, phases: burst, seconds: 5ms, require: measured, options: {size: 64KiB, direction: [to, both]}}
  - {probe: p2p, engine: all, target: gpu1>gpu3, phases: burst, seconds: 5ms, require: measured, options: {direction: latency}}
LIST
run() { # STAGED SUITE OUT
	FAKE_CUDA="devices=4,$1" "$assay" check --suite "$2.yaml" --out "$3" > "$3.out" 2> "$3.err"
}

run "" to clean
ok "four well linked GPUs pass" [ $? = 0 ]
ok "each ordered pair was a case" [ "$(grep -c '"type":"end".*"status":"ok"' clean/journal.jsonl)" = 12 ]
ok "one worker drove them all" [ "$(grep -o '"pid":[0-9]*' clean/journal.jsonl | sort -u | wc -l)" = 1 ]
ok "the path is told" [ "$(value clean 0 path)" = NV18 ]
ok "and how wide it is" [ "$(value clean 0 nvlinks)" = 18 ]
ok "the bound is the links'" says '18 NVLinks x 26.5620 GB/s x 16/17' clean/results.json
run "slow=3>2:0.5" to slow
ok "a slow direction fails the run" [ $? = 1 ]
ok "it is the one that fails" judged 11 slow fail link_slow
ok "its reverse passes" judged 8 slow pass low_confidence
ok "the reason names the direction, the loss and the reverse" \
	says 'gpu3>gpu2: 190 GB/s, 50.0 % below the median of the other 11; gpu2>gpu3 380 GB/s is fine' slow/results.csv
run "flip_peer=0>1" to flip
ok "a wrong bit fails the run" [ $? = 1 ]
ok "its pair is named" judged 0 flip fail wrong_result
ok "with the byte" says 'gpu0>gpu1, byte 0x8000' flip/journal.jsonl
ok "the others are well" judged 1 flip pass low_confidence
run "drop_peer=2>3" to drop
ok "a copy that never arrives fails the run" [ $? = 1 ]
ok "all of it is missed" says '16384 of 16384 words are wrong, the first is gpu2>gpu3, byte 0x0' drop/journal.jsonl

run "" ways ways
ok "every engine does both ways" [ "$(grep -c '"type":"end".*"status":"ok"' ways/journal.jsonl)" = 7 ]
ok "the latency of a read is load's alone" [ "$(grep -c 'measured by engine load' ways/journal.jsonl)" = 1 ]
ok "700 ns a hop, as staged" [ "$(value ways 8 latency_ns | cut -d . -f 1)" = 702 ]
run "peer=1>3:deny" ways deny
ok "without access the driver goes through the host" [ "$(value deny 0 path)" = host ]
ok "and it is told" says 'makes no use of them: copies go through the host' deny/results.csv
ok "no kernel reaches the other" says '"case":2,"ending":"done","status":"unsupported".*no access to each other' deny/journal.jsonl
run "cuMemcpyPeerAsync=999@200" to lost
ok "a GPU lost on the way is inconclusive" [ $? = 2 ]
ok "both GPUs of its pair are left alone" says '"cause":"quarantined"' lost/journal.jsonl
ok "and the pair of the other two is tried" says '"type":"begin","case":8' lost/journal.jsonl
ok "in a worker of its own" [ "$(grep -o '"pid":[0-9]*' lost/journal.jsonl | sort -u | wc -l)" = 2 ]
finish
