/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GEMMs of few rows with several adapters: by one kernel (gpu/matmul/skinny_adapters.h) or by operations
 * apart. As for other GEMMs, timing chooses before there are requests, with the operands of all layers in
 * turn.
 */
#include <math.h>
#include <stdlib.h>
#include "core/clock.h"
#include "gpu/matmul/skinny_adapters.h"
#include "kernel/matmul/skinny_adapters.h"
#include "model/gpu/gemm/gemm.h"
#include "model/tensor/matrix.h"

/* FETCH_WAYS: ways to fetch weights that are timed. */
enum { OWN_MOST = 16, FETCH_WAYS = 2, ROUNDS = 2 };

static struct skinny_adapters adapters_of(const struct adapted_gemm *g)
{
	struct skinny_adapters ad = {
		.a = gpu_address(g->a.data),
		.b = gpu_address(g->b.data),
		.x = gpu_address(g->base.a.data),
		.u = gpu_address(g->u.data),
		.adapter = gpu_address(g->adapter),
		.width = (uint32_t)g->width,
		.rank = (uint32_t)g->rank,
		.parts = (unsigned)g->parts,
		.row_a = (uint64_t)g->a.ld,
		.row_b = (uint64_t)g->b.ld,
		.row_x = (uint64_t)g->base.a.ld,
		.row_u = (uint64_t)g->u.ld,
	};

	for (int i = 0; i < g->parts; i++) {
		ad.begin[i] = (uint32_t)g->part[i].begin;
		ad.count[i] = (uint32_t)g->part[i].count;
	}
	return ad;
}

/* The problem as it is once x is quantized, if W is E4M3. */
static struct skinny_problem problem_of(const struct adapted_gemm *g)
{
	struct gemm m = g->base;

	if (m.b.dtype == DTYPE_E4M3) {
		m.a.dtype = DTYPE_E4M3;
		m.a.ld = m.a.cols;
		m.a.scales = scales_of_rows(m.b.scales.data, m.a.cols); /* any address */
	}
	return few_rows_problem(&m, &g->h, 0, m.d.rows);
}

/* Whether one kernel can do it. */
static bool can_fuse(const struct gpu_state *gpu, const struct adapted_gemm *g)
{
	const struct gemm *m = &g->base;
	struct error ignored = {0};
	struct skinny_adapters ad;
	struct skinny_problem p;

	if (gpu->options.adapters == GPU_ADAPTERS_APART || gpu->options.invariant || !few_rows_can(gpu, m) ||
	    m->d.rows > SKINNY_ROWS_MOST || (g->h.rows && m->bias.rows) || g->a.dtype != DTYPE_BF16 ||
	    (m->b.dtype != DTYPE_BF16 && !(m->b.dtype == DTYPE_E4M3 && mat_has_row_scales(&m->b))))
		return false;
	p = problem_of(g);
	ad = adapters_of(g);
	return !skinny_adapters_check(&p, &ad, &ignored);
}

struct fused {
	const struct adapted_gemm *g;
	const struct skinny_choice *own;
};

static enum status enqueue(struct backend *back, const struct gemm *m, void *arg, struct error *err)
{
	const struct fused *f = arg;
	const struct skinny_problem p = few_rows_problem(m, &f->g->h, 0, m->d.rows);
	const struct skinny_adapters ad = adapters_of(f->g);
	struct gpu_state *gpu = gpu_of(back);

	return skinny_adapters_enqueue(gpu->skinny, &p, &ad, f->own, true, gpu->stream, err);
}

static enum status run_fused(struct backend *back, const struct adapted_gemm *g,
			     const struct skinny_choice *own, struct error *err)
{
	struct fused fused = {.g = g, .own = own};
	enum status st = few_rows_quantized(back, &g->base, enqueue, &fused, err);

	return st || !g->h.e4m3 ? st : few_rows_quantize(gpu_of(back), &g->h, g->h.e4m3, err);
}

