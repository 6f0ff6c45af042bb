/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest logit of each row, and sampling with temperature and top_p from BF16 logits (sample.h). Reads
 * each logit once. Reference: tests/gpu/ref_step_sample.c.
 *
 * BF16 logits have few distinct values. So each block counts how often its part of a row has each value, and
 * the row's last block has the exact distribution in its order with a few thousand exponentials: no sort. The
 * values between 2^-20 and 2^10 have bins of their own; smaller ones share a bin, and larger ones too, on
 * either side. If a bin of several values matters, the last block counts again by finer keys
 * (sample_select.cuh).
 */
#include "kernel/step/sample_select.cuh"

#define AHEAD 4 /* vectors that a thread has in flight */

/* The largest number so far, its id, and the largest magnitude's bits. */
struct largest {
	float most;
	uint32_t id, magnitude;
};

static __device__ __forceinline__ void take_number(struct largest *l, float v, uint32_t id)
{
	const uint32_t bits = __float_as_uint(v) & 0x7fffffffu;

	l->magnitude = bits > l->magnitude ? bits : l->magnitude;
	if (v > l->most) {
		l->most = v;
		l->id = id;
	}
}

static __device__ __forceinline__ void take_eight(struct largest *l, uint4 q, uint32_t id)
{
	float v[8];

	unpack8(v, q);
#pragma unroll
	for (int j = 0; j < 8; j++)
		take_number(l, v[j], id + j);
}

