/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "model/cpu/quantised_gemm.h"
#include "model/cpu/real.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

enum { PREFETCH = 1024 }; /* bytes; each row of weights is read once */

bool cpu_blocks_of(enum dtype dtype)
{
	return dtype == DTYPE_Q8_0 || dtype == DTYPE_Q4_0 || dtype == DTYPE_Q4_1;
}

static float half_at(const uint8_t *p)
{
	float f;

	dtype_unpack(DTYPE_F16, p, &f, 1);
	return f;
}

static float plain_q8_0(const uint8_t *w, const struct cpu_block *x, int64_t blocks)
{
	float sum = 0;

	for (int64_t b = 0; b < blocks; b++, w += 34) {
		int32_t dot = 0;

		for (int i = 0; i < CPU_BLOCK; i++)
			dot += (int8_t)w[2 + i] * x[b].q[i];
		sum += half_at(w) * x[b].scale * (float)dot;
	}
	return sum;
}

static int32_t plain_nibbles(const uint8_t *w, const struct cpu_block *x)
{
	int32_t dot = 0;

	for (int i = 0; i < CPU_BLOCK / 2; i++)
		dot += (w[i] & 15) * x->q[i] + (w[i] >> 4) * x->q[i + CPU_BLOCK / 2];
	return dot;
}

static float plain_q4_0(const uint8_t *w, const struct cpu_block *x, int64_t blocks)
{
	float sum = 0;

	for (int64_t b = 0; b < blocks; b++, w += 18)
		sum += half_at(w) * (x[b].scale * (float)plain_nibbles(w + 2, &x[b]) - 8 * x[b].sum);
	return sum;
}

static float plain_q4_1(const uint8_t *w, const struct cpu_block *x, int64_t blocks)
{
	float sum = 0;

	for (int64_t b = 0; b < blocks; b++, w += 20)
		sum += half_at(w) * x[b].scale * (float)plain_nibbles(w + 4, &x[b]) +
		       half_at(w + 2) * x[b].sum;
	return sum;
}

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE 1
#include <immintrin.h>

/* u: unsigned bytes, s: signed bytes. The sum of two products (at most 2 * 255 * 127) fits into 16 bits
 * unless both u are 255. Neither nibbles nor magnitudes up to 128 reach that. */
#define DOT_AVX2(u, s) _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1))
#define DOT_VNNI(u, s) _mm256_dpbusd_epi32(_mm256_setzero_si256(), u, s)

/* Adds the block's eight partial sums times its scales to eight float sums. */
#define ADD_BLOCK(sums, dot, scale) _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot), _mm256_set1_ps(scale), sums)
#define NIBBLES(p)                                                                                           \
	_mm256_and_si256(                                                                                    \
		_mm256_set_m128i(_mm_srli_epi16(_mm_loadu_si128((const __m128i *)(const void *)(p)), 4),     \
				 _mm_loadu_si128((const __m128i *)(const void *)(p))),                       \
		_mm256_set1_epi8(15))
#define BYTES(p) _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define HALF(p) _cvtsh_ss((unsigned short)((p)[0] | (p)[1] << 8))

