/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses how the GEMMs of generation run, before there are requests: by one of cuBLASLt's candidates, or by
 * assay's own kernels. The first candidate is often 10 % slower than the best one.
 */
#include <math.h>
#include <stdlib.h>
#include "core/clock.h"
#include "model/gpu/gemm/gemm.h"
#include "model/tensor/dtype.h"

/* Each way runs about RUN_S long, twice. MANY_ROWS: GEMMs that are limited by arithmetic; the candidates
 * differ less there. */
enum { CANDIDATES = 8, CANDIDATES_MANY = 4, MANY_ROWS = 512, ROUNDS = 2, TIMES_MOST = 12 };
enum { WAYS_MOST = CANDIDATES + FEW_ROWS_WAYS_MOST, FEW = 8 };
static const double run_s = 250e-6, bytes_per_s = 3e12, flop_per_s = 6e14, worth_again = 1.2;
static const double near_s = 1.3; /* times the shortest time: a step may decide otherwise */

void gemm_choices_release(struct gemm_choices **c)
{
	if (*c) {
		free((*c)->use);
		free((*c)->choice);
		free((*c)->adapted);
		free((*c)->adapted_choice);
	}
	free(*c);
	*c = NULL;
}

enum status gpu_backend_watch(struct backend *back, bool watch, struct error *err)
{
	struct gpu_state *g = gpu_of(back);

	if (!g->choices)
		g->choices = calloc(1, sizeof(*g->choices));
	if (!g->choices)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for choices of GEMMs");
	g->choices->watching = watch;
	g->choices->uses = g->choices->adapted_uses = 0;
	return STATUS_OK;
}

enum status gemm_grow(void **list, size_t *room, size_t count, size_t size, struct error *err)
{
	const size_t more = *room ? 2 * *room : 64;
	void *grown;

	if (count < *room)
		return STATUS_OK;
	grown = realloc(*list, more * size);
	if (!grown)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for choices of GEMMs");
	*list = grown;
	*room = more;
	return STATUS_OK;
}

enum status gemm_watch(struct gpu_state *g, const struct gemm *m, const struct mat *h, struct error *err)
{
	struct gemm_choices *c = g->choices;
	enum status st;

	if (!c || !c->watching || !m->d.rows)
		return STATUS_OK;
	st = gemm_grow((void **)&c->use, &c->use_room, c->uses, sizeof(*c->use), err);
	if (!st)
		c->use[c->uses++] = (struct gemm_use){.g = *m, .h = *h};
	return st;
}

/* Rows of activations that are quantized for E4M3 weights have one place and row pitch. */
void gemm_form_of(struct gemm_form *f, const struct gemm *m)
{
	const bool is_quantized = m->b.dtype == DTYPE_E4M3;
	struct gemm g = *m;

	if (is_quantized)
		g.a.data = NULL;
	memset(f, 0, sizeof(*f));
	f->n = g.d.cols;
	f->k = g.trans_a ? g.a.rows : g.a.cols;
	f->row_a = is_quantized ? f->k : g.a.ld;
	f->row_b = g.b.ld;
	f->row_d = g.d.ld;
	f->a = is_quantized ? DTYPE_E4M3 : g.a.dtype;
	f->b = g.b.dtype;
	f->d = g.d.dtype;
	f->align = gemm_alignment(&g);
	f->trans_a = g.trans_a;
	f->trans_b = g.trans_b;
	f->has_bias = g.bias.rows > 0;
	f->is_added = g.beta != 0;
	f->is_whole = g.whole_sums;
}

bool gemm_is_form(const struct gemm_form *f, const struct gemm *m)
{
	struct gemm_form other;

	gemm_form_of(&other, m);
	return !memcmp(f, &other, sizeof(other));
}

/* Whether a choice for `chosen` rows is used for fewer. With many rows the best tile depends on how many
 * tiles they fill, so the numbers must be close; otherwise the library's first candidate is better. */
bool gemm_stands_for(int64_t chosen, int64_t rows)
{
	if (chosen < rows)
		return false;
	return chosen <= FEW || (rows < MANY_ROWS ? chosen < 2 * rows : 4 * chosen <= 5 * rows);
}

const struct gemm_way *gemm_chosen(const struct gpu_state *g, const struct gemm *m)
{
	const struct gemm_choices *c = g->choices;
	const struct gemm_choice *best = NULL;
	const int64_t rows = m->d.rows;

	for (size_t i = 0; c && i < c->count; i++) {
		const struct gemm_choice *one = &c->choice[i];

		if (!gemm_stands_for(one->rows, rows) || (best && one->rows >= best->rows) ||
		    !gemm_is_form(&one->form, m))
			continue;
		best = one;
	}
	return best ? &best->way : NULL;
}

