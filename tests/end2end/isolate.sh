#!/bin/sh
# The real binary on four GPUs that are not there: a collective that one of them makes slow or wrong, and who is named for it.
# usage: isolate.sh ASSAY FAKES ROOT
. "$(dirname "$0")/gpus.sh"
export FAKE_CUDA=devices=4
suite() { # NAME TARGET
	cat > "$1.yaml" << LIST
name: $1
cases:
  - {probe: collective, target: $2, phases: burst, seconds: 1ms, require: known, options: {op: allreduce, size: 128KiB}}
LIST
}
suite node node
suite three "'node:0,1,3'"
cp -r "$root/expectations" expected
cat > expected/bands/of_a_test.yaml << LIST
sources:
  test: {title: "figures of a test", date: 2026-11-21}
bands:
  # as those of the built-in set: of a way that the run alone tells
  - name: test-collective
    when: {probe: collective, nvls: 0, phase: burst}
    rate: [12 GB/s, 24 GB/s]
    basis: {cards: 0, runs: 0, windows: as published}
    source: test
    confidence: low
  - name: test-collective-switch
    when: {probe: collective, nvls: 1, phase: burst}
    rate: [30 GB/s, 60 GB/s]
    basis: {cards: 0, runs: 0, windows: as published}
    source: test
    confidence: low
LIST
run() { # SUITE OUT [WORD..]
	suite=$1 out=$2
	shift 2
	"$assay" check --suite "$suite.yaml" --expectations expected --out "$out" "$@" > "$out.out" 2> "$out.err"
}
found() { # RUN FIELD
	sed -n "s/.*\"phase\":\"isolated\".*\"isolated$2\":\"\\{0,1\\}\\([^,\"}]*\\).*/\\1/p" "$1/journal.jsonl" | tail -n 1
}
# Of the first case alone: its search's cases are evidence.
judged() { # RUN VERDICT CAUSE
	grep '^0,' "$1/results.csv" > rows && ! grep -v ",\"$2\",\"$3\"," rows
}
unreasoned() { # RUN: what the report of a search's cases says must not fail anything
	! grep -v '^0,' "$1/results.csv" | grep -q '"fail"'
}

run node clean
ok "four good GPUs pass" [ $? = 0 ]
ok "and nothing is searched" sh -c '! grep -q "\"type\":\"extend\"" clean/journal.jsonl'

FAKE_NCCL=slow=2:4 run node slow
ok "a slow GPU fails the run" [ $? = 1 ]
ok "it is named" [ "$(found slow _place)" = gpu2 ]
ok "with its address" [ "$(found slow _pci)" = "$(grep -o '"gpus":\["[^]]*' slow/journal.jsonl | head -n 1 | cut -d '"' -f 8)" ]
ok "the case fails for it" judged slow fail slow_rank
ok "with the evidence: with it, and without" says 'gpu2 (0000:[0-9a-f:.]*) is slow: without it [0-9.]* GB/s, with it [0-9.]* GB/s' slow/results.csv
ok "on the terminal" says 'gpu2 (0000:' slow.out
ok "in Markdown" says 'gpu2 (0000:[0-9a-f:.]*) is slow' slow/REPORT.md
ok "on the page" says 'gpu2 (0000:[0-9a-f:.]*) is slow' slow/report.html
ok "in JSON" says '"isolated_place": "gpu2"' slow/results.json
ok "its cases are told as a search" says 'round 1, each of 4 left out in turn' slow/results.csv
ok "and fail nothing" unreasoned slow
ok "each is journaled with what it follows" [ "$(grep -o '"follows":{"case":0,' slow/journal.jsonl | wc -l)" = "$(found slow _tests)" ]
cp -r slow again
rm -f again/REPORT.md again/report.html again/results.csv again/results.json
"$assay" report again --write > again.out 2> again.err
for file in REPORT.md report.html results.csv results.json; do
	ok "$file is the same, made again from the journal" cmp -s slow/$file again/$file
done

FAKE_NCCL=slow=2:4 run node unsearched --no-isolate
ok "--no-isolate: slow all the same" [ $? = 1 ]
ok "and nothing is searched" sh -c '! grep -q "\"type\":\"extend\"" unsearched/journal.jsonl'

