/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a packed micro-batch. If all sequences have equal length and cuDNN supports them, cuDNN
 * computes it. Otherwise assay's tensor-core kernels do if they support the problem, else assay's plain
 * kernels. The same implementation computes both passes of a batch, because each stores lse in its own order.
 */
#include <stdlib.h>
#include "core/math/fnv1a.h"
#include "kernel/train/plain_attention.h"
#include "model/gpu/attention_internal.h"
#include "model/tensor/dtype.h"
#include "model/tensor/matrix.h"

enum {
	TIMES = 4,	   /* timed runs of each candidate of the backward pass */
	GRID_DOCS = 65535, /* limit of a grid's z dimension, which numbers sequences */
};

enum status attention_state_create(struct attention_state **out, const struct gpu_state *g, struct error *err)
{
	struct attention_state *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for attention");
	a->gpu = g;
	snprintf(a->name, sizeof(a->name), attention_state_plain(a) ? "plain" : "own");
	return attention_state_open_cudnn(a, err);
}

static void fast_release(struct fast *f)
{
	attention_own_destroy(&f->forward);
	attention_own_backward_destroy(&f->backward);
}

void attention_state_release(struct attention_state **out)
{
	struct attention_state *a = *out;

	if (!a)
		return;
	attention_state_wait(a);
	for (size_t i = 0; i < a->count; i++) {
		sdpa_plan_destroy(&a->pair[i].forward);
		sdpa_plan_destroy(&a->pair[i].backward);
	}
	sdpa_close(&a->sdpa);
	fast_release(&a->fast);
	free(a->pair);
	free(a->known);
	free(a);
	*out = NULL;
}

const char *attention_state_name(const struct attention_state *a)
{
	return a->name;
}

static gpu_ptr heads_at(const struct mat *qkv, const struct attention *at, int first)
{
	struct mat part = mat_cols(qkv, (int64_t)first * at->head_dim, at->head_dim);

	return gpu_address(part.data);
}

static struct attention_operands operands(const struct attention *at, const struct batch *b, struct mat qkv,
					  struct mat o, struct mat lse)
{
	return (struct attention_operands){
		.q = heads_at(&qkv, at, 0),
		.k = heads_at(&qkv, at, at->heads),
		.v = heads_at(&qkv, at, at->heads + at->kv_heads),
		.o = gpu_address(o.data),
		.lse = gpu_address(lse.data),
		.q_starts = attention_state_one_length(b) ? 0 : gpu_address(b->starts),
		.kv_starts = attention_state_one_length(b) ? 0 : gpu_address(b->starts),
		.order = b->order ? gpu_address(b->order) : 0,
		.order_count = (uint32_t)b->ordered,
	};
}

/* -- assay's tensor-core kernels -- */

/* Their lse is [sequences][heads][longest], which must fit into the room that a layer has for it. */
static bool lse_fits(const struct batch *b)
{
	return b->docs * b->doc_len_max <= ATTENTION_LSE_ROOM * b->tokens;
}

/* Selects the candidate of that name, if the planned workspace is large enough for it. */
static bool select_named(struct fast *f, const char *name, uint64_t room)
{
	struct error ignored = {0};

	for (unsigned i = 0; *name && i < attention_own_backward_count(f->backward); i++)
		if (!strcmp(attention_own_backward_name(f->backward, i), name))
			return attention_own_backward_workspace(f->backward, i) <= room &&
			       !attention_own_backward_select(f->backward, i, &ignored);
	return false;
}

/* Batches with different sequence lengths differ in how evenly the work is divided. A choice made for one
 * batch is kept only for batches with evenly divided work. */
static bool is_uneven(const struct fast *f)
{
	return !f->one_length && attention_own_backward_uneven(f->backward);
}

/* Selects the candidate chosen by time, here or in an earlier run; else the first one that fits the planned
 * workspace. */
