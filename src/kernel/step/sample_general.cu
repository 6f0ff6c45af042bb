/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sampling with every option (sample.h). step_sample_scan finds the largest value of each part, and what log
 * probabilities need. step_sample_choose sums the weights of each part relative to the row's largest value, and
 * lists the row's largest values; the row's last block finds the choice among them (sample_list.cuh).
 * Reference: tests/gpu/ref_step_sample.c.
 */
#include "kernel/step/sample_list.cuh"

/* -- bias -- */

/* The first of equal ids gets the sum of all. */
static __device__ void insert_bias(const struct step_sample_bias *bias, uint32_t count, uint32_t i, uint32_t *ids,
				   float *adds)
{
	const uint32_t id = (uint32_t)bias[i].id;
	uint32_t slot = bias_slot(id);
	float add = bias[i].add;

	for (uint32_t j = 0; j < i; j++)
		if ((uint32_t)bias[j].id == id)
			return;
	for (uint32_t j = i + 1; j < count; j++)
		if ((uint32_t)bias[j].id == id)
			add += bias[j].add;
	while (atomicCAS(&ids[slot], 0u, id + 1) != 0)
		slot = (slot + 1) % STEP_SAMPLE_HASH;
	adds[slot] = add;
}

/* The view of a row; its table of biases is in shared memory, behind the bins. */
static __device__ struct view view_of(const struct step_sample_args *a, uint32_t row)
{
	uint32_t *ids = (uint32_t *)(shared_bins() + 1);
	float *adds = (float *)(ids + STEP_SAMPLE_HASH);
	struct view w = view_plain(a, row);

	if (w.r->counted)
		w.counts = a->counts + w.r->place * a->ld_counts;
	if (w.r->mask >= 0)
		w.mask = a->mask + (uint64_t)w.r->mask * a->mask_words;
	if (w.r->biases <= 0)
		return w;
	for (uint32_t i = threadIdx.x; i < STEP_SAMPLE_HASH; i += THREADS)
		ids[i] = 0;
	__syncthreads();
	for (uint32_t i = threadIdx.x; i < (uint32_t)w.r->biases; i += THREADS)
		insert_bias(a->bias + w.r->bias_begin, (uint32_t)w.r->biases, i, ids, adds);
	__syncthreads();
	w.bias_id = ids;
	w.bias_add = adds;
	return w;
}

/* -- scan -- */

/* The largest value with its id; 0: none yet. A thread's ids ascend, so the first of equals stays. */
struct leader {
	uint32_t key, id;
};

static __device__ __forceinline__ void lead(struct leader *l, uint32_t key, uint32_t id)
{
	if (key > l->key) {
		l->key = key;
		l->id = id;
	}
}

static __device__ __forceinline__ uint64_t leader_best(const struct leader *l)
{
	return l->key ? (uint64_t)l->key << 32 | (0xffffffffu - l->id) : 0;
}

/* The best of the part, with options and (if `raw` is wanted) without, and whether a logit is NaN or infinite.
 * The thread's own are in *own and *raw. */
static __device__ __forceinline__ void scan_bests(const struct view *w, const struct part *p, struct leader *own,
						  struct leader *raw, int wanted, struct notes *n,
						  struct step_sample_part *out)
{
	uint32_t largest = 0;

	for (uint32_t id = p->begin + threadIdx.x * 8; id < p->end; id += THREADS * 8) {
		uint32_t key[8];
		float v[8];
		const uint32_t most = view8(w, id, p->end, v, key);

		largest = most > largest ? most : largest;
#pragma unroll
		for (int j = 0; j < 8; j++)
			lead(own, key[j], id + j);
		if (!wanted)
			continue;
#pragma unroll
		for (int j = 0; j < 8; j++)
			lead(raw, id + j < p->end ? ordered(v[j]) : 0, id + j);
	}
	out->best = block_best(leader_best(own), n);
	out->raw_best = wanted ? block_best(leader_best(raw), n) : 0;
	out->infinite = block_best(largest, n) >= 0x7f800000u;
}

#define TOPS_LIST 1024

/* The sum of exp(logit - most) of the part. With `count`, also lists the logits whose upper 16 bits are at least
 * `least` in shared memory; n->last has their number. */
static __device__ double raw_sum(const struct view *w, const struct part *p, float most, int32_t count, uint32_t least,
				 struct notes *n)
{
	uint64_t *list = (uint64_t *)shared_bins();
	double sum = 0;

	if (threadIdx.x == 0)
		n->last = 0;
	__syncthreads();
	for (uint32_t id = p->begin + threadIdx.x * 8; id < p->end; id += THREADS * 8) {
		float v[8], eight = 0;

		logits8(w->a, p->row, id, p->end, w->wide, v);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			if (id + j >= p->end)
				continue;
			eight += expf(v[j] - most);
			if (count > 0 && ordered(v[j]) >> 16 >= least) {
				const uint32_t at = atomicAdd(&n->last, 1u);

				if (at < TOPS_LIST)
					list[at] = best_of(v[j], id + j);
			}
		}
		sum += (double)eight;
	}
	return block_scan_f64(sum, n).all;
}

