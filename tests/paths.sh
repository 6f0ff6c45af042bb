#!/bin/sh
# Checks that every path of the tree that a page names exists: targets of links, and words in backquotes such as `src/..`, `tests/..`
# and `run/plan/plan.c`, and includes of C examples. Braces are expanded. Words with `*` or `NAME` are left out, and the example probe `sum` of CONTRIBUTING.
# usage: paths.sh ROOT
set -eu
cd "$1"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
pages=$(find docs README.md examples suites -name '*.md')
exists() { # page, path as written: from the root, from src, from tests or from the page's folder
	[ -e "$2" ] || [ -e "src/$2" ] || [ -e "tests/$2" ] || [ -e "$(dirname "$1")/$2" ]
}
for page in $pages; do
	# shellcheck disable=SC2016
	{
		grep -oE '\]\([^)#: ]+' "$page" | sed 's/^](//' | grep -vE '^[a-z]+$'
		grep -oE '`[A-Za-z0-9_./{},-]+`' "$page" | tr -d '`' | grep -E '^(src|tests|docs|tools|results|suites|expectations|examples)/|^[a-z_]+/[a-z0-9_/]+\.(c|h|cu|cuh)$'
		sed -n 's/^#include "\([^"]*\)".*/\1/p' "$page"
	} | grep -vE "NAME|/(probe_)?sum[.]c" | sort -u | while read -r path; do
		for one in $(bash -c "printf '%s\n' $path"); do
			exists "$page" "$one" || echo "$page: $one does not exist"
		done
	done
done > "$log"
sort -u "$log"
[ ! -s "$log" ]
