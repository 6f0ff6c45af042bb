/* SPDX-License-Identifier: Apache-2.0 */
#include "model/cpu/invariant/row_gemm.h"
#include "model/cpu/real.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

enum {
	ITEM_BYTES = 32 << 10, /* weights that a thread takes at once */
	ITEM_COLUMNS = 64,     /* at most */
	STRIP = 64,	       /* rows of x that are multiplied with them before the next rows */
};

static inline float element(enum dtype dtype, const uint8_t *at)
{
	float f;

	dtype_unpack(dtype, at, &f, 1);
	return f;
}

#define INLINE_ISA static inline __attribute__((always_inline))
#define TARGET_ISA
#define NAME(part) plain_##part
#define LANES 4
#define TILE_X 2
#define TILE_V 4
typedef float plain_vec __attribute__((vector_size(16)));

INLINE_ISA plain_vec plain_zero(void)
{
	return (plain_vec){0};
}

INLINE_ISA plain_vec plain_load(enum dtype dtype, const void *from)
{
	plain_vec to;

	dtype_unpack(dtype, from, (float *)&to, LANES);
	return to;
}

INLINE_ISA plain_vec plain_add(plain_vec sum, plain_vec x, plain_vec y)
{
	return sum + x * y;
}

INLINE_ISA plain_vec plain_set(float f)
{
	return (plain_vec){f, f, f, f};
}

INLINE_ISA void plain_store(float *to, plain_vec v)
{
	memcpy(to, &v, sizeof(v));
}

INLINE_ISA float plain_total(plain_vec v)
{
	return (v[0] + v[1]) + (v[2] + v[3]);
}

INLINE_ISA void plain_totals(plain_vec a, plain_vec b, plain_vec c, plain_vec d, float out[4])
{
	out[0] = plain_total(a);
	out[1] = plain_total(b);
	out[2] = plain_total(c);
	out[3] = plain_total(d);
}
#include "model/cpu/invariant/row_tile.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define WIDE 1
#include <immintrin.h>
#define TARGET_ISA __attribute__((target("avx2,fma,f16c")))
#define INLINE_ISA static inline __attribute__((always_inline, target("avx2,fma,f16c")))
#define NAME(part) avx2_##part
#define LANES 8
#define TILE_X 2
#define TILE_V 4
typedef __m256 avx2_vec;

INLINE_ISA __m256 avx2_zero(void)
{
	return _mm256_setzero_ps();
}

INLINE_ISA __m256 avx2_load(enum dtype dtype, const void *from)
{
	if (dtype == DTYPE_F32)
		return _mm256_loadu_ps(from);
	if (dtype == DTYPE_F16)
		return _mm256_cvtph_ps(_mm_loadu_si128(from));
	return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128(from)), 16));
}

INLINE_ISA __m256 avx2_add(__m256 sum, __m256 x, __m256 y)
{
	return _mm256_fmadd_ps(x, y, sum);
}

INLINE_ISA __m256 avx2_set(float f)
{
	return _mm256_set1_ps(f);
}

INLINE_ISA void avx2_store(float *to, __m256 v)
{
	_mm256_storeu_ps(to, v);
}

INLINE_ISA void avx2_totals(__m256 a, __m256 b, __m256 c, __m256 d, float out[4])
{
	const __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));

	_mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
#include "model/cpu/invariant/row_tile.h"

#define TARGET_ISA __attribute__((target("avx512f,avx2,fma")))
#define INLINE_ISA static inline __attribute__((always_inline, target("avx512f,avx2,fma")))
#define NAME(part) avx512_##part
#define LANES 16
#define TILE_X 4
#define TILE_V 4
typedef __m512 avx512_vec;

INLINE_ISA __m512 avx512_zero(void)
{
	return _mm512_setzero_ps();
}

INLINE_ISA __m512 avx512_load(enum dtype dtype, const void *from)
{
	if (dtype == DTYPE_F32)
		return _mm512_loadu_ps(from);
	if (dtype == DTYPE_F16)
		return _mm512_cvtph_ps(_mm256_loadu_si256(from));
	return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from)), 16));
}

INLINE_ISA __m512 avx512_add(__m512 sum, __m512 x, __m512 y)
{
	return _mm512_fmadd_ps(x, y, sum);
}

INLINE_ISA __m512 avx512_set(float f)
{
	return _mm512_set1_ps(f);
}

INLINE_ISA void avx512_store(float *to, __m512 v)
{
	_mm512_storeu_ps(to, v);
}

