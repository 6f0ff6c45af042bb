#!/bin/sh
# The real binary with the null probe: exit codes, requests to stop, a dead supervisor, resume, and what it says of mistakes.
# usage: check.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
suite() { printf 'name: tiny\ncases:\n%s\n' "$1" > tiny.yaml; }

ok "no such suite is wrong usage" expect 64 check qick
ok "and the nearest one is named" says "did you mean quick" err
ok "no such probe is wrong usage" expect 64 probe nul
ok "so is a value twice" expect 64 probe memory op=triad,triad --plan
ok "which is named" says 'op: the value triad is given twice' err
ok "two forms of a report" expect 64 check --plan --json --format csv
ok "of a report again" expect 64 report nowhere --json --format html
ok "which are named" says 'json and --format html cannot be combined' err
ok "an unknown column is refused" expect 64 check --plan --columns figure,bond
ok "with the nearest one" says 'did you mean "bound"; the columns are figure, expected' err
ok "by report too" expect 64 report nowhere --columns powr
ok "with the nearest one" says 'did you mean "power"' err
ok "no columns of JSON" expect 64 check --plan --json --columns figure
ok "a plan in a form that it has not" expect 64 check --plan --format html
ok "to wait and not to" expect 64 check --plan --wait --beside
ok "a plan into nothing" expect 64 check --plan --out ''
ok "which is said" says 'out is empty' err
ok "a SKU bought twice" expect 64 check --plan --expect h100-sxm:1,h100-sxm:2
ok "with both counts" says 'h100-sxm is stated twice, with counts 1 and 2' err
ok "no such option is wrong usage" expect 64 probe null tyme=1ms
ok "with the nearest option" says 'did you mean "time"' err
ok "two suites are wrong usage" expect 64 check --suite quick --suite health --plan
ok "with the option's name" says 'assay: command line: --suite is given twice' err
ok "so are two values of a probe's option" expect 64 probe null time=1ms time=2ms --plan
ok "with its name" says 'command line: time is given twice; write several values as time=value,value' err
ok "a number out of range is wrong usage" expect 64 probe null time=-1
ok "so is NaN" expect 64 probe null time=nan
ok "so is one beyond all bounds" expect 64 probe null time=1e300
ok "nothing was left behind by mistakes" [ ! -e assay-runs ]

suite '  - {probe: "null", phases: burst, require: measured, options: {time: 1ms, slot: [1, 2]}}'
ok "a plan prints time, watts and bytes" expect 0 check --suite tiny.yaml --plan
ok "time" says '^time ' out
ok "power" says '^power ' out
ok "bytes" says '^disk ' out
ok "and leaves nothing" [ ! -e assay-runs ]
ok "of what is skipped it prints one line a reason" expect 0 check quick --plan --target cpu
ok "with their number" says '^ *[0-9]* of .*: unsupported, not_asked: --target selects another target' out
ok "once" [ "$(grep -c 'target selects another target' out)" -le 1 ]
printf 'gpus: [h100]\nfans: 8\n' > site.yaml
mkdir odd && printf 'rules:\n  - {name: x, field: y, above: 0, verdict: fial}\n' > odd/health.yaml
for how in "" --plan; do
	ok "what was bought is read first: $how" expect 64 check --suite tiny.yaml $how --out early --expect h10-sxm:8
	ok "with the nearest name" says 'did you mean "h100-sxm"' err
	ok "so is a site file: $how" expect 64 check --suite tiny.yaml $how --out early --site site.yaml
	ok "with its line" says 'site.yaml:2' err
	ok "so is one that is not there: $how" expect 64 check --suite tiny.yaml $how --out early --site nowhere.yaml
	ok "so are expectations: $how" expect 64 check --suite tiny.yaml $how --out early --expectations odd
	ok "nothing was measured" [ ! -e early ]
done
ok "a GPU that is not here is wrong usage" expect 64 check --suite tiny.yaml --plan --target gpu250
ok "and it says what is" says 'this machine has no gpu250' err
ok "for one probe too" expect 64 probe null --plan --target gpu250
ok "a plan is JSON on request" expect 0 check --suite tiny.yaml --plan --json
ok "with its hash" says '"hash"' out

"$assay" check --suite tiny.yaml --out run > out 2> err
code=$?
ok "a run ends with a verdict" [ "$code" -le 2 ]
for f in journal.jsonl REPORT.md report.html results.csv results.json manifest.json; do
	ok "it leaves $f" [ -s "run/$f" ]
