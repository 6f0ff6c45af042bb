#!/bin/sh
# Each build option switched off by itself, in one tree whose options change in turn, so that only what depends on one is
# compiled again: it builds without a warning, starts, and the unit tests of what it touches pass or skip.
# usage: options.sh FOLDER     FOLDER: an ordinary build, whose kernels are taken instead of compiling them again
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
# The compiler of the ordinary build's kernels; nothing where it has none.
compiler=$(sed -n 's/^ *COMMAND = \([^ ]*\) -fatbin .*/\1/p' "$ordinary/build.ninja" | head -n 1)
# An nvcc that hands out the ordinary build's kernels. Its folder stands beside the toolkit's headers, as nvcc's own does.
stand_in() {
	mkdir -p toolkit/bin
	ln -sfn "$(dirname "$(dirname "$compiler")")/include" toolkit/include
	cat > toolkit/bin/nvcc << SCRIPT
#!/bin/sh
case \$1 in --list-*) exec "$compiler" "\$@" ;; esac
while [ \$# -gt 0 ]; do
	case \$1 in
	-o) out=\$2 ;;
	-MF) needs=\$2 ;;
	esac
	shift
done
echo "\$out:" > "\$needs"
cp "$ordinary/src/kernel/\${out##*/}" "\$out"
SCRIPT
	chmod +x toolkit/bin/nvcc
}
has() { # OPTION: what it needs is here
	case $1 in
	kernels) [ -n "$compiler" ] ;;
	plot) pkg-config --exists cairo cairo-pdf ;;
	archive) pkg-config --exists libarchive ;;
	tokenizer) pkg-config --exists libpcre2-8 libutf8proc ;;
	screen) pkg-config --exists ncursesw ;;
	mpi) pkg-config --exists ompi-c || pkg-config --exists mpich ;;
	tensorboard) pkg-config --exists libprotobuf-c && command -v protoc-c ;;
	tests) true ;;
	esac > /dev/null 2>&1
}
set_up() {
	[ -f build.ninja ] && return
	[ -z "$compiler" ] || stand_in
	# What fits a text's buffer is only known where the compiler follows values, and fast building is wanted here.
	meson setup . "$source" -Dwerror=true -Doptimization=0 -Dc_args=-Wno-format-truncation ${compiler:+-Dnvcc="$tree/toolkit/bin/nvcc"}
}
# All options as they come, but one.
switch_off() {
	others=
	for o in kernels plot archive screen mpi tensorboard tokenizer tests; do
		[ "$o" = "$1" ] || others="$others -D$o=auto"
	done
	# shellcheck disable=SC2086
	meson configure . $others "-D$1=disabled" && ninja -t cleandead && ninja build.ninja
}
builds() { ninja "$@" > build.log 2>&1 || { grep -E 'error|FAILED' build.log | head -n 20; return 1; }; }
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
devices="gpu matmul meter_gpu vendor_headers"
without kernels "$(unit $devices) fakes" "$devices" 'src/kernel/*.fatbin'
without tokenizer "$(unit core_text)" core_text "src/libassay.a.p/*pretoken.c.o"
without tests "tests/fuzz/replay_tree" "fuzz_tree" tests/unit/test_core_opt
finish
