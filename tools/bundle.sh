#!/bin/sh
# Called by `meson compile bundle`: BUILD/bundle/assay-VERSION-ARCH/ and the same as tar.zst.
#   assay         the program (RPATH $ORIGIN/lib)
#   lib/          what it links but glibc, and its modules with what they link
#   kernel_cases  the kernel case table; sdpa_cases, pairs_peer, gradients, launches, libpairs.so, tools/ and tests/oracles/: what check-gpu runs beside it
# usage: bundle.sh SOURCE BUILD VERSION [OUT]     OUT instead of BUILD/bundle
set -eu
source=$1 build=$2 version=$3 out=${4:-$2/bundle}
command -v zstd > /dev/null 2>&1 || { echo "bundle.sh: zstd was not found (Debian: zstd)" >&2; exit 1; }
arch=$(uname -m)
name=assay-$version-$arch
dir=$out/$name
rm -rf "$dir"
mkdir -p "$dir/lib" "$dir/docs" "$dir/tools" "$dir/tests/oracles"
cp "$build/src/assay" "$dir/assay"
for extra in kernel_cases time_engine sdpa_cases pairs_peer gradients busy launches nccl_assume libpairs.so; do
	[ ! -e "$build/tests/gpu/$extra" ] || cp "$build/tests/gpu/$extra" "$dir/"
done
modules=$(find "$build/src" -name 'libassay[-_]*.so')
for module in $modules; do cp "$module" "$dir/lib/"; done
# glibc's own parts are the target's, and MPI is the one that starts the ranks there; everything else travels.
needed() { ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so'; }
for object in "$dir/assay" $modules; do
	case $object in */libassay-mpi.so) continue ;; esac
	for so in $(needed "$object" || true); do
		[ -e "$dir/lib/$(basename "$so")" ] || cp -L "$so" "$dir/lib/"
	done
done
for object in "$dir/assay" "$dir"/lib/*.so* "$dir"/kernel_cases "$dir"/time_engine "$dir"/sdpa_cases "$dir"/pairs_peer "$dir"/gradients "$dir"/launches "$dir"/libpairs.so; do
	[ ! -e "$object" ] || strip --strip-unneeded "$object" 2> /dev/null || true
done
cp "$source/LICENSE" "$dir/"
cp "$source/tools/check-gpu" "$source/tools/get-wheels" "$source/tools/wheels" "$source/tools/peer_nccl" "$source/tools/peer_ncu" "$source/tools/plant" "$source/tools/run-pages" "$source/tools/training-bound" "$source/tools/training-proof" "$dir/tools/"
cp "$source"/tests/oracles/*.py "$dir/tests/oracles/"
cp -R "$source/docs/man" "$source/docs/completion" "$source/docs/tutorial" "$source/docs/how-to" "$dir/docs/"
cp -R "$source/examples" "$dir/"
# A long window: the same kernels stand in assay, kernel_cases and libpairs.so. Plain `zstd -d` and tar read it.
tar -C "$out" --owner=0 --group=0 --numeric-owner -c "$name" | zstd -q "-${ASSAY_BUNDLE_LEVEL:-19}" --long=27 -T0 -f -o "$out/$name.tar.zst"
echo "$out/$name.tar.zst"
