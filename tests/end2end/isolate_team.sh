#!/bin/bash
# Launched ranks on one host that say they stand on several nodes: one of them, or a node, makes a case of the team slow or wrong, and is
# named; a rank that is killed during a search ends that and no more. usage: isolate_team.sh ASSAY ROOT
set -u
assay=$(realpath "$1") root=$(realpath "$2") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
. "$here/ports.sh"
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
ports 600
export ASSAY_TEAM_SECRET
cp -r "$root/expectations" expected
cat > expected/bands/of_a_test.yaml << LIST
sources:
  test: {title: "figures of a test", date: 2026-11-21}
bands:
  - name: test-team
    when: {probe: "null", target: team, phase: burst}
    rate: [0.00007 GFLOPS, 0.00014 GFLOPS] # 1000 FLOP in 14 to 7 ms: they wait 8 ms
    basis: {cards: 0, runs: 0, windows: as published}
    source: test
    confidence: low
LIST
launch() { # RANKS A_NODE OUT OPTIONS: RANKS processes, so many a node; rank 0's words are in OUT.out
	port=$((port + 10))
	printf 'name: team\ncases:\n  - {probe: "null", engine: ranks, target: team, phases: burst, seconds: 20ms, limit: 10s, require: known, options: {time: 8ms, %s}}\n' \
		"$4" > "$3.yaml"
	for r in $(seq 0 $(($1 - 1))); do
		ASSAY_SIZE=$1 ASSAY_LOCAL_SIZE=$2 ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port ASSAY_JOB=job$port ASSAY_RANK=$r \
			ASSAY_LOCAL_RANK=$((r % $2)) timeout 400 "$assay" check --suite "$3.yaml" --expectations expected --no-telemetry \
			--node "node-$((r / $2))" --out "$3" > "$3.out.$r" 2> "$3.err.$r" &
		pid[r]=$!
	done
}
all() { # RANKS A_NODE OUT OPTIONS: and waits; rank 0's code is $code
	launch "$@"
	wait "${pid[0]}"
	code=$?
	wait
}
searching() { # WORDS OUT: until its journal has them, or rank 0 ended
	until grep -q "$1" "$2/journal.jsonl" 2> /dev/null || ! kill -0 "${pid[0]}" 2> /dev/null; do sleep 0.02; done
}
found() { # OUT FIELD
	sed -n "s/.*\"phase\":\"isolated\".*\"isolated$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$1/journal.jsonl" | tail -n 1
}
# As all, and again where others' work on this machine left it open, which it then says; whoever is named is looked at.
all_named() { # RANKS A_NODE OUT OPTIONS
	for try in 1 2 3 4 5; do
		rm -rf "$3"
		all "$@"
		[ "$(found "$3" '')" = nobody ] && found "$3" _why | grep -q 'not seen again' || break
		echo "# $3, time $try: $(found "$3" _why)"
	done
}
# A node is shown by a name for its host, and the rank that it begins with.
named() { # OUT OF PLACE
	[ "$(found "$1" _of)" = "$2" ] && found "$1" _place | grep -qx -- "$3" && return
	grep -o '"phase":"isolated".*' "$1/journal.jsonl"
	return 1
}
judged() { # OUT VERDICT CAUSE: its case; those of the search fail nothing
	grep -q "^0,.*,\"$2\",\"$3\"," "$1/results.csv" && ! grep -v '^0,' "$1/results.csv" | grep '"fail"'
}
lasted() { # OUT TARGET: its last case lasts 20 ms at least, from its begin to its end
	id=$(grep '"type":"extend"' "$1/journal.jsonl" | grep -o '"case":[0-9]*,"key"\|"target":"[^"]*"' | grep -B 1 "\"$2\"" | sed -n 's/"case":\([0-9]*\),.*/\1/p' | tail -n 1)
	sed -n "s/.*\"t\":\([0-9]*\),\"type\":\"\(begin\|end\)\",\"case\":$id,.*/\1/p" "$1/journal.jsonl" | paste -s -d ' ' |
		awk '{ exit !(NF == 2 && $2 - $1 > 2e7) }'
}
groups() { # OUT WORD: the groups of the rounds that are called so, one after the other
	grep '"type":"extend"' "$1/journal.jsonl" | grep "$2" | grep -o '"target":"[^"]*' | cut -d '"' -f 4 | sort -u | tr '\n' ' '
}

