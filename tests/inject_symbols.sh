#!/bin/sh
# The library that profiled programs load: what it needs and shows. usage: inject_symbols.sh LIBRARY
set -eu
library=$1
for tool in readelf nm; do
	command -v $tool > /dev/null || { echo "SKIP: $tool is not here"; exit 77; }
done
fail=0
say() { echo "$*"; fail=1; }
for needed in $(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
	[ "$needed" = libc.so.6 ] || say "it needs $needed: libc alone is in every program"
done
expected="InitializeInjection InitializeInjectionNvtx2 InitializeInjectionNvtxExtension"
shown=$(nm -D --defined-only "$library" | awk '{ print $3 }' | LC_ALL=C sort | tr '\n' ' ')
[ "$shown" = "$expected " ] || say "it shows $shown instead of $expected"
newest=$(readelf --version-info "$library" | grep -o 'GLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
[ "$(printf '%s\n2.17\n' "$newest" | sort -V | tail -n 1)" = 2.17 ] ||
	say "it needs glibc $newest, not 2.17 or older: $(nm -D "$library" | grep "@GLIBC_$newest" | awk '{ print $2 }' | tr '\n' ' ')"
readelf -d "$library" | grep -q NODELETE || say "it may be unloaded while its thread runs"
readelf -lW "$library" | grep -q '^ *TLS' && say "it has thread-local storage, for which a program may have no room"
[ "$fail" = 0 ] && echo "inject: libc alone, glibc $newest, three functions shown"
exit $fail
