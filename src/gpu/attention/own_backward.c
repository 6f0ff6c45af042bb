/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention/own_backward.h"
#include <stdio.h>
#include <stdlib.h>
#include "gpu/attention/kernel_args.h"
#include "kernel/attention/backward/args.h"

#define UNEVEN 1.6
#define L2_BYTES (40.0 * 1024 * 1024) /* L2 of an H100 (50 MiB) that concurrent heads may use */

enum { ALIGNMENT = 256, SM90_THREADS = 384, PORTABLE_THREADS = 128, SM90_QUERIES = 128 };

/* adds: dQ is summed in any order */
enum way { ONCE, LATE, SPLIT, AHEAD, BULK, TWO, PORTABLE, WAYS };
static const struct way_row {
	const char *name, *file, *keys; /* keys: the kernel that computes dK and dV */
	bool adds;
	unsigned blocks; /* sm90: thread blocks per unit of keys */
} ways[WAYS] = {
	[ONCE] = {"sm90_once", "attention_backward_sm90", "sm90_once", true, 1},
	[LATE] = {"sm90_late", "attention_backward_sm90", "sm90_late", true, 1},
	[SPLIT] = {"sm90_split", "attention_backward_sm90", "sm90_split", true, 2},
	[AHEAD] = {"sm90_ahead", "attention_backward_sm90", "sm90_ahead", true, 1},
	[BULK] = {"sm90_bulk", "attention_backward_sm90", "sm90_bulk", true, 1},
	[TWO] = {"sm90_two_passes", "attention_backward_sm90", "sm90_keys", false, 1},
	[PORTABLE] = {"two_passes", "attention_backward", "keys", false, 1},
};

struct candidate {
	enum way way;
	char name[48];
};

struct attention_own_backward {
	struct gpu_device *device;
	struct attention_problem problem;
	uint64_t q_rows, kv_rows; /* rows of the whole tensor, or of a batch element */
	uint32_t rows;		  /* padded rows of all sequences */
	bool uneven;
	struct candidate candidate[WAYS];
	unsigned count, selected;
	struct gpu_kernel *begin, *keys, *last; /* last: end, or the pass for dQ */
};

enum status attention_own_backward_supports(const struct attention_problem *p, unsigned cc, struct error *err)
{
	enum status st = attention_check(p, err);

	if (st)
		return st;
	if (p->type == ATTENTION_E4M3)
		return error_set(err, STATUS_UNSUPPORTED,
				 "attention: our backward kernels support fp16 and bf16, not %s",
				 attention_type_name(p->type));
	if (p->head_dim != 64 && p->head_dim != 128)
		return error_set(err, STATUS_UNSUPPORTED,
				 "attention: our backward kernels support head dimensions 64 and 128, not %u",
				 p->head_dim);
	if (cc < 80)
		return error_set(err, STATUS_UNSUPPORTED,
				 "attention: our backward kernels need sm_80 or newer, this device is sm_%u",
				 cc);
	return STATUS_OK;
}

/* Tiles of queries that a block of keys processes, in all heads of its group: the maximum over blocks, and
 * the sum. */
struct load {
	double longest, all;
};

static void load_add(struct load *l, const struct attention_problem *p, uint32_t sequence)
{
	const uint32_t queries = ATTENTION_BACKWARD_QUERIES(p->head_dim), group = p->heads / p->kv_heads;
	const uint32_t keys = attention_kv_len(p, sequence), rows = attention_q_len(p, sequence);

	for (uint32_t first = 0; first < keys; first += ATTENTION_BACKWARD_KEYS) {
		const uint32_t from =
			p->mask == ATTENTION_CAUSAL && rows + first > keys ? rows + first - keys : 0;
		const double tiles =
			rows > from ? (double)((rows - 1) / queries - from / queries + 1) * group : 0;

		l->longest = tiles > l->longest ? tiles : l->longest;
		l->all += tiles * p->kv_heads;
	}
}

/* Whether the longest block of keys takes much longer than a multiprocessor's equal share of the work. In
 * measurements (docs/explanation/design/attention_kernels.md, "Backward"), two thread blocks per unit gain
 * from a ratio of 2 on, and lose up to 1.2. */
