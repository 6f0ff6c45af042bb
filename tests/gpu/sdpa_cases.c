/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's attention by our plans: every mask, type, layout and direction against double precision, and timed.
 * What this version or device does not have is skipped with its words. usage: sdpa_cases test|plans|odd|time
 * [--small] [--each N] [--part I/N] [FILTER]
 * --small: short sequences alone; --each: candidates of a case, 8; --part: every Nth case from the Ith on, as
 * building kernels takes long and goes on beside others.
 */
#include <inttypes.h>
#include <math.h>
#include "core/clock.h"
#include "core/random.h"
#include "core/stats.h"
#include "core/text.h"
#include "gpu/sdpa.h"
#include "ref_attention.h"
#include "ref_number.h"

#define NO ATTENTION_UNBOUNDED
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* How rows lie: heads apart, heads side by side, Q K V of one token side by side, sequences of different
 * length. */
enum layout { HEADS, TOKENS, JOINED, LENGTHS, MORE_QUERIES };

struct sdpa_case {
	enum attention_type type;
	uint32_t batch, heads, kv_heads, q_len, kv_len, head_dim;
	enum attention_mask mask;
	uint32_t left, right;
	enum layout layout;
	bool backward;
	double scale; /* 0: the usual */
};

#define F16 ATTENTION_F16
#define BF16 ATTENTION_BF16
#define E4M3 ATTENTION_E4M3
#define FULL ATTENTION_FULL, 0, 0
#define CAUSAL ATTENTION_CAUSAL, 0, 0
#define WINDOW(left, right) ATTENTION_WINDOW, left, right
#define FORWARD false, 0.0
#define BACKWARD true, 0.0

