/* SPDX-License-Identifier: Apache-2.0 */
/*
 * In each pass, an empty asm statement declares every accumulator as changed. So the compiler cannot fold the
 * loop, merge the chains or spill the accumulators to memory. tests/peak_code.sh counts the instructions in
 * the compiled loops.
 */
#include "probe/peak/cpu_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define HOLD(c)                                                                                              \
	__asm__ volatile(""                                                                                  \
			 : c(x0), c(x1), c(x2), c(x3), c(x4), c(x5), c(x6), c(x7), c(x8), c(x9), c(x10),     \
			   c(x11))

#define LOOP(name, isa, constraint, element_, vec_, lanes_, set1, storeu, step)                              \
	__attribute__((target(isa), noinline)) static void name(void *end)                                   \
	{                                                                                                    \
		typedef element_ element;                                                                    \
		typedef vec_ vec;                                                                            \
		enum { lanes = lanes_ };                                                                     \
		const vec a = set1((element)PEAK_FMA_A), b = set1((element)PEAK_FMA_B);                      \
		vec x0 = set1((element)PEAK_FMA_START(0)), x1 = set1((element)PEAK_FMA_START(1)),            \
		    x2 = set1((element)PEAK_FMA_START(2)), x3 = set1((element)PEAK_FMA_START(3)),            \
		    x4 = set1((element)PEAK_FMA_START(4)), x5 = set1((element)PEAK_FMA_START(5)),            \
		    x6 = set1((element)PEAK_FMA_START(6)), x7 = set1((element)PEAK_FMA_START(7)),            \
		    x8 = set1((element)PEAK_FMA_START(8)), x9 = set1((element)PEAK_FMA_START(9)),            \
		    x10 = set1((element)PEAK_FMA_START(10)), x11 = set1((element)PEAK_FMA_START(11));        \
                                                                                                             \
		for (unsigned i = 0; i < PEAK_FMA_LOOPS; i++) {                                              \
			x0 = step(x0, a, b), x1 = step(x1, a, b), x2 = step(x2, a, b);                       \
			x3 = step(x3, a, b), x4 = step(x4, a, b), x5 = step(x5, a, b);                       \
			x6 = step(x6, a, b), x7 = step(x7, a, b), x8 = step(x8, a, b);                       \
			x9 = step(x9, a, b), x10 = step(x10, a, b), x11 = step(x11, a, b);                   \
			HOLD(constraint);                                                                    \
		}                                                                                            \
		storeu((element *)end + 0 * lanes, x0), storeu((element *)end + 1 * lanes, x1);              \
		storeu((element *)end + 2 * lanes, x2), storeu((element *)end + 3 * lanes, x3);              \
		storeu((element *)end + 4 * lanes, x4), storeu((element *)end + 5 * lanes, x5);              \
		storeu((element *)end + 6 * lanes, x6), storeu((element *)end + 7 * lanes, x7);              \
		storeu((element *)end + 8 * lanes, x8), storeu((element *)end + 9 * lanes, x9);              \
		storeu((element *)end + 10 * lanes, x10), storeu((element *)end + 11 * lanes, x11);          \
	}

#define TWO_PS(x, a, b) _mm_add_ps(_mm_mul_ps(x, a), b)
#define TWO_PD(x, a, b) _mm_add_pd(_mm_mul_pd(x, a), b)

LOOP(fma_sse2_f32, "sse2", "+x", float, __m128, 4, _mm_set1_ps, _mm_storeu_ps, TWO_PS)
LOOP(fma_sse2_f64, "sse2", "+x", double, __m128d, 2, _mm_set1_pd, _mm_storeu_pd, TWO_PD)
LOOP(fma_avx2_f32, "avx2,fma", "+x", float, __m256, 8, _mm256_set1_ps, _mm256_storeu_ps, _mm256_fmadd_ps)
LOOP(fma_avx2_f64, "avx2,fma", "+x", double, __m256d, 4, _mm256_set1_pd, _mm256_storeu_pd, _mm256_fmadd_pd)
LOOP(fma_avx512_f32, "avx512f", "+v", float, __m512, 16, _mm512_set1_ps, _mm512_storeu_ps, _mm512_fmadd_ps)
LOOP(fma_avx512_f64, "avx512f", "+v", double, __m512d, 8, _mm512_set1_pd, _mm512_storeu_pd, _mm512_fmadd_pd)

/* Loops of dot products: accumulators have 32 bits; the constants fill every element of the operands'
 * type. */
#define PRODUCTS(name, isa, constraint, element_, vec_, lanes_, of, set1, storeu, step)                      \
	__attribute__((target(isa), noinline)) static void name(void *end)                                   \
	{                                                                                                    \
		typedef element_ element;                                                                    \
		typedef vec_ vec;                                                                            \
		enum { lanes = lanes_ };                                                                     \
		vec x0 = set1(of(0)), x1 = set1(of(1)), x2 = set1(of(2)), x3 = set1(of(3)),                  \
		    x4 = set1(of(4)), x5 = set1(of(5)), x6 = set1(of(6)), x7 = set1(of(7)),                  \
		    x8 = set1(of(8)), x9 = set1(of(9)), x10 = set1(of(10)), x11 = set1(of(11));              \
                                                                                                             \
		for (unsigned i = 0; i < PEAK_FMA_LOOPS; i++) {                                              \
			x0 = step(x0), x1 = step(x1), x2 = step(x2), x3 = step(x3), x4 = step(x4);           \
			x5 = step(x5), x6 = step(x6), x7 = step(x7), x8 = step(x8), x9 = step(x9);           \
			x10 = step(x10), x11 = step(x11);                                                    \
			HOLD(constraint);                                                                    \
		}                                                                                            \
		storeu((element *)end + 0 * lanes, x0), storeu((element *)end + 1 * lanes, x1);              \
		storeu((element *)end + 2 * lanes, x2), storeu((element *)end + 3 * lanes, x3);              \
		storeu((element *)end + 4 * lanes, x4), storeu((element *)end + 5 * lanes, x5);              \
		storeu((element *)end + 6 * lanes, x6), storeu((element *)end + 7 * lanes, x7);              \
		storeu((element *)end + 8 * lanes, x8), storeu((element *)end + 9 * lanes, x9);              \
		storeu((element *)end + 10 * lanes, x10), storeu((element *)end + 11 * lanes, x11);          \
	}

