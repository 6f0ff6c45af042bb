#!/bin/sh
# Every run directory below results/ is judged and rendered again and gives its committed REPORT.md, byte for byte.
# usage: rerender.sh ASSAY ROOT [--update]     --update writes the reports instead
set -eu
assay=$1 root=$2 update=${3:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
count=0 fail=0
[ -d "$root/results" ] && find "$root/results" -name journal.jsonl | LC_ALL=C sort > "$tmp/list" || : > "$tmp/list"
while read -r journal; do
	dir=${journal%/journal.jsonl}
	count=$((count + 1))
	# 1 and 2 are the run's own verdict; anything else is a report that could not be made.
	code=0
	"$assay" report "$dir" --format markdown > "$tmp/REPORT.md" || code=$?
	if [ "$code" -gt 2 ] || [ ! -s "$tmp/REPORT.md" ]; then
		echo "$dir: no report, exit $code"
		fail=1
	elif [ "$update" = --update ]; then
		"$assay" report "$dir" --write > /dev/null || [ $? -le 2 ]
	elif ! cmp -s "$tmp/REPORT.md" "$dir/REPORT.md"; then
		echo "$dir: REPORT.md is not what its journal gives; rerender.sh ASSAY ROOT --update writes it"
		diff "$dir/REPORT.md" "$tmp/REPORT.md" | head -n 20 || true
		fail=1
	fi
done < "$tmp/list"
[ "$count" -gt 0 ] || echo "rerender: results/ holds no run yet: nothing to compare"
[ "$fail" = 0 ] && echo "rerender: $count runs"
exit "$fail"