/* The costs of its parts. */
static void count_cost(struct backend *back, const struct adapted_gemm *g)
{
	const struct gemm down = {.a = g->base.a, .b = g->a, .d = g->u, .trans_b = true, .alpha = 1};
	struct mat columns = {.rows = g->u.rows, .cols = g->b.rows, .ld = g->b.rows, .dtype = g->u.dtype};
	const struct gemm up = {
		.a = mat_cols(&g->u, 0, g->width), .b = g->b, .d = columns, .trans_b = true, .alpha = 1};

	cost_gemm(back, &g->base);
	cost_gemm(back, &down);
	cost_gemm(back, &up);
}

static bool is_alike(const struct adapted_choice *c, const struct adapted_gemm *g)
{
	struct gemm_form form;

	gemm_form_of(&form, &g->base);
	return c->a_rows == g->a.rows && c->swiglu == (g->h.rows > 0) &&
	       !memcmp(&c->form, &form, sizeof(form));
}

/* The choice of the nearest larger number of rows, or NULL. */
static const struct adapted_choice *chosen(const struct gpu_state *gpu, const struct adapted_gemm *g)
{
	const struct gemm_choices *c = gpu->choices;
	const struct adapted_choice *best = NULL;

	for (size_t i = 0; c && i < c->adapted_count; i++) {
		const struct adapted_choice *one = &c->adapted_choice[i];

		if (gemm_stands_for(one->rows, g->base.d.rows) && (!best || one->rows < best->rows) &&
		    is_alike(one, g))
			best = one;
	}
	return best;
}

static enum status watch(struct gpu_state *gpu, const struct adapted_gemm *g, struct error *err)
{
	struct gemm_choices *c = gpu->choices;
	enum status st;

	if (!c || !c->watching)
		return STATUS_OK;
	st = gemm_grow((void **)&c->adapted, &c->adapted_use_room, c->adapted_uses, sizeof(*c->adapted), err);
	if (!st)
		c->adapted[c->adapted_uses++] = *g;
	return st;
}

enum status gpu_gemm_adapted(struct backend *back, const struct adapted_gemm *g, struct error *err)
{
	struct gpu_state *gpu = gpu_of(back);
	const double before = back->cost.flop;
	const struct adapted_choice *choice = NULL;
	struct skinny_choice own[SKINNY_CHOICES_MOST];
	bool fuses = can_fuse(gpu, g);
	struct skinny_problem p;
	enum status st = fuses ? watch(gpu, g, err) : STATUS_OK;

	if (st)
		return st;
	if (fuses) {
		p = problem_of(g);
		choice = chosen(gpu, g);
		fuses = choice ? !choice->is_apart : gpu->options.adapters == GPU_ADAPTERS_FUSED;
		fuses = fuses && skinny_choices(gpu->skinny, &p, own);
	}
	if (!fuses || (gpu->choices && gpu->choices->watching)) /* apart, so that its GEMMs are noted too */
		return g->apart(back, g, err);
	count_cost(back, g);
	st = gpu_part_flop(back, GPU_PART_THIN, before, err);
	return st ? st : run_fused(back, g, choice ? &choice->own : own, err);
}

/* The uses with one form and number of rows, and the ways to run them: the first is apart. */
struct group {
	struct backend *back;
	const struct adapted_gemm **use;
	size_t uses, turn;
	struct skinny_choice own[1 + OWN_MOST];
	double seconds[1 + OWN_MOST];
	unsigned ways, running;
};

static enum status run_next(void *arg, struct error *err)
{
	struct group *p = arg;
	const struct adapted_gemm *g = p->use[p->turn++ % p->uses];

	return p->running ? run_fused(p->back, g, &p->own[p->running], err) : g->apart(p->back, g, err);
}