done
ok "the manifest says how long it took to the first measurement" says '"first_measurement_s"' run/manifest.json
ok "names are pseudonyms" says '"node":"host-' run/journal.jsonl
ok "and the manifest says so" says '"real_names": false' run/manifest.json
"$assay" check --suite tiny.yaml --out named --real-names > out 2> err
ok "real names stand in the journal when asked for" sh -c 'grep -q "\"node\":\"$(uname -n)\"" named/journal.jsonl'
ok "in the machine's facts too" sh -c 'grep -q "\"hostname\":\"$(uname -n)\"" named/journal.jsonl'
ok "and the manifest says so" says '"real_names": true' named/manifest.json
"$assay" check --resume named > out 2> err
ok "a run with real names is gone on with: it is the same machine" [ "$(grep -c '"type":"open"' named/journal.jsonl)" = 2 ]
"$assay" report run --columns figure > out 2> err
ok "report shows the selected columns" says '^verdict  *case  *figure$' out
"$assay" check --suite tiny.yaml --out narrow --columns expected > out 2> err
ok "so does check" sh -c 'grep -q "^verdict  *case" out && ! grep -q "^verdict.*figure" out'
ok "the journal is closed" says '"type":"close","ending":"done"' run/journal.jsonl
ok "a run is not written over" expect 64 check --suite tiny.yaml --out run

# What was stated stays with the run: judged later, it is judged alike.
"$assay" check --suite tiny.yaml --out stated --expect h100-sxm:8 > out 2> err
ok "what was bought and is not here fails" [ $? = 1 ]
ok "the report says so first" sh -c 'head -n 9 stated/REPORT.md | grep -q "8 x h100-sxm"'
cp -r stated elsewhere
"$assay" report elsewhere --write > again 2> err
ok "reported again it fails as before" [ $? = 1 ]
for f in REPORT.md report.html results.csv results.json manifest.json; do
	ok "$f is the same byte for byte" cmp -s "stated/$f" "elsewhere/$f"
done
printf 'gpus: ["l40s:2"]\npower_limit: 0.65 kW\n' > bought.yaml
"$assay" check --suite tiny.yaml --out site --site bought.yaml > out 2> err
rm bought.yaml
"$assay" report site --format markdown > again 2> err
ok "a site file is kept too" cmp -s again site/REPORT.md
ok "with what it says" says '^power_limit: 650 W$' site/site.yaml
"$assay" report site --format markdown --expect l40s:1 > again 2> err
ok "another statement takes its place when asked for" says '1 x l40s' again
ok "a statement that cannot be read stops before anything runs" expect 64 check --suite tiny.yaml --out never --expect h1OO:8
ok "and leaves nothing" [ ! -e never ]
# What judges a run does not go or change without a word.
gone() { # DIR NAME WORDS: every command that judges says so
	for command in "report $1" "check --resume $1" "roofline $1 --out drawn" "archive $1 --out packed.tar.zst"; do
		ok "$command: $2 is told" expect 64 $command
		ok "by name" says "$1/$2: .*$3" err
	done
	ok "nothing came of it" [ ! -e drawn ] && [ ! -e packed.tar.zst ]
}
cp -r site edited && echo 'nvlinks: 2' >> edited/site.yaml
gone edited site.yaml 'was judged by a site file that is changed or missing'
cp -r site bare && rm bare/site.yaml
gone bare site.yaml 'was judged by a site file that is changed or missing'
ok "another may take its place" expect 1 report bare --site site/site.yaml
ok "and judges as before" expect 1 report bare --expect l40s:2
cp -r run more && cp site/site.yaml more
gone more site.yaml 'was judged without a site file'
# A stranger's journal, or one of an earlier program, has no sums.
sed -i 's/,"kept":{[^}]*}//' site/journal.jsonl
ok "a journal without sums is judged by what is there" expect 1 report site
echo 'gpus: <script>' > site/site.yaml
ok "a stranger's statement is refused with its place" expect 64 report site
ok "by name" says 'site/site.yaml:1' err