INLINE_ISA __m256 avx512_half(__m512 v)
{
	return _mm256_add_ps(_mm512_castps512_ps256(v),
			     _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
}

INLINE_ISA void avx512_totals(__m512 a, __m512 b, __m512 c, __m512 d, float out[4])
{
	const __m256 all = _mm256_hadd_ps(_mm256_hadd_ps(avx512_half(a), avx512_half(b)),
					  _mm256_hadd_ps(avx512_half(c), avx512_half(d)));

	_mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(all), _mm256_extractf128_ps(all, 1)));
}
#include "model/cpu/invariant/row_tile.h"
#else
#define WIDE 0
#endif

static bool has(enum row_width width)
{
#if WIDE
	if (width != ROW_PLAIN && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")))
		return false;
	return width < ROW_AVX512 || (width == ROW_AVX512 && __builtin_cpu_supports("avx512f"));
#else
	return width == ROW_PLAIN;
#endif
}

row_multiply cpu_row_multiply(enum dtype dtype, enum row_width width)
{
	static const row_multiply all[][3] = {
		[ROW_PLAIN] = {plain_f32, plain_bf16, plain_f16},
#if WIDE
		[ROW_AVX2] = {avx2_f32, avx2_bf16, avx2_f16},
		[ROW_AVX512] = {avx512_f32, avx512_bf16, avx512_f16},
#endif
	};

	return has(width) ? all[width][dtype == DTYPE_F32 ? 0 : dtype == DTYPE_BF16 ? 1 : 2] : NULL;
}

row_add cpu_row_add(enum row_width width)
{
	static const row_add all[] = {
		[ROW_PLAIN] = plain_sum,
#if WIDE
		[ROW_AVX2] = avx2_sum,
		[ROW_AVX512] = avx512_sum,
#endif
	};

	return has(width) ? all[width] : NULL;
}

enum row_width cpu_row_widest(void)
{
	enum row_width width = ROW_WIDTHS - 1;

	while (!has(width))
		width--;
	return width;
}

bool cpu_rows_take(const struct gemm *g)
{
	return g->trans_b && !g->trans_a && g->a.dtype == DTYPE_F32 && g->d.dtype == DTYPE_F32 &&
	       (g->b.dtype == DTYPE_F32 || g->b.dtype == DTYPE_BF16 || g->b.dtype == DTYPE_F16);
}

struct work {
	const struct gemm *g;
	row_multiply multiply;
	int64_t columns; /* of an item */
};

/* d = alpha sums + beta c + bias */
static void store(const struct gemm *g, const struct row_product *p, int64_t row, int64_t column)
{
	for (int64_t i = 0; i < p->rows; i++) {
		float *d = real_row(g->d, row + i) + column;
		const float *c = g->beta != 0 ? real_row(g->c, row + i) + column : NULL;
		const float *bias = g->bias.rows ? real_row(g->bias, 0) + column : NULL;

		for (int64_t j = 0; j < p->columns; j++) {
			const float begin = (c ? g->beta * c[j] : 0) + (bias ? bias[j] : 0);

			d[j] = begin + g->alpha * p->out[i * p->ldo + j];
		}
	}
}

static void multiply_item(void *arg, int64_t item, unsigned thread)
{
	const struct work *w = arg;
	const struct gemm *g = w->g;
	const int64_t column = item * w->columns;
	float out[STRIP * ITEM_COLUMNS];
	struct row_product p = {
		.w = mat_rows(&g->b, column, 1).data,
		.out = out,
		.columns = column + w->columns < g->d.cols ? w->columns : g->d.cols - column,
		.k = g->a.cols,
		.ldw = g->b.ld,
		.ldx = g->a.ld,
	};

	(void)thread;
	p.ldo = p.columns;
	for (int64_t row = 0; row < g->d.rows; row += STRIP) {
		p.x = real_row(g->a, row);
		p.rows = g->d.rows - row < STRIP ? g->d.rows - row : STRIP;
		w->multiply(&p);
		store(g, &p, row, column);
	}
}

void cpu_gemm_rows(struct backend *back, const struct gemm *g)
{
	const int64_t row = (int64_t)dtype_bytes(g->b.dtype, (uint64_t)g->a.cols) + 1;
	struct work w = {.g = g,
			 .multiply = cpu_row_multiply(g->b.dtype, cpu_row_widest()),
			 .columns = ITEM_BYTES / row / 4 * 4};
	const double bytes = (double)((row - 1) * g->b.rows);

	if (w.columns < 4)
		w.columns = 4;
	if (w.columns > ITEM_COLUMNS)
		w.columns = ITEM_COLUMNS;
	cost_gemm(back, g);
	cpu_items(back, (g->d.cols + w.columns - 1) / w.columns, bytes, multiply_item, &w);
}
