/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Selection of an element of a row in the order of its values, without a sort: the most significant bits of the
 * ordered values divide the row into bins, and the next bits divide the bin that the position falls into. Each
 * bin has the number of its elements and their weight in integers, so sums are exact and do not depend on the
 * order of additions.
 */
#ifndef KERNEL_STEP_SAMPLE_SELECT_CUH
#define KERNEL_STEP_SAMPLE_SELECT_CUH
#include "kernel/step/sample.cuh"

#define BIN_SHIFT 20 /* bits of an ordered value below the first level's bins */
#define UNIT 0x1p44f /* weight of the largest element */

/* A row with its options: values after penalties, bias and mask. */
struct view {
	const struct step_sample_args *a;
	const struct step_sample_row *r;
	const uint16_t *counts; /* NULL: no penalties */
	const uint32_t *mask;	/* NULL: all ids are allowed */
	const uint32_t *bias_id; /* hash table in shared memory: id + 1, or 0; NULL: no bias */
	const float *bias_add;
	uint32_t row;
	int wide, wide_counts;
	float most;	  /* largest value */
	float rate, rest; /* log2(e) / temperature, and its rounding error */
};

static __device__ __forceinline__ struct view view_plain(const struct step_sample_args *a, uint32_t row)
{
	struct view w;

	w.a = a;
	w.r = &a->row[row];
	w.counts = NULL;
	w.mask = NULL;
	w.bias_id = NULL;
	w.bias_add = NULL;
	w.row = row;
	w.wide = row_is_wide(a);
	w.wide_counts = wide16(a->counts, a->ld_counts * 2);
	w.most = 0;
	w.rate = 0;
	w.rest = 0;
	return w;
}

static __device__ __forceinline__ void view_weigh(struct view *w, float most)
{
	const double rate = 1.4426950408889634 / (double)w->r->temperature;

	w->most = most;
	w->rate = (float)rate;
	w->rest = rate < 1e30 ? (float)(rate - (double)w->rate) : 0;
}

static __device__ __forceinline__ uint32_t bias_slot(uint32_t id)
{
	return id * 2654435761u >> 21;
}
static_assert(STEP_SAMPLE_HASH == 1 << 11, "bits of bias_slot");

/* Rounded after each operation, as on the CPU. */
static __device__ __forceinline__ float penalized(const struct step_sample_row *r, float v, uint32_t count)
{
	const uint32_t times = count & 0x7fffu;

	v = v > 0 ? v / r->repetition : v * r->repetition;
	if (!times)
		return v;
#ifndef EMULATED
	return __fsub_rn(v, __fadd_rn(__fmul_rn(r->frequency, (float)times), r->presence));
#else
	return v - (r->frequency * (float)times + r->presence);
#endif
}

static __device__ __forceinline__ float biased(const struct view *w, float v, uint32_t id)
{
	uint32_t slot = bias_slot(id);

	for (; w->bias_id[slot]; slot = (slot + 1) % STEP_SAMPLE_HASH)
		if (w->bias_id[slot] == id + 1)
			return v + w->bias_add[slot];
	return v;
}

/* The ordered value of an id that the mask allows; 0: penalties or a bias exclude it. */
static __device__ __forceinline__ uint32_t key_with(const struct view *w, float v, uint32_t id, uint32_t count)
{
	if (count)
		v = penalized(w->r, v, count);
	if (w->bias_id)
		v = biased(w, v, id);
	if (w->counts || w->bias_id) {
		if (!(v >= -3.402823466e38f))
			return 0;
		v = fminf(v, 3.402823466e38f);
	}
	return ordered(v);
}

/* The ordered value; 0: the id is not allowed. */
static __device__ __forceinline__ uint32_t key_of(const struct view *w, float v, uint32_t id)
{
	if (w->mask && !(w->mask[id / 32] >> id % 32 & 1u))
		return 0;
	return key_with(w, v, id, w->counts ? w->counts[id] : 0);
}

/* Logits and keys of eight ids from a multiple of eight on; keys are 0 from `end` on. Returns the largest
 * magnitude's bits of the logits. */
static __device__ __forceinline__ uint32_t view8(const struct view *w, uint32_t id, uint32_t end, float v[8],
						 uint32_t key[8])
{
	const uint32_t allowed = w->mask ? w->mask[id / 32] >> id % 32 : ~0u;
	uint4 counts = make_uint4(0, 0, 0, 0);
	uint32_t largest = 0;

	logits8(w->a, w->row, id, end, w->wide, v);
	if (w->counts)
		counts = load8(w->counts + id, (int64_t)end - id, w->wide_counts);
	const uint32_t c[4] = {counts.x, counts.y, counts.z, counts.w};

#pragma unroll
	for (int j = 0; j < 8; j++) {
		key[j] = 0;
		if (id + j < end) {
			const uint32_t bits = __float_as_uint(v[j]) & 0x7fffffffu;

			largest = bits > largest ? bits : largest;
			if (allowed >> j & 1u)
				key[j] = key_with(w, v[j], id + j, c[j / 2] >> j % 2 * 16 & 0xffffu);
		}
	}
	return largest;
}

