/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdamW on a part of the flat vector. Operands of other types than F32 go through buffers of one block, so
 * the step itself is the same loop for every format.
 */
#include <float.h>
#include "core/math/random.h"
#include "kernel/train/dynamic_map.h"
#include "model/cpu/real.h"
#include "model/params.h"
#include "model/tensor/dtype.h"

struct stepping {
	const struct adamw_part *p;
	const struct adamw *a;
	float clip_scale;
};

/* Algorithm 2 of Loshchilov and Hutter, in PyTorch's form: decay first, eps added outside the corrected
 * root. */
VECTOR static void step_numbers(const real *restrict g, real *restrict m, real *restrict v, real *restrict w,
				const struct adamw *a, float clip_scale, int64_t n)
{
	const real keep = 1 - (real)a->lr * (real)a->decay, clip = (real)clip_scale, eps = (real)a->eps;
	const real b1 = (real)a->beta1, b2 = (real)a->beta2, step = (real)a->lr / (real)a->correction1;
	const real root = 1 / (real)sqrt((double)a->correction2);

#pragma omp simd
	for (int64_t j = 0; j < n; j++) {
		real d = g[j] * clip;

		m[j] = b1 * m[j] + (1 - b1) * d;
		v[j] = b2 * v[j] + (1 - b2) * d * d;
#ifdef MODEL_REAL_F64
		w[j] = keep * w[j] - step * m[j] / (sqrt(v[j]) * root + eps);
#else
		w[j] = keep * w[j] - step * m[j] / (sqrtf(v[j]) * root + eps);
#endif
	}
}

#ifdef MODEL_REAL_F64
static bool is_plain(const struct adamw_part *p)
{
	(void)p;
	return true;
}

static void step_blocks(void *arg, int64_t first, int64_t last, unsigned thread)
{
	(void)arg, (void)first, (void)last, (void)thread;
}
#else
static const float signed_map[DYNAMIC_CODES] = {DYNAMIC_SIGNED},
		   unsigned_map[DYNAMIC_CODES] = {DYNAMIC_UNSIGNED};

static bool is_plain(const struct adamw_part *p)
{
	return p->g.dtype == DTYPE_F32 && p->m.dtype == DTYPE_F32 && p->w.dtype == DTYPE_F32;
}

/* The decade of the map that has `size`, 0 < size < 1: the largest whose lower end is below it. */
static int decade_of(float size)
{
	static const float end[DYNAMIC_DECADES + 1] = {0, 1e-6f, 1e-5f, 1e-4f, 1e-3f, 1e-2f, 1e-1f, 1};
	uint32_t bits;
	int decade;

	memcpy(&bits, &size, sizeof(bits));
	decade = DYNAMIC_DECADES + (((int)(bits >> 23) - 127) * 1233 >> 12); /* log10 of the power of two */
	decade = decade < 0 ? 0 : decade;
	return decade + (size > end[decade + 1]);
}

/* The code of the number of the map nearest to x, |x| <= 1; of two equally near ones the lower. The computed
 * place is at most one off. */
static uint8_t code_of(const float *map, float x)
{
	static const float inverse[DYNAMIC_DECADES] = {1e6f, 1e5f, 1e4f, 1e3f, 1e2f, 1e1f, 1};
	const bool is_signed = map == signed_map;
	const float size = fabsf(x);
	int decade, parts, place, code;

	if (!(size < 1)) /* also if the block has an infinity */
		return x > 0 ? DYNAMIC_CODES - 1 : 0;
	decade = decade_of(size);
	parts = 1 << (is_signed ? decade : decade + 1);
	place = parts + (int)((size * inverse[decade] - 0.1f) * ((float)parts / 0.9f));
	code = !is_signed ? place - 1 : x < 0 ? DYNAMIC_SIGNED_ZERO - place : DYNAMIC_SIGNED_ZERO + place;
	code = code < 0 ? 0 : code > DYNAMIC_CODES - 1 ? DYNAMIC_CODES - 1 : code;
	while (code < DYNAMIC_CODES - 1 && x > (map[code] + map[code + 1]) / 2)
		code++;
	while (code > 0 && x <= (map[code - 1] + map[code]) / 2)
		code--;
	return (uint8_t)code;
}

static void codes_to_numbers(const uint8_t *code, const float *map, float scale, float *out, int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		out[j] = map[code[j]] * scale;
}

/* Returns the block's scale, which is finite. A block of subnormal numbers becomes zero, since their inverse
 * overflows. */
static float numbers_to_codes(const float *x, const float *map, uint8_t *code, int64_t n)
{
	float most = 0, inverse;

	for (int64_t j = 0; j < n; j++)
		most = fabsf(x[j]) > most ? fabsf(x[j]) : most;
	most = most < FLT_MIN ? 0 : most > FLT_MAX ? FLT_MAX : most;
	inverse = most > 0 ? 1 / most : 0;
	for (int64_t j = 0; j < n; j++)
		code[j] = code_of(map, x[j] * inverse);
	return most;
}

/* Adds 16 random bits below the last place that stays, so that the mean of the result is f. */
static uint16_t rounded_stochastically(float f, uint32_t random)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	return isnan(f) ? bf16_of_f32(f) : (uint16_t)((bits + (random & 0xffffu)) >> 16);
}