# On a machine that others use it may be untrusted; it is never open for want of a reference that nobody asked for.
ok "a probe that nothing judges is not open" sh -c '"$1" probe null time=1ms --seconds 0.2 --json > out; grep -q "\"require\": \"known\"" out && ! grep -q "\"verdict\": \"unknown\"" out' sh "$assay"
for probe in clock_state contamination ecc gpu_mode nvlink_state pcie_state remap xid; do
	ok "$probe of no GPU is a skip" expect 2 probe "$probe" --machine "$(dirname "$0")/../replay/cpu-vm-2core"
	ok "and says so" says 'skip .*no NVIDIA GPU on the PCI bus' out
done
ok "a reading of a GPU is none of the node" expect 64 probe ecc --target node
ok "one whose hardware is not here measures nothing" sh -c '"$1" probe sm > out 2> err; code=$?; grep -q "no NVIDIA GPU" out || exit 0; [ $code = 2 ] && grep -q "nothing was measured" out' sh "$assay"
# A rule that only this folder has judges the run, here and wherever its directory goes.
mkdir own
cat > own/own.yaml <<-END
	sources: {s: {title: a test, date: 2026-11-21}}
	rules:
	  - {name: slow, field: time_ns_median, above: 1, verdict: fail, cause: below_band, text: too slow for us, action: none,
	     when: {probe: "null"}, source: s, confidence: high}
END
suite '  - {probe: "null", phases: burst, options: {time: 1ms}}'
ok "expectations of one's own judge the run" expect 1 check --suite tiny.yaml --out mine --expectations own
ok "and are kept with it" [ "$(sha256sum < mine/expectations.txt)" = "$(sed -n 's/.*"expectations_hash": "\([0-9a-f]*\)".*/\1  -/p' mine/results.json | head -n 1)" ]
rm -r own
mkdir away && mv mine away/mine
ok "without their folder it fails as before" expect 1 report away/mine --format markdown
ok "byte for byte" cmp -s out away/mine/REPORT.md
ok "compare judges by them as well" sh -c '"$1" compare away/mine away/mine --json > out; grep -q "\"verdict_after\": \"fail\"" out' sh "$assay"
cp -r away/mine away/edited && echo '# mild' >> away/edited/expectations.txt
cp -r away/mine away/built-in && rm away/built-in/expectations.txt
for dir in away/edited away/built-in; do
	gone $dir expectations.txt 'was judged by a set of expectations that is changed or missing .*give --expectations DIR'
	ok "compare says so too" expect 64 compare $dir $dir
	ok "with its name" says "$dir/expectations.txt: the run was judged" err
	ok "and takes another" expect 0 compare $dir $dir --expectations away/mine/expectations.txt
done
cp -r run late && cp away/mine/expectations.txt late
gone late expectations.txt 'was judged without a set of expectations'
sed -i 's/,"kept":{[^}]*}//' away/built-in/journal.jsonl away/mine/journal.jsonl
ok "the built-in ones judge it otherwise" sh -c '"$1" report away/built-in > out; [ $? != 1 ]' sh "$assay"
ok "what is kept is a set to name" expect 1 report away/built-in --expectations away/mine/expectations.txt
echo 'own.yaml 99999' > away/mine/expectations.txt
ok "what a stranger kept is refused with its place" expect 64 report away/mine
ok "by file and byte" says 'away/mine/expectations.txt .*byte 0' err
mkdir left && echo '{}' > left/expectations.txt
ok "what another run left in a folder judges no new one" expect 64 check --suite tiny.yaml --out left
ok "and is named" says 'left/expectations.txt is left from another run' err
mkdir sour
cat > sour/sour.yaml <<-END
	sources: {s: {title: a test, date: 2026-11-21}}
	bands:
	  - {name: wide, when: {probe: gemm, type: fp64}, rate: [1 TFLOPS, 9 TFLOPS], source: s, confidence: low,
	     basis: {cards: 1, runs: 1, windows: 1 s}}
END
ok "a band that judges nothing stops the run before it begins" expect 64 check --suite tiny.yaml --out sour-run --expectations sour
ok "with its line and the rule it breaks" says 'sour/sour.yaml:3: range wide is wider than a factor of two' err
ok "and leaves nothing" [ ! -e sour-run ]
ok "list expectations refuses it likewise" sh -c '"$1" list expectations --expectations sour > out 2> err; [ $? != 0 ]' sh "$assay"
ok "with its line" says 'sour/sour.yaml:3: range wide' err

ok "the same run twice is one machine" sh -c '"$1" compare run run > out; grep -qE "^(one machine|nothing to compare):" out' sh "$assay"