static bool is_uneven(const struct attention_problem *p, unsigned sms)
{
	struct load l = {0};

	for (uint32_t i = 0; i < p->batch; i++)
		load_add(&l, p, i);
	return l.longest * sms > UNEVEN * l.all;
}

/* Candidates in measured order (docs/explanation/design/attention_kernels.md, "Backward"). */
static const enum way *order_of(const struct attention_problem *p, bool uneven)
{
	static const enum way narrow[WAYS] = {ONCE, AHEAD, LATE, SPLIT, BULK, TWO, PORTABLE},
			      wide_uneven[WAYS] = {SPLIT, LATE, TWO, ONCE, AHEAD, BULK, PORTABLE},
			      wide[WAYS] = {LATE, SPLIT, TWO, ONCE, AHEAD, BULK, PORTABLE};

	if (p->head_dim == 64)
		return narrow;
	return uneven ? wide_uneven : wide;
}

static void list(struct attention_own_backward *a, bool same_bits)
{
	const struct attention_problem *p = &a->problem;

	for (int i = 0; i < WAYS; i++) {
		const enum way w = order_of(p, a->uneven)[i];
		struct candidate *c = &a->candidate[a->count];

		if ((same_bits && ways[w].adds) || (w != PORTABLE && gpu_cc(a->device) != 90))
			continue;
		c->way = w;
		snprintf(c->name, sizeof(c->name), "%s_%s_d%u", ways[w].name, attention_type_name(p->type),
			 p->head_dim);
		a->count++;
	}
}

static uint32_t padded_rows(const struct attention_problem *p)
{
	if (p->q_starts)
		return (uint32_t)ATTENTION_BACKWARD_ROW(p->batch, (uint64_t)p->q_starts[p->batch]);
	return p->batch *
	       ((p->q_len + ATTENTION_BACKWARD_PAD - 1) / ATTENTION_BACKWARD_PAD * ATTENTION_BACKWARD_PAD);
}

enum status attention_own_backward_create(struct attention_own_backward **out, struct gpu_device *d,
					  const struct attention_problem *p, bool same_bits,
					  struct error *err)
{
	enum status st = attention_own_backward_supports(p, gpu_cc(d), err);
	struct attention_own_backward *a;

	*out = NULL;
	if (st)
		return st;
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention backward plan");
	*a = (struct attention_own_backward){.device = d,
					     .problem = *p,
					     .q_rows = p->q_starts ? p->q_starts[p->batch] : p->q_len,
					     .kv_rows = p->kv_starts ? p->kv_starts[p->batch] : p->kv_len,
					     .rows = padded_rows(p),
					     .uneven = p->head_dim == 128 && is_uneven(p, gpu_sm_count(d))};
	list(a, same_bits);
	st = attention_own_backward_select(a, 0, err);
	if (st)
		attention_own_backward_destroy(&a);
	*out = a;
	return st;
}

void attention_own_backward_destroy(struct attention_own_backward **a)
{
	free(*a);
	*a = NULL;
}

bool attention_own_backward_uneven(const struct attention_own_backward *a)
{
	return a->uneven;
}

unsigned attention_own_backward_count(const struct attention_own_backward *a)
{
	return a->count;
}

const char *attention_own_backward_name(const struct attention_own_backward *a, unsigned candidate)
{
	return a->candidate[candidate].name;
}

static enum status find(struct attention_own_backward *a, struct gpu_kernel **k, const char *file,
			const char *kind, struct error *err)
{
	char entry[64];

	snprintf(entry, sizeof(entry), "backward_%s_%s_d%u", kind, attention_type_name(a->problem.type),
		 a->problem.head_dim);
	return gpu_kernel(a->device, k, file, entry, err);
}

enum status attention_own_backward_select(struct attention_own_backward *a, unsigned candidate,
					  struct error *err)
{
	const struct way_row *w = &ways[a->candidate[candidate].way];
	const bool portable = a->candidate[candidate].way == PORTABLE;
	enum status st = find(a, &a->begin, "attention_backward", "begin", err);

