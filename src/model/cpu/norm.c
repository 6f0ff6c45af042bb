/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm, and RoPE with an optional norm of each head before it. */
#include "model/cpu/real.h"

struct norm {
	struct mat dy, x, w, y, rstd, dx, dw;
	real eps;
};

static real sum_squares(const real *x, int64_t n)
{
	real sum = 0;

#pragma omp simd reduction(+ : sum)
	for (int64_t j = 0; j < n; j++)
		sum += x[j] * x[j];
	return sum;
}

VECTOR real cpu_norm_row(const real *x, const real *restrict w, real *y, int64_t n, real eps)
{
	real rstd = 1 / (real)sqrt((double)(sum_squares(x, n) / (real)n + eps));

#pragma omp simd
	for (int64_t j = 0; j < n; j++)
		y[j] = w[j] * (x[j] * rstd);
	return rstd;
}

/* dx += rstd (g - xhat mean(g xhat)) with g = dy w, xhat = x rstd; with `set`, dx is overwritten (dx may be
 * dy). */
VECTOR static void norm_row_bwd(const real *dy, const real *restrict x, const real *restrict w, real rstd,
				real *dx, int64_t n, bool set)
{
	real mean = 0;

#pragma omp simd reduction(+ : mean)
	for (int64_t j = 0; j < n; j++)
		mean += dy[j] * w[j] * x[j];
	mean *= rstd * rstd / (real)n;
	if (set) {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dx[j] = rstd * (dy[j] * w[j] - x[j] * mean);
	} else {
#pragma omp simd
		for (int64_t j = 0; j < n; j++)
			dx[j] += rstd * (dy[j] * w[j] - x[j] * mean);
	}
}

static void norm_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct norm *n = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		*real_row(n->rstd, t) =
			cpu_norm_row(real_row(n->x, t), n->w.data, real_row(n->y, t), n->x.cols, n->eps);
}

enum status cpu_rmsnorm(struct backend *back, struct mat x, struct mat w, float eps, struct mat y,
			struct mat rstd, struct error *err)
{
	struct norm n = {.x = x, .w = w, .y = y, .rstd = rstd, .eps = (real)eps};

	(void)err;
	cost_touch(back, &x, 2);
	cpu_parts(back, x.rows, 1, (double)(x.rows * x.cols) * sizeof(real), norm_rows, &n);
	return STATUS_OK;
}

static void norm_rows_bwd(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct norm *n = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		norm_row_bwd(real_row(n->dy, t), real_row(n->x, t), n->w.data, *real_row(n->rstd, t),
			     real_row(n->dx, t), n->x.cols, false);
}

VECTOR static void weight_row(real *restrict dw, const real *restrict dy, const real *restrict x, real rstd,
			      int64_t n)
{
	for (int64_t j = 0; j < n; j++)
		dw[j] += dy[j] * x[j] * rstd;
}

/* Works by columns, so that the order of summation does not depend on the number of threads. */
static void norm_weight(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct norm *n = arg;

	(void)thread;
	for (int64_t t = 0; t < n->x.rows; t++)
		weight_row((real *)n->dw.data + first, real_row(n->dy, t) + first, real_row(n->x, t) + first,
			   *real_row(n->rstd, t), last - first);
}

enum status cpu_rmsnorm_bwd(struct backend *back, struct mat dy, struct mat x, struct mat w, struct mat rstd,
			    struct mat dx_add, struct mat dw, struct error *err)
{
	struct norm n = {.dy = dy, .x = x, .w = w, .rstd = rstd, .dx = dx_add, .dw = dw};
	double bytes = (double)(x.rows * x.cols) * sizeof(real);

	(void)err;
	cost_touch(back, &x, dw.rows ? 6 : 4);
	cpu_parts(back, x.rows, 1, bytes, norm_rows_bwd, &n);
	if (dw.rows)
		cpu_parts(back, x.cols, 16, bytes, norm_weight, &n);
	return STATUS_OK;
}

struct rope {
	struct mat x, w, cos_sin, raw, rstd, dw;
	const int32_t *position;
	int64_t dim;
	int heads;
	real eps, sign;
};

VECTOR void cpu_rotate(real *restrict x, const real *restrict cos_sin, int64_t half, real sign)
{
#pragma omp simd
	for (int64_t i = 0; i < half; i++) {
		real a = x[i], b = x[half + i], c = cos_sin[i], s = sign * cos_sin[half + i];

		x[i] = a * c - b * s;
		x[half + i] = b * c + a * s;
	}
}

static void rope_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rope *r = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		const real *angles = real_row(r->cos_sin, r->position[t]);

		if (r->w.rows)
			memcpy(real_row(r->raw, t), real_row(r->x, t),
			       (size_t)(r->heads * r->dim) * sizeof(real));
		for (int h = 0; h < r->heads; h++) {
			real *x = real_row(r->x, t) + h * r->dim;

			if (r->w.rows)
				real_row(r->rstd, t)[h] = cpu_norm_row(x, r->w.data, x, r->dim, r->eps);
			cpu_rotate(x, angles, r->dim / 2, r->sign);
		}
	}
}

enum status cpu_head_norm_rope(struct backend *back, struct mat x, int heads, struct mat w, float eps,
			       const int32_t *position, struct mat cos_sin, struct mat raw, struct mat rstd,
			       struct error *err)
{
	struct rope r = {
		.x = x,
		.w = w,
		.cos_sin = cos_sin,
		.raw = raw,
		.rstd = rstd,
		.position = position,
		.dim = x.cols / heads,
		.heads = heads,
		.eps = (real)eps,
		.sign = 1,
	};

	(void)err;
	cost_touch(back, &x, w.rows ? 3 : 2);
	cpu_parts(back, x.rows, 1, (double)(x.rows * x.cols) * sizeof(real), rope_rows, &r);
	return STATUS_OK;
}

static void rotate_back(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rope *r = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		for (int h = 0; h < r->heads; h++)
			cpu_rotate(real_row(r->x, t) + h * r->dim, real_row(r->cos_sin, r->position[t]),
				   r->dim / 2, -1);
}

static void head_norm_bwd(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct rope *r = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++)
		for (int h = 0; h < r->heads; h++)
			norm_row_bwd(real_row(r->x, t) + h * r->dim, real_row(r->raw, t) + h * r->dim,
				     r->w.data, real_row(r->rstd, t)[h], real_row(r->x, t) + h * r->dim,
				     r->dim, true);
}

enum status cpu_head_norm_rope_bwd(struct backend *back, struct mat dx, int heads, struct mat w,
				   const int32_t *position, struct mat cos_sin, struct mat raw,
				   struct mat rstd, struct mat dw, struct error *err)
{
	struct rope r = {
		.x = dx,
		.w = w,
		.cos_sin = cos_sin,
		.raw = raw,
		.rstd = rstd,
		.position = position,
		.dim = dx.cols / heads,
		.heads = heads,
	};
	double bytes = (double)(dx.rows * dx.cols) * sizeof(real);

	(void)err;
	cost_touch(back, &dx, w.rows ? 5 : 2);
	cpu_parts(back, dx.rows, 1, bytes, rotate_back, &r);
	if (!w.rows)
		return STATUS_OK;
	if (dw.rows)
		for (int64_t t = 0; t < dx.rows; t++)
			for (int h = 0; h < heads; h++)
				weight_row(dw.data, real_row(dx, t) + h * r.dim, real_row(raw, t) + h * r.dim,
					   real_row(rstd, t)[h], r.dim);
	cpu_parts(back, dx.rows, 1, bytes, head_norm_bwd, &r);
	return STATUS_OK;
}
