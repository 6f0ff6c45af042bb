#!/bin/sh
# Called by `meson compile bundle` and `bundle-tests`: a folder below BUILD/bundle/, and the same as tar.zst and tar.gz.
#   assay-VERSION-ARCH/         what runs: `assay deploy` copies assay and lib/ of it to hosts
#     assay         the program (RPATH $ORIGIN/lib)
#     lib/          what it links but glibc, and its modules with what they link
#   assay-tests-VERSION-ARCH/   the same, and all that tools/check-gpu runs beside it:
#     lib/          the module for PNG and PDF plots too, with cairo and X11
#     kernel_cases  the kernel case table; sdpa_cases, pairs_peer, gradients, launches, libpairs.so, tools/ and tests/oracles/
# usage: bundle.sh [--tests] SOURCE BUILD VERSION [OUT]     OUT instead of BUILD/bundle
set -eu
tests=no
[ "$1" != --tests ] || { tests=yes && shift; }
source=$1 build=$2 version=$3 out=${4:-$2/bundle}
command -v zstd > /dev/null 2>&1 || { echo "bundle.sh: zstd was not found (Debian: zstd)" >&2; exit 1; }
arch=$(uname -m)
name=assay-$version-$arch
[ $tests = no ] || name=assay-tests-$version-$arch
dir=$out/$name
rm -rf "$dir"
mkdir -p "$dir/lib" "$dir/docs" "$dir/tools"
cp "$build/src/assay" "$dir/assay"
# The plot module needs cairo, and that needs X11. Runs are drawn as SVG without it.
modules=$(find "$build/src" -name 'libassay[-_]*.so')
[ $tests = yes ] || modules=$(echo "$modules" | grep -v '/libassay-plot\.so$')
# glibc's own parts are the target's, and MPI is the one that starts the ranks there; everything else travels.
needed() { ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so'; }
take() { # OBJECT: it and what it links
	for so in $(needed "$1" || true); do
		[ -e "$dir/lib/$(basename "$so")" ] || cp -L "$so" "$dir/lib/"
	done
}
take "$dir/assay"
for module in $modules; do
	# A libarchive that is no static library brings libxml2 and ICU, 32 MB, for formats that assay never uses.
	if [ $tests = no ] && needed "$module" | grep -q '/libicudata\.so'; then
		echo "bundle.sh: $(basename "$module") is left out, because it needs ICU" >&2
		continue
	fi
	cp "$module" "$dir/lib/"
	case $module in */libassay-mpi.so) ;; *) take "$module" ;; esac
done
set -- "$dir/assay" "$dir"/lib/*.so*
if [ $tests = yes ]; then
	for extra in kernel_cases time_engine greedy_ways sdpa_cases pairs_peer gradients busy launches nccl_assume libpairs.so; do
		[ ! -e "$build/tests/gpu/$extra" ] || { cp "$build/tests/gpu/$extra" "$dir/" && set -- "$@" "$dir/$extra"; }
	done
	[ ! -e "$build/tests/nvml_proxy/libnvml_proxy.so" ] || { cp "$build/tests/nvml_proxy/libnvml_proxy.so" "$dir/" && set -- "$@" "$dir/libnvml_proxy.so"; } # what top's peers are measured with
	[ ! -e "$build/tests/load/stub_server" ] || { cp "$build/tests/load/stub_server" "$dir/" && set -- "$@" "$dir/stub_server"; } # what load is measured with
fi
for object; do strip --strip-unneeded "$object" 2> /dev/null || true; done
cp "$source/LICENSE" "$dir/"
cp "$source/tools/get-wheels" "$source/tools/wheels" "$dir/tools/"
cp -R "$source/docs/man" "$source/docs/completion" "$source/docs/tutorial" "$source/docs/how-to" "$dir/docs/"
cp -R "$source/examples" "$dir/"
if [ $tests = yes ]; then
	for tool in check-gpu check-gpu-serving check-gpu-training check-gpu-watch latency-ratio peer_nccl peer_ncu plant run-pages training-bound training-proof four-bit-proof; do cp "$source/tools/$tool" "$dir/tools/"; done
	mkdir -p "$dir/tests/oracles"
	cp "$source"/tests/oracles/*.py "$dir/tests/oracles/"
	mkdir -p "$dir/tests/nvml_proxy" && cp "$source/tests/nvml_proxy/functions.h" "$dir/tests/nvml_proxy/"
	mkdir -p "$dir/tests/mpi" "$dir/tests/end2end" "$dir/tests/long" # what check-gpu-training plants, and check-gpu-serving's soak
	cp "$source/tests/mpi/train_faults.sh" "$dir/tests/mpi/"
	cp "$source/tests/long/serve_soak.sh" "$dir/tests/long/"
	cp "$source/tests/end2end/tap.sh" "$dir/tests/end2end/"
fi
# A long window: the same kernels stand in assay, kernel_cases and libpairs.so. Plain `zstd -d` and tar read it. Minimal
# images have no zstd, so there is a tar.gz too.
pack() { tar -C "$out" --owner=0 --group=0 --numeric-owner -c "$name"; }
pack | zstd -q "-${ASSAY_BUNDLE_LEVEL:-19}" --long=27 -T0 -f -o "$out/$name.tar.zst"
pack | gzip -n "-${ASSAY_BUNDLE_GZIP:-9}" > "$out/$name.tar.gz.new"
mv "$out/$name.tar.gz.new" "$out/$name.tar.gz"
echo "$out/$name.tar.zst"
echo "$out/$name.tar.gz"
