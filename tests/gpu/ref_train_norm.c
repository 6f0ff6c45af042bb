/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/rmsnorm_rope.cu in double, with its roundings to BF16. */
#include "kernel/train/rmsnorm_rope.h"
#include "ref_train.h"

static void rmsnorm(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_norm_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		double sum = 0, rstd;

		for (int64_t j = 0; j < a->cols; j++) {
			if (a->add)
				ref_put_number(a->x, t * a->ld_x + j,
					       ref_number(a->x, t * a->ld_x + j) +
						       ref_number(a->add, t * a->ld_add + j));
			sum += pow(ref_number(a->x, t * a->ld_x + j), 2);
		}
		rstd = 1 / sqrt(sum / a->cols + (double)a->eps);
		AT(float, a->rstd)[t * a->ld_rstd] = (float)rstd;
		for (int64_t j = 0; j < a->cols; j++)
			ref_put_number(a->y, t * a->ld_y + j,
				       ref_number(a->w, j) *
					       ref_round(ref_number(a->x, t * a->ld_x + j) * rstd));
	}
}

/* dx[j] of the norm at one row, from dy * w by `g`; the sum that all of the row's share. */
static double mean_of(const struct train_norm_bwd_args *a, int64_t t, double rstd)
{
	double sum = 0;

	for (int64_t j = 0; j < a->cols; j++)
		sum += ref_number(a->dy, t * a->ld_dy + j) * ref_number(a->w, j) *
		       ref_number(a->x, t * a->ld_x + j) * rstd;
	return sum / a->cols;
}

static void rmsnorm_bwd(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_norm_bwd_args *a = args;

	(void)entry;
	for (int64_t t = 0; t < a->rows; t++) {
		double rstd = (double)AT(const float, a->rstd)[t * a->ld_rstd], mean = mean_of(a, t, rstd);

		for (int64_t j = 0; j < a->cols; j++) {
			double g = ref_number(a->dy, t * a->ld_dy + j) * ref_number(a->w, j);
			double xhat = ref_number(a->x, t * a->ld_x + j) * rstd;

			ref_put_number(a->dx, t * a->ld_dx + j,
				       ref_number(a->dx, t * a->ld_dx + j) + rstd * (g - xhat * mean));
		}
	}
	for (int64_t b = 0; a->sums && b < grid.blocks; b++)
		for (int64_t j = 0; j < a->cols; j++) {
			double sum = 0;

			for (int64_t t = b; t < a->rows; t += grid.blocks)
				sum += ref_number(a->dy, t * a->ld_dy + j) *
				       ref_round(ref_number(a->x, t * a->ld_x + j) *
						 (double)AT(const float, a->rstd)[t * a->ld_rstd]);
			AT(float, a->sums)[b * a->cols + j] = (float)sum;
		}
}

static void rotate(const struct train_head_args *a, int64_t t, double *x, double sign)
{
	const float *angles = AT(const float, a->cos_sin) + AT(const int32_t, a->position)[t] * a->ld_cos_sin;
	const int64_t half = a->dim / 2;

	for (int64_t i = 0; i < half; i++) {
		double c = (double)angles[i], s = sign * (double)angles[half + i], first = x[i];

		x[i] = first * c - x[half + i] * s;
		x[half + i] = x[half + i] * c + first * s;
	}
}

static void head_forward(const struct train_head_args *a, int64_t t, int64_t h)
{
	const int64_t at = t * a->ld_x + h * a->dim, raw = t * a->ld_raw + h * a->dim;
	double x[TRAIN_HEAD_DIM_MAX], sum = 0, rstd;

	for (int64_t j = 0; j < a->dim; j++) {
		x[j] = ref_number(a->x, at + j);
		sum += x[j] * x[j];
	}
	rstd = 1 / sqrt(sum / a->dim + (double)a->eps);
	for (int64_t j = 0; a->w && j < a->dim; j++) {
		ref_put_number(a->raw, raw + j, x[j]);
		x[j] = ref_number(a->w, j) * ref_round(x[j] * rstd);
	}
	if (a->w)
		AT(float, a->rstd)[t * a->ld_rstd + h] = (float)rstd;
	rotate(a, t, x, 1);
	for (int64_t j = 0; j < a->dim; j++)
		ref_put_number(a->x, at + j, x[j]);
}

static void head_rope(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_head_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t h = 0; h < a->heads; h++)
			head_forward(a, t, h);
}

/* dw: what the head adds to its block's sums; NULL: none wanted. */
static void head_backward(const struct train_head_args *a, int64_t t, int64_t h, double *dw)
{
	const int64_t at = t * a->ld_x + h * a->dim, raw = t * a->ld_raw + h * a->dim;
	double x[TRAIN_HEAD_DIM_MAX], rstd = a->w ? (double)AT(const float, a->rstd)[t * a->ld_rstd + h] : 0,
				      mean = 0;

	for (int64_t j = 0; j < a->dim; j++)
		x[j] = ref_number(a->x, at + j);
	rotate(a, t, x, -1);
	for (int64_t j = 0; a->w && j < a->dim; j++) {
		if (dw)
			dw[j] += x[j] * ref_round(ref_number(a->raw, raw + j) * rstd);
		x[j] *= ref_number(a->w, j);
		mean += x[j] * ref_number(a->raw, raw + j) * rstd / a->dim;
	}
	for (int64_t j = 0; a->w && j < a->dim; j++)
		x[j] = rstd * (x[j] - ref_number(a->raw, raw + j) * rstd * mean);
	for (int64_t j = 0; j < a->dim; j++)
		ref_put_number(a->x, at + j, x[j]);
}

/* Which block a head falls to follows from the lanes that a head takes: a power of two of 16 numbers each. */
static void head_rope_bwd(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_head_args *a = args;
	const int64_t all = (int64_t)a->rows * a->heads;
	int64_t lanes = 1, groups;

	(void)entry;
	while (lanes * 16 < a->dim)
		lanes *= 2;
	groups = grid.threads / lanes;
	for (int64_t b = 0; b < grid.blocks; b++) {
		double dw[TRAIN_HEAD_DIM_MAX] = {0};

		for (int64_t first = b * groups; first < all; first += grid.blocks * groups)
			for (int64_t i = first; i < first + groups && i < all; i++)
				head_backward(a, i / a->heads, i % a->heads, a->sums ? dw : NULL);
		for (int64_t j = 0; a->w && a->sums && j < a->dim; j++)
			AT(float, a->sums)[b * a->dim + j] = (float)dw[j];
	}
}

const struct ref_row REF_TRAIN_ROWS(ref_train_norm)[] = {
	{REF_TRAIN_ENTRY("train_rmsnorm"), rmsnorm, sizeof(struct train_norm_args),
	 offsetof(struct train_norm_args, y)},
	{REF_TRAIN_ENTRY("train_rmsnorm_bwd"), rmsnorm_bwd, sizeof(struct train_norm_bwd_args),
	 offsetof(struct train_norm_bwd_args, dx)},
	{REF_TRAIN_ENTRY("train_head_rope"), head_rope, sizeof(struct train_head_args),
	 offsetof(struct train_head_args, x)},
	{REF_TRAIN_ENTRY("train_head_rope_bwd"), head_rope_bwd, sizeof(struct train_head_args),
	 offsetof(struct train_head_args, x)},
	{NULL, NULL, 0, 0},
};