static bool select_backward(struct fast *f, struct attention_state *a, uint64_t room)
{
	const struct gpu_attention_choice *known = attention_state_known(a, 0, 0);
	struct error ignored = {0};

	if (is_uneven(f) && attention_own_backward_workspace(f->backward, 0) <= room &&
	    !attention_own_backward_select(f->backward, 0, &ignored))
		return true;
	if (!a->chosen && known && a->gpu->options.tune && select_named(f, known->candidate, room)) {
		a->chosen = a->recalled = true;
		a->cached = known->cached;
		memcpy(a->candidate, known->candidate, sizeof(a->candidate));
		return true;
	}
	if (a->chosen && select_named(f, a->candidate, room))
		return true;
	for (unsigned i = 0; i < attention_own_backward_count(f->backward); i++) {
		if (attention_own_backward_workspace(f->backward, i) <= room &&
		    !attention_own_backward_select(f->backward, i, &ignored))
			return true;
	}
	return false;
}

/* An unsupported problem is not an error: the plain kernels compute it. */
static void make_fast(struct fast *f, struct attention_state *a, const struct batch *b, uint64_t room)
{
	struct attention_problem p = attention_state_problem(&f->at, f->docs, f->length, f->ld_qkv, f->ld_o);
	struct error ignored = {0};
	enum status st;

	if (!f->one_length)
		p.q_starts = p.kv_starts = (const uint32_t *)b->doc_start;
	st = attention_own_create(&f->forward, a->gpu->device, &p, &ignored);
	if (!st)
		st = attention_own_backward_create(&f->backward, a->gpu->device, &p,
						   a->gpu->options.deterministic, &ignored);
	if (st || !select_backward(f, a, room))
		fast_release(f);
}

/* out NULL: the plain kernels are used. */
static void fast_of(struct attention_state *a, const struct attention *at, const struct batch *b,
		    int64_t ld_qkv, int64_t ld_o, struct fast **out)
{
	struct fast *f = &a->fast,
		    wanted = {.docs = b->docs,
			      .tokens = b->tokens,
			      .length = b->doc_len_max,
			      .one_length = attention_state_one_length(b) > 0,
			      .lengths = fnv1a_add(FNV1A_BEGIN, b->doc_start,
						   (size_t)(b->docs + 1) * sizeof(*b->doc_start)),
			      .at = *at,
			      .ld_qkv = ld_qkv,
			      .ld_o = ld_o};

	*out = NULL;
	if (attention_state_plain(a) || !lse_fits(b) || b->docs > GRID_DOCS)
		return;
	if (f->docs != wanted.docs || f->tokens != wanted.tokens || f->length != wanted.length ||
	    f->one_length != wanted.one_length || f->lengths != wanted.lengths || f->ld_qkv != ld_qkv ||
	    f->ld_o != ld_o || memcmp(&f->at, at, sizeof(*at))) {
		fast_release(f);
		*f = wanted;
		make_fast(f, a, b, workspace_attention_bytes(at, b->tokens));
	}
	if (f->forward)
		*out = f;
}

/* -- assay's plain kernels -- */

static struct train_attention_args own_args(const struct attention *at, const struct batch *b, struct mat qkv,
					    struct mat o, struct mat lse)
{
	return (struct train_attention_args){
		.qkv = gpu_address(qkv.data),
		.o = gpu_address(o.data),
		.lse = gpu_address(lse.data),
		.doc_start = gpu_address(b->starts),
		.ld_qkv = qkv.ld,
		.ld_o = o.ld,
		.ld_lse = lse.ld,
		.rows = (uint32_t)b->tokens,
		.docs = (uint32_t)b->docs,
		.heads = (uint32_t)at->heads,
		.kv_heads = (uint32_t)at->kv_heads,
		.head_dim = (uint32_t)at->head_dim,
		.scale = at->scale,
	};
}

static enum status run_own(struct backend *back, enum gpu_kernel_id kernel, const struct attention *at,
			   const struct batch *b, int heads, const struct train_attention_args *args,
			   struct error *err)
{
	const unsigned tiles = (unsigned)((b->doc_len_max + TRAIN_ATTENTION_ROWS - 1) / TRAIN_ATTENTION_ROWS);
	struct train_attention_args some = *args;
	enum status st = STATUS_OK;

	for (int64_t first = 0; !st && first < b->docs; first += GRID_DOCS) {
		const int64_t docs = b->docs - first < GRID_DOCS ? b->docs - first : GRID_DOCS;
		const unsigned grid[3] = {tiles, (unsigned)heads, (unsigned)docs};

		some.doc_start = args->doc_start + (uint64_t)first * sizeof(int32_t);
		some.docs = (uint32_t)docs;
		st = gpu_run_3d(
			back, kernel, grid, TRAIN_ATTENTION_THREADS,
			train_attention_shared((uint64_t)at->head_dim, (unsigned)dtype_bytes(back->dtype, 1)),
			&some, err);
	}
	return st;
}