/* The uses with one form and number of rows, and the ways to run them. */
struct group {
	struct backend *back;
	const struct gemm_use **use;
	size_t uses, turn;
	struct gemm_way way[WAYS_MOST];
	double seconds[WAYS_MOST];
	unsigned ways;
	const struct gemm_way *running;
	struct gemm_plan *plan; /* whose candidates are the first ways; NULL if the weights are E4M3 */
	unsigned candidates;
};

static bool is_in_group(const struct gemm_use *a, const struct gemm_use *b)
{
	struct gemm_form form;

	gemm_form_of(&form, &a->g);
	return a->g.d.rows == b->g.d.rows && gemm_is_form(&form, &b->g);
}

static enum status run_next(void *arg, struct error *err)
{
	struct group *p = arg;
	const struct gemm_use *u = p->use[p->turn++ % p->uses];
	struct matmul_operands o;
	struct gemm_plan *plan;
	enum status st;

	if (p->running < p->way + p->candidates) {
		st = gemm_plans_find(p->back, &u->g, &plan, &o, err);
		if (!st)
			st = matmul_plan_enqueue(plan->plan, &o, gpu_of(p->back)->stream, err);
		return st || !u->h.rows ? st : p->back->ops->swiglu(p->back, u->g.d, u->h, err);
	}
	return few_rows_run(p->back, &u->g, &u->h, p->running, err);
}

int gemm_times_of(const struct gemm *m)
{
	const double rows = (double)m->d.rows, n = (double)m->d.cols, k = (double)m->b.cols;
	const double s =
		fmax((double)dtype_bytes(m->b.dtype, 1) * n * k / bytes_per_s, 2 * rows * n * k / flop_per_s);

	return (int)fmin(fmax(run_s / s, 2), TIMES_MOST);
}

/* The fastest of the first `count` ways. */
static unsigned fastest(const struct group *p, unsigned count)
{
	unsigned best = 0;

	for (unsigned i = 1; i < count; i++)
		best = p->seconds[i] < p->seconds[best] ? i : best;
	return best;
}

/* A way that was much slower than another one is not timed again. */
static bool is_hopeless(const struct group *p, unsigned i)
{
	const double best = p->seconds[fastest(p, p->ways)];

	return best > 0 && p->seconds[i] > worth_again * best;
}

enum status gemm_note_time(enum status st, double seconds, bool may_lack, double *best,
			   const struct error *why, struct error *err)
{
	if (st == STATUS_UNSUPPORTED && may_lack) {
		*best = INFINITY;
		return STATUS_OK;
	}
	if (!*best || seconds < *best)
		*best = seconds;
	return st ? error_set_cause(err, st, why->cause, "%s", why->text) : STATUS_OK;
}

/* UNSUPPORTED is not an error, unless it is the way that runs anyway. */
static enum status time_way(struct group *p, unsigned i, struct error *err)
{
	struct error why = {0};
	enum status st = STATUS_OK;
	double seconds = 0;

	if (isinf(p->seconds[i]) || is_hopeless(p, i))
		return STATUS_OK;
	p->running = &p->way[i];
	if (i < p->candidates)
		st = matmul_plan_select(p->plan->plan, i, &why);
	if (!st)
		st = gpu_time(p->back, run_next, p, gemm_times_of(&p->use[0]->g), &seconds, &why);
	return gemm_note_time(st, seconds, i > 0, &p->seconds[i], &why, err);
}

static enum status list_ways(struct group *p, struct error *err)
{
	const struct gemm *m = &p->use[0]->g;
	const unsigned wanted = m->d.rows >= MANY_ROWS ? CANDIDATES_MANY : CANDIDATES;
	struct matmul_operands ignored;
	enum status st;

	if (few_rows_take(gpu_of(p->back), m)) {
		p->ways = few_rows_ways(gpu_of(p->back), m, &p->use[0]->h, p->way);
		return STATUS_OK;
	}
	st = gemm_plans_find(p->back, m, &p->plan, &ignored, err);
	if (!st)
		st = matmul_plan_candidates(p->plan->plan, wanted, err);
	if (st)
		return st;
	p->candidates = matmul_plan_count(p->plan->plan);
	for (unsigned i = 0; i < p->candidates; i++)
		matmul_plan_algorithm(p->plan->plan, i, p->way[i].words);
	p->ways = p->candidates + few_rows_ways(gpu_of(p->back), m, &p->use[0]->h, p->way + p->candidates);
	return STATUS_OK;
}