static __device__ __forceinline__ void keys8(const struct view *w, uint32_t id, uint32_t end, uint32_t key[8])
{
	float v[8];

	(void)view8(w, id, end, v, key);
}

/* 2^x for -126 <= x, as exp2f has it. */
static __device__ __forceinline__ float power_of_two(float x)
{
#if defined(__CUDA_ARCH__)
	float v;

	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
	return v;
#else
	return exp2f(x);
#endif
}

/* exp((value - most) / temperature) in units; 0 for what is too small to count, and for key 0, which is NaN. Without
 * branches: weights of neighbours are computed side by side. */
static __device__ __forceinline__ uint64_t weight_of(const struct view *w, uint32_t key)
{
	const float x = of_ordered(key) - w->most, t = x * w->rate;
	float exponent = t + fmaf(x, w->rest, fmaf(x, w->rate, -t));

	exponent = t > -60.0f ? exponent : -64.0f; /* 2^-20 units */
	exponent = x == 0 ? 0 : exponent;
	return (uint64_t)(power_of_two(exponent) * UNIT);
}

static __device__ __forceinline__ void add_u64(uint64_t *p, uint64_t v)
{
#ifndef EMULATED
	atomicAdd((unsigned long long *)p, (unsigned long long)v);
#else
	emulate_add64(p, v);
#endif
}

/* Bins in shared memory. */
struct bins {
	uint64_t mass[STEP_SAMPLE_BINS];
	uint32_t count[STEP_SAMPLE_BINS];
};
static_assert(STEP_SAMPLE_BINS == 1 << (32 - BIN_SHIFT), "the first level has all keys");
static_assert(sizeof(struct bins) == STEP_SAMPLE_BINS * 12, "what the host leaves room for");

/* Not a parameter: so the compiler knows that this is shared memory. */
static __device__ __forceinline__ struct bins *shared_bins(void)
{
	return (struct bins *)((char *)shared + STEP_SAMPLE_NOTES);
}

/* Elements whose weight is below 2^-20 of the largest are usually most of the row, and seldom chosen. The first
 * level has them in one bin, which has no room in the order beside them: their sums stay in registers. */
#define TAIL_LOG2 20.0f

/* The bin of the tail; 0: there is none. */
static __device__ __forceinline__ uint32_t tail_bin(const struct view *w)
{
	const float least = w->most - TAIL_LOG2 / w->rate;

	return least > -3e38f && least < w->most ? (ordered(least) >> BIN_SHIFT) - 1 : 0;
}

static __device__ __forceinline__ uint64_t warp_sum_u64(uint64_t v)
{
	for (unsigned offset = 16; offset; offset /= 2)
		v += lane_u64(v, (threadIdx.x % 32) ^ offset);
	return v;
}

/* Counts the elements begin .. end - 1 whose keys are base .. base + (bins << shift) - 1. Those of bins up to
 * `tail` count as of bin `tail`. */
static __device__ __noinline__ void count_keys(const struct view *w, uint32_t begin, uint32_t end, uint32_t base,
					       uint32_t shift, uint32_t bins, uint32_t tail)
{
	struct bins *b = shared_bins();
	uint64_t tail_mass = 0, tail_count = 0;

	for (uint32_t i = threadIdx.x; i < STEP_SAMPLE_BINS; i += THREADS) {
		b->mass[i] = 0;
		b->count[i] = 0;
	}
	__syncthreads();
	for (uint32_t id = begin + threadIdx.x * 8; id < end; id += THREADS * 8) {
		uint32_t key[8];

		keys8(w, id, end, key);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			const uint32_t bin = (key[j] - base) >> shift;
			uint64_t weight;

			if (!key[j] || key[j] < base || bin >= bins)
				continue;
			weight = weight_of(w, key[j]);
			if (tail && bin <= tail) {
				tail_mass += weight;
				tail_count++;
				continue;
			}
			atomicAdd(&b->count[bin], 1u);
			if (weight)
				add_u64(&b->mass[bin], weight);
		}
	}
	tail_mass = warp_sum_u64(tail_mass);
	tail_count = warp_sum_u64(tail_count);
	if (threadIdx.x % 32 == 0 && tail_count) {
		atomicAdd(&b->count[tail], (uint32_t)tail_count);
		add_u64(&b->mass[tail], tail_mass);
	}
	__syncthreads();
}