enum status gpu_attention_forward(struct backend *back, const struct attention *at, const struct batch *b,
				  struct mat qkv, struct mat o, struct mat lse, struct error *err)
{
	const struct train_attention_args args = own_args(at, b, qkv, o, lse);
	const struct attention_operands operand = operands(at, b, qkv, o, lse);
	const double before = back->cost.flop;
	struct gpu_state *g = gpu_of(back);
	struct fast *fast = NULL;
	struct pair *pair;
	enum status st = gpu_check_heads(at->head_dim, err);

	if (!st)
		st = attention_state_pair(g->attends, at, b, qkv.ld, o.ld, &pair, err);

	cost_attention(back, at, b, false);
	if (!st)
		st = gpu_part_flop(back, GPU_PART_ATTENTION, before, err);
	if (st)
		return st;
	if (!pair)
		fast_of(g->attends, at, b, qkv.ld, o.ld, &fast);
	/* While cuDNN's plans are built, the plain kernels are too slow to stand in. */
	if (!pair && !fast && attention_state_wait(g->attends))
		st = attention_state_pair(g->attends, at, b, qkv.ld, o.ld, &pair, err);
	if (st)
		return st;
	if (pair)
		return sdpa_plan_enqueue(pair->forward, &operand, NULL, g->stream, err);
	return fast ? attention_own_enqueue(fast->forward, &operand, g->stream, err)
		    : run_own(back, GPU_KERNEL_ATTENTION, at, b, at->heads, &args, err);
}

static enum status own_bwd(struct backend *back, const struct attention *at, const struct batch *b,
			   const struct train_attention_args *args, struct error *err)
{
	enum status st = gpu_run(back, GPU_KERNEL_ATTENTION_DELTA,
				 train_blocks((uint64_t)b->tokens, (uint64_t)at->heads * 64), TRAIN_THREADS,
				 0, args, err);

	if (!st)
		st = run_own(back, GPU_KERNEL_ATTENTION_BWD_KV, at, b, at->kv_heads, args, err);
	return st ? st : run_own(back, GPU_KERNEL_ATTENTION_BWD_Q, at, b, at->heads, args, err);
}

/* One backward pass, by one of the implementations. */
struct passing {
	struct sdpa_plan *library; /* NULL: assay's kernels */
	struct attention_own_backward *own;
	const struct attention_operands *operands;
	const struct sdpa_gradients *gradients;
	gpu_ptr room;
	struct gpu_stream *stream;
};

static enum status run_pass(void *arg, struct error *err)
{
	const struct passing *p = arg;

	return p->library ? sdpa_plan_enqueue(p->library, p->operands, p->gradients, p->stream, err)
			  : attention_own_backward_enqueue(p->own, p->operands, p->gradients, p->room,
							   p->stream, err);
}

/* Times a pass; false: it does not run. An error is not reported, because a lost device fails again at the
 * next launch. */
static bool time_pass(struct backend *back, struct passing *p, double *seconds)
{
	struct error ignored = {0};

	return !gpu_time(back, run_pass, p, TIMES, seconds, &ignored);
}

/* Selects the fastest of assay's candidates that fit `room`. They overwrite the gradients, so they can be
 * repeated. *own_s is 0 if none runs. */
static enum status choose_own(struct backend *back, struct attention_state *a, struct fast *f,
			      struct passing *p, double *least_s, struct error *err)
{
	const uint64_t room = workspace_attention_bytes(&f->at, f->tokens);
	unsigned fastest = 0;

	*least_s = 0;
	for (unsigned i = 0; i < attention_own_backward_count(f->backward); i++) {
		struct error ignored = {0};
		double seconds;

		if (attention_own_backward_workspace(f->backward, i) > room ||
		    attention_own_backward_select(f->backward, i, &ignored) || !time_pass(back, p, &seconds))
			continue;
		if (*least_s <= 0 || seconds < *least_s) {
			*least_s = seconds;
			fastest = i;
		}
	}
	a->chosen = *least_s > 0;
	a->recalled = a->cached = false;
	if (!a->chosen)
		return STATUS_OK;
	snprintf(a->candidate, sizeof(a->candidate), "%s", attention_own_backward_name(f->backward, fastest));
	return attention_own_backward_select(f->backward, fastest, err);
}