#define INT_OF(c) (c)
#define BF16_OF(c) ((float)PEAK_FMA_START(c))
#define STORE_512(p, x) _mm512_storeu_si512((void *)(p), x)
#define STORE_256(p, x) _mm256_storeu_si256((__m256i *)(void *)(p), x)
#define DP_512(x) _mm512_dpbusd_epi32(x, _mm512_set1_epi8(PEAK_INT8_A), _mm512_set1_epi8(PEAK_INT8_B))
#define DP_256(x) _mm256_dpbusd_avx_epi32(x, _mm256_set1_epi8(PEAK_INT8_A), _mm256_set1_epi8(PEAK_INT8_B))
#define DP_BF16(x)                                                                                           \
	_mm512_dpbf16_ps(x, (__m512bh)_mm512_set1_epi16(PEAK_BF16_A),                                        \
			 (__m512bh)_mm512_set1_epi16(PEAK_BF16_B))

PRODUCTS(dp_avx512_i8, "avx512f,avx512bw,avx512vnni", "+v", int32_t, __m512i, 16, INT_OF, _mm512_set1_epi32,
	 STORE_512, DP_512)
PRODUCTS(dp_avx512_bf16, "avx512f,avx512bw,avx512bf16", "+v", float, __m512, 16, BF16_OF, _mm512_set1_ps,
	 _mm512_storeu_ps, DP_BF16)
PRODUCTS(dp_avx_i8, "avx2,avxvnni", "+x", int32_t, __m256i, 8, INT_OF, _mm256_set1_epi32, STORE_256, DP_256)

static peak_fma_loop *products_loop_for(enum peak_isa isa, enum peak_type type)
{
	if (type == PEAK_BF16)
		return isa == PEAK_ISA_AVX512_BF16 ? dp_avx512_bf16 : NULL;
	if (isa == PEAK_ISA_AVX512_VNNI)
		return dp_avx512_i8;
	return isa == PEAK_ISA_AVX_VNNI ? dp_avx_i8 : NULL;
}

peak_fma_loop *peak_fma_loop_for(enum peak_isa isa, enum peak_type type)
{
	bool twice = type == PEAK_FP64;

	if (type == PEAK_BF16 || type == PEAK_INT8)
		return products_loop_for(isa, type);
	if (!twice && type != PEAK_FP32)
		return NULL;
	switch (isa) {
	case PEAK_ISA_SSE2:
		return twice ? fma_sse2_f64 : fma_sse2_f32;
	case PEAK_ISA_AVX2:
		return twice ? fma_avx2_f64 : fma_avx2_f32;
	case PEAK_ISA_AVX512F:
		return twice ? fma_avx512_f64 : fma_avx512_f32;
	default:
		return NULL;
	}
}

#elif defined(__aarch64__)
#include <arm_neon.h>

/* Four pipes with a latency of 4 need at least sixteen chains. The loop uses 24 of the 32 registers, as an
 * array that is fully unrolled. */
#define LOOP(name, element, vec, lanes, set1, storeq, fmaq)                                                  \
	static __attribute__((noinline)) void name(void *end)                                                \
	{                                                                                                    \
		const vec a = set1((element)PEAK_FMA_A), b = set1((element)PEAK_FMA_B);                      \
		vec x[24];                                                                                   \
                                                                                                             \
		_Pragma("GCC unroll 24") for (unsigned c = 0; c < 24; c++) x[c] =                            \
			set1((element)PEAK_FMA_START(c));                                                    \
		for (unsigned i = 0; i < PEAK_FMA_LOOPS; i++) {                                              \
			_Pragma("GCC unroll 24") for (unsigned c = 0; c < 24; c++)                           \
			{                                                                                    \
				x[c] = fmaq(b, x[c], a);                                                     \
				__asm__ volatile("" : "+w"(x[c]));                                           \
			}                                                                                    \
		}                                                                                            \
		_Pragma("GCC unroll 24") for (unsigned c = 0; c < 24; c++)                                   \
			storeq((element *)end + c * lanes, x[c]);                                            \
	}
LOOP(fma_neon_f32, float, float32x4_t, 4, vdupq_n_f32, vst1q_f32, vfmaq_f32)
LOOP(fma_neon_f64, double, float64x2_t, 2, vdupq_n_f64, vst1q_f64, vfmaq_f64)

peak_fma_loop *peak_fma_loop_for(enum peak_isa isa, enum peak_type type)
{
	if (isa != PEAK_ISA_NEON || (type != PEAK_FP64 && type != PEAK_FP32))
		return NULL;
	return type == PEAK_FP64 ? fma_neon_f64 : fma_neon_f32;
}

#else
peak_fma_loop *peak_fma_loop_for(enum peak_isa isa, enum peak_type type)
{
	(void)isa, (void)type;
	return NULL;
}
#endif

unsigned peak_chains(enum peak_isa isa)
{
	return isa == PEAK_ISA_NEON ? 24 : 12;
}

bool peak_is_fused(enum peak_isa isa)
{
	return isa != PEAK_ISA_SSE2;
}
