/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/flat_vector.cu in double. */
#include "kernel/train/flat_vector.h"
#include "ref_train.h"

static void reduce(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_reduce_args *a = args;
	const uint64_t vectors = (a->count + 7) / 8, each = (vectors + grid.blocks - 1) / grid.blocks;

	(void)entry;
	for (uint64_t b = 0; b < grid.blocks; b++) {
		double sum = 0;

		for (uint64_t i = b * each * 8; i < (b + 1) * each * 8 && i < a->count; i++) {
			double x = a->bf16 ? ref_bf16(a->x, (int64_t)i) : (double)AT(const float, a->x)[i];

			sum += a->squares ? x * x : x;
		}
		AT(double, a->sums)[b] = sum;
	}
}

static void reduce_end(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_reduce_args *a = args;
	double sum = 0;

	(void)entry, (void)grid;
	for (int b = 0; b < TRAIN_REDUCE_BLOCKS; b++)
		sum += AT(const double, a->sums)[b];
	*AT(double, a->sum) += sum;
}

/* NULL: element i is in no tensor. */
static const struct train_live *tensor_of(const struct train_adamw_args *a, uint64_t i)
{
	for (uint32_t t = 0; t < a->tensors; t++) {
		const struct train_live *l = AT(const struct train_live, a->live) + t;

		if (i >= l->begin && i < l->begin + l->count)
			return l;
	}
	return NULL;
}

static void refresh(const struct train_adamw_args *a, uint64_t i)
{
	const struct train_live *l = tensor_of(a, a->begin + i);
	uint64_t at;

	if (!l || !l->to)
		return;
	at = a->begin + i - l->begin;
	AT(uint16_t, l->to)
	[(int64_t)(at / l->cols) * l->ld + (int64_t)(at % l->cols)] =
		bf16_of_f32(AT(const float, a->master)[i] * l->scale);
}

static void live_refresh(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_adamw_args *a = args;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->count; i++)
		refresh(a, i);
}

static void adamw(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_adamw_args *a = args;
	double norm = a->norm_squares ? sqrt(*AT(const double, a->norm_squares)) : 0,
	       clip = (double)a->clip_scale;

	(void)entry, (void)grid;
	if (!isfinite(norm))
		return;
	if (a->norm_squares)
		clip = a->max_norm > 0 ? fmin(1, a->max_norm / (norm + 1e-6)) : 1;
	for (uint64_t i = 0; i < a->count; i++) {
		const struct train_live *l = tensor_of(a, a->begin + i);
		double g = (double)AT(float, a->g)[i] * clip, m = (double)AT(float, a->m)[i];
		double v = (double)AT(float, a->v)[i], x = (double)AT(float, a->master)[i],
		       b1 = (double)a->beta1;
		double b2 = (double)a->beta2, decay = (double)a->decay * (l ? (double)l->decay : 1);

		m = b1 * m + (1 - b1) * g;
		v = b2 * v + (1 - b2) * g * g;
		x -= (double)a->lr *
		     (decay * x +
		      m / (double)a->correction1 / (sqrt(v / (double)a->correction2) + (double)a->eps));
		AT(float, a->m)[i] = (float)m;
		AT(float, a->v)[i] = (float)v;
		AT(float, a->master)[i] = (float)x;
		if (a->zero_gradient)
			AT(float, a->g)[i] = 0;
		refresh(a, i);
	}
}

#define ROW(name, run, type, member)                                                                         \
	{                                                                                                    \
		name, run, sizeof(struct type), offsetof(struct type, member)                                \
	}
const struct ref_row ref_train_flat[] = {
	ROW("train_reduce", reduce, train_reduce_args, sums),
	ROW("train_reduce_end", reduce_end, train_reduce_args, sum),
	ROW("train_adamw", adamw, train_adamw_args, master),
	ROW("train_live_refresh", live_refresh, train_adamw_args, master),
	{NULL, NULL, 0, 0},
};
