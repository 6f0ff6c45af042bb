/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/adamw_states.cu in double. Codes are found by bisection of the map. Large vectors are shared
 * by the host's CPUs. */
#include <float.h>
#include "core/math/random.h"
#include "core/process/cpu_pool.h"
#include "kernel/train/adamw_states.h"
#include "kernel/train/dynamic_map.h"
#include "model/params.h"
#include "ref_train.h"

enum { SHARE = TRAIN_STATES_BLOCK << 10 }; /* elements that a thread takes at a time */

static const float signed_map[DYNAMIC_CODES] = {DYNAMIC_SIGNED},
		   unsigned_map[DYNAMIC_CODES] = {DYNAMIC_UNSIGNED};

/* The nearest number's code; of two equally near ones the lower. */
static uint8_t code_of(const float *map, double x)
{
	int first = 0, end = DYNAMIC_CODES - 1; /* the first number that is no less than x, or the last one */

	while (first < end) {
		const int middle = (first + end) / 2;

		if ((double)map[middle] < x)
			first = middle + 1;
		else
			end = middle;
	}
	if (first > 0 && fabs(x - (double)map[first - 1]) <= fabs(x - (double)map[first]))
		first--;
	return (uint8_t)first;
}

static uint16_t rounded(const struct train_states_args *a, uint32_t use, uint64_t i, bool upper, double x)
{
	const uint64_t at = a->first + i;
	const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};
	const uint32_t counter[4] = {(uint32_t)(at / 4), (uint32_t)(at / 4 >> 32), a->step, use};
	const float f = (float)x;
	uint32_t words[4], bits;

	philox4x32(words, counter, key);
	memcpy(&bits, &f, sizeof(bits));
	if (isnan(f))
		return bf16_of_f32(f);
	return (uint16_t)((bits + (words[at % 4] >> (upper ? 16 : 0) & 0xffffu)) >> 16);
}

struct numbers {
	double m, v, w;
};

static double weight(const struct train_states_args *a, uint64_t i)
{
	if (a->weight == TRAIN_WEIGHT_F32)
		return (double)AT(const float, a->w)[i];
	if (a->weight == TRAIN_WEIGHT_BF16)
		return ref_bf16(a->w, (int64_t)i);
	return (double)params_join(AT(const uint16_t, a->w)[i], AT(const int16_t, a->rest)[i]);
}

static void put_weight(const struct train_states_args *a, uint64_t i, double w)
{
	if (a->weight == TRAIN_WEIGHT_F32)
		AT(float, a->w)[i] = (float)w;
	else if (a->weight == TRAIN_WEIGHT_BF16)
		AT(uint16_t, a->w)[i] = rounded(a, 2, i, false, w);
	else
		AT(uint16_t, a->w)[i] = params_split((float)w, AT(int16_t, a->rest) + i);
}

static struct numbers before(const struct train_states_args *a, uint64_t i)
{
	struct numbers n = {.w = weight(a, i)};

	if (a->moments == TRAIN_MOMENTS_CODES) {
		n.m = (double)(signed_map[AT(const uint8_t, a->m)[i]] *
			       AT(const float, a->m_scale)[i / TRAIN_STATES_BLOCK]);
		n.v = (double)(unsigned_map[AT(const uint8_t, a->v)[i]] *
			       AT(const float, a->v_scale)[i / TRAIN_STATES_BLOCK]);
	} else if (a->moments == TRAIN_MOMENTS_BF16) {
		n.m = ref_bf16(a->m, (int64_t)i);
		n.v = ref_bf16(a->v, (int64_t)i);
	} else {
		n.m = (double)AT(const float, a->m)[i];
		n.v = (double)AT(const float, a->v)[i];
	}
	return n;
}

