/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice among a row's largest values. All blocks of a row list the values that reach a border. The row's last
 * block sorts the list and finds the choice in it. The border comes from the largest value of each thread of
 * step_sample_scan: it is the WANTED-th largest of these. So at least WANTED elements reach it, and usually few
 * more. Weights are the same integers as those of sample_select.cuh, and so is the choice.
 *
 * If the distribution is flat, top_p may keep more elements than the list has. Then the last block divides the row
 * into bins of equal width, and lists the elements of the two bins that matter. sample_select.cuh decides where
 * other options reach beyond the list, and where too many values are equal.
 */
#ifndef KERNEL_STEP_SAMPLE_LIST_CUH
#define KERNEL_STEP_SAMPLE_LIST_CUH
#include "kernel/step/sample_select.cuh"

#define WANTED 1024
#define LEADERS (STEP_SAMPLE_PARTS_MAX / 2) /* parts whose threads' largest values are looked at */
#define SORT_BY_RANK 256

static __device__ __forceinline__ struct step_sample_listed *listed_of(const struct step_sample_args *a, uint32_t row)
{
	const uint64_t bytes = sizeof(struct step_sample_listed) + (uint64_t)a->parts * THREADS * 2;

	return (struct step_sample_listed *)((char *)a->bins + row * bytes);
}

/* Behind the bins and the table of biases. */
static __device__ __forceinline__ uint64_t *shared_list(void)
{
	return (uint64_t *)((char *)(shared_bins() + 1) + STEP_SAMPLE_HASH * 8);
}

static __device__ __forceinline__ uint16_t *leaders_of(struct step_sample_listed *l)
{
	return (uint16_t *)(l + 1);
}

static __device__ __forceinline__ int all_may_be_chosen(const struct step_sample_row *r)
{
	return r->top_k <= 0 && !(r->top_p < 1) && !(r->min_p > 0);
}

/* The upper 16 bits of the smallest keys in the list. */
static __device__ uint32_t border_of(const struct view *w, struct notes *n)
{
	const uint16_t *leaders = leaders_of(listed_of(w->a, w->row));
	const uint32_t top_k = w->r->top_k > 0 ? (uint32_t)w->r->top_k : WANTED;
	uint32_t own[LEADERS];

#pragma unroll
	for (uint32_t p = 0; p < LEADERS; p++)
		own[p] = p < w->a->parts ? leaders[p * THREADS + threadIdx.x] : 0;
	return reached16(own, LEADERS, top_k < WANTED ? top_k : WANTED, n);
}

/* Sums the part's weights, and appends its largest elements to the row's list. */
static __device__ void list_part(const struct view *w, const struct part *p, struct notes *n)
{
	const struct view own = *w; /* in registers */
	struct step_sample_listed *to = listed_of(w->a, w->row);
	const int by_id = all_may_be_chosen(w->r);
	const int sums = w->r->top_k <= 0 || w->r->top_k > WANTED; /* else the list has all that count */
	const uint32_t border = by_id ? 0 : border_of(w, n);
	const uint32_t least = by_id ? ~0u : border ? border << 16 : 1;
	uint64_t *list = shared_list(), mass = 0;
	uint32_t count = 0, listed, at;

	if (threadIdx.x == 0)
		n->last = 0;
	__syncthreads();
	for (uint32_t id = p->begin + threadIdx.x * 8; id < p->end; id += THREADS * 8) {
		uint32_t key[8];

		keys8(&own, id, p->end, key);
#pragma unroll
		for (int j = 0; j < 8; j++)
			count += key[j] != 0;
		if (sums) {
#pragma unroll
			for (int j = 0; j < 8; j++)
				mass += weight_of(&own, key[j]);
		}
#pragma unroll
		for (int j = 0; j < 8; j++) {
			if (key[j] >= least) {
				at = atomicAdd(&n->last, 1u);
				if (at < STEP_SAMPLE_LIST)
					list[at] = (uint64_t)key[j] << 32 | (0xffffffffu - (id + j));
			}
		}
	}
	mass = block_scan(mass, n).all;
	count = (uint32_t)block_scan(count, n).all;
	listed = n->last;
	if (threadIdx.x == 0) {
		to->mass[p->number] = mass;
		to->count[p->number] = count;
		n->word[0] = listed ? atomicAdd(&to->listed, listed) : 0;
	}
	__syncthreads();
	at = (uint32_t)n->word[0];
	for (uint32_t i = threadIdx.x; i < listed && i < STEP_SAMPLE_LIST && at + i < STEP_SAMPLE_LIST; i += THREADS)
		to->list[at + i] = list[i];
}

