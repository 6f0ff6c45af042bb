#!/bin/sh
# Called by `meson compile bundle`: BUILD/bundle/assay-VERSION-ARCH/ and the same as tar.zst.
#   assay        the program (RPATH $ORIGIN/lib)
#   lib/         what it links but glibc, and its modules with what they link
#   kernel_cases the kernel case table, where it was built
# usage: bundle.sh SOURCE BUILD VERSION
set -eu
source=$1 build=$2 version=$3
arch=$(uname -m)
name=assay-$version-$arch
dir=$build/bundle/$name
rm -rf "$dir"
mkdir -p "$dir/lib"
cp "$build/src/assay" "$dir/assay"
for extra in "$build"/tests/gpu/kernel_cases "$build"/tests/gpu/pairs; do
	[ -x "$extra" ] && cp "$extra" "$dir/"
done
modules=$(find "$build/src" -name 'libassay-*.so' -o -name 'assay-*.so')
for module in $modules; do cp "$module" "$dir/lib/"; done
# glibc's own parts are the target's; everything else travels.
needed() { ldd "$1" | sed -n 's/.*=> \(\/[^ ]*\) .*/\1/p' | grep -vE '/(libc|libm|libdl|libpthread|librt|libresolv|ld-linux[^/]*)\.so'; }
for object in "$dir/assay" $modules; do
	for so in $(needed "$object" || true); do
		[ -e "$dir/lib/$(basename "$so")" ] || cp -L "$so" "$dir/lib/"
	done
done
strip --strip-unneeded "$dir/assay" "$dir"/lib/* 2> /dev/null || true
cp "$source/LICENSE" "$dir/"
mkdir -p "$dir/docs"
cp -R "$source/docs/man" "$source/docs/completion" "$dir/docs/" 2> /dev/null || true
tar -C "$build/bundle" -c "$name" | zstd -q -19 -T0 -f -o "$build/bundle/$name.tar.zst"
echo "$build/bundle/$name.tar.zst"