static void step(const struct train_states_args *a, uint64_t i, double clip, struct numbers *n)
{
	const double b1 = (double)a->beta1, b2 = (double)a->beta2;
	const double g = clip * (a->g_bf16 ? ref_bf16(a->g, (int64_t)i) : (double)AT(const float, a->g)[i]);

	n->m = b1 * n->m + (1 - b1) * g;
	n->v = b2 * n->v + (1 - b2) * g * g;
	n->w -= (double)a->lr * ((double)a->decay * n->w + n->m / (double)a->correction1 /
								   (sqrt(n->v / (double)a->correction2) +
								    (double)a->eps));
}

static void put_codes(uint64_t codes, uint64_t scales, uint64_t block, const float *map, const double *x, uint64_t n)
{
	double most = 0;

	for (uint64_t i = 0; i < n; i++)
		most = fmax(most, fabs(x[i]));
	most = most < (double)FLT_MIN ? 0 : fmin(most, (double)FLT_MAX);
	AT(float, scales)[block] = (float)most;
	for (uint64_t i = 0; i < n; i++)
		AT(uint8_t, codes)[block * TRAIN_STATES_BLOCK + i] = code_of(map, most > 0 ? x[i] / most : 0);
}

static void put_moments(const struct train_states_args *a, uint64_t block, uint64_t n, const double *m, const double *v)
{
	if (a->moments == TRAIN_MOMENTS_CODES) {
		put_codes(a->m, a->m_scale, block, signed_map, m, n);
		put_codes(a->v, a->v_scale, block, unsigned_map, v, n);
		return;
	}
	for (uint64_t k = 0; k < n; k++) {
		const uint64_t i = block * TRAIN_STATES_BLOCK + k;

		if (a->moments == TRAIN_MOMENTS_F32) {
			AT(float, a->m)[i] = (float)m[k];
			AT(float, a->v)[i] = (float)v[k];
		} else {
			AT(uint16_t, a->m)[i] = rounded(a, 1, i, false, m[k]);
			AT(uint16_t, a->v)[i] = rounded(a, 1, i, true, v[k]);
		}
	}
}

struct part {
	const struct train_states_args *a;
	double clip;
};

/* Blocks do not depend on each other. */
static void step_blocks(const struct part *p, uint64_t first, uint64_t end)
{
	const struct train_states_args *a = p->a;
	double m[TRAIN_STATES_BLOCK], v[TRAIN_STATES_BLOCK];

	for (; first < end; first += TRAIN_STATES_BLOCK) {
		const uint64_t n = end - first < TRAIN_STATES_BLOCK ? end - first : TRAIN_STATES_BLOCK;

		for (uint64_t k = 0; k < n; k++) {
			struct numbers one = before(a, first + k);

			step(a, first + k, p->clip, &one);
			m[k] = one.m;
			v[k] = one.v;
			put_weight(a, first + k, one.w);
		}
		put_moments(a, first / TRAIN_STATES_BLOCK, n, m, v);
	}
}

static void step_item(void *arg, int64_t item, unsigned thread)
{
	const struct part *p = arg;
	const uint64_t first = (uint64_t)item * SHARE, left = p->a->count - first;

	(void)thread;
	step_blocks(p, first, first + (left < SHARE ? left : SHARE));
}

static void adamw(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_states_args *a = args;
	const double norm = sqrt(*AT(const double, a->norm_squares));
	struct part p = {a, a->max_norm > 0 ? fmin(1, a->max_norm / (norm + 1e-6)) : 1};
	struct cpu_pool *pool = NULL;
	struct error err = {0};

	(void)entry, (void)grid;
	if (!isfinite(norm))
		return;
	if (a->count <= SHARE || cpu_pool_usable(&pool, &err)) {
		step_blocks(&p, 0, a->count);
		return;
	}
	cpu_pool_share(pool, (int64_t)((a->count + SHARE - 1) / SHARE), step_item, &p);
	cpu_pool_destroy(&pool);
}

const struct ref_row ref_train_states[] = {
	{"train_adamw_states", adamw, sizeof(struct train_states_args), offsetof(struct train_states_args, w)},
	{"train_adamw_8bit", adamw, sizeof(struct train_states_args), offsetof(struct train_states_args, w)},
	{NULL, NULL, 0, 0},
};
