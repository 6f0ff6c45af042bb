/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention of a packed micro-batch. Documents of one length: by cuDNN where its kernels take them; else, and
 * documents of any lengths, by our tensor-core kernels where they take them; else by our plain ones. One of
 * them does both passes of a batch: they keep lse in different order.
 */
#include <stdlib.h>
#include "gpu/attention_own.h"
#include "gpu/attention_own_backward.h"
#include "gpu/sdpa.h"
#include "kernel/train_attention.h"
#include "model/gpu/internal.h"
#include "model/mat.h"

/* A pair of cuDNN's plans for documents of one length. */
struct pair {
	int64_t docs, length;
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct sdpa_plan *forward, *backward; /* NULL, both: cuDNN does not take it */
	bool timed, by_own; /* backward, by our tensor-core kernels: lse is in the same order */
};

/* Our tensor-core kernels, for the batch that is worked on: making them costs little. */
struct fast {
	int64_t docs, tokens, length; /* of the longest */
	bool one_length;
	struct attention at;
	int64_t ld_qkv, ld_o;
	struct attention_own *forward; /* NULL, both: they do not take it */
	struct attention_own_backward *backward;
};

struct attends {
	const struct gpu_state *gpu;
	struct sdpa *sdpa; /* NULL: our kernels alone */
	struct pair *pair;
	size_t count, room;
	struct fast fast;
	bool chosen; /* candidate of our backward pass, by time */
	unsigned candidate;
	char name[64];
};

static enum status open_library(struct attends *a, struct error *err)
{
	const struct gpu_back_options *o = &a->gpu->options;
	struct error why = {0};
	enum status st;
	int version;

	if (o->attention == GPU_ATTENTION_OWN || (o->deterministic && o->attention == GPU_ATTENTION_AUTO))
		return STATUS_OK;
	st = sdpa_open(&a->sdpa, a->gpu->device, o->cudnn, 0, &why);
	if (st && o->attention == GPU_ATTENTION_AUTO)
		return STATUS_OK; /* ours do */
	if (st)
		return error_set_cause(err, st, why.cause, "%s", why.text);
	version = sdpa_version(a->sdpa);
	snprintf(a->name, sizeof(a->name), "cuDNN %d.%d.%d", version / 10000, version / 100 % 100,
		 version % 100);
	return STATUS_OK;
}

enum status attends_create(struct attends **out, const struct gpu_state *g, struct error *err)
{
	struct attends *a = calloc(1, sizeof(*a));

	*out = a;
	if (!a)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for attention");
	a->gpu = g;
	snprintf(a->name, sizeof(a->name), "own");
	return open_library(a, err);
}

static void fast_release(struct fast *f)
{
	attention_own_destroy(&f->forward);
	attention_own_backward_destroy(&f->backward);
}

void attends_release(struct attends **out)
{
	struct attends *a = *out;

	if (!a)
		return;
	for (size_t i = 0; i < a->count; i++) {
		sdpa_plan_destroy(&a->pair[i].forward);
		sdpa_plan_destroy(&a->pair[i].backward);
	}
	sdpa_close(&a->sdpa);
	fast_release(&a->fast);
	free(a->pair);
	free(a);
	*out = NULL;
}

const char *attends_name(const struct attends *a)
{
	return a->name;
}

/* -- cuDNN -- */

/* The length of every document; 0: they differ. */
static int64_t one_length(const struct batch *b)
{
	const int64_t length = b->doc_start[1] - b->doc_start[0];

	for (int64_t i = 1; i < b->docs; i++)
		if (b->doc_start[i + 1] - b->doc_start[i] != length)
			return 0;
	return length;
}

static struct attention_strides strides_of(int64_t length, int64_t ld, int head_dim)
{
	return (struct attention_strides){
		.batch = (uint64_t)(length * ld), .head = (uint64_t)head_dim, .row = (uint64_t)ld};
}