static void list_ways(struct group *p)
{
	const struct skinny_problem problem = problem_of(p->use[0]);
	struct skinny_choice own[SKINNY_CHOICES_MOST];
	const unsigned choices = skinny_choices(gpu_of(p->back)->skinny, &problem, own);

	p->ways = 1;
	for (unsigned i = 0; i < OWN_MOST && i / FETCH_WAYS < choices; i++) {
		p->own[p->ways] = own[i / FETCH_WAYS];
		p->own[p->ways++].short_fetch = i % FETCH_WAYS == 0;
	}
}

/* UNSUPPORTED is not an error of one kernel's way. */
static enum status time_way(struct group *p, unsigned i, struct error *err)
{
	struct error why = {0};
	double seconds = 0;
	enum status st;

	if (isinf(p->seconds[i]))
		return STATUS_OK;
	p->running = i;
	st = gpu_time(p->back, run_next, p, gemm_times_of(&p->use[0]->base), &seconds, &why);
	return gemm_note_time(st, seconds, i > 0, &p->seconds[i], &why, err);
}

static enum status keep_best(struct group *p, struct error *err)
{
	struct gemm_choices *c = gpu_of(p->back)->choices;
	const struct adapted_gemm *g = p->use[0];
	struct adapted_choice *one;
	unsigned best = gpu_of(p->back)->options.adapters == GPU_ADAPTERS_FUSED;
	enum status st = gemm_grow((void **)&c->adapted_choice, &c->adapted_room, c->adapted_count,
				   sizeof(*c->adapted_choice), err);

	if (st)
		return st;
	for (unsigned i = best; i < p->ways; i++)
		best = p->seconds[i] < p->seconds[best] ? i : best;
	one = &c->adapted_choice[c->adapted_count++];
	*one = (struct adapted_choice){.rows = g->base.d.rows,
				       .a_rows = g->a.rows,
				       .swiglu = g->h.rows > 0,
				       .is_apart = !best || best >= p->ways || isinf(p->seconds[best]),
				       .own = p->own[best]};
	gemm_form_of(&one->form, &g->base);
	return STATUS_OK;
}

static bool is_known(const struct gemm_choices *c, const struct adapted_gemm *g)
{
	for (size_t i = 0; i < c->adapted_count; i++)
		if (c->adapted_choice[i].rows == g->base.d.rows && is_alike(&c->adapted_choice[i], g))
			return true;
	return false;
}

static bool is_in_group(const struct adapted_gemm *a, const struct adapted_gemm *b)
{
	struct adapted_choice form = {.a_rows = a->a.rows, .swiglu = a->h.rows > 0};

	gemm_form_of(&form.form, &a->base);
	return a->base.d.rows == b->base.d.rows && is_alike(&form, b);
}

static enum status choose(struct group *p, struct error *err)
{
	enum status st = STATUS_OK;

	list_ways(p);
	for (unsigned round = 0; !st && round < ROUNDS; round++)
		for (unsigned i = 0; !st && i < p->ways; i++)
			st = time_way(p, i, err);
	return st ? st : keep_best(p, err);
}

enum status adapted_choose(struct backend *back, uint64_t end_ns, struct error *err)
{
	struct gemm_choices *c = gpu_of(back)->choices;
	const bool watching = c->watching;
	struct group group = {.back = back};
	enum status st = STATUS_OK;

	if (!c->adapted_uses)
		return STATUS_OK;
	group.use = malloc(c->adapted_uses * sizeof(*group.use));
	if (!group.use)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for choices of GEMMs");
	c->watching = false; /* what is timed is not noted */
	for (size_t i = 0; !st && i < c->adapted_uses; i++) {
		if (is_known(c, &c->adapted[i]))
			continue;
		if (clock_now_ns(clock_monotonic()) > end_ns)
			break;
		group = (struct group){.back = back, .use = group.use};
		for (size_t k = i; k < c->adapted_uses; k++)
			if (is_in_group(&c->adapted[i], &c->adapted[k]))
				group.use[group.uses++] = &c->adapted[k];
		st = choose(&group, err);
	}
	c->watching = watching;
	free(group.use);
	return st;
}
