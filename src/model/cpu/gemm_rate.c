/* SPDX-License-Identifier: Apache-2.0 */
/* The rate of large GEMMs on this CPU, the denominator of MFU. */
#include "core/clock.h"
#include "model/cpu/cpu.h"

/* GEMMs are timed in growing sizes, because small ones reach a lower rate. It stops when one takes
 * GEMM_ENOUGH_NS or more. */
enum { GEMM_LEAST = 384, GEMM_MOST = 1536, GEMM_TIMES = 3, GEMM_ENOUGH_NS = 20000000, GEMM_ARENA_PART = 8 };

/* *least_ns: the time of the fastest of GEMM_TIMES GEMMs of size x size matrices, allocated in `rest`. */
static enum status time_gemm(struct backend *back, struct arena rest, int64_t size, uint64_t *least_ns,
			     struct error *err)
{
	enum status st = STATUS_OK;
	struct mat m[3];

	*least_ns = UINT64_MAX;
	for (int i = 0; i < 3 && !st; i++) {
		m[i] = (struct mat){.rows = size, .cols = size, .dtype = DTYPE_F32};
		st = arena_mat(&rest, MEM_WORKSPACE, &m[i], "a GEMM to time", err);
		for (int64_t at = 0; !st && at < size * size; at++)
			((float *)m[i].data)[at] = (float)(at % 7) - 3;
	}
	/* the first one wakes up the threads and is not timed */
	for (int i = 0; i <= GEMM_TIMES && !st; i++) {
		const struct gemm g = {
			.a = m[0], .b = m[1], .c = m[2], .d = m[2], .trans_b = true, .alpha = 1};
		uint64_t took_ns = clock_now_ns(clock_monotonic());

		st = back->ops->gemm(back, &g, err);
		took_ns = clock_now_ns(clock_monotonic()) - took_ns;
		if (i && took_ns < *least_ns)
			*least_ns = took_ns;
	}
	return st;
}

/* Whether GEMMs of this size fit into the memory of the passes and are small compared with it. OpenBLAS
 * packs panels in addition, and larger GEMMs need larger panels. */
static bool has_place(const struct arena *a, int64_t size)
{
	size_t bytes = 3 * ((size_t)size * (size_t)size * sizeof(float) + ARENA_ALIGN);

	return bytes <= a->size - a->used && bytes <= a->size / GEMM_ARENA_PART;
}

enum status cpu_backend_gemm_rate(struct backend *back, double *rate, struct error *err)
{
	const struct arena *arena = back->arena;
	enum status st = cpu_backend_check_room(back, err);
	uint64_t least_ns = 0;
	int64_t size = GEMM_LEAST;

	while (size > 1 && !has_place(arena, size))
		size /= 2;
	for (; size <= GEMM_MOST && has_place(arena, size) && least_ns < GEMM_ENOUGH_NS && !st; size *= 2) {
		double reached;

		st = time_gemm(back, *arena, size, &least_ns, err);
		reached = 2e9 * (double)size * (double)size * (double)size / (double)least_ns;
		if (!st && reached > *rate)
			*rate = reached;
	}
	return st;
}