#define ROW_DOTS(name, isa, DOT)                                                                             \
	__attribute__((target(isa))) static float name##_total(__m256 v, float more)                         \
	{                                                                                                    \
		__m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));               \
                                                                                                             \
		s = _mm_add_ps(s, _mm_movehl_ps(s, s));                                                      \
		s = _mm_add_ss(s, _mm_movehdup_ps(s));                                                       \
		return _mm_cvtss_f32(s) + more;                                                              \
	}                                                                                                    \
	__attribute__((target(isa))) static float name##_q8_0(const uint8_t *w, const struct cpu_block *x,   \
							      int64_t blocks)                                \
	{                                                                                                    \
		__m256 sums = _mm256_setzero_ps();                                                           \
                                                                                                             \
		for (int64_t b = 0; b < blocks; b++, w += 34) {                                              \
			__m256i q = BYTES(w + 2);                                                            \
			__m256i dot = DOT(_mm256_abs_epi8(q), _mm256_sign_epi8(BYTES(x[b].q), q));           \
                                                                                                             \
			_mm_prefetch((const char *)w + PREFETCH, _MM_HINT_T0);                               \
			sums = ADD_BLOCK(sums, dot, HALF(w) * x[b].scale);                                   \
		}                                                                                            \
		return name##_total(sums, 0);                                                                \
	}                                                                                                    \
	__attribute__((target(isa))) static float name##_q4_0(const uint8_t *w, const struct cpu_block *x,   \
							      int64_t blocks)                                \
	{                                                                                                    \
		__m256 sums = _mm256_setzero_ps();                                                           \
		float least = 0;                                                                             \
                                                                                                             \
		for (int64_t b = 0; b < blocks; b++, w += 18) {                                              \
			__m256i dot = DOT(NIBBLES(w + 2), BYTES(x[b].q));                                    \
                                                                                                             \
			_mm_prefetch((const char *)w + PREFETCH, _MM_HINT_T0);                               \
			sums = ADD_BLOCK(sums, dot, HALF(w) * x[b].scale);                                   \
			least += HALF(w) * x[b].sum;                                                         \
		}                                                                                            \
		return name##_total(sums, -8 * least);                                                       \
	}                                                                                                    \
	__attribute__((target(isa))) static float name##_q4_1(const uint8_t *w, const struct cpu_block *x,   \
							      int64_t blocks)                                \
	{                                                                                                    \
		__m256 sums = _mm256_setzero_ps();                                                           \
		float least = 0;                                                                             \
                                                                                                             \
		for (int64_t b = 0; b < blocks; b++, w += 20) {                                              \
			__m256i dot = DOT(NIBBLES(w + 4), BYTES(x[b].q));                                    \
                                                                                                             \
			_mm_prefetch((const char *)w + PREFETCH, _MM_HINT_T0);                               \
			sums = ADD_BLOCK(sums, dot, HALF(w) * x[b].scale);                                   \
			least += HALF(w + 2) * x[b].sum;                                                     \
		}                                                                                            \
		return name##_total(sums, least);                                                            \
	}

ROW_DOTS(avx2, "avx2,fma,f16c", DOT_AVX2)
ROW_DOTS(vnni, "avx512vnni,avx512vl,avx2,fma,f16c", DOT_VNNI)
#else
#define WIDE 0
#endif