/* A position in the order: the element at which the number of elements, or their weight, passes `past`. */
struct position {
	uint32_t key, rank;	       /* of equal keys by id */
	uint64_t count, mass; /* of all elements that come before this key */
	uint64_t weight;      /* of an element with this key */
};

enum { BINS_OF_THREAD = STEP_SAMPLE_BINS / THREADS };

struct found_bin {
	uint32_t bin, elements;
	uint64_t count, mass, own; /* before the bin, and the bin's mass */
};

/* The bin in which the count or the weight passes `past`. If none does, the last bin that has any. */
static __device__ __noinline__ struct found_bin find_bin(uint64_t past, int by_mass, struct notes *n)
{
	const struct bins *b = shared_bins();
	const uint32_t top = STEP_SAMPLE_BINS - 1 - threadIdx.x * BINS_OF_THREAD;
	struct found_bin *found = (struct found_bin *)n->word, f;
	uint64_t count = 0, mass = 0;
	struct scan64 counts, masses;
	uint32_t answers;

	for (uint32_t j = 0; j < BINS_OF_THREAD; j++) {
		count += b->count[top - j];
		mass += b->mass[top - j];
	}
	counts = block_scan(count, n);
	masses = block_scan(mass, n);
	answers = (uint32_t)block_best(
		(by_mass ? mass && masses.before <= past : count && counts.before <= past) ? threadIdx.x + 1 : 0, n);
	if (threadIdx.x + 1 == answers) {
		f.count = counts.before;
		f.mass = masses.before;
		for (uint32_t j = 0; j < BINS_OF_THREAD; j++) {
			if (by_mass ? b->mass[top - j] : b->count[top - j]) {
				found->bin = top - j;
				found->elements = b->count[top - j];
				found->count = f.count;
				found->mass = f.mass;
				found->own = b->mass[top - j];
				if ((by_mass ? f.mass + b->mass[top - j] : f.count + b->count[top - j]) > past)
					break;
			}
			f.count += b->count[top - j];
			f.mass += b->mass[top - j];
		}
	}
	__syncthreads();
	f = *found;
	__syncthreads();
	return f;
}

/* From the first level's bins in shared memory, which are overwritten. */
static __device__ struct position find_position(const struct view *w, uint64_t past, int by_mass, struct notes *n)
{
	struct position p;
	uint32_t shift = BIN_SHIFT, base = 0, tail = tail_bin(w);
	struct found_bin f;

	p.count = 0;
	p.mass = 0;
	for (;;) {
		f = find_bin(past, by_mass, n);
		past -= by_mass ? (f.mass < past ? f.mass : past) : (f.count < past ? f.count : past);
		p.count += f.count;
		p.mass += f.mass;
		base += f.bin << shift;
		if (!shift)
			break;
		if (shift == BIN_SHIFT && tail && f.bin == tail) {
			base = 0;
			count_keys(w, 0, w->a->vocab, base, shift, tail + 1, 0);
			tail = 0;
		} else if (shift == BIN_SHIFT) {
			shift = BIN_SHIFT - 12;
			count_keys(w, 0, w->a->vocab, base, shift, 1u << 12, 0);
		} else {
			count_keys(w, 0, w->a->vocab, base, 0, 1u << shift, 0);
			shift = 0;
		}
	}
	p.key = base;
	p.weight = f.elements ? f.own / f.elements : 0;
	past = by_mass ? (p.weight ? past / p.weight : 0) : past;
	p.rank = past < f.elements ? (uint32_t)past : f.elements - 1;
	return p;
}

/* What an element counts: 1 if it has the key; key 0: its weight. */
static __device__ __forceinline__ uint64_t worth(const struct view *w, uint32_t own, uint32_t key)
{
	return key ? own == key : own ? weight_of(w, own) : 0;
}

/* The id of begin .. end - 1 at which the number of elements with this key passes `past`, in the order of ids; key
 * 0: at which the weight does. Divides the ids among the threads, then a thread's ids again. */