all_named 8 2 rank 'culprit: 5, slow_share: 2'
ok "a slow rank fails the run" [ $code = 1 ]
ok "it is named, with its node" named rank rank 'rank 5 on host-.*-rank-4'
ok "the case fails for it" judged rank fail slow_rank
ok "nodes are halved first, side by side, with and without rank 0" [ "$(groups rank 'halves of 4')" = "team:0-3 team:4-7 " ]
ok "the bad one's ranks then work alone, beside a good one's" [ "$(groups rank 'by itself')" = "team:0,1 team:4,5 " ]
ok "with the evidence" says 'rank 5 on host-[^ ]* is slow: without it [0-9.]* kFLOP/s, with it [0-9.]* kFLOP/s' rank/results.csv
tr -s '\n ' '  ' < rank.out.0 > rank.terminal # which breaks lines, and calls nodes by name
ok "the terminal says so" says 'rank 5 on [^ ]* is slow' rank.terminal
for file in rank/REPORT.md rank/report.html; do
	ok "${file#rank/} says so" says 'rank 5 on host-[^ ]* is slow' "$file"
done
ok "figures of groups without rank 0 come to it" says '"follows":{[^}]*halves.*"target":"team:4-7"' rank/journal.jsonl
ok "which last as long as they take" lasted rank 'team:4-7'
ok "each rank has what it took part in" [ "$(cat rank/nodes/*/rank-7/journal.jsonl | grep -c '"type":"begin"')" -ge 6 ]
ok "which a report says again, byte for byte" sh -c "cp -r rank again && rm again/REPORT.md again/results.csv && '$assay' report again --write > /dev/null; cmp rank/REPORT.md again/REPORT.md && cmp rank/results.csv again/results.csv"

all_named 8 2 node 'culprit_node: 3, slow_share: 2'
ok "a node of which each rank is slow is named" named node node 'host-.*-rank-6'
ok "the case fails for it" judged node fail node_slow

all 4 4 wrong 'culprit: 0, wrong: data'
ok "a rank with wrong data is named, be it the first" named wrong rank 'rank 0 on host-[^-]*'
ok "the case fails for its data" judged wrong fail wrong_result
ok "and says who" says 'rank 0 on host-[^ ]* is wrong' wrong/results.csv
ok "the others worked without it" says '"target":"team:1-3"' wrong/journal.jsonl

all 4 2 clean 'slot: 1'
ok "of four good ranks none fails" [ $code != 1 ] # a busy machine may leave it open
ok "and nothing is searched" sh -c '! grep -q "\"type\":\"extend\"" clean/journal.jsonl'

launch 3 3 killed 'culprit: 1, slow_share: 2'
searching '"why":"each of 3' killed
kill -9 "$(pgrep -P "${pid[2]}")"
wait "${pid[0]}"
code=$?
wait
ok "a rank that dies during the search ends it" says 'the team has ended: .*rank 2' killed/journal.jsonl
ok "nobody is named" [ "$(found killed '')" = nobody ]
ok "and the report stands: slow all the same" eval '[ $code = 1 ] && says "no rank, node or link found: the team has ended" killed/REPORT.md'

launch 4 1 stopped 'culprit: 3, slow_share: 2'
searching '"why":"halves of 4' stopped
kill -INT "$(pgrep -P "${pid[0]}")"
wait
ok "a search that is stopped says so" says '"type":"close","ending":"cancelled"' stopped/journal.jsonl
ok "of the groups without rank 0 too" says '"cause":"interrupted"' stopped/journal.jsonl
ok "and not that they were lost" sh -c '! grep -q "sent no result\|\"cause\":\"team_lost\"" stopped/journal.jsonl'
finish
