/* SPDX-License-Identifier: Apache-2.0 */
/* Dot products of panels of quantized weights and quantized rows, for each kind of vector instructions. */
#include "model/cpu/invariant/quantised_gemm.h"
#include "model/tensor/dtype.h"

enum { WORDS = CPU_PANEL * 4, SCALES = CPU_PANEL * 2 };
enum { PREFETCH = 2048 }; /* bytes; panels are read once, one after the other */

static float half_at(const uint8_t *p)
{
	float f;

	dtype_unpack(DTYPE_F16, p, &f, 1);
	return f;
}

/* Number that is subtracted from each unsigned element of a block. */
static int32_t offset_of(enum dtype dtype)
{
	return dtype == DTYPE_Q4_0 ? 8 : 0;
}

/* q . w of one block and column; `stride`: distance of groups of four bytes. */
static int32_t plain_block(enum dtype dtype, const uint8_t *w, int64_t stride, const int8_t *q)
{
	const int groups = dtype == DTYPE_Q8_0 ? CPU_BLOCK / 4 : CPU_BLOCK / 8;
	int32_t dot = 0;

	for (int g = 0; g < groups; g++, w += stride)
		for (int i = 0; i < 4; i++) {
			const int at = 4 * g + i;

			if (dtype == DTYPE_Q8_0)
				dot += (int8_t)w[i] * q[at];
			else
				dot += (w[i] & 15) * q[at] + (w[i] >> 4) * q[at + CPU_BLOCK / 2];
		}
	return dot;
}

/* w: the scales of the block, of which this column's are at 2 * col and, for the least value of Q4_1, at
 * 2 * (columns + col). */
static void plain_dot(enum dtype dtype, const uint8_t *w, int columns, const struct cpu_rows *x, int64_t row,
		      float *out)
{
	const int64_t scales = (dtype == DTYPE_Q4_1 ? 4 : 2) * columns;
	const int64_t bytes = (int64_t)dtype_bytes(dtype, CPU_BLOCK) * columns;

	for (int col = 0; col < columns; col++)
		out[col] = 0;
	for (int64_t b = row * x->blocks; b < (row + 1) * x->blocks; b++, w += bytes)
		for (int col = 0; col < columns; col++) {
			const int32_t dot =
				plain_block(dtype, w + scales + 4 * col, 4 * columns, x->q + b * CPU_BLOCK);

			out[col] += (float)(dot - offset_of(dtype) * x->sum[b]) *
				    (half_at(w + 2 * col) * x->scale[b]);
			if (dtype == DTYPE_Q4_1)
				out[col] +=
					half_at(w + 2 * (columns + col)) * (x->scale[b] * (float)x->sum[b]);
		}
}

void cpu_row_dot(enum dtype dtype, const uint8_t *w, const struct cpu_rows *x, int64_t first, int64_t rows,
		 float *out)
{
	for (int64_t i = 0; i < rows; i++)
		plain_dot(dtype, w, 1, x, first + i, out + i * CPU_PANEL);
}

#define PLAIN(name, dtype)                                                                                   \
	static void name(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,        \
			 float *out)                                                                         \
	{                                                                                                    \
		for (int64_t i = 0; i < rows; i++)                                                           \
			plain_dot(dtype, panel, CPU_PANEL, x, first + i, out + i * CPU_PANEL);               \
	}
PLAIN(plain_q8_0, DTYPE_Q8_0)
PLAIN(plain_q4_0, DTYPE_Q4_0)
PLAIN(plain_q4_1, DTYPE_Q4_1)

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE 1
#include <immintrin.h>
#define TARGET(isa) __attribute__((target(isa)))
#define INLINE(isa) static inline __attribute__((always_inline, target(isa)))

/* Bytes of a block of every row of a panel. */
#define PANEL_BYTES(dtype)                                                                                   \
	((dtype) == DTYPE_Q8_0 ? 34 * CPU_PANEL : ((dtype) == DTYPE_Q4_1 ? 20 : 18) * CPU_PANEL)

/* Four bytes of x for every column. */
static inline int32_t group_at(const int8_t *q, int g)
{
	int32_t four;

	memcpy(&four, q + 4 * g, sizeof(four));
	return four;
}

/* Vectors of 512 bits: one holds a group of all rows of a panel. */
#define AVX512 "avx512vnni,avx512vl,avx512bw,avx512f,avx2,fma,f16c"

/* The eight groups of a block as unsigned bytes: nibbles, or signed bytes plus 128. */
INLINE(AVX512) void unpack_512(enum dtype dtype, const uint8_t *w, __m512i group[8])
{
	const __m512i low = _mm512_set1_epi8(15);

	if (dtype == DTYPE_Q8_0) {
#pragma GCC unroll 8
		for (int g = 0; g < 8; g++)
			group[g] = _mm512_xor_si512(_mm512_loadu_si512(w + g * WORDS),
						    _mm512_set1_epi8((char)0x80));
		return;
	}
#pragma GCC unroll 4
	for (int g = 0; g < 4; g++) {
		const __m512i both = _mm512_loadu_si512(w + g * WORDS);

		group[g] = _mm512_and_si512(both, low);
		group[g + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
	}
}

INLINE(AVX512) __m512 halves_512(const uint8_t *w)
{
	return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)w));
}

