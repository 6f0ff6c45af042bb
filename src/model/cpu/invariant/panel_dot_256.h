/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of 256 bits, included by panel_dot.c for each kind of instructions: ISA, NAME(part), and
 * DOT(sum, u, s), which adds products of unsigned and signed bytes to sums of 32 bits. */

INLINE(ISA) __m256 NAME(halves)(const uint8_t *w)
{
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)w));
}

INLINE(ISA) __m256i NAME(group)(enum dtype dtype, const uint8_t *w, int g)
{
	const __m256i both = _mm256_loadu_si256(
		(const __m256i *)(const void *)(w + (dtype == DTYPE_Q8_0 ? g : g % 4) * WORDS));

	if (dtype == DTYPE_Q8_0)
		return both;
	return _mm256_and_si256(g < 4 ? both : _mm256_srli_epi16(both, 4), _mm256_set1_epi8(15));
}

/* Eight columns of a panel: half 0 or 1. Signed bytes w are multiplied as |w| and x with w's sign. */
INLINE(ISA)
void NAME(tile)(enum dtype dtype, const uint8_t *w, int half, const struct cpu_rows *x, int64_t first,
		const int rows, float *out)
{
	const int64_t scales = dtype == DTYPE_Q4_1 ? 2 * SCALES : SCALES, bytes = PANEL_BYTES(dtype);
	const int8_t *q = x->q + first * x->blocks * CPU_BLOCK;
	const float *scale = x->scale + first * x->blocks;
	const int32_t *sum = x->sum + first * x->blocks;
	__m256 total[4];

#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		total[i] = _mm256_setzero_ps();
	for (int64_t b = 0; b < x->blocks; b++, w += bytes) {
		const __m256 d = NAME(halves)(w + half * SCALES / 2);
		__m256i dot[4];

		_mm_prefetch((const char *)w + PREFETCH, _MM_HINT_T0);
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++)
			dot[i] = dtype == DTYPE_Q4_0 ? _mm256_set1_epi32(-8 * sum[i * x->blocks + b])
						     : _mm256_setzero_si256();
#pragma GCC unroll 8
		for (int g = 0; g < 8; g++) {
			const __m256i s = NAME(group)(dtype, w + scales + half * WORDS / 2, g);
			const __m256i u = dtype == DTYPE_Q8_0 ? _mm256_abs_epi8(s) : s;

#pragma GCC unroll 4
			for (int i = 0; i < rows; i++) {
				__m256i four =
					_mm256_set1_epi32(group_at(q + (i * x->blocks + b) * CPU_BLOCK, g));

				if (dtype == DTYPE_Q8_0)
					four = _mm256_sign_epi8(four, s);
				dot[i] = DOT(dot[i], u, four);
			}
		}
#pragma GCC unroll 4
		for (int i = 0; i < rows; i++) {
			const int64_t at = i * x->blocks + b;

			total[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[i]),
						   _mm256_mul_ps(d, _mm256_set1_ps(scale[at])), total[i]);
			if (dtype == DTYPE_Q4_1)
				total[i] =
					_mm256_fmadd_ps(NAME(halves)(w + SCALES + half * SCALES / 2),
							_mm256_set1_ps(scale[at] * (float)sum[at]), total[i]);
		}
	}
#pragma GCC unroll 4
	for (int i = 0; i < rows; i++)
		_mm256_storeu_ps(out + i * CPU_PANEL + half * CPU_PANEL / 2, total[i]);
}

INLINE(ISA)
void NAME(rows)(enum dtype dtype, const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,
		float *out)
{
	for (int half = 0; half < 2; half++) {
		int64_t i = 0;

		for (; i + 4 <= rows; i += 4)
			NAME(tile)(dtype, panel, half, x, first + i, 4, out + i * CPU_PANEL);
		for (; i < rows; i++)
			NAME(tile)(dtype, panel, half, x, first + i, 1, out + i * CPU_PANEL);
	}
}

TARGET(ISA)
static void NAME(q8_0)(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,
		       float *out)
{
	NAME(rows)(DTYPE_Q8_0, panel, x, first, rows, out);
}

TARGET(ISA)
static void NAME(q4_0)(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,
		       float *out)
{
	NAME(rows)(DTYPE_Q4_0, panel, x, first, rows, out);
}

TARGET(ISA)
static void NAME(q4_1)(const uint8_t *panel, const struct cpu_rows *x, int64_t first, int64_t rows,
		       float *out)
{
	NAME(rows)(DTYPE_Q4_1, panel, x, first, rows, out);
}
#undef ISA
#undef NAME
#undef DOT
