#!/bin/sh
# Every path of the tree that a page names exists: `src/..`, `tests/..`, `docs/..`, `tools/..`, `results/..`, `room/file.c`, and the
# targets of links. Braces are expanded; words with `*`, `<` or upper-case place holders are left out.
# usage: paths.sh ROOT
set -eu
cd "$1"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
pages=$(find docs README.md examples suites -name '*.md')
exists() { # page, path as written: below the root, below src, beside the page
	[ -e "$2" ] || [ -e "src/$2" ] || [ -e "$(dirname "$1")/$2" ]
}
for page in $pages; do
	# shellcheck disable=SC2016
	{
		grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//'
		grep -oE '`[A-Za-z0-9_./{},-]+`' "$page" | tr -d '`' | grep -E '^(src|tests|docs|tools|results|suites|expectations|examples)/|^[a-z_]+/[a-z0-9_/]+\.(c|h|cu|cuh)$'
	} | sort -u | while read -r path; do
		for one in $(bash -c "printf '%s\n' $path"); do
			exists "$page" "$one" || echo "$page: $one does not exist"
		done
	done
done > "$log"
sort -u "$log"
[ ! -s "$log" ]
