/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of a token: a matrix-vector multiplication that reads the matrix at the memory's rate
 * (weight_ring.cuh). If a row is split between warps, its partial sums are added in shared memory in a fixed
 * order.
 *
 * The code is C except for nvcc's keywords, so tests/gpu/emulate.h can run it on a CPU.
 */
#ifndef KERNEL_DECODE_LINEAR_CUH
#define KERNEL_DECODE_LINEAR_CUH
#include "kernel/decode/e4m3.cuh"

/* A linear layer and its fused operations. The struct is not in a thread's local memory, because shared
 * memory leaves almost no L1 for it. */
struct step {
	const struct decode_map *map;
	const float *x, *residual;
	const uint16_t *row, *norm; /* row: a row of the embedding, used if x is NULL */
	float *out, *u;
	float eps;
	uint32_t kind;
};

/* Computes all dot products of the block. The sums are complete after the barrier at the end. The ring
 * delivers the parts of r. */
static __device__ __forceinline__ void dots(struct feed *f, const struct rows *r, const struct room *s)
{
	const uint32_t lane = threadIdx.x % 32;
	const float4 *x = (const float4 *)s->x + lane;
	float *sums = sums_of(s, r);
	struct part p;

	part_open(&p, r, threadIdx.x / 32);
	feed_fill(f); /* a warp without rows in earlier steps has requested nothing since this layer's table arrived */
	while (p.n) {
		const uint32_t slot = f->slots + f->got * DECODE_SLOT_BYTES + lane * 16;
		uint32_t row = p.at / r->chunks, chunk = p.at - row * r->chunks;
		float sum = 0;

		feed_wait(f);
		if (p.n == DECODE_UNIT && p.limit == 0xffffffffu && chunk + DECODE_UNIT <= r->chunks) {
			uint4 w[DECODE_UNIT];
			float more = 0;

#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++)
				w[j] = load_shared(slot + j * 2 * DECODE_CHUNK);
#pragma unroll
			for (uint32_t j = 0; j < DECODE_UNIT; j++) {
				const uint32_t at = (chunk + j) * 64;

				if (j % 2)
					more = eight(w[j], x[at], x[at + 32], more);
				else
					sum = eight(w[j], x[at], x[at + 32], sum);
			}
			sum += more;
		} else {
#pragma unroll 1
			for (uint32_t j = 0; j < p.n; j++) {
				if (chunk == r->chunks) {
					put(sums, p.unit, row, sum);
					sum = 0;
					chunk = 0;
					row++;
				}
				if (chunk * DECODE_CHUNK + lane * 8 < r->in)
					sum = eight(load_shared(slot + j * 2 * DECODE_CHUNK), x[chunk * 64], x[chunk * 64 + 32], sum);
				chunk++;
			}
		}
		feed_took(f);
		feed_fill(f);
		put(sums, p.unit, row, sum);
		part_on(&p);
	}
	__syncthreads();
}

/* The sum of local row i: adds the partial sums of all its units in order. */
static __device__ __forceinline__ float sum_of(const struct rows *r, const struct room *s, uint32_t i)
{
	uint32_t first, last;
	float v = 0;

	if (r->segment > r->chunks) {
		const uint32_t second = i >= r->count, row = second ? i - r->count : i;

		first = second * r->units + row * r->chunks / DECODE_UNIT;
		last = second * r->units + ((row + 1) * r->chunks - 1) / DECODE_UNIT;
	} else {
		first = i * r->units;
		last = first + r->units - 1;
	}
#pragma unroll 4
	for (; first <= last; first++)
		v += sums_of(s, r)[first + i];
	return v;
}