/* The largest raw logit of the thread's elements that is below `below`. */
static __device__ uint64_t next_best(const struct view *w, const struct part *p, uint64_t below)
{
	uint64_t best = 0;

	for (uint32_t id = p->begin + threadIdx.x * 8; id < p->end; id += THREADS * 8) {
		float v[8];

		logits8(w->a, p->row, id, p->end, w->wide, v);
#pragma unroll
		for (int j = 0; j < 8; j++) {
			const uint64_t own = id + j < p->end ? best_of(v[j], id + j) : 0;

			best = own < below && own > best ? own : best;
		}
	}
	return best;
}

/* The part's `count` largest logits in order, without a list: many are equal. Only the thread that had the last one
 * looks for its next. */
static __device__ __noinline__ void scan_tops(const struct view *w, const struct part *p, int32_t count, struct notes *n)
{
	uint64_t *out = w->a->tops + (uint64_t)blockIdx.x * STEP_SAMPLE_TOPS;
	uint64_t own = next_best(w, p, ~(uint64_t)0), best = ~(uint64_t)0;

	for (int32_t i = 0; i < count; i++) {
		if (own == best && best)
			own = next_best(w, p, best);
		best = block_best(own, n);
		if (threadIdx.x == 0)
			out[i] = best;
	}
}

/* The same from the list: an element's place is the number of larger ones. */
static __device__ void list_tops(const struct step_sample_args *a, uint32_t listed, int32_t count)
{
	const uint64_t *list = (const uint64_t *)shared_bins();
	uint64_t *out = a->tops + (uint64_t)blockIdx.x * STEP_SAMPLE_TOPS;

	for (uint32_t i = threadIdx.x; i < listed; i += THREADS) {
		const uint64_t own = list[i];
		uint32_t larger = 0;

		for (uint32_t j = 0; j < listed; j++)
			larger += list[j] > own;
		if (larger < (uint32_t)count)
			out[larger] = own;
	}
	for (uint32_t i = listed + threadIdx.x; i < (uint32_t)count; i += THREADS)
		out[i] = 0;
}

/* What log probabilities need. At least `count` logits reach the count-th largest of the threads' largest. */
static __device__ void scan_raw(const struct view *w, const struct part *p, const struct leader *raw, int32_t count,
				struct notes *n, struct step_sample_part *found)
{
	const uint32_t own = raw->key >> 16;
	const uint32_t least = count > 0 ? reached16(&own, 1, (uint32_t)count, n) : 0;
	uint32_t listed;

	found->raw_sum = raw_sum(w, p, best_value(found->raw_best), count, least, n);
	listed = n->last;
	if (count <= 0)
		return;
	if (listed <= TOPS_LIST)
		list_tops(w->a, listed, count);
	else
		scan_tops(w, p, count, n);
}

ENTRY void __launch_bounds__(THREADS, 2) step_sample_scan(const __grid_constant__ struct step_sample_args a)
{
	struct notes *n = (struct notes *)shared;
	const struct part p = part_of(&a);
	const struct step_sample_row *r = &a.row[p.row];
	struct step_sample_listed *to = listed_of(&a, p.row);
	struct step_sample_part found = {0, 0, 0, 0, 0};
	struct leader own = {0, 0}, raw = {0, 0};
	struct view w;
	int wanted;

	let_next_begin();
	wait_for_earlier();
	w = view_of(&a, p.row);
	wanted = r->logprobs >= 0 || r->given >= 0;
	scan_bests(&w, &p, &own, &raw, wanted, n, &found);
	leaders_of(to)[p.number * THREADS + threadIdx.x] = (uint16_t)(own.key >> 16);
	if (wanted && !found.infinite && found.raw_best)
		scan_raw(&w, &p, &raw, r->logprobs, n, &found);
	else if (r->logprobs > 0 && threadIdx.x < STEP_SAMPLE_TOPS)
		a.tops[(uint64_t)blockIdx.x * STEP_SAMPLE_TOPS + threadIdx.x] = 0;
	if (threadIdx.x == 0) {
		a.part[blockIdx.x] = found;
		if (p.number == 0)
			to->listed = 0;
	}
}

/* -- choose -- */

/* What the parts of a row found together. */
struct whole {
	uint64_t best, raw_best;
	double log_sum; /* of exp(logit - largest logit) */
	uint32_t infinite;
};

static __device__ struct whole whole_of(const struct step_sample_args *a, uint32_t row)
{
	const struct step_sample_part *part = a->part + (uint64_t)row * a->parts;
	const uint32_t lane = threadIdx.x % 32;
	struct step_sample_part own = {0, 0, 0, 0, 0};
	struct whole t;
	double sum;

	if (lane < a->parts)
		own = part[lane];
	t.best = warp_best(own.best);
	t.raw_best = warp_best(own.raw_best);
	t.infinite = (uint32_t)warp_best(own.infinite);
	sum = own.raw_best && !t.infinite
		      ? own.raw_sum * exp((double)best_value(own.raw_best) - (double)best_value(t.raw_best))
		      : 0;
	for (unsigned offset = 16; offset; offset /= 2)
		sum += lane_f64(sum, lane ^ offset);
	t.log_sum = log(sum);
	return t;
}

