#!/bin/sh
# The ceilings' loops must stay what they are: twelve multiply-adds a pass in registers, sixteen adds in a chain.
# usage: peak_code.sh FILE (an object or program that holds them)
set -eu
command -v objdump >/dev/null || { echo "objdump is missing"; exit 77; }
code=$(objdump -d --no-show-raw-insn "$1")
count() { # function, instruction, operand
	printf '%s\n' "$code" | sed -n "/<$1>:/,/^\$/p" | grep -c "[[:space:]]$2[a-z0-9]*[[:space:]].*$3" || true
}
bad=0
check() {
	n=$(count "$1" "$2" "$3")
	[ "$n" -eq "$4" ] || { echo "$1: $n of $2 $3, not $4"; bad=1; }
}
case $(uname -m) in
x86_64)
	check fma_avx512_f32 vfmadd '%zmm' 12
	check fma_avx512_f64 vfmadd '%zmm' 12
	check fma_avx2_f32 vfmadd '%ymm' 12
	check fma_avx2_f64 vfmadd '%ymm' 12
	check dp_avx512_i8 vpdpbusd '%zmm' 12
	check dp_avx512_bf16 vdpbf16ps '%zmm' 12
	check dp_avx_i8 vpdpbusd '%ymm' 12
	check fma_sse2_f32 mulps '%xmm' 12
	check fma_sse2_f64 mulpd '%xmm' 12
	check add_chain add '%r.*,%r' 16
	;;
aarch64)
	check fma_neon_f32 fmla v 24
	check fma_neon_f64 fmla v 24
	;;
*) exit 77 ;;
esac
exit $bad
