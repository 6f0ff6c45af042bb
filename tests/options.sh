#!/bin/sh
# Each build option switched off by itself, in a copy of an ordinary build whose options change in turn, so that only what depends on
# one is compiled again: it builds without a warning, starts, and the unit tests of what it touches pass or skip.
# usage: options.sh FOLDER     FOLDER: a complete ordinary build beside the sources; nothing in it changes
set -u
here=$(cd "$(dirname "$0")" && pwd)
source=$(dirname "$here") ordinary=$(realpath "$1") tree=$source/build-options
assay=$tree/src/assay
mkdir -p "$tree"
cd "$tree" || exit 1
. "$here/end2end/tap.sh"
unset XDG_CACHE_HOME # the compiler keeps its objects there

pkg-config --exists cmocka || {
	echo "ok 1 - each option off by itself # SKIP cmocka is not installed: there are no unit tests to hold it with"
	echo "1..1"
	exit 0
}
left_out() { # OPTION REASON
	n=$((n + 1))
	echo "ok $n - without $1 # SKIP $2"
}
has() { # OPTION: what it needs is here
	case $1 in
	kernels) ls "$ordinary"/src/kernel/*.fatbin ;;
	plot) pkg-config --exists cairo cairo-pdf ;;
	archive) pkg-config --exists libarchive ;;
	tokenizer) pkg-config --exists libpcre2-8 libutf8proc ;;
	screen) pkg-config --exists ncursesw ;;
	mpi) pkg-config --exists ompi-c || pkg-config --exists mpich ;;
	tensorboard | pods) pkg-config --exists libprotobuf-c && command -v protoc-c ;;
	tests) true ;;
	esac > /dev/null 2>&1
}
# Objects, kernels and ninja's records of them, whose times stay: ninja finds everything up to date. Its commands name files relative to
# the folder, which lies as deep as the ordinary one.
set_up() {
	rm -rf src tests
	(cd "$ordinary" && tar -cf - .ninja_deps .ninja_log build.ninja embed.s meson-info meson-private src tests/fake) | tar -xf - &&
		switch_off none
}
# All options as they come, but one.
switch_off() {
	choice=
	for o in plot archive screen mpi tensorboard pods tokenizer tests kernels; do
		[ "$o" = "$1" ] && choice="$choice -D$o=disabled" || choice="$choice -D$o=auto"
	done
	# shellcheck disable=SC2086
	meson setup --reconfigure -Dlogic_tests=true $choice . "$source" && ninja -t cleandead
}
builds() { # tests run beside it
	nice ninja "$@" > build.log 2>&1 || { grep -E 'error|FAILED' build.log | head -n 20; return 1; }
	! grep 'warning:' build.log
}
starts() { "$assay" --version && "$assay" list probes | grep -q '^gemm'; }
tests_pass() { meson test -C . --no-rebuild --print-errorlogs "$@"; }

# without OPTION "TARGETS" "TESTS" ABSENT
without() {
	has "$1" || { left_out "$1" "what it needs is not installed: every build here is one without"; return; }
	ok "without $1 it is configured" switch_off "$1"
	# shellcheck disable=SC2086
	ok "without $1 it builds, and without a warning" builds src/assay $2
	ok "without $1 it starts" starts
	ok "without $1 what it makes is not there" sh -c '! ls $1' sh "$4"
	# shellcheck disable=SC2086
	ok "without $1 the tests of what it touches pass" tests_pass $3
}
unit() { for t; do printf 'tests/unit/test_%s ' "$t"; done; }

ok "it is configured with all that is here" set_up
rendered="report report_curve report_plot report_schema"
without plot "$(unit $rendered) src/report/libassay-archive.so" "$rendered" src/report/libassay-plot.so
without archive "$(unit $rendered) src/report/libassay-plot.so" "$rendered" src/report/libassay-archive.so
without screen "$(unit watch_screen)" "watch_screen" src/watch/libassay-screen.so
without mpi "$(unit vendor_lib) fakes src/report/libassay-plot.so" "vendor_lib" src/team/libassay-mpi.so
without tensorboard "$(unit train_events)" "train_events" src/train/tensorboard/event.pb-c.h
without pods "tests/unit/test_watch_pods" "watch_pods" src/watch/pods/pods.pb-c.h
without tokenizer "$(unit core_text)" core_text "src/text/tokenizer/libunicode.a.p/*pretoken.c.o"
without tests "tests/fuzz/replay_tree" "fuzz_tree" tests/unit/test_core_opt
# The last: nothing compiles the kernels again.
devices="gpu matmul meter_gpu vendor_headers"
without kernels "$(unit $devices) fakes" "$devices" 'src/kernel/*.fatbin'
finish
