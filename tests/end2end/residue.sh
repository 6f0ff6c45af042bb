#!/bin/sh
# Files and processes before = after: info, check, probe, after a request to stop in a case, and after a SIGKILL of the
# supervisor while worker and sampler are at work. The run directory alone is new. usage: residue.sh ASSAY
set -u
assay=$(realpath "$1") here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/home" "$tmp/temporary" "$tmp/cache" "$tmp/runs"
cd "$tmp/runs" || exit 1
. "$here/tap.sh"
HOME="$tmp/home" TMPDIR="$tmp/temporary" XDG_CACHE_HOME="$tmp/cache" ASSAY_RESIDUE="$tmp"
export HOME TMPDIR XDG_CACHE_HOME ASSAY_RESIDUE

# Processes with our mark in their environment, this shell's own apart; a zombie is dead.
ours() {
	for p in /proc/[0-9]*; do
		pid=${p#/proc/}
		[ "$pid" != $$ ] && grep -qsF "ASSAY_RESIDUE=$tmp" "$p/environ" 2> /dev/null &&
			tr '\0' ' ' < "$p/cmdline" 2> /dev/null | grep -q "__\|$assay\|^/proc/self/exe" && echo "$pid"
	done
}
files() { # all but the runs; of /dev/shm what is ours by user
	find "$tmp/home" "$tmp/temporary" "$tmp/cache" -mindepth 1
	find /dev/shm -mindepth 1 -user "$(id -u)" -newer "$tmp/runs/began" 2> /dev/null | grep assay
}
clean() {
	for _ in $(seq 200); do
		[ -z "$(ours)" ] && break
		sleep 0.3
	done
	left=$(ours) new=$(files)
	[ -z "$left" ] || echo "processes left: $left"
	[ -z "$new" ] || echo "files left: $new"
	[ -z "$left$new" ]
}
comes() { # PATTERN FILE
	for _ in $(seq 1200); do
		grep -qs -- "$1" "$2" && return 0
		sleep 0.1
	done
	return 1
}
touch began before after out err ok.out report.out tiny.yaml long.yaml
cat > tiny.yaml << LIST
name: tiny
cases:
  - {probe: 'null', phases: burst, require: measured, options: {time: 1ms, slot: [1, 2]}}
  - {probe: limits, require: nothing}
LIST
cat > long.yaml << LIST
name: long
cases:
  - {probe: 'null', phases: burst, seconds: 60s, options: {time: 1ms}}
LIST
"$assay" info all > out 2> err
ok "info leaves nothing" clean
ls > before
"$assay" check --suite tiny.yaml --out run > out 2> err
ok "check leaves nothing" clean
ls | grep -v '^run$' > after
ok "but its run directory" cmp before after
"$assay" probe memory op=read size=1MiB --target cpu --out probed --seconds 10ms > out 2> err
ok "probe leaves nothing" clean
ls | grep -vx 'run\|probed' > after
ok "but its run directory" cmp before after
"$assay" check --suite tiny.yaml --plan > out 2> err
ls | grep -vx 'run\|probed' > after
ok "a plan leaves nothing at all" cmp before after
unplaced() { TMPDIR=$tmp/nowhere expect 0 "$@"; }
ok "what a suite is held to needs no place for files" unplaced list expectations --suite tiny.yaml
# Other work on the machine may leave its figures open: exit code 2.
ok "no more does a run beside its own" eval 'unplaced check --suite tiny.yaml --out placed || [ "$code" = 2 ] && [ -s placed/report.html ] &&
	[ "$(grep -c "\"type\":\"end\".*\"status\":\"ok\"" placed/journal.jsonl)" = 3 ]'
rm -r placed
"$assay" check --suite long.yaml --out stopped > out 2> err &
pid=$!
comes '"phase":"ramp"' stopped/journal.jsonl
ok "while it runs there is a worker and a sampler" [ "$(ours | wc -l)" -ge 3 ]
kill -INT $pid
wait $pid
ok "a request to stop leaves nothing" clean
"$assay" check --suite long.yaml --out killed > out 2> err &
pid=$!
comes '"phase":"ramp"' killed/journal.jsonl
kill -KILL $pid
wait $pid 2> /dev/null
ok "a supervisor that was killed takes its workers and its sampler along" clean
ok "its journal reads" sh -c '"$1" report killed > report.out 2>&1; [ $? -le 2 ]' sh "$assay"
finish
