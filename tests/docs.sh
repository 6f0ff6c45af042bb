#!/bin/sh
# The committed pages are what the program prints. usage: docs.sh ASSAY ROOT [--update]
set -eu
assay=$(realpath "$1") root=$2
if [ "${3:-}" = --update ]; then exec "$assay" __docs "$root"; fi
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$assay" __docs "$tmp"
fail=0
(cd "$tmp" && find . -type f) | while read -r page; do
	cmp -s "$tmp/$page" "$root/$page" || { echo "$page is behind: run tests/docs.sh ASSAY ROOT --update"; diff "$root/$page" "$tmp/$page" | head -n 10; exit 1; }
done || fail=1
bash -n "$tmp/docs/completion/assay.bash" || fail=1
[ "$fail" = 0 ] && echo "docs: every page is current"
exit "$fail"