/* Whole vectors of BF16, AHEAD of them at once. */
static __device__ __forceinline__ void take_vectors(struct largest *l, const uint16_t *row, uint32_t begin, uint32_t end,
						    int wide)
{
	const uint32_t step = THREADS * 8;

	for (uint32_t id = begin + threadIdx.x * 8; id + 8 <= end; id += AHEAD * step) {
		uint4 q[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (id + i * step + 8 <= end)
				q[i] = load8(row + id + i * step, 8, wide);
#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (id + i * step + 8 <= end)
				take_eight(l, q[i], id + i * step);
	}
}

/* The largest logit of the part, and whether one is NaN or infinite. */
static __device__ void best_of_part(const struct step_sample_args *a, const struct part *p, struct notes *n)
{
	const uint32_t whole = a->bf16 ? p->begin + (p->end - p->begin) / 8 * 8 : p->begin;
	struct largest l = {__uint_as_float(0xff800000u), 0xffffffffu, 0};
	uint64_t best;

	if (a->bf16)
		take_vectors(&l, row_bf16(a, p->row), p->begin, p->end, row_is_wide(a));
	for (uint32_t id = whole + threadIdx.x; id < p->end; id += THREADS)
		take_number(&l, logit_at(a, p->row, id), id);
	best = block_best(l.id == 0xffffffffu ? 0 : best_of(l.most, l.id), n);
	l.magnitude = (uint32_t)block_best(l.magnitude, n);
	if (threadIdx.x == 0) {
		struct step_sample_part *to = &a->part[blockIdx.x];

		to->best = best;
		to->infinite = l.magnitude >= 0x7f800000u;
	}
}

ENTRY void __launch_bounds__(THREADS) step_sample_greedy(const __grid_constant__ struct step_sample_args a)
{
	struct notes *n = (struct notes *)shared;
	const struct part p = part_of(&a);
	const struct step_sample_part *part = a.part + (uint64_t)p.row * a.parts;
	uint64_t best = 0;

	let_next_begin();
	wait_for_earlier();
	best_of_part(&a, &p, n);
	if (!is_last(&a, p.row, n) || threadIdx.x >= 32)
		return;
	if (threadIdx.x < a.parts)
		best = __ldcg(&part[threadIdx.x].infinite) ? ~(uint64_t)0 : __ldcg(&part[threadIdx.x].best);
	best = warp_best(best);
	if (threadIdx.x == 0)
		put_result(&a, p.row, ~best ? (int32_t)best_id(best) : 0, ~best ? SAMPLE_OK : SAMPLE_NOT_FINITE);
}

/* -- bins of BF16 values -- */

#define BINS STEP_SAMPLE_PLAIN_BINS
#define GROUP (BINS / THREADS)	   /* bins of a thread: values of one binade and sign, at equal distances */
#define LEAST (107 << 7)	   /* 2^-20 as BF16 */
#define MOST (137 << 7)		   /* 2^10 */
#define SMALL (GROUP - 1)	   /* the bin of smaller magnitudes, before the sign */
#define LARGE (MOST - LEAST + GROUP) /* of larger ones */
static_assert(GROUP == 16 && LARGE + 1 <= BINS / 2, "groups do not cross binades");

/* Below 0 for negative numbers: bin = BINS / 2 + this. */
static __device__ __forceinline__ int32_t bin_of(uint32_t bits)
{
	int32_t m = (int32_t)(bits & 0x7fffu);

	m = m < LEAST - 1 ? LEAST - 1 : m;
	m = m > MOST ? MOST : m;
	return (m - (LEAST - GROUP)) ^ ((int32_t)(bits << 16) >> 31);
}

/* The value of a bin; of a bin of several, its smallest magnitude. */
static __device__ __forceinline__ float bin_value(uint32_t bin)
{
	const int32_t b = (int32_t)bin - BINS / 2, m = b < 0 ? -1 - b : b;
	const uint32_t magnitude = m <= SMALL ? 0 : (uint32_t)(m + LEAST - GROUP);

	return __uint_as_float((b < 0 ? 0x80000000u : 0) | magnitude << 16);
}

static __device__ __forceinline__ int bin_is_exact(uint32_t bin)
{
	const int32_t b = (int32_t)bin - BINS / 2, m = b < 0 ? -1 - b : b;

	return m > SMALL && m < LARGE;
}

/* Adds 1 to a bin in shared memory. */
static __device__ __forceinline__ void count_bf16(uint32_t *bins, uint32_t address, uint32_t bits)
{
	const int32_t bin = BINS / 2 + bin_of(bits);

#ifndef EMULATED
	(void)bins;
	asm volatile("red.shared.add.u32 [%0], 1;" : : "r"(address + (uint32_t)bin * 4));
#else
	(void)address;
	atomicAdd(&bins[bin], 1u);
#endif
}

/* Counts the part's values in shared memory, and copies the counts to the workspace. */
static __device__ void count_part(const struct step_sample_args *a, const struct part *p, uint32_t *bins)
{
	const int wide = row_is_wide(a);
	const uint32_t step = THREADS * 8, whole = p->begin + (p->end - p->begin) / 8 * 8;
	const uint16_t *row = row_bf16(a, p->row);
	uint4 *out = (uint4 *)((uint16_t *)a->bins + (uint64_t)blockIdx.x * BINS);
#ifndef EMULATED
	const uint32_t address = (uint32_t)__cvta_generic_to_shared(bins);
#else
	const uint32_t address = 0;
#endif

	for (uint32_t id = p->begin + threadIdx.x * 8; id < whole; id += AHEAD * step) {
		uint4 q[AHEAD];

#pragma unroll
		for (int i = 0; i < AHEAD; i++)
			if (id + i * step < whole)
				q[i] = load8(row + id + i * step, 8, wide);
#pragma unroll
		for (int i = 0; i < AHEAD; i++) {
			const uint32_t w[4] = {q[i].x, q[i].y, q[i].z, q[i].w};

			if (id + i * step >= whole)
				continue;
#pragma unroll
			for (int j = 0; j < 8; j++)
				count_bf16(bins, address, w[j / 2] >> j % 2 * 16);
		}
	}
	if (whole + threadIdx.x < p->end)
		count_bf16(bins, address, row[whole + threadIdx.x]);
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < BINS / 8; i += THREADS) {
		const uint4 x = ((const uint4 *)bins)[2 * i], y = ((const uint4 *)bins)[2 * i + 1];

		out[i] = make_uint4(x.x | x.y << 16, x.z | x.w << 16, y.x | y.y << 16, y.z | y.w << 16);
	}
}

static __device__ void clear_bins(uint32_t *bins)
{
	for (uint32_t i = threadIdx.x; i < BINS / 4; i += THREADS)
		((uint4 *)bins)[i] = make_uint4(0, 0, 0, 0);
	__syncthreads();
}

/* A thread's bins in the row's last block, from the largest value down. */
struct group {
	uint32_t count[GROUP];
	uint32_t top;  /* its largest bin */
	uint32_t lead; /* the largest bin that has elements is top - lead; GROUP: none has */
	double first, ratio; /* weight of an element of that bin; of the next bin by that of a bin */
};