suite '  - {probe: "null", phases: burst, options: {time: 1ms, wrong: data}}'
ok "a wrong answer fails" expect 1 check --suite tiny.yaml --out wrong
suite '  - {probe: "null", phases: burst, options: {crash: prepare}}'
ok "a crash is inconclusive" expect 2 check --suite tiny.yaml --out crash
ok "a closed directory is refused before anything runs" expect 2 check --suite tiny.yaml --out /proc/assay-run

# Ctrl-C in the middle, then --resume.
suite '  - {probe: "null", phases: burst, seconds: 1s, require: measured, options: {time: 1ms, slot: [1, 2, 3, 4]}}'
"$assay" check --suite tiny.yaml --out stopped > out 2> err &
pid=$!
while ! grep -qs '"type":"end","case":0' stopped/journal.jsonl; do sleep 0.1; done
kill -INT $pid
wait $pid
code=$?
ok "stopped is inconclusive" [ "$code" = 2 ]
ok "its journal is closed" says '"type":"close","ending":"cancelled"' stopped/journal.jsonl
ok "its report is there" [ -s stopped/REPORT.md ]
ok "and begins with that" sh -c 'head -n 4 stopped/REPORT.md | grep -q "stopped on request"'
"$assay" check --resume stopped > out 2> err
ok "resumed, it ends well" says '"type":"close","ending":"done"' stopped/journal.jsonl
ok "what was done was not done again" [ "$(grep -c '"type":"begin","case":0,' stopped/journal.jsonl)" = 1 ]

# The node dies: SIGKILL for the supervisor. Nobody stays, and --resume names the case.
"$assay" check --suite tiny.yaml --out dead > out 2> err &
pid=$!
while ! grep -qs '"type":"begin","case":1' dead/journal.jsonl; do sleep 0.1; done
worker=$(sed -n 's/.*"type":"begin","case":1,.*"pid":\([0-9]*\).*/\1/p' dead/journal.jsonl)
kill -KILL $pid
wait $pid 2> /dev/null
# A zombie is dead: who inherits it may not have looked yet.
gone() { [ ! -e "/proc/$1" ] || grep -q '^State:[[:space:]]*Z' "/proc/$1/status" 2> /dev/null; }
for _ in $(seq 120); do gone "$worker" || sleep 0.5; done
ok "its worker died with it" gone "$worker"
"$assay" check --resume dead > out 2> err
ok "the case that was cut is named" says "case 1 began but did not end" err
ok "and was run again" says '"type":"begin","case":1,"attempt":2' dead/journal.jsonl
# Nothing is required: whether a machine in use disturbed the case is not the subject.
suite '  - {probe: "null", phases: burst, require: nothing, options: {time: 1ms}}'
ok "rounds repeat the suite" expect 0 check --suite tiny.yaml --rounds 2 --out rounds
ok "the plan carries them" sh -c 'grep "type\":\"plan" rounds/journal.jsonl | grep -q "\"round\":2"'
ok "and the report says which is which" says 'round 2' rounds/REPORT.md
ok "a run of fewer rounds is another plan" expect 64 check --rounds 3 --resume rounds
ok "no round is wrong usage" expect 64 check --suite tiny.yaml --rounds 0
ok "another plan is not gone on with" expect 64 check --resume dead --target gpu

ok "nor is another suite" expect 64 check quick --resume rounds
ok "nor another seed" expect 64 check --resume rounds --seed 7
ok "which is named" says 'begun with --seed 1, not 7' err
ok "nor another directory" expect 64 check --resume rounds --out elsewhere
ok "the same words are no other" expect 0 check --suite tiny.yaml --rounds 2 --resume rounds --out rounds
ok "another command does not go on with it" expect 64 probe --resume rounds
ok "nor another build" sh -c 'mkdir other && sed "s/\"build\":\"[^\"]*\"/\"build\":\"0123456789abcdef\"/" rounds/journal.jsonl > other/journal.jsonl && "$1" check --resume other > out 2> err; [ $? = 64 ]' sh "$assay"
ok "which is named" says 'another build.*0123456789abcdef' err
ok "what is no run is not gone on with" expect 64 check --resume nowhere
"$assay" probe null time=1ms slot=4 --out one > out 2> err
ok "a probe is gone on with by its own" sh -c '"$1" probe --resume one > out 2> err; [ $? -le 2 ] && [ "$(grep -c "\"type\":\"open\"" one/journal.jsonl)" = 2 ]' sh "$assay"

