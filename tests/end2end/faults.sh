#!/bin/sh
# Faults planted in the null probe, through supervisor, worker, journal and judge to verdict, cause and exit code; and what
# is made of garbage, strangers and absurd numbers. usage: faults.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'chmod -R u+w "$tmp"; rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"

# what the case is asked to do, verdict, cause
planted='crash: prepare|error|crashed
crash: verify|error|crashed
crash: enqueue, after: 20|error|crashed
crash: finish|error|crashed
hang: prepare|error|timed_out
hang: enqueue, after: 20, ignore_term: true|error|timed_out
garbage: 1000|error|crashed
wrong: data|fail|wrong_result
wrong: nan|fail|nan
cpu_share: 0.8|untrusted|cpu_contended
fail: prepare, status: unavailable|unknown|library_missing
fail: prepare, status: unsupported|skip|unsupported
fail: prepare, status: no_resource|error|no_memory
fail: prepare, status: bad_input|error|bad_input
fail: prepare, status: vendor|error|vendor_call
fail: prepare, status: mismatch|fail|wrong_result
fail: prepare, status: bug|error|defect
fail: supports, status: unavailable|unknown|library_missing
fail: supports, status: unsupported|skip|unsupported
fail: enqueue, status: lost|error|gpu_lost'
slot=100
{
	printf 'name: faults\ncases:\n'
	echo "$planted" | while IFS='|' read -r options _; do
		case $options in hang*) limit=2s ;; *) limit=120s ;; esac # what ends by itself may be slow
		printf '  - {probe: "null", phases: burst, limit: %s, options: {time: 1ms, slot: %d, %s}}\n' "$limit" "$slot" "$options"
		slot=$((slot + 1))
	done
	printf '  - {probe: "null", phases: burst, require: measured, options: {time: 1ms, leak: 100000, slot: 99}}\n'
} > faults.yaml
ok "a run full of faults fails" expect 1 check --suite faults.yaml --out faults
ok "and is whole" says '"type":"close","ending":"done"' faults/journal.jsonl
found() { # the verdict and cause of a slot in the table
	grep " slot=$1 " faults/results.csv | grep -oE '"(pass|measured|warn|fail|unknown|skip|untrusted|error)","[a-z_]*"' | head -n 1 | tr -d '"'
}
while IFS='|' read -r options verdict cause; do
	seen=$(found "$slot")
	ok "$options: $verdict $cause" [ "$seen" = "$verdict,$cause" ]
	[ "$seen" = "$verdict,$cause" ] || echo "# it is $seen"
	slot=$((slot + 1))
done << LIST
$planted
LIST
ok "what came after all of them was measured, whatever its library printed" grep -qE '"type":"end","case":20,.*"ending":"done".*"status":"ok"' faults/journal.jsonl
for word in crashed timed_out wrong_result no_memory; do
	ok "the page names $word" says "$word" faults/report.html
done
# code OPTIONS..: one fault alone
alone() {
	want=$1
	shift
	rm -rf alone
	expect "$want" probe null time=1ms --out alone "$@"
}
ok "a wrong answer alone is exit 1" alone 1 wrong=data
ok "a crash alone is exit 2" alone 2 crash=verify
ok "a missing library alone is exit 2" alone 2 fail=supports status=unavailable
ok "nothing but a skip is exit 2: nothing was measured" alone 2 fail=supports status=unsupported