static __device__ void load_group(const struct step_sample_args *a, uint32_t row, struct group *g)
{
	const uint4 *from = (const uint4 *)((const uint16_t *)a->bins + (uint64_t)row * a->parts * BINS);
	const uint32_t at = (BINS - (threadIdx.x + 1) * GROUP) / 8;

	g->top = BINS - 1 - threadIdx.x * GROUP;
#pragma unroll
	for (int j = 0; j < GROUP; j++)
		g->count[j] = 0;
#pragma unroll 4
	for (uint32_t p = 0; p < a->parts; p++) {
		const uint4 x = __ldcg(from + (uint64_t)p * (BINS / 8) + at), y = __ldcg(from + (uint64_t)p * (BINS / 8) + at + 1);
		const uint32_t w[8] = {x.x, x.y, x.z, x.w, y.x, y.y, y.z, y.w};

#pragma unroll
		for (int j = 0; j < GROUP; j++)
			g->count[GROUP - 1 - j] += w[j / 2] >> j % 2 * 16 & 0xffffu;
	}
}

/* The values of a group are at equal distances, so its weights are a geometric series. It begins at the largest
 * bin that has elements: the weights of larger bins may overflow, and 0 elements times infinity is NaN. */
static __device__ void weigh_group(struct group *g, double most, double over_temperature)
{
	const double top = (double)bin_value(g->top), next = (double)bin_value(g->top - 1);

	g->lead = GROUP;
#pragma unroll
	for (int j = GROUP - 1; j >= 0; j--)
		g->lead = g->count[j] ? (uint32_t)j : g->lead;
	g->first = g->lead < GROUP ? exp(((double)bin_value(g->top - g->lead) - most) * over_temperature) : 0;
	g->ratio = exp((next - top) * over_temperature);
	/* Groups with a bin of several values: the only one that can be used. */
	if (!bin_is_exact(g->top) || !bin_is_exact(g->top - GROUP + 1))
		g->ratio = 1;
}

/* The weight of an element of bin j + 1 by that of bin j; 1 before the first bin that has elements. */
static __device__ __forceinline__ double ratio_at(const struct group *g, int j)
{
	return (uint32_t)j < g->lead ? 1 : g->ratio;
}

/* Where a position of the order lies: the bin, and elements of it that come before. `mass` is the weight of
 * all that come before the bin, and `weight` of each element. */
struct spot {
	uint32_t bin, rank;
	double mass, weight;
};

/* The element of the thread's bins at which the running sum passes the target, or reaches it; else their last. */
static __device__ struct spot find_in_group(const struct group *g, double before, double target, int reach)
{
	struct spot s = {0, 0, before, 1};
	uint32_t count = 1;
	double w = g->first, rank;

	for (int j = 0; j < GROUP; j++) {
		const double after = before + g->count[j] * w;

		if (g->count[j]) {
			count = g->count[j];
			s.bin = g->top - (uint32_t)j;
			s.mass = before;
			s.weight = w;
			if (reach ? after >= target : after > target)
				break;
		}
		before = after;
		w *= ratio_at(g, j);
	}
	rank = (target - s.mass) / s.weight;
	rank = reach ? ceil(rank) - 1 : floor(rank);
	rank = rank < 0 ? 0 : rank;
	s.rank = rank < count ? (uint32_t)rank : count - 1;
	return s;
}

static __device__ double group_mass(const struct group *g)
{
	double sum = 0, w = g->first;

#pragma unroll
	for (int j = 0; j < GROUP; j++) {
		sum += g->count[j] * w;
		w *= ratio_at(g, j);
	}
	return sum;
}

/* Where the sum over the order passes the target, or reaches it: in the last thread's bins whose sum of earlier
 * ones does not. So exactly one thread answers, however sums are rounded. */
static __device__ struct spot find_spot(const struct group *g, const struct scan_f64 *sum, double own, double target,
					int reach, struct notes *n)
{
	const int before = own > 0 && (reach ? sum->before < target : sum->before <= target);
	const uint32_t answers = (uint32_t)block_best(before ? threadIdx.x + 1 : 0, n);
	struct spot *found = (struct spot *)n->word, s;

	if (threadIdx.x + 1 == answers)
		*found = find_in_group(g, sum->before, target, reach);
	__syncthreads();
	s = *found;
	__syncthreads();
	return s;
}