static const struct sdpa_case tests[] = {
	{F16, 2, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{BF16, 2, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 128, FULL, TOKENS, FORWARD},
	{BF16, 1, 4, 2, 192, 192, 64, FULL, JOINED, FORWARD},
	{F16, 1, 2, 1, 200, 77, 64, FULL, HEADS, FORWARD},
	{BF16, 2, 1, 1, 65, 300, 128, FULL, HEADS, FORWARD},
	{F16, 1, 1, 1, 128, 128, 256, FULL, HEADS, FORWARD},
	{F16, 1, 1, 1, 1, 300, 64, FULL, HEADS, FORWARD},
	{F16, 2, 2, 2, 128, 128, 64, CAUSAL, HEADS, FORWARD},
	{BF16, 1, 4, 1, 256, 256, 128, CAUSAL, TOKENS, FORWARD},
	{F16, 1, 2, 2, 200, 200, 64, CAUSAL, HEADS, FORWARD},
	{F16, 1, 2, 2, 100, 300, 64, CAUSAL, HEADS, FORWARD},
	{BF16, 1, 2, 2, 64, 257, 128, CAUSAL, HEADS, FORWARD},
	{F16, 1, 2, 2, 300, 300, 64, WINDOW(64, 0), HEADS, FORWARD},
	{F16, 1, 2, 2, 128, 300, 64, WINDOW(100, 0), HEADS, FORWARD},
	{BF16, 1, 2, 2, 256, 256, 128, WINDOW(17, 9), HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 64, WINDOW(NO, 31), HEADS, FORWARD},
	{F16, 1, 2, 2, 256, 256, 64, WINDOW(31, NO), HEADS, FORWARD},
	{F16, 3, 2, 2, 200, 200, 64, FULL, LENGTHS, FORWARD},
	{BF16, 3, 4, 2, 256, 256, 128, CAUSAL, LENGTHS, FORWARD},
	{F16, 3, 2, 2, 200, 200, 64, WINDOW(40, 0), LENGTHS, FORWARD},
	{E4M3, 1, 2, 2, 128, 128, 64, FULL, HEADS, FORWARD},
	{E4M3, 1, 2, 2, 256, 256, 128, FULL, TOKENS, FORWARD},
	{E4M3, 1, 2, 2, 256, 256, 128, CAUSAL, HEADS, FORWARD},
	{E4M3, 1, 4, 2, 256, 256, 64, CAUSAL, TOKENS, FORWARD},
	{F16, 2, 2, 2, 128, 128, 64, FULL, HEADS, BACKWARD},
	{BF16, 1, 2, 2, 256, 256, 128, FULL, TOKENS, BACKWARD},
	{BF16, 1, 4, 2, 256, 256, 64, CAUSAL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 200, 200, 64, FULL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 200, 200, 64, CAUSAL, HEADS, BACKWARD},
	{F16, 1, 2, 2, 128, 256, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 1, 2, 2, 256, 256, 128, WINDOW(64, 0), HEADS, BACKWARD},
	{BF16, 3, 2, 2, 200, 200, 64, CAUSAL, LENGTHS, BACKWARD},
	{BF16, 3, 4, 2, 256, 256, 128, FULL, LENGTHS, BACKWARD},
};

/* What a caller has to know before it relies on it: rows that keep nothing, large logits, captured runs, the
 * same bits. */
static const struct sdpa_case odd[] = {
	{F16, 2, 2, 2, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 2, 2, 2, 512, 512, 64, FULL, HEADS, false, 30.0},
	{BF16, 2, 2, 2, 512, 512, 128, CAUSAL, HEADS, false, 30.0},
	{E4M3, 2, 2, 2, 512, 512, 128, CAUSAL, HEADS, false, 30.0},
	{F16, 3, 2, 2, 200, 150, 64, CAUSAL, MORE_QUERIES, FORWARD},
	{F16, 3, 2, 2, 200, 150, 64, WINDOW(16, 0), MORE_QUERIES, FORWARD},
	{F16, 3, 2, 2, 200, 150, 64, CAUSAL, MORE_QUERIES, BACKWARD},
	{BF16, 2, 4, 4, 512, 512, 64, CAUSAL, HEADS, BACKWARD},
	{BF16, 2, 4, 2, 320, 320, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 2, 4, 4, 1024, 1024, 128, FULL, HEADS, BACKWARD},
};

static const struct sdpa_case timings[] = {
	{F16, 16, 8, 8, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 16, 16, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 32, 32, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 64, 64, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 128, 128, 512, 512, 64, FULL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 64, CAUSAL, HEADS, FORWARD},
	{F16, 16, 96, 96, 512, 512, 128, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, FORWARD},
	{BF16, 2, 32, 32, 8192, 8192, 64, FULL, HEADS, FORWARD},
	{BF16, 4, 32, 8, 4096, 4096, 128, CAUSAL, TOKENS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, WINDOW(1023, 0), HEADS, FORWARD},
	{E4M3, 16, 96, 96, 512, 512, 64, FULL, HEADS, FORWARD},
	{E4M3, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, FORWARD},
	{E4M3, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, FORWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, FULL, HEADS, BACKWARD},
	{BF16, 4, 32, 8, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{F16, 16, 96, 96, 512, 512, 64, FULL, HEADS, BACKWARD},
	{BF16, 2, 28, 4, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 4, 32, 32, 4096, 4096, 128, CAUSAL, HEADS, BACKWARD},
	{BF16, 8, 9, 3, 2048, 2048, 64, CAUSAL, HEADS, BACKWARD},
	{BF16, 16, 16, 16, 512, 512, 64, FULL, HEADS, BACKWARD},
};

struct bench {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct sdpa *sdpa;
	const char *filter;
	bool small;
	unsigned each, part, parts;
	unsigned ran, failed, skipped;
};

/* Sequences of the longest, 1 and about half as many tokens. */
static void different_lengths(const struct attention_problem *p, uint32_t *starts, uint32_t longest)
{
	starts[0] = 0;
	for (uint32_t b = 0; b < p->batch; b++)
		starts[b + 1] = starts[b] + (b == 0 ? longest : b == 1 ? 1 : longest / 2 + b);
}

enum { BATCH_MAX = 16 };

struct shape {
	struct attention_problem p;
	uint32_t q_starts[BATCH_MAX + 1], kv_starts[BATCH_MAX + 1];
};

static void shape_of(struct shape *s, const struct sdpa_case *c)
{
	struct attention_problem *p = &s->p;
	uint64_t d = c->head_dim, tokens = c->heads + 2ull * c->kv_heads;

	*p = (struct attention_problem){
		.type = c->type,
		.out_type = c->type,
		.batch = c->batch,
		.heads = c->heads,
		.kv_heads = c->kv_heads,
		.q_len = c->q_len,
		.kv_len = c->kv_len,
		.head_dim = c->head_dim,
		.mask = c->mask,
		.window_left = c->left,
		.window_right = c->right,
		.want_lse = true,
	};
	if (c->layout == TOKENS) {
		p->q = (struct attention_strides){c->q_len * c->heads * d, d, c->heads * d};
		p->k = (struct attention_strides){c->kv_len * c->kv_heads * d, d, c->kv_heads * d};
		p->o = p->q;
		p->v = p->k;
	}
	if (c->layout == JOINED)
		p->q = p->k = p->v = (struct attention_strides){c->q_len * tokens * d, d, tokens * d};
	p->scale = c->scale;
	if (c->layout == LENGTHS || c->layout == MORE_QUERIES) {
		different_lengths(p, s->q_starts, c->q_len);
		different_lengths(p, s->kv_starts, c->kv_len);
		p->q_starts = s->q_starts;
		p->kv_starts = s->kv_starts;
	}
}

/* One tensor here and on the device. */
struct tensor {
	enum attention_type type;
	uint64_t count;
	void *host;
	gpu_ptr device;
};

enum { Q, K, V, O, D_O, D_Q, D_K, D_V, TENSORS };

struct life {
	struct bench *b;
	struct shape shape;
	bool backward;
	struct tensor t[TENSORS];
	gpu_ptr lse;
	struct sdpa_plan *forward, *back;
};

static enum status make_tensor(struct life *l, unsigned which, enum attention_type type, uint64_t count,
			       bool filled, struct error *err)
{
	struct tensor *t = &l->t[which];
	uint64_t bytes = count * attention_type_bytes(type);
	enum status st;

	*t = (struct tensor){.type = type, .count = count, .host = malloc(bytes)};
	if (!t->host)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a tensor");
	memset(t->host, 0xff, bytes); /* NaN */
	/* A million random numbers, again and again, are random enough to be timed. */
	for (uint64_t i = 0; filled && i < count && i < 1u << 20; i++)
		ref_number_store(type, t->host, i, (double)random_f32(7, which, i));
	for (uint64_t done = 1u << 20; filled && done < count; done *= 2)
		memcpy((char *)t->host + done * attention_type_bytes(type), t->host,
		       (done < count - done ? done : count - done) * attention_type_bytes(type));
	st = gpu_alloc(l->b->device, &t->device, bytes, err);
	return st ? st : gpu_copy_to(l->b->device, t->device, t->host, bytes, err);
}

static enum status make(struct life *l, const struct sdpa_case *c, struct error *err)
{
	const struct attention_problem *p = &l->shape.p;
	enum status st;

	shape_of(&l->shape, c);
	l->backward = c->backward;
	st = make_tensor(l, Q, p->type, attention_q_count(p), true, err);
	if (!st)
		st = make_tensor(l, K, p->type, attention_k_count(p), true, err);
	if (!st)
		st = make_tensor(l, V, p->type, attention_v_count(p), true, err);
	if (!st)
		st = make_tensor(l, O, p->out_type, attention_o_count(p), false, err);
	if (!st && c->backward)
		st = make_tensor(l, D_O, p->out_type, attention_o_count(p), true, err);
	if (!st && c->backward)
		st = make_tensor(l, D_Q, p->type, attention_q_count(p), false, err);
	if (!st && c->backward)
		st = make_tensor(l, D_K, p->type, attention_k_count(p), false, err);
	if (!st && c->backward)
		st = make_tensor(l, D_V, p->type, attention_v_count(p), false, err);
	if (!st)
		st = gpu_alloc(l->b->device, &l->lse, attention_lse_count(p) * sizeof(float), err);
	if (!st)
		st = sdpa_plan_create(&l->forward, l->b->sdpa, p, SDPA_FORWARD, err);
	if (!st && c->backward)
		st = sdpa_plan_create(&l->back, l->b->sdpa, p, SDPA_BACKWARD, err);
	return st;
}

static void unmake(struct life *l)
{
	sdpa_plan_destroy(&l->back);
	sdpa_plan_destroy(&l->forward);
	gpu_free(l->b->device, &l->lse);
	for (unsigned i = 0; i < TENSORS; i++) {
		free(l->t[i].host);
		gpu_free(l->b->device, &l->t[i].device);
	}
}

static enum status enqueue(struct life *l, struct sdpa_plan *plan, struct error *err)
{
	const struct attention_operands o = {.q = l->t[Q].device,
					     .k = l->t[K].device,
					     .v = l->t[V].device,
					     .o = l->t[O].device,
					     .lse = l->lse};
	const struct sdpa_gradients g = {l->t[D_O].device, l->t[D_Q].device, l->t[D_K].device,
					 l->t[D_V].device};

	return sdpa_plan_enqueue(plan, &o, plan == l->back ? &g : NULL, l->b->stream, err);
}

/* Half a unit in the last place, relative. */
static double unit_of(enum attention_type type)
{
	return type == ATTENTION_F16 ? 0x1p-11 : type == ATTENTION_BF16 ? 0x1p-8 : 0x1p-4;
}

/* The largest difference as a share of the largest number; an element that both leave alone is none. */
static enum status compare(struct life *l, unsigned which, const double *want, const char *name, double limit,
			   struct text *said, struct error *err)
{
	struct tensor *t = &l->t[which];
	double most = 0.0, wrong = 0.0;
	uint64_t at = 0;
	enum status st = gpu_copy_from(l->b->device, t->host, t->device,
				       t->count * attention_type_bytes(t->type), err);

	for (uint64_t i = 0; !st && i < t->count; i++) {
		double got = ref_number_load(t->type, t->host, i), off = fabs(got - want[i]);

		if (isnan(want[i]))
			continue;
		most = fmax(most, fabs(want[i]));
		if (!(off <= wrong)) {
			wrong = isnan(off) ? (double)INFINITY : off;
			at = i;
		}
	}
	if (st)
		return st;
	text_addf(said, " %s %.1e", name, wrong / most);
	if (wrong <= limit * most)
		return STATUS_OK;
	return error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT, "%s[%" PRIu64 "] is %g, not %g",
			       name, at, ref_number_load(t->type, t->host, at), want[at]);
}

static enum status compare_lse(struct life *l, const double *want, struct text *said, struct error *err)
{
	uint64_t count = attention_lse_count(&l->shape.p);
	float *got = malloc(count * sizeof(*got));
	double wrong = 0.0;
	enum status st = got ? gpu_copy_from(l->b->device, got, l->lse, count * sizeof(*got), err)
			     : error_set(err, STATUS_NO_RESOURCE, "no memory for lse");

	for (uint64_t i = 0; !st && i < count; i++)
		if (!isnan(want[i])) {
			double off = (double)got[i] == want[i] ? 0.0 : fabs((double)got[i] - want[i]);

			wrong = isnan(off) ? (double)INFINITY : fmax(wrong, off);
		}
	free(got);
	if (st)
		return st;
	text_addf(said, " lse %.1e", wrong);
	return wrong <= 1e-3
		       ? STATUS_OK
		       : error_set_cause(err, STATUS_MISMATCH, CAUSE_WRONG_RESULT, "lse is off by %g", wrong);
}

struct wanted {
	double *o, *lse, *d_q, *d_k, *d_v;
};

static double *unset(uint64_t count)
{
	double *x = malloc(count * sizeof(*x));

	for (uint64_t i = 0; x && i < count; i++)
		x[i] = (double)NAN;
	return x;
}

static enum status reference(struct life *l, struct wanted *w, struct error *err)
{
	const struct attention_problem *p = &l->shape.p;

	w->o = unset(attention_o_count(p));
	w->lse = unset(attention_lse_count(p));
	w->d_q = unset(attention_q_count(p));
	w->d_k = unset(attention_k_count(p));
	w->d_v = unset(attention_v_count(p));
	if (!w->o || !w->lse || !w->d_q || !w->d_k || !w->d_v)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for the reference");
	ref_attention_run(p, &(struct ref_attention){.q = l->t[Q].host,
						     .k = l->t[K].host,
						     .v = l->t[V].host,
						     .d_o = l->backward ? l->t[D_O].host : NULL,
						     .o = w->o,
						     .lse = w->lse,
						     .d_q = w->d_q,
						     .d_k = w->d_k,
						     .d_v = w->d_v});
	return STATUS_OK;
}

static enum status check(struct life *l, const struct wanted *w, struct text *said, struct error *err)
{
	double unit = unit_of(l->shape.p.type);
	enum status st = compare(l, O, w->o, "O", 4.0 * unit, said, err);

	if (!st)
		st = compare_lse(l, w->lse, said, err);
	if (!st && l->backward)
		st = compare(l, D_Q, w->d_q, "dQ", 8.0 * unit, said, err);
	if (!st && l->backward)
		st = compare(l, D_K, w->d_k, "dK", 8.0 * unit, said, err);
	if (!st && l->backward)
		st = compare(l, D_V, w->d_v, "dV", 8.0 * unit, said, err);
	return st;
}

static void name_selected(const struct sdpa_plan *plan, unsigned candidate, struct text *said)
{
	struct sdpa_description d;

	sdpa_plan_describe(plan, candidate, &d);
	text_addf(said, " [%s, %" PRIu64 " KiB]", d.name, d.workspace_bytes >> 10);
}

static enum status run_once(struct life *l, struct error *err)
{
	enum status st = enqueue(l, l->forward, err);

	if (!st && l->back)
		st = enqueue(l, l->back, err);
	return st ? st : gpu_stream_wait(l->b->stream, err);
}

/* Every heuristic against the reference. */
static enum status test_one(struct life *l, struct text *said, struct error *err)
{
	struct wanted w = {0};
	enum status st = reference(l, &w, err);

	if (!st)
		st = sdpa_plan_candidates(l->forward, l->back ? 1 : l->b->each, err);
	if (!st && l->back)
		st = sdpa_plan_candidates(l->back, l->b->each, err);
	for (unsigned i = 0; !st && i < sdpa_plan_count(l->back ? l->back : l->forward); i++) {
		name_selected(l->back ? l->back : l->forward, i, said);
		st = sdpa_plan_select(l->back ? l->back : l->forward, i, err);
		if (!st)
			st = run_once(l, err);
		if (!st)
			st = check(l, &w, said, err);
	}
	free(w.o);
	free(w.lse);
	free(w.d_q);
	free(w.d_k);
	free(w.d_v);
	return st;
}

static enum status list_one(struct life *l, struct text *said, struct error *err)
{
	struct sdpa_plan *plan = l->back ? l->back : l->forward;
	enum status st = sdpa_plan_candidates(plan, 16, err);

	if (!st)
		st = sdpa_plan_exhaust(plan, l->b->small ? 4 : 64, NULL, err);
	for (unsigned i = 0; !st && i < sdpa_plan_count(plan); i++)
		name_selected(plan, i, said);
	return st;
}

static enum status runs_captured(struct life *l, struct sdpa_plan *plan, struct error *err)
{
	struct gpu_graph *graph = NULL;
	enum status st = gpu_capture_begin(l->b->stream, err), ended;

	if (st)
		return st;
	st = enqueue(l, plan, err);
	ended = gpu_capture_end(l->b->stream, &graph, st ? NULL : err);
	st = st ? st : ended;
	if (!st)
		st = gpu_graph_launch(graph, l->b->stream, err);
	if (!st)
		st = gpu_stream_wait(l->b->stream, err);
	gpu_graph_destroy(&graph);
	return st;
}

static enum status copy_out(struct life *l, unsigned which, void *to, struct error *err)
{
	struct tensor *t = &l->t[which];

	return gpu_copy_from(l->b->device, to, t->device, t->count * attention_type_bytes(t->type), err);
}

/* What a second run, captured, leaves in a tensor that was made NaN before it. */
static enum status again(struct life *l, struct sdpa_plan *plan, unsigned which, struct text *said,
			 struct error *err)
{
	struct tensor *t = &l->t[which];
	uint64_t bytes = t->count * attention_type_bytes(t->type);
	void *first = malloc(bytes), *second = malloc(bytes);
	enum status st = first && second ? copy_out(l, which, first, err)
					 : error_set(err, STATUS_NO_RESOURCE, "no memory for a tensor");

	if (!st)
		st = gpu_stream_fill32(l->b->stream, t->device, UINT32_MAX, bytes / 4, err);
	if (!st)
		st = runs_captured(l, plan, err);
	if (!st)
		st = copy_out(l, which, second, err);
	if (!st)
		text_add(said, memcmp(first, second, bytes) ? ", captured: other bits"
							    : ", captured: the same bits");
	free(first);
	free(second);
	return st;
}

static enum status odd_one(struct life *l, struct text *said, struct error *err)
{
	enum status st = test_one(l, said, err);

	if (st == STATUS_MISMATCH) { /* said by now, and the rest is worth knowing too */
		text_addf(said, " WRONG: %s", err->text);
		st = again(l, l->forward, O, said, NULL);
		return STATUS_MISMATCH;
	}
	if (!st)
		st = again(l, l->forward, O, said, err);
	if (!st && l->back)
		st = again(l, l->back, D_Q, said, err);
	return st;
}

enum { REPEATS = 15 };

static enum status time_selected(struct life *l, struct sdpa_plan *plan, double *us, struct error *err)
{
	struct gpu_event *from = NULL, *to = NULL;
	double ns[REPEATS];
	unsigned each = l->b->small ? 1 : 20;
	enum status st = gpu_event_create(l->b->device, &from, err);

	if (!st)
		st = gpu_event_create(l->b->device, &to, err);
	for (unsigned r = 0; !st && r < REPEATS; r++) {
		st = gpu_event_record(from, l->b->stream, err);
		for (unsigned i = 0; !st && i < each; i++)
			st = enqueue(l, plan, err);
		if (!st)
			st = gpu_event_record(to, l->b->stream, err);
		if (!st)
			st = gpu_event_wait(to, err);
		if (!st)
			st = gpu_event_elapsed_ns(from, to, &ns[r], err);
	}
	gpu_event_destroy(&from);
	gpu_event_destroy(&to);
	*us = st ? 0.0 : stats_median(ns, REPEATS) / each / 1e3;
	return st;
}

static enum status time_one(struct life *l, struct text *said, struct error *err)
{
	struct sdpa_plan *plan = l->back ? l->back : l->forward;
	const struct attention_problem *p = &l->shape.p;
	double flop = l->back ? attention_flop_backward(p) : attention_flop(p);
	enum status st = sdpa_plan_first(l->forward, err);

	if (!st && l->back) {
		st = enqueue(l, l->forward, err);
		if (!st)
			st = sdpa_plan_candidates(l->back, l->b->each, err);
	} else if (!st) {
		st = sdpa_plan_candidates(l->forward, l->b->each, err);
	}
	for (unsigned i = 0; !st && i < sdpa_plan_count(plan); i++) {
		double us;

		st = sdpa_plan_select(plan, i, err);
		if (!st)
			st = time_selected(l, plan, &us, err);
		if (!st)
			text_addf(said, "\n    %9.2f us %7.1f TFLOPS", us, us > 0.0 ? flop / us / 1e6 : 0.0);
		name_selected(plan, i, said);
	}
	return st;
}

typedef enum status one(struct life *l, struct text *said, struct error *err);

static void run_case(struct bench *b, const struct sdpa_case *c, one *what)
{
	struct life l = {.b = b};
	struct text said = {0};
	struct error err = {0};
	char name[128];
	uint64_t from;
	enum status st;
	bool absent;

	shape_of(&l.shape, c);
	attention_describe(&l.shape.p, name, sizeof(name));
	if (b->filter && !strstr(name, b->filter) && !(c->backward && !strcmp(b->filter, "backward")))
		return;
	from = clock_now_ns(clock_monotonic());
	st = make(&l, c, &err);
	if (!st)
		st = what(&l, &said, &err);
	unmake(&l);
	absent = st == STATUS_UNSUPPORTED || st == STATUS_UNAVAILABLE;
	b->ran++;
	b->failed += st && !absent;
	b->skipped += absent;
	printf("%s %s%s%s, %.1f s:%s%s%s\n", st ? absent ? "skip" : "FAIL" : "ok  ", name,
	       c->backward ? " backward" : "",
	       c->layout == TOKENS   ? " by token"
	       : c->layout == JOINED ? " joined"
				     : "",
	       (double)(clock_now_ns(clock_monotonic()) - from) / 1e9, text_str(&said), st ? " " : "",
	       st ? err.text : "");
	text_release(&said);
}

static int run(struct bench *b, const char *verb)
{
	static const struct {
		const char *verb;
		const struct sdpa_case *cases;
		size_t count;
		one *what;
	} verbs[] = {
		{"test", tests, COUNT(tests), test_one},
		{"plans", tests, COUNT(tests), list_one},
		{"odd", odd, COUNT(odd), odd_one},
		{"time", timings, COUNT(timings), time_one},
	};
	size_t v = 0;

	while (v < COUNT(verbs) && strcmp(verbs[v].verb, verb))
		v++;
	if (v == COUNT(verbs)) {
		printf("%s is not test, plans, odd or time\n", verb);
		return 64;
	}

	printf("%s, sm_%u, cuDNN %d, %s\n", gpu_name(b->device), gpu_cc(b->device), sdpa_version(b->sdpa),
	       sdpa_path(b->sdpa));
	for (size_t i = b->part; i < verbs[v].count; i += b->parts)
		if (!b->small || verbs[v].cases[i].q_len <= 128)
			run_case(b, &verbs[v].cases[i], verbs[v].what);
	printf("%u cases, %u failed, %u skipped\n", b->ran, b->failed, b->skipped);
	return b->failed || b->ran == b->skipped;
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "test";
	struct bench b = {.each = 8, .parts = 1};
	struct error err = {0};
	int code = 1;

	setvbuf(stdout, NULL, _IOLBF, 0); /* what was printed stays, however this ends */
	for (int i = 2; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--small")) {
			b.small = true;
		} else if (!strcmp(argv[i], "--each")) {
			b.each = (unsigned)strtoul(value, NULL, 10);
			i++;
		} else if (!strcmp(argv[i], "--part")) {
			b.part = (unsigned)strtoul(value, NULL, 10);
			b.parts =
				strchr(value, '/') ? (unsigned)strtoul(strchr(value, '/') + 1, NULL, 10) : 0;
			i++;
		} else {
			b.filter = argv[i];
		}
	}
	if (!b.each || !b.parts) {
		puts("--each and --part I/N take numbers from 1 and from 0");
		return 64;
	}
	if (gpu_open(&b.device, NULL, &err) || gpu_stream_create(b.device, &b.stream, &err) ||
	    sdpa_open(&b.sdpa, b.device, NULL, 0, &err)) {
		printf("%s\n", err.text);
		code = err.status == STATUS_UNAVAILABLE ? 77 : 1;
	} else {
		code = run(&b, verb);
	}
	sdpa_close(&b.sdpa);
	gpu_stream_destroy(&b.stream);
	gpu_close(&b.device);
	return code;
}
