#!/bin/sh
# Every run directory below results/ is judged and rendered again and gives its committed REPORT.md, byte for byte; so do the runs
# that a roofline was drawn of. (Journals below nodes/ are part of the run above.)
# usage: rerender.sh ASSAY ROOT [--update | --every N]     --update writes the reports instead; --every N takes every Nth run, for slow builds
set -eu
assay=$1 root=$2 update=${3:-} every=1
[ "$update" != --every ] || every=$4
. "$root/tests/journal_of.sh"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0 fail=0
[ -d "$root/results" ] && find "$root/results" -name 'journal.jsonl*' ! -path '*/nodes/*' | LC_ALL=C sort > "$tmp/list" || : > "$tmp/list"
while read -r journal; do
	dir=${journal%/journal.jsonl*}
	count=$((count + 1))
	[ $((count % every)) = 0 ] || continue
	# 1 and 2 are the run's own verdict; anything else is a report that could not be made.
	code=0
	"$assay" report "$dir" --format markdown > "$tmp/REPORT.md" || code=$?
	if [ "$code" -gt 2 ] || [ ! -s "$tmp/REPORT.md" ]; then
		echo "$dir: no report, exit $code"
		fail=1
	elif [ "$update" = --update ]; then
		cp "$tmp/REPORT.md" "$dir/REPORT.md" # the other forms are not stored
	elif ! cmp -s "$tmp/REPORT.md" "$dir/REPORT.md"; then
		echo "$dir: REPORT.md is not what its journal gives; rerender.sh ASSAY ROOT --update writes it"
		diff "$dir/REPORT.md" "$tmp/REPORT.md" | head -n 20 || true
		fail=1
	fi
	# results/README.md says of each run which build it is and how its report ends.
	run=${dir#"$root/results/"} build=$(journal_of "$dir" | sed -n '1s/.*"build":"\(........\).*/\1/p')
	grep -q "^| .$run. |.*| .$build. | $code\(:.*\)\? |$" "$root/results/README.md" || {
		echo "$dir: results/README.md has no row of it with build $build and exit code $code"
		fail=1
	}
done < "$tmp/list"
# runs.txt beside a roofline names its runs, below results/.
for list in "$root"/results/*/runs.txt; do
	[ -f "$list" ] || continue
	dir=${list%/runs.txt}
	count=$((count + 1))
	set --
	while read -r run; do
		set -- "$@" "$root/results/$run"
	done < "$list"
	out=$tmp/merged
	if [ "$update" = --update ]; then
		out=$dir
	fi
	"$assay" roofline "$@" --out "$out" > /dev/null 2>&1 || {
		echo "$dir: no roofline of its runs, exit $?"
		fail=1
	}
	[ "$update" = --update ] || cmp -s "$out/REPORT.md" "$dir/REPORT.md" || {
		echo "$dir: REPORT.md is not what its runs give; rerender.sh ASSAY ROOT --update writes it"
		diff "$dir/REPORT.md" "$out/REPORT.md" | head -n 20 || true
		fail=1
	}
done
[ "$count" -gt 0 ] || {
	echo "rerender: no run below $root/results: nothing was compared"
	fail=1
}
[ "$fail" = 0 ] && echo "rerender: $count runs"
exit "$fail"
