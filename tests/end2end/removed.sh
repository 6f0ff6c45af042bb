#!/bin/sh
# The run directory is removed, moved or closed to reports while the run is going: nothing measured is lost, what happened
# is said with the directory's name, and the exit code is no success. usage: removed.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$here/tap.sh"
cat > tiny.yaml << LIST
name: tiny
cases:
  - {probe: 'null', phases: burst, require: measured, options: {time: 1ms, slot: 1}}
  - {probe: 'null', phases: burst, seconds: 60s, require: measured, options: {time: 1ms, slot: 2}}
  - {probe: 'null', phases: burst, require: measured, options: {time: 1ms, slot: 3}}
LIST
# begin DIR ARGS..: a run that is in its second case, the first one measured
begin() {
	dir=$1
	shift
	"$assay" check --out "$dir" "$@" > run.out 2> run.err &
	pid=$!
	for _ in $(seq 1200); do
		grep -qs '"type":"phase","case":1,"phase":"ramp"' "$dir/journal.jsonl" && return
		sleep 0.1
	done
}
ended() { # CODE
	wait "$pid"
	code=$?
	[ "$code" = "$1" ]
}

begin runs/gone --suite tiny.yaml --expect h100-sxm:8
rm -rf runs
ok "a directory that was removed ends the run, inconclusive" ended 2
ok "its name is told" says 'runs/gone/journal.jsonl was removed during the run' run.err
ok "and that what was measured is there again" says 'is written there again' run.err
"$assay" report runs/gone --format json > out 2> err
ok "the finished case has its figures" sh -c 'tr -d " \n" < out | grep -q "\"time_ns_median\":[0-9]"'
ok "what was stated is there too" says 'h100-sxm' runs/gone/site.yaml

begin run --suite tiny.yaml
mv run elsewhere
ok "a directory that was moved ends the run, inconclusive" ended 2
ok "both names are told" says 'run/journal.jsonl was moved .*elsewhere/journal.jsonl' run.err
ok "nothing is left at the old one" [ ! -e run ]
ok "the finished case is in the new one" says '"type":"end","case":0,' elsewhere/journal.jsonl

begin other --suite tiny.yaml
rm -rf other
mkdir other
echo mine > other/journal.jsonl
ok "another file in the journal's place ends the run" ended 2
ok "and stays as it is" says '^mine$' other/journal.jsonl
ok "what was measured is beside it, and that is told" says 'other/journal.jsonl was replaced .* is in other/journal.jsonl.1' run.err
ok "with the finished case" says '"type":"end","case":0,' other/journal.jsonl.1

mkdir temporary
export TMPDIR="$tmp/temporary"
begin taken --suite tiny.yaml
rm -rf taken
echo mine > taken
ok "a file in the directory's place ends the run" ended 2
ok "and stays as it is" says '^mine$' taken
kept=$(sed -n "s#.*taken/journal.jsonl was replaced .* is in \\($TMPDIR/assay-run-[^/]*\\)/journal.jsonl.*#\\1#p" run.err)
ok "what was measured is among the temporary files, and that is told" [ -n "$kept" ]
ok "as a run that reads" sh -c '"$1" report "$2" --format json | tr -d " \n" | grep -q "\"time_ns_median\":[0-9]"' sh "$assay" "$kept"
unset TMPDIR

begin cut --suite tiny.yaml
: > cut/journal.jsonl
ok "a journal that another cut ends the run" ended 2
ok "and that is told" says 'cut/journal.jsonl was cut by another' run.err
begin mixed --suite tiny.yaml
echo mine >> mixed/journal.jsonl
ok "so does one that another wrote into" ended 2
ok "and that is told" says 'mixed/journal.jsonl was written into by another' run.err
"$assay" report mixed --format json > out 2> err
ok "what was measured until then reads" sh -c 'tr -d " \n" < out | grep -q "\"time_ns_median\":[0-9]"'

sed -i 's/60s/2s/' tiny.yaml
begin shut --suite tiny.yaml
mkdir shut/REPORT.md
ok "a directory that takes no report is no success" ended 2
ok "the file is named" says 'shut/REPORT.md' run.err
ok "what was measured is shown all the same" says 'slot 3' run.out
ok "and is in the journal" says '"type":"close","ending":"done"' shut/journal.jsonl
finish