/* The ways that a step decides among, by their times. */
static void keep_near(const struct group *p, struct gemm_choice *out)
{
	bool is_taken[WAYS_MOST] = {false};

	for (out->nears = 0; out->nears < GEMM_NEAR_MOST; out->nears++) {
		unsigned next = p->ways;

		for (unsigned i = 0; i < p->ways; i++)
			if (!is_taken[i] && (next == p->ways || p->seconds[i] < p->seconds[next]))
				next = i;
		if (next == p->ways || p->seconds[next] > near_s * p->seconds[fastest(p, p->ways)])
			return;
		is_taken[next] = true;
		out->near[out->nears] = p->way[next];
	}
}

static enum status keep_best(struct group *p, struct error *err)
{
	struct gemm_choices *c = gpu_of(p->back)->choices;
	const unsigned best = fastest(p, p->ways), candidate = fastest(p, p->candidates);
	struct gemm_choice *one;
	enum status st = gemm_grow((void **)&c->choice, &c->room, c->count, sizeof(*c->choice), err);

	if (st)
		return st;
	one = &c->choice[c->count++];
	gemm_form_of(&one->form, &p->use[0]->g);
	one->rows = p->use[0]->g.d.rows;
	one->way = p->way[best];
	keep_near(p, one);
	if (!p->plan)
		return STATUS_OK;
	p->plan->tuned = true;
	p->plan->recalled = false;
	p->plan->chosen = candidate;
	p->plan->seconds = p->seconds[candidate];
	p->plan->first_seconds = p->seconds[0];
	return matmul_plan_select(p->plan->plan, candidate, err);
}

static enum status choose(struct group *p, struct error *err)
{
	enum status st = list_ways(p, err);

	for (unsigned round = 0; !st && round < ROUNDS && p->ways > 1; round++)
		for (unsigned i = 0; !st && i < p->ways; i++)
			st = time_way(p, i, err);
	return st || !p->ways ? st : keep_best(p, err);
}

static bool is_known(const struct gemm_choices *c, const struct gemm *m)
{
	for (size_t i = 0; i < c->count; i++)
		if (c->choice[i].rows == m->d.rows && gemm_is_form(&c->choice[i].form, m))
			return true;
	return false;
}

enum status gpu_backend_choose(struct backend *back, double seconds, struct error *err)
{
	struct gemm_choices *c = gpu_of(back)->choices;
	const struct arena before = *back->arena; /* restores the arena's peak */
	const struct op_cost cost = back->cost;
	struct group group = {.back = back};
	const size_t uses = c ? c->uses : 0;
	uint64_t began_ns;
	enum status st = gpu_tuning_begin(back, &began_ns, err);

	if (!st && uses && !(group.use = malloc(uses * sizeof(*group.use))))
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for choices of GEMMs");
	for (size_t i = 0; !st && i < uses; i++) {
		if ((double)(clock_now_ns(clock_monotonic()) - began_ns) * 1e-9 > seconds)
			break;
		if (is_known(c, &c->use[i].g))
			continue;
		group = (struct group){.back = back, .use = group.use};
		for (size_t k = i; k < uses; k++)
			if (is_in_group(&c->use[i], &c->use[k]))
				group.use[group.uses++] = &c->use[k];
		st = choose(&group, err);
	}
	free(group.use);
	if (!st && c)
		st = adapted_choose(back, began_ns + (uint64_t)(seconds * 1e9), err);
	gpu_tuning_end(back, began_ns);
	*back->arena = before;
	back->cost = cost;
	return st;
}

void gpu_backend_ordinary_begin(struct backend *back, struct gpu_ordinary *kept)
{
	struct gpu_state *g = gpu_of(back);

	*kept = (struct gpu_ordinary){.invariant = g->options.invariant,
				      .deterministic = g->options.deterministic,
				      .plans = g->products->count,
				      .choices = g->choices};
	g->options.invariant = g->options.deterministic = false;
	g->choices = NULL;
}

void gpu_backend_ordinary_end(struct backend *back, const struct gpu_ordinary *kept)
{
	struct gpu_state *g = gpu_of(back);

	gemm_choices_release(&g->choices);
	gemm_plans_forget(g->products, kept->plans);
	g->choices = kept->choices;
	g->options.invariant = kept->invariant;
	g->options.deterministic = kept->deterministic;
}
