/* SPDX-License-Identifier: Apache-2.0 */
#include "sdpa_life.h"

#include <inttypes.h>
#include <math.h>
#include "core/math/random.h"
#include "ref_attention.h"
#include "ref_number.h"

/* Sequences of the longest, 1 and about half as many tokens. */
static void different_lengths(const struct attention_problem *p, uint32_t *starts, uint32_t longest)
{
	starts[0] = 0;
	for (uint32_t b = 0; b < p->batch; b++)
		starts[b + 1] = starts[b] + (b == 0 ? longest : b == 1 ? 1 : longest / 2 + b);
}

void life_shape(struct shape *s, const struct sdpa_case *c)
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

enum status life_make(struct life *l, const struct sdpa_case *c, struct error *err)
{
	const struct attention_problem *p = &l->shape.p;
	enum status st;

	life_shape(&l->shape, c);
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

void life_unmake(struct life *l)
{
	sdpa_plan_destroy(&l->back);
	sdpa_plan_destroy(&l->forward);
	gpu_free(l->b->device, &l->lse);
	for (unsigned i = 0; i < TENSORS; i++) {
		free(l->t[i].host);
		gpu_free(l->b->device, &l->t[i].device);
	}
}

enum status life_enqueue(struct life *l, struct sdpa_plan *plan, struct error *err)
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

static double *unset(uint64_t count)
{
	double *x = malloc(count * sizeof(*x));

	for (uint64_t i = 0; x && i < count; i++)
		x[i] = (double)NAN;
	return x;
}

enum status life_reference(struct life *l, struct wanted *w, struct error *err)
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

void life_forget(struct wanted *w)
{
	free(w->o);
	free(w->lse);
	free(w->d_q);
	free(w->d_k);
	free(w->d_v);
}

enum status life_check(struct life *l, const struct wanted *w, struct text *said, struct error *err)
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