/* The random words of elements [first, first + n), n <= ADAMW_BLOCK. */
static void rounding_words(uint32_t *out, const struct adamw *a, uint32_t use, uint64_t first, int64_t n)
{
	const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
	uint32_t words[4];

	for (int64_t j = 0; j < n; j++) {
		const uint64_t i = first + (uint64_t)j;
		const uint32_t counter[4] = {(uint32_t)(i / 4), (uint32_t)(i / 4 >> 32), a->step, use};

		if (!j || i % 4 == 0)
			philox4x32(words, counter, key);
		out[j] = words[i % 4];
	}
}

static void load(const struct mat *m, int64_t first, float *out, int64_t n)
{
	if (m->dtype == DTYPE_F32)
		memcpy(out, (const float *)m->data + first, (size_t)n * sizeof(*out));
	else
		dtype_unpack(m->dtype, (const uint16_t *)m->data + first, out, (size_t)n);
}

static void load_moments(const struct adamw_part *p, int64_t first, float *m, float *v, int64_t n)
{
	const int64_t block = first / ADAMW_BLOCK;

	if (p->m.dtype != DTYPE_U8) {
		load(&p->m, first, m, n);
		load(&p->v, first, v, n);
		return;
	}
	codes_to_numbers((const uint8_t *)p->m.data + first, signed_map,
			 ((const float *)p->m_scale.data)[block], m, n);
	codes_to_numbers((const uint8_t *)p->v.data + first, unsigned_map,
			 ((const float *)p->v_scale.data)[block], v, n);
}

static void store_moments(const struct stepping *s, int64_t first, const float *m, const float *v, int64_t n)
{
	const struct adamw_part *p = s->p;
	const int64_t block = first / ADAMW_BLOCK;
	uint32_t random[ADAMW_BLOCK];

	if (p->m.dtype == DTYPE_F32) {
		memcpy((float *)p->m.data + first, m, (size_t)n * sizeof(*m));
		memcpy((float *)p->v.data + first, v, (size_t)n * sizeof(*v));
	} else if (p->m.dtype == DTYPE_U8) {
		((float *)p->m_scale.data)[block] =
			numbers_to_codes(m, signed_map, (uint8_t *)p->m.data + first, n);
		((float *)p->v_scale.data)[block] =
			numbers_to_codes(v, unsigned_map, (uint8_t *)p->v.data + first, n);
	} else {
		rounding_words(random, s->a, ADAMW_ROUND_MOMENTS, p->first + (uint64_t)first, n);
		for (int64_t j = 0; j < n; j++) {
			((uint16_t *)p->m.data)[first + j] = rounded_stochastically(m[j], random[j]);
			((uint16_t *)p->v.data)[first + j] = rounded_stochastically(v[j], random[j] >> 16);
		}
	}
}

static void load_weight(const struct adamw_part *p, int64_t first, float *w, int64_t n)
{
	if (!p->rest.rows) {
		load(&p->w, first, w, n);
		return;
	}
	for (int64_t j = 0; j < n; j++)
		w[j] = params_join(((const uint16_t *)p->w.data)[first + j],
				   ((const int16_t *)p->rest.data)[first + j]);
}

static void store_weight(const struct stepping *s, int64_t first, const float *w, int64_t n)
{
	const struct adamw_part *p = s->p;
	uint16_t *half = (uint16_t *)p->w.data + first;
	uint32_t random[ADAMW_BLOCK];

	if (p->w.dtype == DTYPE_F32) {
		memcpy((float *)p->w.data + first, w, (size_t)n * sizeof(*w));
	} else if (p->rest.rows) {
		for (int64_t j = 0; j < n; j++)
			half[j] = params_split(w[j], (int16_t *)p->rest.data + first + j);
	} else {
		rounding_words(random, s->a, ADAMW_ROUND_WEIGHT, p->first + (uint64_t)first, n);
		for (int64_t j = 0; j < n; j++)
			half[j] = rounded_stochastically(w[j], random[j]);
	}
}

static void step_blocks(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct stepping *s = arg;
	float g[ADAMW_BLOCK], m[ADAMW_BLOCK], v[ADAMW_BLOCK], w[ADAMW_BLOCK];

	(void)thread;
	for (int64_t at = first; at < last; at += ADAMW_BLOCK) {
		const int64_t n = last - at < ADAMW_BLOCK ? last - at : ADAMW_BLOCK;

		load(&s->p->g, at, g, n);
		load_moments(s->p, at, m, v, n);
		load_weight(s->p, at, w, n);
		step_numbers(g, m, v, w, s->a, s->clip_scale, n);
		store_moments(s, at, m, v, n);
		store_weight(s, at, w, n);
	}
}
#endif

static void step_plain(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct stepping *s = arg;
	const struct adamw_part *p = s->p;

	(void)thread;
	step_numbers((const real *)p->g.data + first, (real *)p->m.data + first, (real *)p->v.data + first,
		     (real *)p->w.data + first, s->a, s->clip_scale, last - first);
}

enum status cpu_adamw(struct backend *back, const struct adamw_part *p, const struct adamw *a,
		      struct error *err)
{
	const double norm = sqrt(*a->squares);
	struct stepping s = {.p = p, .a = a, .clip_scale = 1};

	(void)err;
	cost_adamw(back, p);
	if (!isfinite(norm))
		return STATUS_OK;
	if (a->max_norm > 0 && a->max_norm < norm + 1e-6)
		s.clip_scale = (float)(a->max_norm / (norm + 1e-6));
	cpu_parts(back, p->g.rows * p->g.cols, is_plain(p) ? 64 : ADAMW_BLOCK,
		  (double)(p->g.rows * p->g.cols) * sizeof(real), is_plain(p) ? step_plain : step_blocks, &s);
	return STATUS_OK;
}