static struct attention_problem problem_of(const struct attention *at, int64_t docs, int64_t length,
					   int64_t ld_qkv, int64_t ld_o)
{
	const struct attention_strides qkv = strides_of(length, ld_qkv, at->head_dim);

	return (struct attention_problem){
		.type = ATTENTION_BF16,
		.out_type = ATTENTION_BF16,
		.batch = (uint32_t)docs,
		.heads = (uint32_t)at->heads,
		.kv_heads = (uint32_t)at->kv_heads,
		.q_len = (uint32_t)length,
		.kv_len = (uint32_t)length,
		.head_dim = (uint32_t)at->head_dim,
		.mask = ATTENTION_CAUSAL,
		.scale = (double)at->scale,
		.q = qkv,
		.k = qkv,
		.v = qkv,
		.o = strides_of(length, ld_o, at->head_dim),
		.want_lse = true,
	};
}

static enum status plan(struct attends *a, const struct pair *p, enum sdpa_direction direction,
			struct sdpa_plan **out, struct error *err)
{
	const struct attention_problem problem = problem_of(&p->at, p->docs, p->length, p->ld_qkv, p->ld_o);
	enum status st = sdpa_plan_create(out, a->sdpa, &problem, direction, err);

	return st ? st : sdpa_plan_first(*out, err);
}

/* Shapes of which cuDNN is known to be wrong: a causal mask on Hopper where the length leaves 64 of 128
 * (pytorch#196678: NaN in dQ). */
static bool trusted(int64_t length)
{
	return length > 1 && length % 128 != 64;
}

static enum status add_pair(struct attends *a, const struct pair *wanted, struct pair **out,
			    struct error *err)
{
	const bool must = a->gpu->options.attention == GPU_ATTENTION_CUDNN;
	struct error why = {0};
	struct pair *p;
	enum status st = STATUS_OK;

	if (a->count == a->room) {
		const size_t room = a->room ? 2 * a->room : 8;
		struct pair *more = realloc(a->pair, room * sizeof(*more));

		if (!more)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for a plan of attention");
		a->pair = more;
		a->room = room;
	}
	p = &a->pair[a->count];
	*p = *wanted;
	if (trusted(p->length)) {
		st = plan(a, p, SDPA_FORWARD, &p->forward, &why);
		if (!st)
			st = plan(a, p, SDPA_BACKWARD, &p->backward, &why);
	} else {
		st = error_set(&why, STATUS_UNSUPPORTED, "cuDNN's attention is not trusted at length %lld",
			       (long long)p->length);
	}
	if (st) {
		sdpa_plan_destroy(&p->forward);
		sdpa_plan_destroy(&p->backward);
	}
	if (st && (must || (st != STATUS_UNSUPPORTED && st != STATUS_NO_RESOURCE)))
		return error_set_cause(err, st, why.cause, "%s", why.text);
	a->count++;
	*out = p;
	return STATUS_OK;
}

/* *out NULL: our kernels. */
static enum status pair_of(struct attends *a, const struct attention *at, const struct batch *b,
			   int64_t ld_qkv, int64_t ld_o, struct pair **out, struct error *err)
{
	const struct pair wanted = {
		.docs = b->docs, .length = one_length(b), .at = *at, .ld_qkv = ld_qkv, .ld_o = ld_o};
	enum status st = STATUS_OK;

	*out = NULL;
	if (!a->sdpa || !wanted.length)
		return STATUS_OK;
	for (size_t i = 0; i < a->count && !*out; i++) {
		struct pair *p = &a->pair[i];

		if (p->docs == wanted.docs && p->length == wanted.length && p->ld_qkv == ld_qkv &&
		    p->ld_o == ld_o && !memcmp(&p->at, at, sizeof(*at)))
			*out = p;
	}
	if (!*out)
		st = add_pair(a, &wanted, out, err);
	if (!st && !(*out)->forward)
		*out = NULL;
	return st;
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
		.q_starts = one_length(b) ? 0 : gpu_address(b->starts),
		.kv_starts = one_length(b) ? 0 : gpu_address(b->starts),
	};
}

/* -- our tensor-core kernels -- */

/* lse is theirs: [documents][heads][longest], which must fit what a layer keeps. */
static bool lse_fits(const struct batch *b)
{
	return b->docs * b->doc_len_max <= ATTENTION_LSE_ROOM * b->tokens;
}