/* The parts' largest logits merged, by one warp. */
static __device__ void put_tops(const struct step_sample_args *a, uint32_t row, const struct whole *t, int32_t count)
{
	const uint64_t *tops = a->tops + (uint64_t)row * a->parts * STEP_SAMPLE_TOPS;
	int32_t *out = a->results + (int64_t)row * a->ld_results;
	const uint32_t lane = threadIdx.x % 32;
	int32_t own = 0, made = 0;

	for (; made < count; made++) {
		const uint64_t v = lane < a->parts && own < count ? tops[lane * STEP_SAMPLE_TOPS + own] : 0;
		const uint64_t best = warp_best(v);

		if (!best)
			break;
		own += v == best;
		if (lane == 0) {
			out[4 + made] = (int32_t)best_id(best);
			((float *)out)[4 + STEP_SAMPLE_TOPS + made] =
				(float)((double)best_value(best) - (double)best_value(t->raw_best) - t->log_sum);
		}
	}
	if (lane == 0)
		out[3] = made;
}

static __device__ void count_id(const struct step_sample_args *a, const struct step_sample_row *r, uint32_t id)
{
	uint16_t *count = a->counts + r->place * a->ld_counts + id;

	if ((*count & 0x7fffu) < 0x7fffu)
		*count = (uint16_t)(*count + 1);
}

/* By the first warp of the row's deciding block. */
static __device__ void put_all(const struct step_sample_args *a, uint32_t row, const struct whole *t, uint32_t id,
			       int32_t status)
{
	const struct step_sample_row *r = &a->row[row];
	int32_t *out = a->results + (int64_t)row * a->ld_results;

	if (threadIdx.x == 0) {
		put_result(a, row, (int32_t)id, status);
		if (status == SAMPLE_OK && (r->logprobs >= 0 || r->given >= 0))
			((float *)out)[2] = (float)((double)logit_at(a, row, id) - (double)best_value(t->raw_best) -
						    t->log_sum);
		if (r->counted && status == SAMPLE_OK)
			count_id(a, r, id);
	}
	__syncwarp();
	if (status == SAMPLE_OK && r->logprobs > 0)
		put_tops(a, row, t, r->logprobs);
}

ENTRY void __launch_bounds__(THREADS, 2) step_sample_choose(const __grid_constant__ struct step_sample_args a)
{
	struct notes *n = (struct notes *)shared;
	const struct part p = part_of(&a);
	const struct step_sample_row *r = &a.row[p.row];
	uint32_t id = 0;
	struct whole t;
	struct view w;

	let_next_begin();
	wait_for_earlier();
	t = whole_of(&a, p.row);
	if (t.infinite || r->given >= 0 || !t.best || r->temperature == 0) {
		const int32_t status = t.infinite ? SAMPLE_NOT_FINITE : r->given < 0 && !t.best ? SAMPLE_EMPTY : SAMPLE_OK;

		id = status ? 0 : r->given >= 0 ? (uint32_t)r->given : best_id(t.best);
		if (p.number == 0 && threadIdx.x < 32)
			put_all(&a, p.row, &t, id, status);
		return;
	}
	w = view_of(&a, p.row);
	view_weigh(&w, best_value(t.best));
	list_part(&w, &p, n);
	if (!is_last(&a, p.row, n))
		return;
	if (!choose_listed(&w, n, &id))
		id = choose_view(&w, n);
	if (threadIdx.x < 32)
		put_all(&a, p.row, &t, id, SAMPLE_OK);
}

/* -- counts -- */

/* Counts of two ids share a word. The counter's half is changed as a whole, so it cannot overflow into the
 * other. */
static __device__ void count_one(uint16_t *counts, uint32_t id, int prompt)
{
	uint32_t *word = (uint32_t *)((uint64_t)(counts + id) & ~(uint64_t)3);
	const uint32_t shift = (uint64_t)(counts + id) & 2 ? 16 : 0;
	uint32_t old = *word, seen;

	for (;;) {
		const uint32_t had = old >> shift & 0xffffu;
		uint32_t now = prompt ? had | 0x8000u : had;

		if (!prompt && (had & 0x7fffu) < 0x7fffu)
			now++;
		seen = atomicCAS(word, old, (old & ~(0xffffu << shift)) | now << shift);
		if (seen == old)
			return;
		old = seen;
	}
}

ENTRY void __launch_bounds__(1024, 1) step_sample_count(const __grid_constant__ struct step_count_args a)
{
	let_next_begin();
	wait_for_earlier();
	if (a.clear)
		for (uint32_t i = threadIdx.x; i < a.vocab; i += blockDim.x)
			a.counts[i] = 0;
	__threadfence();
	__syncthreads();
	for (uint64_t i = threadIdx.x; i < a.count; i += blockDim.x)
		if ((uint32_t)a.id[i] < a.vocab)
			count_one(a.counts, (uint32_t)a.id[i], i < a.prompt);
}