/* Compares cuDNN's plan with the fastest of assay's candidates, which takes own_s; 0: none of them runs. */
static void choose_beside(struct backend *back, struct pair *pair, struct passing *p, double own_s)
{
	double library_s = 0;
	bool runs;

	p->library = pair->backward;
	runs = time_pass(back, p, &library_s);
	p->library = NULL;
	pair->timed = true;
	pair->recalled = pair->cached = false;
	pair->by_own = own_s > 0 && (!runs || own_s < library_s);
}

/* Times assay's candidates and cuDNN's plan once, and chooses the fastest. */
static enum status choose(struct backend *back, struct attention_state *a, struct pair *pair, struct fast *f,
			  struct passing *p, struct error *err)
{
	uint64_t began_ns;
	double own_s = 0;
	enum status st;

	if (!a->gpu->options.tune || a->gpu->options.deterministic || a->gpu->capturing || a->gpu->held ||
	    (pair ? pair->timed : a->chosen) || is_uneven(f))
		return STATUS_OK;
	st = gpu_tuning_begin(back, &began_ns, err);
	if (!st)
		st = choose_own(back, a, f, p, &own_s, err);
	if (!st && pair)
		choose_beside(back, pair, p, own_s);
	gpu_tuning_end(back, began_ns);
	return st;
}

/* Uses the implementation that computed the forward pass of this batch, or one with the same order of lse.
 * `room`: workspace planned for any of them. */
static enum status backward(struct backend *back, const struct attention *at, const struct batch *b,
			    struct pair *pair, struct train_attention_args *args, struct mat qkv,
			    struct mat o, struct mat lse, struct mat dqkv, gpu_ptr room, struct error *err)
{
	const struct attention_operands operand = operands(at, b, qkv, o, lse);
	const struct sdpa_gradients gradients = {
		.d_o = args->d_o,
		.d_q = heads_at(&dqkv, at, 0),
		.d_k = heads_at(&dqkv, at, at->heads),
		.d_v = heads_at(&dqkv, at, at->heads + at->kv_heads),
	};
	struct attention_state *a = gpu_of(back)->attends;
	struct passing p = {
		.operands = &operand, .gradients = &gradients, .room = room, .stream = gpu_of(back)->stream};
	struct fast *fast = NULL;
	enum status st = STATUS_OK;

	if (!pair || a->gpu->options.attention == GPU_ATTENTION_AUTO)
		fast_of(a, at, b, qkv.ld, o.ld, &fast);
	if (fast) {
		p.own = fast->backward;
		st = choose(back, a, pair, fast, &p, err);
	}
	if (pair && (!pair->by_own || !p.own))
		p.library = pair->backward;
	if (st || p.library || p.own)
		return st ? st : run_pass(&p, err);
	args->delta = room;
	return own_bwd(back, at, b, args, err);
}

enum status gpu_attention_bwd(struct backend *back, const struct attention *at, const struct batch *b,
			      struct mat qkv, struct mat o, struct mat lse, struct mat d_o, struct mat dqkv,
			      struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	const double before = back->cost.flop;
	struct train_attention_args args = own_args(at, b, qkv, o, lse);
	struct pair *pair;
	struct mat room;
	enum status st = attention_state_pair(gpu_of(back)->attends, at, b, qkv.ld, o.ld, &pair, err);

	cost_attention(back, at, b, true);
	args.d_o = gpu_address(d_o.data);
	args.dqkv = gpu_address(dqkv.data);
	args.ld_d_o = d_o.ld;
	args.ld_dqkv = dqkv.ld;
	if (!st && (d_o.ld != o.ld || dqkv.ld != qkv.ld))
		st = error_set(err, STATUS_BUG,
			       "the layout of attention's gradients differs from that of its operands");
	if (!st)
		st = workspace_attention_bwd(back, at, b, &room, err);
	if (!st)
		st = gpu_part_flop(back, GPU_PART_ATTENTION_BWD, before, err);
	if (!st)
		st = backward(back, at, b, pair, &args, qkv, o, lse, dqkv, gpu_address(room.data), err);
	arena_reset(back->arena, &mark);
	return st;
}