/* The candidate that was chosen by time, or else the first, if the planned workspace holds it, or else
 * another. */
static bool select_backward(struct fast *f, const struct attends *a, uint64_t room)
{
	struct error ignored = {0};

	if (a->chosen && a->candidate < attention_own_backward_count(f->backward) &&
	    attention_own_backward_workspace(f->backward, a->candidate) <= room)
		return !attention_own_backward_select(f->backward, a->candidate, &ignored);

	for (unsigned i = 0; i < attention_own_backward_count(f->backward); i++) {
		if (attention_own_backward_workspace(f->backward, i) <= room &&
		    !attention_own_backward_select(f->backward, i, &ignored))
			return true;
	}
	return false;
}

/* Those that do not take the problem are no error: the plain ones do. */
static void make_fast(struct fast *f, const struct attends *a, const struct batch *b, uint64_t room)
{
	struct attention_problem p = problem_of(&f->at, f->docs, f->length, f->ld_qkv, f->ld_o);
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

/* *out NULL: the plain kernels. */
static void fast_of(struct attends *a, const struct attention *at, const struct batch *b, int64_t ld_qkv,
		    int64_t ld_o, struct fast **out)
{
	struct fast *f = &a->fast, wanted = {.docs = b->docs,
					     .tokens = b->tokens,
					     .length = b->doc_len_max,
					     .one_length = one_length(b) > 0,
					     .at = *at,
					     .ld_qkv = ld_qkv,
					     .ld_o = ld_o};

	*out = NULL;
	if (!lse_fits(b))
		return;
	if (f->docs != wanted.docs || f->tokens != wanted.tokens || f->length != wanted.length ||
	    f->one_length != wanted.one_length || f->ld_qkv != ld_qkv || f->ld_o != ld_o ||
	    memcmp(&f->at, at, sizeof(*at))) {
		fast_release(f);
		*f = wanted;
		make_fast(f, a, b, workspace_attention_bytes(at, b->tokens));
	}
	if (f->forward)
		*out = f;
}

/* -- our plain kernels -- */

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

static enum status run_own(struct back *back, enum gpu_kernel_id kernel, const struct attention *at,
			   const struct batch *b, int heads, const struct train_attention_args *args,
			   struct error *err)
{
	const unsigned grid[3] = {
		(unsigned)((b->doc_len_max + TRAIN_ATTENTION_ROWS - 1) / TRAIN_ATTENTION_ROWS),
		(unsigned)heads, (unsigned)b->docs};

	return gpu_run_3d(back, kernel, grid, TRAIN_ATTENTION_THREADS,
			  train_attention_shared((uint64_t)at->head_dim), args, err);
}

enum status gpu_attention_forward(struct back *back, const struct attention *at, const struct batch *b,
				  struct mat qkv, struct mat o, struct mat lse, struct error *err)
{
	const struct train_attention_args args = own_args(at, b, qkv, o, lse);
	const struct attention_operands operand = operands(at, b, qkv, o, lse);
	struct gpu_state *g = gpu_of(back);
	struct fast *fast = NULL;
	struct pair *pair;
	enum status st = pair_of(g->attends, at, b, qkv.ld, o.ld, &pair, err);

	cost_attention(back, at, b, false);
	if (!st)
		st = gpu_part(g, GPU_PART_ATTENTION, err);
	if (st)
		return st;
	if (pair)
		return sdpa_plan_enqueue(pair->forward, &operand, NULL, g->stream, err);
	fast_of(g->attends, at, b, qkv.ld, o.ld, &fast);
	return fast ? attention_own_enqueue(fast->forward, &operand, g->stream, err)
		    : run_own(back, GPU_KERNEL_ATTENTION, at, b, at->heads, &args, err);
}

static enum status own_bwd(struct back *back, const struct attention *at, const struct batch *b,
			   const struct train_attention_args *args, struct error *err)
{
	enum status st = gpu_run(back, GPU_KERNEL_ATTENTION_DELTA,
				 train_blocks((uint64_t)b->tokens, (uint64_t)at->heads * 64), TRAIN_THREADS,
				 0, args, err);

	if (!st)
		st = run_own(back, GPU_KERNEL_ATTENTION_BWD_KV, at, b, at->kv_heads, args, err);
	return st ? st : run_own(back, GPU_KERNEL_ATTENTION_BWD_Q, at, b, at->heads, args, err);
}

/* One backward pass, by whichever way. */
struct passing {
	struct sdpa_plan *library; /* NULL: ours */
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

/* The fastest of ours that the room holds; gradients are written, not added to, so that they may run again.
 */
static enum status choose_own(struct back *back, struct attends *a, struct fast *f, struct passing *p,
			      double *least_s, struct error *err)
{
	const uint64_t room = workspace_attention_bytes(&f->at, f->tokens);
	enum status st = STATUS_OK;

	*least_s = 0;
	for (unsigned i = 0; !st && i < attention_own_backward_count(f->backward); i++) {
		struct error ignored = {0};
		double seconds;

		if (attention_own_backward_workspace(f->backward, i) > room ||
		    attention_own_backward_select(f->backward, i, &ignored))
			continue;
		st = gpu_time(back, run_pass, p, &seconds, err);
		if (!st && (*least_s <= 0 || seconds < *least_s)) {
			*least_s = seconds;
			a->candidate = i;
		}
	}
	a->chosen = *least_s > 0;
	return !st && a->chosen ? attention_own_backward_select(f->backward, a->candidate, err) : st;
}

/* Our candidates beside each other, and beside the library's plan, once. */
static enum status choose(struct back *back, struct attends *a, struct pair *pair, struct fast *f,
			  struct passing *p, struct error *err)
{
	double own_s = 0, library_s = 0;
	enum status st = STATUS_OK;

	if (!a->gpu->options.tune || a->gpu->options.deterministic)
		return STATUS_OK;
	if (pair ? !pair->timed : !a->chosen)
		st = choose_own(back, a, f, p, &own_s, err);
	if (st || !pair || pair->timed)
		return st;
	p->library = pair->backward;
	st = gpu_time(back, run_pass, p, &library_s, err);
	p->library = NULL;
	pair->timed = true;
	pair->by_own = own_s > 0 && own_s < library_s;
	return st;
}

/* By whichever did the forward pass of this batch, or keeps lse as that does; `room` is what the plan has for
 * any of them. */
static enum status backward(struct back *back, const struct attention *at, const struct batch *b,
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
	struct attends *a = gpu_of(back)->attends;
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
	if (pair && !pair->by_own)
		p.library = pair->backward;
	if (st || p.library || p.own)
		return st ? st : run_pass(&p, err);
	args->delta = room;
	return own_bwd(back, at, b, args, err);
}

enum status gpu_attention_bwd(struct back *back, const struct attention *at, const struct batch *b,
			      struct mat qkv, struct mat o, struct mat lse, struct mat d_o, struct mat dqkv,
			      struct error *err)
{
	const struct arena_mark mark = arena_mark(back->arena);
	struct train_attention_args args = own_args(at, b, qkv, o, lse);
	struct pair *pair;
	struct mat room;
	enum status st = pair_of(gpu_of(back)->attends, at, b, qkv.ld, o.ld, &pair, err);

	cost_attention(back, at, b, true);
	args.d_o = gpu_address(d_o.data);
	args.dqkv = gpu_address(dqkv.data);
	args.ld_d_o = d_o.ld;
	args.ld_dqkv = dqkv.ld;
	if (!st && (d_o.ld != o.ld || dqkv.ld != qkv.ld))
		st = error_set(err, STATUS_BUG, "gradients of attention are laid out unlike its operands");
	if (!st)
		st = workspace_attention_bwd(back, at, b, &room, err);
	if (!st)
		st = gpu_part(gpu_of(back), GPU_PART_ATTENTION_BWD, err);
	if (!st)
		st = backward(back, at, b, pair, &args, qkv, o, lse, dqkv, gpu_address(room.data), err);
	arena_reset(back->arena, &mark);
	return st;
}
