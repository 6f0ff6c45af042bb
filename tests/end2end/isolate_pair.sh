#!/bin/bash
# Two launched ranks with a GPU each that is not there, on one node or two: which of them is slow or wrong, though no group is without it.
# usage: isolate_pair.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
. "$here/gpu_ranks.sh"
# Between nodes on one machine nothing is known of two, so a site's band says what is expected.
cp -r "$root/expectations" expected
cat > expected/bands/of_a_test.yaml << LIST
sources:
  test: {title: "figures of a test", date: 2026-11-21}
bands:
  - name: test-team
    when: {probe: collective, target: team, phase: burst}
    rate: [12 GB/s, 24 GB/s]
    basis: {cards: 0, runs: 0, windows: as published}
    source: test
    confidence: low
LIST
cat > pair.yaml << LIST
name: pair
cases:
  - {probe: collective, engine: nccl, target: team, phases: burst, seconds: 2ms, limit: 10s, require: known, options: {op: allreduce, size: 128KiB}}
LIST
pair() { # WORDS..: two ranks, with variables of their own in `own`
	team 2 --suite pair.yaml --expectations expected "$@"
}
nodes() { # on two nodes
	for r in 0 1; do own[r]="SLURMD_NODENAME=n$r NCCL_HOSTID=n$r ${own[r]:-}"; done
}
found() { # FIELD
	sed -n "s/.*\"phase\":\"isolated\".*\"isolated$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" run/journal.jsonl | tail -n 1
}
named() { # KIND PLACE WHY: in rank 0's journal and report
	found _place > place && grep -qx -- "$2" place && [ "$(found "")" = "$1" ] && says "$3" run/results.csv && return
	grep -o '"phase":"isolated".*' run/journal.jsonl
	return 1
}
judged() { # VERDICT CAUSE
	grep '^0,' run/results.csv | grep -q ",\"$1\",\"$2\"," || { grep '^0,' run/results.csv; return 1; }
}

pair
ok "two good ranks are not searched" sh -c '! grep -q "\"type\":\"extend\"" run/journal.jsonl'

# Memory for the collective alone: what each does by itself is asked for, and has no figures here (unit/isolate_run_pair.c has such).
nodes
FAKE_CUDA=devices=4,memory=2100 FAKE_NCCL=slow=1:4 pair
ok "where nothing tells, both are named as not told apart" eval '[ "$(found "")" = nobody ] &&
	says "rank 0 on [^ ]* and rank 1 on [^ ]* cannot be told apart: their own work could not be measured" run/results.csv'
ok "and the case fails all the same" judged fail below_band
for r in 0 1; do
	ok "rank $r has done on its GPU what it does by itself" eval '[ "$(grep -o "\"probe\":\"[a-z]*\",[^{]*{[^}]*},\"kind\":\"timed\",\"target\":\"gpu$r\"" $(journal $r) | cut -d "\"" -f 4 | tr "\n" " ")" = "memory gemm " ]'
done
ok "as a search of its case" says '"follows":{"case":0,"round":1,"why":"each of the two by itself"}' run/nodes/*/rank-1/journal.jsonl

for bad in 0 1; do
	own[$bad]="ASSAY_TEST=1 ASSAY_TEST_PLANT=wrong:$bad"
	pair
	ok "wrong rank $bad of two is named by its part" named member "rank $bad on .*" 'is wrong: its part of an all-gather is wrong, the other part is right'
done
ok "the case fails for its data" judged fail wrong_result
nodes
FAKE_NCCL=spoil=0:40000 pair
ok "what arrives wrong at one alone is the way to it" named pair 'rank 1 on [^ ]* > rank 0 on [^ ]*' 'in an all-gather its part is right on itself and arrives wrong on the other'
finish