/* -- the list in order -- */

/* An element's place is the number of larger ones. */
static __device__ void sort_by_rank(uint64_t *list, uint32_t listed)
{
	const uint64_t own = threadIdx.x < listed ? list[threadIdx.x] : 0;
	uint32_t larger = 0;

	if (own)
		for (uint32_t i = 0; i < listed; i++)
			larger += list[i] > own;
	__syncthreads();
	if (own)
		list[larger] = own;
	__syncthreads();
}

/* Bitonic, the largest first; `size` is a power of two and at least 2 * THREADS. A warp's pairs at a distance up to
 * their number are its own. */
static __device__ void sort_bitonic(uint64_t *list, uint32_t size)
{
	const uint32_t own = size / 2 / WARPS;
	const uint32_t first = threadIdx.x / 32 * own + threadIdx.x % 32;

	for (uint32_t span = 2; span <= size; span *= 2)
		for (uint32_t step = span / 2; step; step /= 2) {
			for (uint32_t i = first; i < first + own; i += 32) {
				const uint32_t low = 2 * i - (i & (step - 1)); /* with its pair `step` behind it */
				const uint64_t x = list[low], y = list[low + step];

				if ((x < y) == !(low & span)) {
					list[low] = y;
					list[low + step] = x;
				}
			}
			if (step > own || (step == 1 && span > own))
				__syncthreads();
			else
				__syncwarp();
		}
	__syncthreads();
}

/* The row's list in shared memory in order, with zeros behind it. */
struct sorted {
	const uint64_t *list;
	uint32_t listed, each;	/* elements of a thread */
	uint64_t count, mass;	/* of all elements of the row */
	uint64_t before, in_list; /* weight of the list's elements before the thread's, and of all */
};

static __device__ __forceinline__ uint64_t weight_at(const struct view *w, const struct sorted *s, uint32_t i)
{
	const uint32_t key = (uint32_t)(s->list[i] >> 32);

	return key ? weight_of(w, key) : 0;
}

/* Sorts the `listed` elements in shared memory. */
static __device__ __noinline__ void sort_list(const struct view *w, struct sorted *s, struct notes *n)
{
	uint64_t *list = shared_list(), mass = 0;
	uint32_t size = THREADS;
	struct scan64 all;

	while (size < s->listed || (size < 2 * THREADS && s->listed > SORT_BY_RANK))
		size *= 2;
	for (uint32_t i = s->listed + threadIdx.x; i < size; i += THREADS)
		list[i] = 0;
	__syncthreads();
	if (s->listed <= SORT_BY_RANK)
		sort_by_rank(list, s->listed);
	else
		sort_bitonic(list, size);
	s->list = list;
	s->each = size / THREADS;
	for (uint32_t i = threadIdx.x * s->each; i < (threadIdx.x + 1) * s->each; i++)
		mass += weight_at(w, s, i);
	all = block_scan(mass, n);
	s->before = all.before;
	s->in_list = all.all;
}

/* The element at which the weight passes `past`, and the weight up to its end; 0: it is not in the list. */
struct reach {
	uint32_t found, at;
	uint64_t end;
};

static __device__ struct reach find_in_list(const struct view *w, const struct sorted *s, uint64_t past, struct notes *n)
{
	struct reach *found = (struct reach *)n->word, f = {0, 0, 0};
	uint64_t end = s->before;

	if (past >= s->in_list)
		return f;
	if (s->before <= past)
		for (uint32_t i = threadIdx.x * s->each; i < (threadIdx.x + 1) * s->each; i++) {
			const uint64_t own = weight_at(w, s, i);

			end += own;
			if (end > past) {
				if (end - own <= past) {
					found->at = i;
					found->end = end;
				}
				break;
			}
		}
	__syncthreads();
	f = *found;
	f.found = 1;
	__syncthreads();
	return f;
}

