/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of a large GEMM on this device, the denominator of MFU. */
#include "model/gpu/gemm/gemm.h"
#include "model/tensor/dtype.h"

enum { SIZE = 8192, SIZE_LEAST = 256, TIMES = 5 };

static enum status run(void *arg, struct error *err)
{
	struct backend *back = ((void **)arg)[0];

	return gpu_gemm(back, ((void **)arg)[1], err);
}

/* The largest size with room in the arena; 0: none. */
static int64_t size_of(const struct arena *a, uint64_t number_bytes)
{
	int64_t size = SIZE;

	while (size >= SIZE_LEAST &&
	       3 * number_bytes * (uint64_t)size * (uint64_t)size + 3 * ARENA_ALIGN > a->size - a->used)
		size /= 2;
	return size >= SIZE_LEAST ? size : 0;
}

static enum status time_one(struct backend *back, int64_t size, double *seconds, struct error *err)
{
	const struct random_fill fill = {.seed = 1, .width = 1};
	struct mat m[3];
	struct gemm g;
	void *arg[2] = {back, &g};
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < 3; i++) {
		m[i] = (struct mat){.rows = size, .cols = size, .dtype = back->dtype};
		st = arena_mat(back->arena, MEM_WORKSPACE, &m[i], "a GEMM to time", err);
		if (!st)
			st = back->ops->random(back, m[i], &fill, err);
	}
	g = (struct gemm){.a = m[0], .b = m[1], .c = m[2], .d = m[2], .trans_b = true, .alpha = 1};
	return st ? st : gpu_time(back, run, arg, TIMES, seconds, err);
}

enum status gpu_backend_gemm_rate(struct backend *back, double *rate, struct error *err)
{
	const struct arena before = *back->arena;
	const struct op_cost cost = back->cost;
	struct gemm_plans *p = gpu_of(back)->products;
	const size_t plans = p->count;
	const int64_t size = size_of(&before, dtype_bytes(back->dtype, 1));
	double seconds = 0;
	enum status st = size ? time_one(back, size, &seconds, err) : STATUS_OK;

	*rate = !st && seconds > 0 ? 2 * (double)size * (double)size * (double)size / seconds : 0;
	gemm_plans_forget(p, plans); /* no training step has this shape */
	*back->arena = before;	     /* restores the arena's peak, which is reported as the steps' memory */
	back->cost = cost;
	return st;
}