row_dot cpu_blocks_dot(enum dtype dtype, enum cpu_width width)
{
	static const row_dot dots[][3] = {
		[CPU_PLAIN] = {plain_q8_0, plain_q4_0, plain_q4_1},
#if WIDE
		[CPU_AVX2] = {avx2_q8_0, avx2_q4_0, avx2_q4_1},
		[CPU_VNNI] = {vnni_q8_0, vnni_q4_0, vnni_q4_1},
#endif
	};
	const int type = dtype == DTYPE_Q8_0 ? 0 : dtype == DTYPE_Q4_0 ? 1 : 2;

#if WIDE
	if (width == CPU_VNNI &&
	    !(__builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vl")))
		return NULL;
	if (width == CPU_AVX2 && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
		return NULL;
#endif
	return (size_t)width < sizeof(dots) / sizeof(dots[0]) ? dots[width][type] : NULL;
}

static row_dot widest(enum dtype dtype)
{
	for (int width = CPU_WIDTHS - 1; width > CPU_PLAIN; width--) {
		row_dot dot = cpu_blocks_dot(dtype, width);

		if (dot)
			return dot;
	}
	return cpu_blocks_dot(dtype, CPU_PLAIN);
}

/* Quantizes each block to 127 steps of its largest magnitude, rounding to nearest. */
static void to_blocks(const float *x, struct cpu_block *out, int64_t blocks)
{
	for (int64_t b = 0; b < blocks; b++, x += CPU_BLOCK) {
		float most = 0, inverse;
		int sum = 0;

		for (int i = 0; i < CPU_BLOCK; i++)
			most = fmaxf(most, fabsf(x[i]));
		inverse = most > 0 ? 127 / most : 0;
		for (int i = 0; i < CPU_BLOCK; i++) {
			out[b].q[i] = (int8_t)(x[i] * inverse + copysignf(0.5f, x[i]));
			sum += out[b].q[i];
		}
		out[b].scale = most / 127;
		out[b].sum = out[b].scale * (float)sum;
	}
}

struct work {
	const struct cpu *cpu;
	const struct gemm *g;
	struct mat room;
	row_dot dot;
	int64_t blocks;
};

/* Initial value of the result at row, column: beta c + bias. */
static float begin_at(const struct gemm *g, int64_t row, int64_t col)
{
	float begin = g->beta != 0 ? g->beta * real_row(g->c, row)[col] : 0;

	return g->bias.rows ? begin + real_row(g->bias, 0)[col] : begin;
}

static void few_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct work *w = arg;
	const struct gemm *g = w->g;

	(void)thread;
	for (int64_t j = first; j < last; j++) {
		const struct mat row = mat_rows(&g->b, j, 1);

		for (int64_t i = 0; i < g->d.rows; i++)
			real_row(g->d, i)[j] =
				begin_at(g, i, j) +
				g->alpha * w->dot(row.data,
						  (const struct cpu_block *)w->room.data + i * w->blocks,
						  w->blocks);
	}
}

static void many_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct work *w = arg;
	const struct gemm *g = w->g;
	float *panel = (float *)w->room.data + (int64_t)thread * BLOCKS_PANEL * w->room.ld;

	for (int64_t col = first; col < last; col += BLOCKS_PANEL) {
		int64_t cols = last - col < BLOCKS_PANEL ? last - col : BLOCKS_PANEL;
		struct product p = {
			.x = g->a.data,
			.y = panel,
			.z = (float *)g->d.data + col,
			.m = g->d.rows,
			.n = cols,
			.k = g->a.cols,
			.ldx = g->a.ld,
			.ldy = w->room.ld,
			.ldz = g->d.ld,
			.ty = true,
			.alpha = g->alpha,
			.beta = 1,
		};

		for (int64_t j = 0; j < cols; j++) {
			const struct mat row = mat_rows(&g->b, col + j, 1);

			dtype_unpack(row.dtype, row.data, panel + j * w->room.ld, (size_t)row.cols);
		}
		for (int64_t i = 0; i < g->d.rows; i++)
			for (int64_t j = col; j < col + cols; j++)
				real_row(g->d, i)[j] = begin_at(g, i, j);
		cpu_product(w->cpu, &p);
	}
}

enum status cpu_gemm_blocks(struct backend *back, const struct gemm *g, struct error *err)
{
	struct work w = {
		.cpu = cpu_of(back), .g = g, .dot = widest(g->b.dtype), .blocks = g->a.cols / CPU_BLOCK};
	const struct arena_mark mark = arena_mark(back->arena);
	enum status st;

	if (!g->trans_b || g->trans_a || g->a.dtype != DTYPE_F32 || g->d.dtype != DTYPE_F32)
		return error_set(err, STATUS_BUG, "quantized weights can be multiplied only by rows of F32");
	st = workspace_blocks(back, g, &w.room, err);
	if (st)
		return st;
	cost_gemm(back, g);
	if (g->d.rows <= BLOCKS_ROWS) {
		for (int64_t i = 0; i < g->d.rows; i++)
			to_blocks(real_row(g->a, i), (struct cpu_block *)w.room.data + i * w.blocks,
				  w.blocks);
		cpu_parts(back, g->d.cols, 1,
			  (double)dtype_bytes(g->b.dtype, (uint64_t)(g->b.rows * g->b.cols)), few_rows, &w);
	} else {
		cpu_parts(back, g->d.cols, BLOCKS_PANEL, 1e9, many_rows, &w);
	}
	arena_reset(back->arena, &mark);
	return STATUS_OK;
}
