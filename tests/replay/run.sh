#!/bin/sh
# Replays each recording named by a *.test file through a command and compares what it prints.
# usage: run.sh ASSAY FOLDER   (UPDATE=1 rewrites the expectations)
set -u
case $1 in /*) assay=$1 ;; *) assay=$PWD/$1 ;; esac # the folder changes below
cd "$2" || exit 1
out=$(mktemp) || exit 1
trap 'rm -f "$out"' EXIT
# What the tests' environment says must not reach a replayed machine.
unset CUDA_VISIBLE_DEVICES ASSAY_LIB_NVML
n=0 fail=0
field() { sed -n "s/^$1: *//p" "$2"; }
for t in *.test; do
	n=$((n + 1))
	source=$(field source "$t") run=$(field run "$t") expect=$(field expect "$t")
	# shellcheck disable=SC2086 -- the command's words
	"$assay" $run --machine "$source" > "$out" 2>&1 || echo "exit $?" >> "$out"
	if [ "${UPDATE:-0}" = 1 ]; then
		cp "$out" "$expect"
	fi
	if cmp -s "$out" "$expect"; then
		echo "ok $n - $t"
	else
		echo "not ok $n - $t"
		diff "$expect" "$out" | sed 's/^/# /'
		fail=1
	fi
done
# Derived ones are judged by readings.sh.
for d in */; do
	[ -e "$d/host.json" ] || continue
	n=$((n + 1))
	if grep -qx "source: *${d%/}" ./*.test; then
		echo "ok $n - $d has a test"
	else
		echo "not ok $n - $d has no test"
		fail=1
	fi
done
echo "1..$n"
exit $fail