FAKE_NCCL=slow=3:4 run three three
ok "of three GPUs the slow one is named" [ "$(found three _place)" = gpu3 ]

# The built-in set knows no band of an all-gather that small, or of such links: a share of what they allow is expected. Its sizes alone
# are made small, and the links slow, for GPUs that are not there.
cp -r "$root/expectations" builtin
sed 's/min: 64 MiB, max: 1023 MiB/min: 64 KiB, max: 1023 MiB/' "$root/expectations/bands/shares.yaml" > builtin/bands/shares.yaml
sed 's/26562/1500/g' "$root/tests/fake/h100x4.json" > slow_links.json
cat > gather.yaml << LIST
name: gather
cases:
  - {probe: collective, target: node, phases: burst, seconds: 1ms, require: known, options: {op: allgather, size: 128KiB}}
LIST
gather() { # OUT
	FAKE_NVML_FILE=$tmp/slow_links.json "$assay" check --suite gather.yaml --expectations builtin --out "$1" > "$1.out" 2> "$1.err"
}
gather even
ok "an all-gather without a band is measured, not judged" judged even measured no_reference
ok "and not searched" sh -c '! grep -q "\"type\":\"extend\"" even/journal.jsonl'
FAKE_NCCL=slow=2:4 gather uneven
ok "a slow one is followed all the same" [ "$(found uneven _place)" = gpu2 ]
ok "and fails for its GPU" judged uneven fail slow_rank
ok "which says that no band stands behind it" says 'no expected range fits' uneven/results.csv
FAKE_NCCL=rate=2 gather alike
ok "where nobody can be named it is a warning" judged alike warn below_bound

ASSAY_TEST=1 ASSAY_TEST_PLANT=wrong:1 run node wrong
ok "a wrong bit of one GPU fails the run" [ $? = 1 ]
ok "it is named" [ "$(found wrong _place)" = gpu1 ]
ok "as wrong" [ "$(found wrong _fault)" = wrong ]
ok "the case fails for its data" judged wrong fail wrong_result
ok "and says who" says 'gpu1 (0000:[0-9a-f:.]*) is wrong' wrong/results.csv
ok "the journal says that it was planted" says '"planted":"wrong:1"' wrong/journal.jsonl

# Of two no group is without the wrong one: the parts of an all-gather tell.
suite two "'node:1,3'"
for gpu in 1 3; do
	ASSAY_TEST=1 ASSAY_TEST_PLANT=wrong:$gpu run two two-$gpu
	ok "of two GPUs wrong gpu$gpu is named" [ "$(found two-$gpu _fault),$(found two-$gpu ""),$(found two-$gpu _place)" = "wrong,member,gpu$gpu" ]
done
ok "with its address" [ "$(found two-3 _pci)" = "$(grep -o '"gpus":\["[^]]*' two-3/journal.jsonl | head -n 1 | cut -d '"' -f 6)" ]
ok "the case fails for its data" judged two-3 fail wrong_result
ok "and says who, and how it is known" says 'gpu3 (0000:[0-9a-f:.]*) is wrong: its part of an all-gather is wrong, the other part is right' two-3/results.csv
ok "both saw it, twice" [ "$(grep -o '"wrong_suspect":1,"wrong_ranks":2,"wrong_rank":0' two-3/journal.jsonl | wc -l)" = 2 ]
FAKE_NCCL=spoil=0:40000 run two way
ok "what arrives wrong at one alone is the way to it" [ "$(found way ""),$(found way _place)" = 'pair,gpu3>gpu1' ]
ok "which is said" says 'in an all-gather its part is right on itself and arrives wrong on the other' way/results.csv

ASSAY_TEST_PLANT=wrong:1 run node refused
ok "a fault is planted in tests alone" [ $? = 64 ]
ok "which is said" says 'ASSAY_TEST=1' refused.err
ASSAY_TEST=1 ASSAY_TEST_PLANT=wrong:x run node unknown
ok "and one that is none is refused" [ $? = 64 ]
finish
