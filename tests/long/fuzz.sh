#!/bin/bash
# Runs each fuzz target on new input for SECONDS, two targets at once. A target that finds something leaves its input in the
# folder `found` of the build and fails here.
# usage: fuzz.sh FUZZ_BUILD ROOT [SECONDS]
set -u
build=$(realpath "$1") root=$(realpath "$2") seconds=${3:-60}
. "$root/tests/end2end/tap.sh"
scratch
one() { # TARGET: its last words are in TARGET.log, its exit code in TARGET.code
	mkdir -p "$build/tests/fuzz/found/$1" "$1"
	(cd "$1" && timeout $((seconds + 120)) "$root/tests/fuzz/seeds.sh" fuzz "$root/tests/fuzz/corpus/$1.tar.zst" "$build/tests/fuzz/fuzz_$1" \
		-max_total_time="$seconds" -rss_limit_mb=1024 -close_fd_mask=1 -artifact_prefix="$build/tests/fuzz/found/" "$build/tests/fuzz/found/$1") > "$1.log" 2>&1
	echo $? > "$1.code"
}
export -f one
ASSAY_MODULE_DIR=$build/src/serve # of the HTTP front end
export build root seconds ASSAY_MODULE_DIR
targets=$(for exe in "$build"/tests/fuzz/fuzz_*; do [ ! -f "$exe" ] || [ ! -x "$exe" ] || basename "$exe" | sed 's/^fuzz_//'; done)
[ -n "$targets" ] || { echo "1..0 # SKIP no fuzz targets in $build (clang with libFuzzer is needed)"; exit 0; }
printf '%s\n' $targets | xargs -P 2 -I{} bash -c 'one {}'
for target in $targets; do
	cp "$target.log" out
	code=$(cat "$target.code")
	if [ "$code" = 77 ]; then # a reason, not a crash: seeds.sh
		untested "$target" "$(tail -n 1 "$target.log")"
		continue
	fi
	runs=$(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$target.log" | tail -n 1)
	ok "$target: ${runs:-no} runs in $seconds s" [ "$code" = 0 ]
done
finish
