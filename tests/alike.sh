#!/bin/sh
# Kernels that src/kernel/list calls alike on all architectures: neither their source nor what it includes of ours asks for one.
# usage: alike.sh ROOT
set -eu
cd "$1/src"
found=0
asks() { # SOURCE: the files behind it that ask for an architecture
	seen='' left=$1
	while set -- $left && [ $# -gt 0 ]; do
		file=$1
		shift
		left=$*
		case " $seen " in *" $file "*) continue ;; esac
		[ -f "$file" ] || continue
		seen="$seen $file"
		left="$left $(sed -n 's/^#include "\(.*\)"/\1/p' "$file" | tr '\n' ' ')"
	done
	# shellcheck disable=SC2086
	grep -lE '__CUDA_ARCH__ *[<>=!]' $seen || :
}
rows=$(sed -n 's/^\([a-z0-9_]*\) | \([^ ]*\) | alike .*/\1 \2/p' kernel/list)
[ -n "$rows" ] || { echo "kernel/list has no row that is alike"; exit 1; }
while read -r name source; do
	[ -f "kernel/$source.cu" ] || { echo "$name: there is no kernel/$source.cu"; exit 1; }
	for file in $(asks "kernel/$source.cu"); do
		echo "$name: kernel/list says alike, but $file asks for an architecture"
		found=1
	done
done << ROWS
$rows
ROWS
exit $found