	if (!st)
		st = find(a, &a->keys, w->file, w->keys, err);
	if (!st && w->adds)
		st = find(a, &a->last, "attention_backward", "end", err);
	else if (!st)
		st = find(a, &a->last, w->file, portable ? "queries" : "sm90_queries", err);
	if (!st)
		a->selected = candidate;
	return st;
}

/* -- workspace: lse2, sums, sum_q -- */

static uint64_t numbers_bytes(const struct attention_own_backward *a)
{
	uint64_t bytes = (uint64_t)a->problem.heads * a->rows * sizeof(float);

	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

uint64_t attention_own_backward_workspace(const struct attention_own_backward *a, unsigned candidate)
{
	const bool adds = ways[a->candidate[candidate].way].adds;

	return numbers_bytes(a) * (2 + (adds ? a->problem.head_dim : 0));
}

/* -- launches -- */

static unsigned blocks_of(uint32_t rows, unsigned of)
{
	return (rows + of - 1) / of;
}

static enum status launch(struct gpu_kernel *k, const struct attention_backward_args *args, unsigned rows,
			  unsigned of, uint32_t heads, unsigned threads, unsigned shared_bytes,
			  struct gpu_stream *stream, struct error *err)
{
	const unsigned grid[3] = {blocks_of(rows, of), heads, args->batch}, block[3] = {threads, 1, 1};

	return gpu_launch(k, stream, grid, block, shared_bytes, args, err);
}

static enum status maps(struct attention_own_backward *a, struct attention_backward_sm90_args *x,
			const struct attention_operands *o, const struct sdpa_gradients *g, unsigned queries,
			struct error *err)
{
	const struct attention_problem *p = &a->problem;
	enum status st = attention_map(a->device, &x->q_map, p, ATTENTION_Q, o->q, a->q_rows, queries, err);

	if (!st)
		st = attention_map(a->device, &x->d_o_map, p, ATTENTION_O, g->d_o, a->q_rows, queries, err);
	if (!st)
		st = attention_map(a->device, &x->k_map, p, ATTENTION_K, o->k, a->kv_rows,
				   ATTENTION_BACKWARD_KEYS, err);
	if (!st)
		st = attention_map(a->device, &x->v_map, p, ATTENTION_V, o->v, a->kv_rows,
				   ATTENTION_BACKWARD_KEYS, err);
	return st;
}

/*
 * Number of heads whose units are sorted by length together. `bytes` of each head are read repeatedly. The
 * heads are split into as few equal parts as fit the L2. Parts are equal because no later work hides the long
 * blocks of the last part. If all blocks have the same length, each head is a part.
 */
static uint32_t section_of(const struct attention_problem *p, uint32_t heads, double bytes)
{
	const uint32_t parts = (uint32_t)(heads * bytes / L2_BYTES) + 1;

	if (p->mask == ATTENTION_FULL && !p->q_starts)
		return 1;
	return parts < heads ? (heads + parts - 1) / parts : 1;
}

/* Blocks of 128 rows per head, over all sequences. */
static unsigned units_of(const struct attention_backward_args *args, uint32_t longest)
{
	return args->order ? args->order_count : blocks_of(longest, ATTENTION_ORDER_ROWS) * args->batch;
}

static enum status launch_sm90(struct attention_own_backward *a, const struct attention_operands *o,
			       const struct sdpa_gradients *g, const struct attention_backward_args *args,
			       struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const enum way way = a->candidate[a->selected].way;
	const unsigned d = p->head_dim, queries = ATTENTION_BACKWARD_QUERIES(d);
	const unsigned passed = way == TWO    ? 0
				: way == BULK ? ATTENTION_BACKWARD_PASSED_BULK(d)
					      : ATTENTION_BACKWARD_PASSED(d);
	const double row = (ways[way].adds ? 8.0 : 4.0) * d; /* bytes per row of Q and dO, and of dQ's sum */
	const uint32_t sequences = args->order ? 1 : p->batch;
	const uint64_t q_rows = args->order ? a->q_rows : p->q_len,
		       kv_rows = args->order ? a->kv_rows : p->kv_len;
	struct attention_backward_sm90_args x = {.a = *args};
	enum status st = maps(a, &x, o, g, queries, err);

	x.a.section = section_of(p, sequences * p->kv_heads, row * q_rows);
	if (!st)
		st = gpu_launch_1d(a->keys, stream,
				   units_of(args, p->kv_len) * p->kv_heads * ways[way].blocks, SM90_THREADS,
				   ATTENTION_BACKWARD_SM90_SHARED(d, queries, passed), &x, err);
	if (st)
		return st;
	if (ways[way].adds)
		return launch(a->last, args, p->q_len, queries, p->heads, ATTENTION_BACKWARD_THREADS, 0,
			      stream, err);
	x.a.section = section_of(p, sequences * p->heads, 4.0 * d * kv_rows * p->kv_heads / p->heads);
	st = maps(a, &x, o, g, SM90_QUERIES, err);
	if (st)
		return st;
	return gpu_launch_1d(a->last, stream, units_of(args, p->q_len) * p->heads, SM90_THREADS,
			     ATTENTION_BACKWARD_SM90_SHARED_QUERIES(d), &x, err);
}

static enum status launch_portable(struct attention_own_backward *a,
				   const struct attention_backward_args *args, struct gpu_stream *stream,
				   struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const unsigned shared_bytes = ATTENTION_BACKWARD_SHARED(p->head_dim);
	enum status st = launch(a->keys, args, p->kv_len, ATTENTION_BACKWARD_TILE, p->kv_heads,
				PORTABLE_THREADS, shared_bytes, stream, err);

	return st ? st
		  : launch(a->last, args, p->q_len, ATTENTION_BACKWARD_TILE, p->heads, PORTABLE_THREADS,
			   shared_bytes, stream, err);
}

static struct attention_backward_args args_of(const struct attention_own_backward *a,
					      const struct attention_operands *o,
					      const struct sdpa_gradients *g, gpu_ptr workspace)
{
	const struct attention_problem *p = &a->problem;
	const uint64_t numbers = numbers_bytes(a);
	const bool adds = ways[a->candidate[a->selected].way].adds;

	return (struct attention_backward_args){.q = o->q,
						.k = o->k,
						.v = o->v,
						.o = o->o,
						.d_o = g->d_o,
						.lse = o->lse,
						.d_q = g->d_q,
						.d_k = g->d_k,
						.d_v = g->d_v,
						.lse2 = workspace,
						.sums = workspace + numbers,
						.sum_q = adds ? workspace + 2 * numbers : 0,
						.q_starts = p->q_starts ? o->q_starts : 0,
						.kv_starts = p->q_starts ? o->kv_starts : 0,
						.order = p->q_starts ? o->order : 0,
						.order_count = o->order_count,
						.q_step = attention_steps_of(attention_q_strides(p)),
						.k_step = attention_steps_of(attention_k_strides(p)),
						.v_step = attention_steps_of(attention_v_strides(p)),
						.o_step = attention_steps_of(attention_o_strides(p)),
						.batch = p->batch,
						.heads = p->heads,
						.kv_heads = p->kv_heads,
						.q_len = p->q_len,
						.kv_len = p->kv_len,
						.head_dim = p->head_dim,
						.left = attention_side(p, true),
						.right = attention_side(p, false),
						.scale = (float)attention_scale(p),
						.rows = a->rows};
}

enum status attention_own_backward_enqueue(struct attention_own_backward *a,
					   const struct attention_operands *o, const struct sdpa_gradients *g,
					   gpu_ptr workspace, struct gpu_stream *stream, struct error *err)
{
	const struct attention_problem *p = &a->problem;
	const struct attention_backward_args args = args_of(a, o, g, workspace);
	enum status st = launch(a->begin, &args, p->q_len, ATTENTION_BACKWARD_PAD, p->heads,
				ATTENTION_BACKWARD_THREADS, 0, stream, err);

	if (st)
		return st;
	return a->candidate[a->selected].way == PORTABLE ? launch_portable(a, &args, stream, err)
							 : launch_sm90(a, o, g, &args, stream, err);
}
