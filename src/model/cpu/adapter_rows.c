/* SPDX-License-Identifier: Apache-2.0 */
/* Several adapters in one step: each row uses one of them or none. */
#include "model/cpu/real.h"

struct mask {
	struct mat u;
	const int32_t *adapter;
	int64_t period, rank;
};

static void mask_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct mask *m = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		real *u = real_row(m->u, t);

		for (int64_t c = 0; c < m->u.cols; c += m->rank)
			if (c % m->period / m->rank != m->adapter[t])
				memset(u + c, 0, (size_t)m->rank * sizeof(real));
	}
}

enum status cpu_adapter_mask(struct backend *back, struct mat u, const int32_t *adapter, int64_t period,
			     int64_t rank, struct error *err)
{
	struct mask m = {.u = u, .adapter = adapter, .period = period, .rank = rank};

	(void)err;
	cost_touch(back, &u, 2);
	cpu_parts(back, u.rows, 1, (double)(u.rows * u.cols) * sizeof(real), mask_rows, &m);
	return STATUS_OK;
}

struct scale {
	struct mat y, ratio, bias, residual;
	const int32_t *adapter;
};

static void scale_row(real *restrict y, const float *restrict ratio, const real *restrict bias,
		      const real *restrict residual, int64_t n)
{
	for (int64_t i = 0; ratio && i < n; i++)
		y[i] *= (real)ratio[i];
	for (int64_t i = 0; bias && i < n; i++)
		y[i] += bias[i];
	for (int64_t i = 0; residual && i < n; i++)
		y[i] += residual[i];
}

static void scale_rows(void *arg, int64_t first, int64_t last, unsigned thread)
{
	const struct scale *s = arg;

	(void)thread;
	for (int64_t t = first; t < last; t++) {
		const int64_t adapter = s->adapter ? s->adapter[t] : 0;

		scale_row(real_row(s->y, t),
			  adapter < 0 ? NULL : (const float *)s->ratio.data + adapter * s->ratio.ld,
			  s->bias.rows ? s->bias.data : NULL,
			  s->residual.rows ? real_row(s->residual, t) : NULL, s->y.cols);
	}
}

enum status cpu_adapter_scale(struct backend *back, struct mat y, const int32_t *adapter, struct mat ratio,
			      struct mat bias, struct mat residual, struct error *err)
{
	struct scale s = {.y = y, .ratio = ratio, .bias = bias, .residual = residual, .adapter = adapter};

	(void)err;
	cost_touch(back, &y, residual.rows ? 3 : 2);
	cpu_parts(back, y.rows, 1, (double)(y.rows * y.cols) * sizeof(real), scale_rows, &s);
	return STATUS_OK;
}