/* The rank-th element of begin .. end - 1 with this value, in the order of ids. -0 counts as 0. */
static __device__ uint32_t element_of_value(const struct step_sample_args *a, const uint16_t *row, uint32_t begin,
					    uint32_t end, float value, uint32_t rank, struct notes *n)
{
	const int wide = row_is_wide(a);
	const uint32_t vectors = (end - begin + 7) / 8, each = (vectors + THREADS - 1) / THREADS;
	const uint32_t own = begin + threadIdx.x * each * 8;
	uint32_t *found = (uint32_t *)n->word, count = 0;
	struct scan64 before;

	for (uint32_t at = own; at < own + each * 8 && at < end; at += 8) {
		float v[8];

		unpack8(v, load8(row + at, (int64_t)end - at, wide));
#pragma unroll
		for (int j = 0; j < 8; j++)
			count += v[j] == value && at + j < end;
	}
	before = block_scan(count, n);
	if (before.before <= rank && rank < before.before + count) {
		uint32_t left = rank - (uint32_t)before.before;

		for (uint32_t at = own; at < own + each * 8 && at < end; at += 8) {
			float v[8];

			unpack8(v, load8(row + at, (int64_t)end - at, wide));
#pragma unroll
			for (int j = 0; j < 8; j++)
				if (v[j] == value && at + j < end && left-- == 0)
					*found = at + j;
		}
	}
	__syncthreads();
	return *found;
}

/* The rank-th element of a bin, in the order of ids: its part by the parts' counts, then in the part. */
static __device__ uint32_t find_element(const struct step_sample_args *a, uint32_t row, uint32_t bin, uint32_t rank,
					struct notes *n)
{
	const uint16_t *counts = (const uint16_t *)a->bins + (uint64_t)row * a->parts * BINS + bin;
	const uint32_t lane = threadIdx.x % 32;
	const uint32_t own = lane < a->parts ? __ldcg(&counts[(uint64_t)lane * BINS]) : 0;
	uint32_t number = 0, before = 0;

	for (uint32_t p = 0; p < a->parts; p++) {
		const uint32_t count = lane_u32(own, p);

		if (rank - before < count) {
			number = p;
			break;
		}
		before += count;
	}
	return element_of_value(a, row_bf16(a, row), part_begin(a, number), part_begin(a, number + 1), bin_value(bin),
				rank - before, n);
}

#define LARGE_ABOVE (BINS / 2 + LARGE)
#define LARGE_BELOW (BINS / 2 - 1 - LARGE)

/* Whether the thread's bins of several values need a closer look: the weights of large ones are not known, and
 * NaN and infinity are among them. */
static __device__ uint32_t large_of_group(const struct group *g)
{
	uint32_t found = 0;

#pragma unroll
	for (int j = 0; j < GROUP; j++) {
		const uint32_t bin = g->top - (uint32_t)j;

		if (g->count[j] && bin == LARGE_ABOVE)
			found |= 2;
		if (g->count[j] && bin == LARGE_BELOW)
			found |= 1;
	}
	return found;
}

/* Whether a logit of the row is NaN or infinite. */
static __device__ __noinline__ int row_is_infinite(const struct step_sample_args *a, uint32_t row, struct notes *n)
{
	uint32_t most = 0;

	for (uint32_t id = threadIdx.x; id < a->vocab; id += THREADS) {
		const uint32_t bits = __float_as_uint(logit_at(a, row, id)) & 0x7fffffffu;

		most = bits > most ? bits : most;
	}
	return block_best(most, n) >= 0x7f800000u;
}

/* -- the order of ids, if every id may be chosen -- */

/* The element of begin .. end - 1 at which the sum of weights passes the target. Each thread has neighbouring
 * elements. */
static __device__ uint32_t element_of_mass(const struct step_sample_args *a, const uint16_t *row, uint32_t begin,
					   uint32_t end, const float *weights, double target, struct notes *n)
{
	const int wide = row_is_wide(a);
	const uint32_t vectors = (end - begin + 7) / 8, each = (vectors + THREADS - 1) / THREADS;
	const uint32_t own = begin + threadIdx.x * each * 8;
	uint32_t *found = (uint32_t *)n->word, answers;
	struct scan_f64 sum;
	double mass = 0;

	for (int turn = 0; turn < 2; turn++) {
		double before = turn ? sum.before : 0;
		uint32_t last = end - 1;

		for (uint32_t at = own; at < own + each * 8 && at < end && (!turn || threadIdx.x + 1 == answers); at += 8) {
			const uint4 q = load8(row + at, (int64_t)end - at, wide);
			const uint32_t w[4] = {q.x, q.y, q.z, q.w};

#pragma unroll
			for (int j = 0; j < 8; j++)
				if (at + j < end && (!turn || before <= target)) {
					before += weights[BINS / 2 + bin_of(w[j / 2] >> j % 2 * 16)];
					last = at + j;
				}
		}
		if (turn) {
			if (threadIdx.x + 1 == answers)
				*found = last;
			break;
		}
		mass = before;
		sum = block_scan_f64(mass, n);
		answers = (uint32_t)block_best(mass > 0 && sum.before <= target ? threadIdx.x + 1 : 0, n);
	}
	__syncthreads();
	return *found;
}

