#!/bin/sh
# Every test: the ordinary build, then one under ASan and UBSan with everything optional left out. Called by
# ./quickstart test.
# usage: run.sh [--fast]     --fast leaves the sanitizer build out
set -eu
cd "$(dirname "$0")/.."
passed=0 failed=0 skipped=0

run() { # folder, label, arguments of meson test
	folder=$1 label=$2
	shift 2
	echo "== $label"
	if meson test -C "$folder" --no-rebuild --print-errorlogs "$@" > "$folder/test.log" 2>&1; then :; else
		grep -vE '^\[?[0-9]+/[0-9]+\]? .*OK ' "$folder/test.log" | tail -n 200
	fi
	count() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$folder/test.log" | tail -n 1; }
	ok=$(count Ok) bad=$(count Fail) slow=$(count Timeout) odd=$(count 'Unexpected Pass') skip=$(count Skipped)
	expected=$(count 'Expected Fail')
	ok=$((${ok:-0} + ${expected:-0})) # a planted fault that fails its program is a test that passed
	[ "$ok" != 0 ] || { tail -n 30 "$folder/test.log"; echo "run.sh: no tests ran in $folder" >&2; exit 1; }
	passed=$((passed + ok)) skipped=$((skipped + ${skip:-0}))
	failed=$((failed + ${bad:-0} + ${slow:-0} + ${odd:-0}))
	grep -E ' SKIP' "$folder/test.log" || true
	echo "$label: $ok ok, $((${bad:-0} + ${slow:-0})) failed, ${skip:-0} skipped"
}

run build "ordinary build"
if [ "${1:-}" != --fast ]; then
	if [ ! -f build-asan/build.ninja ]; then
		meson setup build-asan -Db_sanitize=address,undefined -Db_lundef=false \
			-Dkernels=disabled -Dplot=disabled -Darchive=disabled > build/asan-setup.log 2>&1 ||
			{ tail -n 20 build/asan-setup.log; exit 1; }
	fi
	ninja -C build-asan > build/asan-build.log 2>&1 || { grep -E 'error|FAILED' build/asan-build.log | head -n 20; exit 1; }
	UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 ASAN_OPTIONS=detect_leaks=1 \
		run build-asan "under ASan and UBSan"
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$skipped" = 0 ] || echo "what was skipped lacks a GPU, nvcc or an optional library here; each says why in build*/meson-logs/testlog.txt"
[ "$failed" = 0 ]