/* The number and weight of elements whose weight is at least `least`. Returns 0 if there may be some that are not
 * in the list: exponentials are in order but for rounding. */
static __device__ int heavy_in_list(const struct view *w, const struct sorted *s, uint64_t least, struct notes *n,
				    uint64_t *count, uint64_t *mass)
{
	const uint64_t last = s->listed ? weight_at(w, s, s->listed - 1) : 0;
	uint64_t c = 0, m = 0;

	for (uint32_t i = threadIdx.x * s->each; i < (threadIdx.x + 1) * s->each && i < s->listed; i++) {
		const uint64_t own = weight_at(w, s, i);

		c += own >= least;
		m += own >= least ? own : 0;
	}
	*count = block_scan(c, n).all;
	*mass = block_scan(m, n).all;
	return s->listed == s->count || last < least - least / 65536;
}

/* choose_view's rules. Returns 0 if the list does not reach far enough. */
static __device__ int choose_sorted(const struct view *w, const struct sorted *s, struct notes *n, uint32_t *id)
{
	const struct step_sample_row *r = w->r;
	uint64_t kept = s->listed == s->count ? s->in_list : s->mass, elements = ~(uint64_t)0, count, mass = 0;
	struct reach f;

	if (r->top_k > 0 && (uint64_t)r->top_k < s->count) {
		elements = (uint64_t)r->top_k;
		if (elements > s->listed)
			return 0;
		for (uint32_t i = threadIdx.x * s->each; i < (threadIdx.x + 1) * s->each && i < elements; i++)
			mass += weight_at(w, s, i);
		kept = block_scan(mass, n).all;
	}
	if (r->top_p < 1) {
		const uint64_t target = part_of_mass((double)r->top_p, kept);

		f = find_in_list(w, s, target ? target - 1 : 0, n);
		if (!f.found)
			return 0;
		elements = f.at + 1;
		kept = f.end;
	}
	if (r->min_p > 0) {
		const int whole = heavy_in_list(w, s, part_of_mass((double)r->min_p, (uint64_t)UNIT), n, &count, &mass);

		/* More elements than those that are kept do not matter. */
		if (!whole && elements > s->listed)
			return 0;
		if (count < elements && mass < kept)
			kept = mass;
	}
	f = find_in_list(w, s, part_of_mass(row_random(r), kept), n);
	*id = best_id(s->list[f.at]);
	return (int)f.found;
}

/* -- flat distributions -- */

#define BINS_OF_HALF 128.0f /* bins in which the weight halves */

/* A larger value has the same bin or a larger one. Bin 0: weights below 2^-31. */
static __device__ __forceinline__ uint32_t even_bin(const struct view *w, uint32_t key)
{
	const float x = (w->most - of_ordered(key)) * (w->rate * BINS_OF_HALF);

	return x < (float)(STEP_SAMPLE_BINS - 1) ? STEP_SAMPLE_BINS - 1 - (uint32_t)x : 0;
}

/* Two adds of 32 bits: shared memory has none of 64. */
static __device__ __forceinline__ void add_mass(uint64_t *to, uint64_t v)
{
	uint32_t *half = (uint32_t *)to;
	const uint32_t low = (uint32_t)v, old = atomicAdd(&half[0], low);
	const uint32_t high = (uint32_t)(v >> 32) + (old + low < old);

	if (high)
		atomicAdd(&half[1], high);
}

static __device__ __noinline__ void count_even(const struct view *w)
{
	const struct view own = *w; /* in registers */
	struct bins *b = shared_bins();
	uint64_t tail = 0;

	for (uint32_t i = threadIdx.x; i < STEP_SAMPLE_BINS; i += THREADS) {
		b->mass[i] = 0;
		b->count[i] = 0;
	}
	__syncthreads();
	for (uint32_t id = threadIdx.x * 8; id < w->a->vocab; id += THREADS * 8) {
		uint32_t key[8];

		keys8(&own, id, w->a->vocab, key);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			const uint32_t bin = key[j] ? even_bin(&own, key[j]) : 0;

			if (bin) {
				atomicAdd(&b->count[bin], 1u);
				add_mass(&b->mass[bin], weight_of(&own, key[j]));
			} else if (key[j]) {
				tail += weight_of(&own, key[j]);
			}
		}
	}
	tail = warp_sum_u64(tail);
	if (threadIdx.x % 32 == 0 && tail) {
		b->count[0] = STEP_SAMPLE_LIST + 1; /* any number that no list holds */
		add_mass(&b->mass[0], tail);
	}
	__syncthreads();
}