if [ -w /dev/full ]; then
	for words in --help --version "check --help" "list probes" "info cpu"; do
		ok "a full disk is no success of $words" sh -c '"$1" $2 > /dev/full 2> err; [ $? = 2 ]' sh "$assay" "$words"
	done
fi
ok "list probes" expect 0 list probes
ok "hides the null probe" sh -c '! grep -q "^null" out'
ok "list engines" expect 0 list engines
ok "list suites" expect 0 list suites
ok "list kernels" expect 0 list kernels
ok "list causes as JSON" expect 0 list causes --json
ok "list expectations" expect 0 list expectations --suite tiny.yaml
ok "its columns have names" sh -c 'head -1 out | grep -Eq "^case +target +bound +expected range +why"'
ok "its JSON has numbers and leaves out what there is not" sh -c \
	'"$1" list expectations --json --machine "$2" > out && grep -q "\"low\": [0-9]" out && ! grep -Eq "\"(band|bound)\": \"" out' \
	sh "$assay" "$(dirname "$0")/../replay/h100-sxm-1"

# A collective of several GPUs has a band, a share of its links, or the reason why there is neither.
replay=$(dirname "$0")/../replay results=$(dirname "$0")/../../results
ahead() { "$assay" list expectations --suite full --machine "$1" > out 2> err; }
ahead "$replay/derived-h200-sxm-4"
ok "four H200: the band of an all-gather" says '^all-gather 4 GiB, bf16, NCCL  .*327–363 GB/s .*range h200-allgather-4: nvls 0' out
ok "a time for what graphs replay" says '^all-reduce 8 B, bf16, graph, NCCL .*6.80–8.50 us' out
ok "a share where no band fits" says '^reduce 4 GiB, bf16, NCCL .*no expected range for .*; slow below 292 GB/s, 0.65 of the links.* bound' out
ok "or neither" says '^all-gather 1 MiB, bf16, NCCL .*no expected range for this operation, size, algorithm and number of GPUs$' out
ahead "$replay/derived-h100-sxm-8"
ok "eight H100: that of a switch which adds" says '^all-reduce 1 GiB, bf16, NCCL .*440–482 GB/s .*h100-allreduce-8-switch-1gib: nvls 1' out
ok "and the share of an all-to-all" says '^all-to-all 4 GiB, bf16, NCCL .*slow below 292 GB/s' out
ahead "$results/2026-11-22-h200-sxm-x2/recording"
ok "two H200: that of two" says '^reduce-scatter 4 GiB, bf16, NCCL .*264–313 GB/s' out

mkdir words
cat > words/w.yaml << 'YAML'
sources: {s: {title: a test, date: 2026-11-21}}
unknown:
  - {name: u, when: {probe: gemm, type: bf61}, why: a slip, source: s, confidence: low}
YAML
ok "a value that no case has is wrong usage" expect 64 check --suite tiny.yaml --plan --expectations words
ok "with its place and the nearest one" says 'words/w.yaml:3: no case has type bf61; the nearest is bf16' err
ok "of every command that takes expectations" expect 64 report rounds --expectations words

# A memory case takes turns with the loop of its own traffic and stores, and no other bounds it. One of them stands for all: each takes 20 s
# of CPU time, and suite quick runs the others.
suite '  - {probe: memory, target: cpu, seconds: 20ms, limit: 600s, options: {op: copy, store: regular}}'
"$assay" check --suite tiny.yaml --out mix_copy > out 2> err
ok "memory copy: beside the loop that moves the same" says '"ceiling_by":"peak engine=cpu isa=auto threads=0 type=fp32 unit=read_write"' mix_copy/journal.jsonl
ok "which is told as its bound" says 'interleaved with peak .* unit=read_write"' mix_copy/results.json
"$assay" probe memory op=copy store=memcpy --target cpu --seconds 20ms --out mix_memcpy > out 2> err
ok "the library's own copy has none" sh -c '! grep -q ceiling_by mix_memcpy/journal.jsonl && ! grep -q "interleaved with" mix_memcpy/results.json'
mkdir empty
ASSAY_LIB_ONEDNN=$PWD/empty "$assay" probe gemm type=int8 m=64 n=64 k=64 --target cpu --out no_onednn > out 2> err
if grep -q avx512_vnni /proc/cpuinfo; then
	ok "a library that is not there is named, with the soname looked for" says 'oneDNN: libdnnl.so.3 not found in ' no_onednn/REPORT.md
fi
finish