# A journal cut in the middle of a case, garbage, nothing at all.
mkdir cut garbage empty
head -c "$(($(wc -c < faults/journal.jsonl) / 2))" faults/journal.jsonl > cut/journal.jsonl
ok "half a journal is reported" sh -c '"$1" report cut > out 2> err; [ $? -le 2 ]' sh "$assay"
ok "and said to be cut" grep -q 'cannot be read from line' out
cp -r faults damaged && sed '9s/./x/' faults/journal.jsonl > damaged/journal.jsonl
lost=$(tail -n +9 faults/journal.jsonl | wc -c)
"$assay" report damaged > out 2> err
ok "a line that cannot be read is named, with the bytes" sh -c 'tr "\n" " " < out | tr -s " " | grep -q "journal cannot be read from line 9 on ($1 bytes)"' sh "$lost"
"$assay" check --resume damaged > out 2> err
ok "a run that goes on says what it cuts" says "damaged/journal.jsonl: $lost bytes from line 9 could not be read and are cut; they are saved in journal.jsonl.cut" err
ok "and keeps it" [ "$(tail -n +9 faults/journal.jsonl | tail -n +2 | cksum)" = "$(tail -n +2 damaged/journal.jsonl.cut | cksum)" ]
head -c 4096 /dev/urandom > garbage/journal.jsonl
ok "garbage is no journal" sh -c '"$1" report garbage > out 2> err; code=$?; [ $code = 2 ] || [ $code = 64 ]' sh "$assay"
ok "and its file is named" says "garbage/journal.jsonl does not begin" err
ok "neither is nothing" sh -c '"$1" report empty > out 2> err; code=$?; [ $code = 2 ] || [ $code = 64 ]' sh "$assay"
ok "nor can it be compared" sh -c '"$1" compare faults garbage > out 2> err; code=$?; [ $code = 2 ] || [ $code = 64 ]' sh "$assay"
mkdir later && sed 's/"schema":3/"schema":4/' faults/journal.jsonl > later/journal.jsonl
for command in "report later" "compare later faults" "check --resume later" "roofline later --out drawn" "archive later"; do
	ok "a journal of another schema is not guessed at: $command" expect 64 $command
	ok "and both are named" says 'later/journal.jsonl: written in schema 4; this assay reads 1 to 3: use' err
done
ok "a suite of garbage is wrong usage" expect 64 check --suite garbage/journal.jsonl
printf 'name: x\ncases:\n  - {probe: "null", options: {time: 1ms, slott: 1}}\n' > wrong.yaml
ok "an unknown key is wrong usage" expect 64 check --suite wrong.yaml
ok "with its line" says 'wrong.yaml:3' err
ok "and the nearest word" says '"slot"' err
mkdir expectations && printf 'rules:\n  - {name: x, field: y, above: 0, verdict: fial}\n' > expectations/health.yaml
ok "expectations of nonsense are refused" sh -c '"$1" report faults --expectations expectations > out 2> err; code=$?; [ $code = 2 ] || [ $code = 64 ]' sh "$assay"
ok "with their place" says 'health.yaml:2' err
mkdir recording && head -c 4096 /dev/urandom > recording/host.json
ok "a recording of garbage is refused" sh -c '"$1" info summary --machine recording > out 2> err; [ $? != 0 ]' sh "$assay"

# A run directory from a stranger.
mkdir stranger
sed 's/"node":"[^"]*"/"node":"<script>alert(1)<\/script>"/; s/"model":"[^"]*"/"model":"<img src=x onerror=alert(2)>"/; s/element 3/<b onclick=alert(3)>/g' \
	faults/journal.jsonl > stranger/journal.jsonl
"$assay" report stranger --write > out 2> err
ok "a stranger's run makes a page" [ -s stranger/report.html ]
ok "its words stay words" sh -c '! grep -qE "<script>alert|<img src=x|<b onclick" stranger/report.html'

# Numbers out of every range.
for bad in size=1e30 size=-1 size=nan size=8EiB threads=99999999; do
	ok "memory $bad is refused" sh -c '"$1" probe memory --target cpu op=read "$2" --out bad > out 2> err; code=$?; [ $code = 64 ] || [ $code = 2 ]' sh "$assay" "$bad"
	ok "and says so" says "${bad%%=*}\|memory" err
	rm -rf bad
done
ok "no time is no length" expect 64 probe null --seconds -1
ok "nor is a million years" expect 64 probe null --seconds 1e30
if [ "$(id -u)" != 0 ]; then
	mkdir closed && chmod a-w closed
	ok "a closed directory is refused before anything runs" expect 2 probe null --out closed/run
fi
# The first file that is opened would be the stream's number.
"$assay" probe null --seconds 10ms --no-telemetry --out unheard > /dev/null 2>&-
ok "with stderr closed the journal holds its own lines alone" sh -c '[ -s unheard/journal.jsonl ] && ! grep -qv "^{" unheard/journal.jsonl'
ok "with stdout closed that is what fails" sh -c '"$1" probe null --seconds 10ms --no-telemetry --out unseen >&- 2> err; [ $? = 2 ]' sh "$assay"
ok "and is said" says 'stdout: Bad file descriptor' err
finish
