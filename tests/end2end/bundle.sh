#!/bin/sh
# The bundle, made of what is built: what it asks of the target, that it runs alone, and what is left without its modules.
# usage: bundle.sh ASSAY SOURCE BUILD VERSION [FATBIN...]
set -u
assay=$(realpath "$1") source=$2 build=$3 version=$4
shift 4
count=$#
for fatbin; do set -- "$@" "$(realpath "$fatbin")"; done
shift "$count"
for tool in zstd objdump ldd strip; do
	command -v $tool > /dev/null 2>&1 || { echo "1..0 # SKIP $tool is not installed"; exit 0; }
done
if objdump -T "$assay" | grep -q __asan_init; then
	echo "1..0 # SKIP a sanitizer build is not bundled"
	exit 0
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
cd "$tmp" || exit 1
. "$source/tests/end2end/tap.sh"

# Packed less thoroughly than a release, which takes 20 s of CPU time.
export ASSAY_BUNDLE_LEVEL=9 ASSAY_BUNDLE_GZIP=1
ok "a bundle is made" sh "$source/tools/bundle.sh" "$source" "$build" "$version" "$tmp/out"
dir=$(echo "$tmp"/out/assay-"$version"-*/)
dir=${dir%/}
pack=$dir.tar.zst
size=$(wc -c < "$pack")
whole=$(find "$dir" -type f -exec cat {} + | wc -c)
echo "# $size bytes, $(wc -c < "$dir.tar.gz") as tar.gz, $whole unpacked, $(find "$dir" -type f | wc -l) files"
ok "its archive is under 20 MB" [ "$size" -lt 20000000 ]
ok "unpacked it has 35 MB at most" [ "$whole" -le 35000000 ]
ok "neither ICU nor X11 is in it" [ -z "$(find "$dir/lib" -name 'libicu*' -o -name 'libX11*' -o -name 'libcairo*' -o -name 'libxml2*')" ]
ok "and no test program" [ -z "$(find "$dir" -name '*_cases' -o -name gradients -o -name 'libpairs*' -o -name '*.py')" ]
mkdir elsewhere plain
unpack() { zstd -q -d -c "$pack" | tar -x -C elsewhere; }
ok "its archive unpacks" unpack
ok "and so does the tar.gz, to the same files" eval 'gzip -d -c "$dir.tar.gz" | tar -x -C plain && diff -r plain elsewhere'
run=$tmp/elsewhere/$(basename "$dir")

# newest FILE: the newest glibc symbol version it asks for
newest() { objdump -T "$1" | grep -oE 'GLIBC_2\.[0-9]+' | sed 's/GLIBC_2\.//' | sort -n | tail -n 1; }
for file in assay lib/libjansson.so.4 lib/libyaml-0.so.2 lib/libnettle.so.* lib/libz.so.1 lib/libmicrohttpd.so.* lib/libgnutls.so.*; do
	file=$(cd "$run" && echo $file)
	ok "$file asks for glibc 2.34 at most" [ "$(newest "$run/$file")" -le 34 ]
done
path=$(objdump -p "$run/assay" | sed -n 's/^ *RPATH *//p')
ok "it looks for libraries beside itself alone" [ "$path" = '$ORIGIN/lib:$ORIGIN/../lib/assay' ]
ok "no MPI travels in it" [ -z "$(find "$run/lib" -name 'libmpi*' -o -name 'libopen-*')" ]
hex() { od -An -v -tx1 | tr -d ' \n'; }
hex < "$run/assay" > hex
for fatbin; do
	tail -c 512 "$fatbin" | hex > end
	ok "$(basename "$fatbin") is within it" grep -qFf end hex
done

# With nothing of this machine's environment, from another folder. The loader writes what it took.
mkdir -p "$tmp/work" "$tmp/ld"
cd "$tmp/work" || exit 1
printf 'name: tiny\ncases:\n  - {probe: "null", phases: burst, require: measured, options: {time: 1ms}}\n' > tiny.yaml
alone() { # CODE ARGS..: as expect, with an empty environment
	want=$1
	shift
	env -i LD_DEBUG=files LD_DEBUG_OUTPUT="$tmp/ld/take" "$run/assay" "$@" > out 2> err
	code=$?
	[ "$code" = "$want" ]
}
ran() { [ "$code" -le 2 ]; }
ok "it says its version" alone 0 --version
ok "which is this one" says "$version" out
ok "it knows the machine" alone 0 info summary
alone 0 check --suite tiny.yaml --out made
ok "it runs a suite" ran
ok "and closes its journal" says '"type":"close","ending":"done"' made/journal.jsonl
ok "and writes a report" [ -s made/report.html ]
# Libraries that travel in the bundle and were taken from elsewhere all the same. What vendor libraries of this machine
# ask for themselves (zlib, C++) is theirs.
foreign() {
	cat "$tmp"/ld/take.* | sed -n 's/.*calling init: \(\/.*\)/\1/p' | sort -u | grep -v "^$run/" | while read -r path; do
		case ${path##*/} in libz.so* | libstdc++.so* | libgcc_s.so*) continue ;; esac
		[ ! -e "$run/lib/${path##*/}" ] || echo "$path"
	done
}
foreign > taken
ok "its libraries come from beside it" [ ! -s taken ]
ok "all four of the core's" [ "$(cat "$tmp"/ld/take.* | grep -E "calling init: $run/lib/lib(jansson|yaml|nettle|z\.)" | sed 's/.*lib\///' | sort -u | wc -l)" = 4 ]
sed 's/^/# taken: /' taken

ok "without the plot module it draws an SVG, and no PNG" eval '[ -s made/roofline.svg ] && [ ! -e made/roofline.png ]'
ok "which it says" says "libassay-plot.so" err
if [ -e "$run/lib/libassay-archive.so" ]; then
	ok "with its module it packs" alone 0 archive made --out made.tar.zst
	ok "what zstd and tar read" sh -c 'zstd -q -d -c made.tar.zst | tar -t | grep -q journal.jsonl'
fi
rm -f "$run"/lib/libassay-archive.so
alone 0 check --suite tiny.yaml --out plain
ok "without its modules it runs a suite" ran
ok "and draws" [ -s plain/roofline.svg ]
ok "it cannot pack" sh -c '! env -i "$1" archive plain --out none.tar.zst > out 2> err' sh "$run/assay"
ok "and says what is missing" says "libassay-archive.so" err
ok "and leaves no half of an archive" [ ! -e none.tar.zst ]

# For tools/check-gpu: the same and more, in one folder.
ok "a bundle with the tests is made" env ASSAY_BUNDLE_LEVEL=1 ASSAY_BUNDLE_GZIP=1 sh "$source/tools/bundle.sh" --tests "$source" "$build" "$version" "$tmp/out"
tests=$(echo "$tmp"/out/assay-tests-"$version"-*/)
ok "it has all of the bundle" [ -z "$(cd "$dir" && find . -type f | while read -r file; do [ -e "$tests/$file" ] || echo "$file"; done)" ]
ok "and check-gpu with its oracles" eval '[ -x "$tests/tools/check-gpu" ] && [ -s "$tests/tests/oracles/pairs.py" ] && [ -s "$tests/tests/nvml_proxy/functions.h" ]'
if [ -e "$build/tests/gpu/gradients" ]; then
	ok "and the test programs that were built" [ -x "$tests/gradients" ]
fi
if [ -e "$build/src/report/libassay-plot.so" ]; then
	cd "$tmp/work" || exit 1
	env -i "$tests/assay" report made --write > out 2> err
	ok "with its plot module it draws a PNG" [ -s made/roofline.png ]
fi
finish