static __device__ __noinline__ uint32_t element_in_ids(const struct view *w, uint32_t begin, uint32_t end,
						       uint32_t key, uint64_t past, struct notes *n)
{
	for (;;) {
		const uint32_t vectors = (end - begin + 7) / 8, each = (vectors + THREADS - 1) / THREADS * 8;
		const uint32_t own = begin + threadIdx.x * each;
		uint64_t sum = 0;
		struct scan64 all;
		uint32_t answers;

		for (uint32_t at = own; at < own + each && at < end; at += 8) {
			uint32_t keys[8];

			keys8(w, at, end, keys);
#pragma unroll
			for (int j = 0; j < 8; j++)
				sum += worth(w, keys[j], key);
		}
		all = block_scan(sum, n);
		answers = (uint32_t)block_best(sum && all.before <= past ? threadIdx.x + 1 : 0, n) - 1;
		if (threadIdx.x == answers)
			n->word[0] = all.before;
		__syncthreads();
		past -= n->word[0] < past ? n->word[0] : past;
		begin += answers * each;
		end = begin + each < end ? begin + each : end;
		__syncthreads();
		if (each == 8)
			break;
	}
	for (uint32_t at = begin, last = begin;; at++) {
		const uint64_t own = worth(w, at < end ? key_of(w, logit_at(w->a, w->row, at), at) : 0, key);

		if (at == end)
			return last;
		last = own ? at : last;
		if (own > past)
			return at;
		past -= own;
	}
}

/* The largest key of begin .. end - 1 with its id; 0: no id is allowed. */
static __device__ uint64_t best_of_view(const struct view *w, uint32_t begin, uint32_t end, struct notes *n)
{
	uint64_t best = 0;

	for (uint32_t id = begin + threadIdx.x * 8; id < end; id += THREADS * 8) {
		uint32_t key[8];

		keys8(w, id, end, key);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			const uint64_t own = (uint64_t)key[j] << 32 | (0xffffffffu - (id + j));

			best = key[j] && own > best ? own : best;
		}
	}
	return block_best(best, n);
}

/* The number and weight of all elements whose weight is at least `least`. */
static __device__ void count_heavy(const struct view *w, uint64_t least, struct notes *n, uint64_t *count,
				   uint64_t *mass)
{
	uint64_t c = 0, m = 0;

	for (uint32_t id = threadIdx.x * 8; id < w->a->vocab; id += THREADS * 8) {
		uint32_t key[8];

		keys8(w, id, w->a->vocab, key);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			const uint64_t weight = key[j] ? weight_of(w, key[j]) : 0;

			c += weight >= least;
			m += weight >= least ? weight : 0;
		}
	}
	*count = block_scan(c, n).all;
	*mass = block_scan(m, n).all;
}

static __device__ void first_level(const struct view *w)
{
	__syncthreads();
	count_keys(w, 0, w->a->vocab, 0, BIN_SHIFT, STEP_SAMPLE_BINS, tail_bin(w));
}

static __device__ uint64_t part_of_mass(double share, uint64_t mass)
{
	const double v = share * (double)mass;

	return v >= (double)mass ? mass : (uint64_t)v;
}

/* top_k, top_p and min_p each keep a beginning of the order; the choice falls into the shortest. The view has
 * weights. */
static __device__ __noinline__ uint32_t choose_view(const struct view *w, struct notes *n)
{
	const struct step_sample_row *r = w->r;
	struct bins *b = shared_bins();
	uint64_t kept, elements = ~(uint64_t)0;
	struct position p;
	uint64_t count = 0, mass = 0;

	first_level(w);
	for (uint32_t i = threadIdx.x; i < STEP_SAMPLE_BINS; i += THREADS) {
		count += b->count[i];
		mass += b->mass[i];
	}
	count = block_scan(count, n).all;
	kept = block_scan(mass, n).all;
	if (r->top_k <= 0 && !(r->top_p < 1) && !(r->min_p > 0))
		return element_in_ids(w, 0, w->a->vocab, 0, part_of_mass(row_random(r), kept), n);
	if (r->top_k > 0 && (uint64_t)r->top_k < count) {
		p = find_position(w, (uint64_t)r->top_k - 1, 0, n);
		elements = p.count + p.rank + 1;
		kept = p.mass + (p.rank + 1) * p.weight;
		first_level(w);
	}
	if (r->top_p < 1) {
		const uint64_t target = part_of_mass((double)r->top_p, kept);

		p = find_position(w, target ? target - 1 : 0, 1, n);
		elements = p.count + p.rank + 1;
		kept = p.mass + (p.rank + 1) * p.weight;
		first_level(w);
	}
	if (r->min_p > 0) {
		count_heavy(w, part_of_mass((double)r->min_p, (uint64_t)UNIT), n, &count, &mass);
		if (count < elements && mass < kept)
			kept = mass;
	}
	p = find_position(w, part_of_mass(row_random(r), kept), 1, n);
	return element_in_ids(w, 0, w->a->vocab, p.key, p.rank, n);
}

/* The choice from a row without other options than temperature and top_p, by one block. */
static __device__ __noinline__ uint32_t choose_all(const struct view *plain, struct notes *n)
{
	const uint64_t best = best_of_view(plain, 0, plain->a->vocab, n);
	struct view w = *plain;

	if (w.r->temperature == 0)
		return best_id(best);
	view_weigh(&w, best_value(best));
	return choose_view(&w, n);
}
#endif