/* The parts' masses, from the same counts and weights. */
static __device__ uint32_t choose_by_id(const struct step_sample_args *a, uint32_t row, const struct group *g,
					struct notes *n)
{
	const uint16_t *counts = (const uint16_t *)a->bins + (uint64_t)row * a->parts * BINS;
	float *weights = (float *)((char *)n + STEP_SAMPLE_NOTES);
	double *mass = (double *)(weights + BINS);
	double w = g->first, all = 0, target;
	uint32_t number = 0;

	for (int j = 0; j < GROUP; j++) {
		weights[g->top - (uint32_t)j] = (float)w;
		w *= ratio_at(g, j);
	}
	__syncthreads();
	for (uint32_t p = 0; p < a->parts; p++) {
		double own = 0;

		for (uint32_t i = threadIdx.x * 2; i < BINS; i += THREADS * 2) {
			const uint32_t two = __ldcg((const uint32_t *)(counts + (uint64_t)p * BINS + i));

			if (two)
				own += (two & 0xffffu) * (double)weights[i] + (two >> 16) * (double)weights[i + 1];
		}
		own = warp_sum_f64(own);
		if (threadIdx.x % 32 == 0)
			mass[p * WARPS + threadIdx.x / 32] = own;
	}
	__syncthreads();
	for (uint32_t i = 0; i < a->parts * WARPS; i++)
		all += mass[i];
	target = row_random(&a->row[row]) * all;
	for (all = 0;; number++) {
		double own = 0;

		for (uint32_t i = 0; i < WARPS; i++)
			own += mass[number * WARPS + i];
		if (all + own > target || number + 1 == a->parts)
			break;
		all += own;
	}
	return element_of_mass(a, row_bf16(a, row), part_begin(a, number), part_begin(a, number + 1), weights,
			       target - all, n);
}

/* The id; -1: a logit is NaN or infinite. */
static __device__ int32_t choose_plain(const struct step_sample_args *a, uint32_t row, struct notes *n)
{
	const struct step_sample_row *r = &a->row[row];
	const struct view all = view_plain(a, row);
	struct scan_f64 sum;
	struct spot end, s;
	struct group g;
	uint32_t top = 0;
	uint64_t seen;
	double own, kept;

	load_group(a, row, &g);
#pragma unroll
	for (int j = GROUP - 1; j >= 0; j--)
		top = g.count[j] ? g.top - (uint32_t)j : top;
	top = (uint32_t)block_best(top, n);
	seen = block_best(large_of_group(&g), n);
	if (seen && row_is_infinite(a, row, n))
		return -1;
	if (r->temperature == 0 && bin_is_exact(top))
		return (int32_t)find_element(a, row, top, 0, n);
	/* Of negative large values the weight is 0, if the temperature is not high. */
	if (seen & 2 || (seen && bin_value(top) + 1024.0f < 50.0f * r->temperature))
		return (int32_t)choose_all(&all, n);
	weigh_group(&g, (double)bin_value(top), 1.0 / (double)r->temperature);
	if (!(r->top_p < 1))
		return (int32_t)choose_by_id(a, row, &g, n);
	own = group_mass(&g);
	sum = block_scan_f64(own, n);
	end = find_spot(&g, &sum, own, fmax((double)r->top_p * sum.all, 1e-300), 1, n);
	kept = end.mass + (end.rank + 1) * end.weight;
	s = find_spot(&g, &sum, own, row_random(r) * kept, 0, n);
	if (!bin_is_exact(s.bin) || !bin_is_exact(end.bin))
		return (int32_t)choose_all(&all, n);
	if (s.bin == end.bin && s.rank > end.rank)
		s.rank = end.rank;
	return (int32_t)find_element(a, row, s.bin, s.rank, n);
}

ENTRY void __launch_bounds__(THREADS, 2) step_sample_plain(const __grid_constant__ struct step_sample_args a)
{
	struct notes *n = (struct notes *)shared;
	uint32_t *bins = (uint32_t *)((char *)shared + STEP_SAMPLE_NOTES);
	const struct part p = part_of(&a);
	int32_t id;

	let_next_begin();
	clear_bins(bins);
	wait_for_earlier();
	count_part(&a, &p, bins);
	if (!is_last(&a, p.row, n))
		return;
	id = choose_plain(&a, p.row, n);
	if (threadIdx.x == 0)
		put_result(&a, p.row, id < 0 ? 0 : id, id < 0 ? SAMPLE_NOT_FINITE : SAMPLE_OK);
}