/* Lists a bin's elements in order. Returns 0 if they are too many. */
static __device__ int list_bin(const struct view *w, const struct found_bin *f, struct sorted *s, struct notes *n)
{
	const struct view own = *w; /* in registers */
	uint64_t *list = shared_list();

	if (!f->bin || f->elements > STEP_SAMPLE_LIST)
		return 0;
	__syncthreads();
	if (threadIdx.x == 0)
		n->last = 0;
	__syncthreads();
	for (uint32_t id = threadIdx.x * 8; id < w->a->vocab; id += THREADS * 8) {
		uint32_t key[8];

		keys8(&own, id, w->a->vocab, key);
#pragma unroll
		for (int j = 0; j < 8; j++)
			if (key[j] && even_bin(&own, key[j]) == f->bin)
				list[atomicAdd(&n->last, 1u)] = (uint64_t)key[j] << 32 | (0xffffffffu - (id + j));
	}
	__syncthreads();
	s->listed = f->elements;
	sort_list(w, s, n);
	return 1;
}

/* top_p alone: first where it ends, then the choice. `mass`: of all elements. Returns 0 if choose_view has to make
 * the choice. */
static __device__ __noinline__ int choose_binned(const struct view *w, uint64_t mass, struct notes *n, uint32_t *id)
{
	const struct step_sample_row *r = w->r;
	const uint64_t target = part_of_mass((double)r->top_p, mass);
	uint64_t past = target ? target - 1 : 0;
	struct found_bin f, end;
	struct sorted s;
	struct reach e;

	if (r->top_k > 0 || r->min_p > 0 || !(r->top_p < 1))
		return 0;
	count_even(w);
	end = find_bin(past, 1, n);
	if (!list_bin(w, &end, &s, n))
		return 0;
	e = find_in_list(w, &s, past - end.mass, n);
	if (!e.found)
		return 0;
	past = part_of_mass(row_random(r), end.mass + e.end);
	f = find_bin(past, 1, n);
	if (f.bin != end.bin && !list_bin(w, &f, &s, n))
		return 0;
	e = find_in_list(w, &s, past - f.mass, n);
	*id = best_id(s.list[e.at]);
	return (int)e.found;
}

/* The choice by the row's last block. Returns 0 if choose_view has to make it. */
static __device__ int choose_listed(const struct view *w, struct notes *n, uint32_t *id)
{
	const uint32_t lane = threadIdx.x % 32;
	struct step_sample_listed *from = listed_of(w->a, w->row);
	const uint64_t own = lane < w->a->parts ? __ldcg(&from->mass[lane]) : 0;
	uint64_t past;
	struct sorted s;

	s.mass = warp_sum_u64(own);
	s.count = warp_sum_u32(lane < w->a->parts ? __ldcg(&from->count[lane]) : 0);
	if (all_may_be_chosen(w->r)) {
		uint32_t number = 0;

		past = part_of_mass(row_random(w->r), s.mass);
		for (; number + 1 < w->a->parts && past >= lane_u64(own, number); number++)
			past -= lane_u64(own, number);
		*id = element_in_ids(w, part_begin(w->a, number), part_begin(w->a, number + 1), 0, past, n);
		return 1;
	}
	s.listed = __ldcg(&from->listed);
	if (s.listed > STEP_SAMPLE_LIST)
		return choose_binned(w, s.mass, n, id);
	for (uint32_t i = threadIdx.x; i < s.listed; i += THREADS)
		shared_list()[i] = __ldcg(&from->list[i]);
	sort_list(w, &s, n);
	return choose_sorted(w, &s, n, id) || choose_binned(w, s.mass, n, id);
}
#endif