/* `rows` is a constant, so the loops over rows are unrolled and the sums stay in registers. */
INLINE(AVX512)
void tile_512(enum dtype dtype, const uint8_t *w, const struct cpu_rows *x, int64_t first, const int rows,
	      float *out)
{
	const int32_t offset = dtype == DTYPE_Q8_0 ? 128 : offset_of(dtype);
	const int64_t scales = dtype == DTYPE_Q4_1 ? 2 * SCALES : SCALES;
	const int64_t bytes = PANEL_BYTES(dtype);
	const int8_t *q = x->q + first * x->blocks * CPU_BLOCK;
	const float *scale = x->scale + first * x->blocks;
	const int32_t *sum = x->sum + first * x->blocks;
	__m512 total[8];

#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		total[i] = _mm512_setzero_ps();
	for (int64_t b = 0; b < x->blocks; b++, w += bytes) {
		__m512i group[8];
		const __m512 d = halves_512(w);

		unpack_512(dtype, w + scales, group);
		for (int64_t line = 0; line < bytes; line += 64)
			_mm_prefetch((const char *)w + PREFETCH + line, _MM_HINT_T0);
#pragma GCC unroll 8
		for (int i = 0; i < rows; i++) {
			const int64_t at = i * x->blocks + b;
			__m512i dot = offset ? _mm512_set1_epi32(-offset * sum[at]) : _mm512_setzero_si512();

#pragma GCC unroll 8
			for (int g = 0; g < 8; g++)
				dot = _mm512_dpbusd_epi32(dot, group[g],
							  _mm512_set1_epi32(group_at(q + at * CPU_BLOCK, g)));
			total[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot),
						   _mm512_mul_ps(d, _mm512_set1_ps(scale[at])), total[i]);
			if (dtype == DTYPE_Q4_1)
				total[i] =
					_mm512_fmadd_ps(halves_512(w + SCALES),
							_mm512_set1_ps(scale[at] * (float)sum[at]), total[i]);
		}
	}
#pragma GCC unroll 8
	for (int i = 0; i < rows; i++)
		_mm512_storeu_ps(out + i * CPU_PANEL, total[i]);
}

/* One instruction adds four products to each sum of 32 bits. */
#define ISA "avxvnni,avx2,fma,f16c"
#define NAME(part) avx_vnni_##part
#define DOT(sum, u, s) _mm256_dpbusd_avx_epi32(sum, u, s)
#include "model/cpu/invariant/panel_dot_256.h"

/* Without such an instruction. u: unsigned bytes, s: signed bytes. The sum of two products is at most
 * 2 * 128 * 127, which fits into 16 bits. */
#define ISA "avx2,fma,f16c"
#define NAME(part) avx2_##part
#define DOT(sum, u, s)                                                                                       \
	_mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)))
#include "model/cpu/invariant/panel_dot_256.h"

#define AVX512_PANELS(name, dtype)                                                                           \
	TARGET(AVX512)                                                                                       \
	static void name(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,        \
			 float *out)                                                                         \
	{                                                                                                    \
		int64_t i = 0;                                                                               \
                                                                                                             \
		for (; i + 8 <= rows; i += 8)                                                                \
			tile_512(dtype, panel, x, first + i, 8, out + i * CPU_PANEL);                        \
		for (; i + 4 <= rows; i += 4)                                                                \
			tile_512(dtype, panel, x, first + i, 4, out + i * CPU_PANEL);                        \
		for (; i + 2 <= rows; i += 2)                                                                \
			tile_512(dtype, panel, x, first + i, 2, out + i * CPU_PANEL);                        \
		for (; i < rows; i++)                                                                        \
			tile_512(dtype, panel, x, first + i, 1, out + i * CPU_PANEL);                        \
	}
AVX512_PANELS(avx512_q8_0, DTYPE_Q8_0)
AVX512_PANELS(avx512_q4_0, DTYPE_Q4_0)
AVX512_PANELS(avx512_q4_1, DTYPE_Q4_1)
#else
#define WIDE 0
#endif

panel_dot cpu_panel_dot(enum dtype dtype, enum cpu_width width)
{
	static const panel_dot dots[][3] = {
		[CPU_PLAIN] = {plain_q8_0, plain_q4_0, plain_q4_1},
#if WIDE
		[CPU_AVX2] = {avx2_q8_0, avx2_q4_0, avx2_q4_1},
		[CPU_AVX_VNNI] = {avx_vnni_q8_0, avx_vnni_q4_0, avx_vnni_q4_1},
		[CPU_AVX512_VNNI] = {avx512_q8_0, avx512_q4_0, avx512_q4_1},
#endif
	};
	const int type = dtype == DTYPE_Q8_0 ? 0 : dtype == DTYPE_Q4_0 ? 1 : 2;

#if WIDE
	const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

	if (width != CPU_PLAIN && !avx2)
		return NULL;
	if (width == CPU_AVX_VNNI && !__builtin_cpu_supports("avxvnni"))
		return NULL;
	if (width == CPU_AVX512_VNNI &&
	    !(__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl") &&
	      __builtin_cpu_supports("avx512bw")))
		return NULL;
#endif
	return (size_t)width < sizeof(dots) / sizeof(dots[0]) ? dots[width][type] : NULL;
}