static __device__ __forceinline__ float adapters_of(const struct decode_map *m, const struct room *s, uint32_t row)
{
	float sum = 0;

	for (uint32_t i = 0; i < m->adapters; i++) {
		const float *u = s->u + i * m->rank;
		const uint16_t *b = m->b[i] + (uint64_t)(row - m->begin[i]) * m->rank;

		if (row < m->begin[i] || row >= m->end[i])
			continue;
		if (m->rank % 8) {
			for (uint32_t j = 0; j < m->rank; j++)
				sum += bf16_at(b, j) * u[j];
		} else {
			for (uint32_t j = 0; j < m->rank; j += 8)
				sum = eight(*(const uint4 *)(b + j), make_float4(u[j], u[j + 1], u[j + 2], u[j + 3]),
					    make_float4(u[j + 4], u[j + 5], u[j + 6], u[j + 7]), sum);
		}
	}
	return m->scale * sum;
}

static __device__ __forceinline__ float y_of(const struct decode_map *m, const struct rows *r, const struct room *s, uint32_t i, float factor)
{
	const uint32_t row = i < r->count ? r->first + i : r->second + (i - r->count);
	const float y = factor * sum_of(r, s, i);

	return m->adapters ? y + adapters_of(m, s, row) : y;
}

/* The value added to a row's dot product: bias or residual. */
static __device__ __forceinline__ float added_to(const struct step *a, uint32_t row)
{
	if (a->kind == DECODE_ADD)
		return __ldcg(a->residual + row);
	return a->map->bias ? bf16_at(a->map->bias, row) : 0;
}

/* The factor of a row's weights. e4m3: the weights have factors. */
static __device__ __forceinline__ float scale_of(const struct decode_map *m, uint32_t row, int e4m3)
{
	return e4m3 ? m->w_scale[row] : 1;
}

/* Stages the vector for the map's type of weights. E4M3: a constant, whether they may be E4M3. */
static __device__ __forceinline__ void linear_stage(const struct room *s, const struct step *a, const int E4M3)
{
	if (E4M3 && a->map->w_scale)
		stage_e4m3(s, a->x, a->row, a->norm, a->map->in);
	else
		stage(s, a->x, a->row, a->norm, a->map->in);
}

/* Computes a linear layer and writes its output. x must be staged. Only PLAIN adds a bias, only ADD a
 * residual. A thread reads what it needs of its first row before it waits for weights. */
static __device__ __forceinline__ void linear_out(struct feed *f, const struct step *a, int down, const struct room *s, const int E4M3)
{
	const struct decode_map *m = a->map;
	const struct rows r = rows_of_map(m, down, a->kind == DECODE_SWIGLU);
	const int mine = !down && threadIdx.x < r.count, e4m3 = E4M3 && !down && m->w_scale;
	const uint32_t first = r.first + threadIdx.x;
	const float early = mine ? added_to(a, first) : 0, early_scale = mine ? scale_of(m, first, e4m3) : 1;
	const float early_up = mine && a->kind == DECODE_SWIGLU ? scale_of(m, r.second + threadIdx.x, e4m3) : 1;
	float factor = 1;

	if (e4m3)
		dots_e4m3(f, &r, s);
	else
		dots(f, &r, s);
	if (a->norm)
		factor = rstd_of(s, m->in, a->eps);
	for (uint32_t i = threadIdx.x; i < r.count; i += DECODE_THREADS) {
		const uint32_t row = r.first + i;
		const float scale = factor * (i == threadIdx.x ? early_scale : scale_of(m, row, e4m3));

		if (down) {
			a->u[row] = factor * sum_of(&r, s, i);
		} else if (a->kind == DECODE_SWIGLU) {
			const float up_scale = factor * (i == threadIdx.x ? early_up : scale_of(m, r.second + i, e4m3));
			const float gate = y_of(m, &r, s, i, scale), up = y_of(m, &r, s, r.count + i, up_scale);

			a->out[row] = gate / (1 + expf(-gate)) * up;
		} else {
			a->out[row] = y_of(m, &r, s, i, scale) + (i == threadIdx.x ? early : added_to(a, row));
		}
	}
}
#endif
