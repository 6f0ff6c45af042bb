#!/bin/bash
# Runs of a launched team of three: cases that one rank lets fall, hang, fail or find wrong, each told by every rank; then all go on.
# usage: team_run.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
. "$here/tap.sh"
. "$here/ports.sh"
ASSAY_TEAM_SECRET=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
ports 600
export ASSAY_TEAM_SECRET
three() { # ARGS..: a run of three ranks; their words are in out.R and err.R, the exit codes in code.R
	port=$((port + 10))
	for r in 0 1 2; do
		(
			ASSAY_SIZE=3 ASSAY_LOCAL_SIZE=3 ASSAY_HOST=127.0.0.1 ASSAY_PORT=$port ASSAY_JOB=job$port ASSAY_RANK=$r ASSAY_LOCAL_RANK=$r \
				timeout 100 "$assay" "$@" > "out.$r" 2> "err.$r"
			echo $? > "code.$r"
		) &
	done
	wait
	cat code.0 code.1 code.2 | tr '\n' ' ' > codes
}
codes() { [ "$(cat codes)" = "$1 " ] || { cat codes err.*; return 1; }; }
journal() { [ "$1" = 0 ] && echo run/journal.jsonl || echo run/nodes/*/rank-"$1"/journal.jsonl; }
end() { # RANK CASE WORDS: how the case ended there
	grep '"type":"end"' "$(journal "$1")" | grep "\"case\":$2," > end.of
	grep -q -- "$3" end.of || { cat end.of; return 1; }
}
all_end() { for r in 0 1 2; do end "$r" "$1" "$2" || return 1; done; }
cat > head << 'EOF'
name: faults
cases:
EOF
line() { # TARGET OPTIONS; on a busy machine figures may not be trusted, which is not this test's matter
	printf '  - {probe: "null", engine: ranks, target: "%s", phases: burst, seconds: 50ms, limit: 4s, require: %s, options: {time: 2ms, %s}}\n' \
		"$1" "${require:-measured}" "$2"
}

{
	cat head
	line team 'crash: enqueue, after: 3, culprit: 1'
	line team 'hang: prepare, culprit: 2'
	line team 'fail: prepare, culprit: 1'
	line team 'wrong: data, culprit: 2'
	line 'team:0,2' 'slot: 1'
	line team 'slot: [2, 3]'
} > suite.yaml
three check --suite suite.yaml --no-telemetry --node polaris --out run
named() { # NAME: stands in some rank's journal, but for the words of the command itself
	sed 's/"command":\[[^]]*\],//' run/journal.jsonl run/nodes/*/rank-*/journal.jsonl | grep -w -- "$1"
}
ended_with() { grep -h '"type":"\(end\|close\)"' run/journal.jsonl run.rank-*/journal.jsonl | grep -w -- "$1"; }
ok "no rank's journal has the node's name" eval '! named polaris'
ok "the terminal names the node, and no file of the report does" eval 'grep -q "rank 1 on polaris" out.0 && ! grep -w polaris run/REPORT.md run/results.csv run/results.json run/report.html'
ok "who failed is told by the host's pseudonym" eval 'ended_with "rank 1 on host-[0-9a-f]*" && ! ended_with "$(hostname)"'
ok "a worker that dies is a crash there" end 1 0 '"ending":"crashed".*signal 11'
ok "and a lost team to the others" eval 'end 0 0 "team_lost" && end 2 0 "team_lost"'
ok "a rank that hangs is ended, and says where it stood" end 2 1 '"cause":"\(timed_out\|team_lost\)".*rank 2 waited .* in preparing'
ok "by whose limit came first" eval 'end 0 1 "\"timed_out\"" || end 1 1 "\"timed_out\"" || end 2 1 "\"timed_out\""'
ok "and where it was waited for" eval 'end 0 1 "agreeing with the other ranks" && end 1 1 "agreeing"'
ok "what fails on one rank is the case's end on all, with its name" all_end 2 'rank 1 on .*: null: the options request a failure in prepare'
ok "so is a wrong result" all_end 3 '"status":"mismatch".*the first at rank 2, element 3'
ok "part of a team works without the others" eval 'end 0 4 "\"ok\"" && end 2 4 "\"ok\"" && ! end 1 4 "\"ok\""'
ok "and all go on" eval 'all_end 5 "\"ok\"" && all_end 6 "\"ok\""'
ok "the wrong result is everybody's exit code" codes '1 1 1'
ok "the journals of all are with rank 0" eval '[ "$(ls run/nodes/*/rank-*/journal.jsonl | wc -l)" = 2 ]'
ok "and nothing of the others is left beside the run" eval '! ls -d run.*'
"$assay" report run/nodes/*/rank-2 > out 2> err
ok "what another rank kept is no run: report says whose it is" [ "$?" = 64 -a -n "$(grep 'holds only rank 2 of 3; use rank 0.s folder' err)" ]
cp -r run/nodes/*/rank-1 run.rank-1
"$assay" compare run* > out 2> err
ok "compare passes over it" grep -q 'skipped: run.rank-1: holds only rank 1 of 3' err
rm -r run.rank-1
ok "each rank's own mean stands in its journal" eval 'grep -q "\"phase\":\"rank\".*time_ns_mean" run/nodes/*/rank-1/journal.jsonl'
ok "rank 0 tells which rank took longest" eval 'grep -q "\"phase\":\"burst\".*\"rank_ns_max\".*" run/journal.jsonl'

rm -rf run run.*
require=nothing
{
	cat head
	line team 'slot: [1, 2]'
	printf '  - {probe: "null", engine: own, target: cpu, phases: burst, seconds: 50ms, require: nothing, options: {time: 2ms}}\n'
	printf '  - {probe: versions, require: nothing}\n'
	line team 'slot: 3'
} > suite.yaml
three check --suite suite.yaml --no-telemetry --node polaris --real-names --out run
ok "asked for, each has the node's name" [ "$(named '"name":"polaris"' | grep -c '"type":"open"')" = 3 ]
ok "all is well" codes '0 0 0'
ok "the node's own cases are run once" eval 'end 0 2 "\"ok\"" && ! end 1 2 "\"ok\"" && ! end 2 2 "\"ok\""'
ok "one worker has all cases of launched ranks: MPI starts once" eval '[ "$(grep "\"type\":\"begin\"" run/nodes/*/rank-1/journal.jsonl | grep -o "pid\":[0-9]*" | sort -u | wc -l)" = 1 ]'
ok "the others print nothing" eval '[ ! -s out.1 ] && [ ! -s out.2 ] && grep -q team out.0'

"$assay" check --suite suite.yaml --no-telemetry --out alone > out 2> err
three check --resume alone
ok "a team does not resume: every rank says so" eval 'codes "64 64 64" && grep -q "resume works only without a launcher" err.2'
ok "nor is its run gone on with alone" expect 64 check --resume run
ok "and that is why" says "is a run of several ranks" err
sed '/"type":"end","case":3/,$d' run/journal.jsonl > cut.jsonl && mkdir cut && mv cut.jsonl cut/journal.jsonl && cp -r run/nodes cut/
"$assay" report cut > out 2> err
ok "of one that was cut nobody is told to resume it" eval 'says "start a new run" out && ! says "--resume" out'
finish
