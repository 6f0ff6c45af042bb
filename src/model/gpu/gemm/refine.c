/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses again among the ways of a GEMM that took little more time than the fastest one (choose.c), by the time
 * of a step. In a step, kernels begin before the kernel ahead of them has ended, and some ways of the library
 * begin with a copy or a memset. On an H200, the way that was fastest by itself took up to 45 % longer in a step
 * than another one.
 */
#include <math.h>
#include "core/clock.h"
#include "model/gpu/gemm/gemm.h"

enum { STEPS = 3, ROUNDS = 3 };
static const double again = 1.02; /* times the shortest time: such a way is timed again */

struct refining {
	struct backend *back;
	gpu_step_run *run;
	void *arg;
	size_t uses, adapted; /* noted before; those of the steps that are timed are forgotten */
	struct gemm_use use;  /* one of the GEMMs whose way is chosen */
	size_t choice;
	double seconds[GEMM_NEAR_MOST];
};

static struct gemm_choice *choice_of(const struct refining *r)
{
	return &gpu_of(r->back)->choices->choice[r->choice];
}

static enum status take_way(const struct refining *r, unsigned i, struct error *err)
{
	struct gemm_choice *c = choice_of(r);
	struct matmul_operands ignored;
	struct gemm_plan *plan;
	enum status st;

	c->way = c->near[i];
	if (c->way.engine != GEMM_LIBRARY || !c->way.words[0])
		return STATUS_OK;
	st = gemm_plans_find(r->back, &r->use.g, &plan, &ignored, err);
	if (!st)
		st = matmul_plan_recall(plan->plan, c->way.words, err);
	if (!st)
		plan->recalled = plan->tuned = true;
	return st;
}

static enum status run_step(void *arg, struct error *err)
{
	const struct refining *r = arg;
	struct gemm_choices *c = gpu_of(r->back)->choices;
	const enum status st = r->run(r->arg, err);

	c->uses = r->uses;
	c->adapted_uses = r->adapted;
	return st;
}

/* A way that does not run is not chosen, unless it is the one that runs anyway. */
static enum status time_way(struct refining *r, unsigned i, struct error *err)
{
	struct error why = {0};
	double seconds = 0;
	enum status st = take_way(r, i, &why);

	if (!st)
		st = gpu_time(r->back, run_step, r, STEPS, &seconds, &why);
	return gemm_note_time(st, seconds, i > 0, &r->seconds[i], &why, err);
}

static unsigned fastest(const struct refining *r)
{
	unsigned best = 0;

	for (unsigned i = 1; i < choice_of(r)->nears; i++)
		best = r->seconds[i] < r->seconds[best] ? i : best;
	return best;
}

static enum status refine(struct refining *r, struct error *err)
{
	enum status st = STATUS_OK;

	for (unsigned round = 0; !st && round < ROUNDS; round++) {
		const double best = round ? r->seconds[fastest(r)] : INFINITY;

		for (unsigned i = 0; !st && i < choice_of(r)->nears; i++)
			if (r->seconds[i] <= again * best)
				st = time_way(r, i, err);
	}
	return st ? st : take_way(r, fastest(r), err);
}

/* The number of noted GEMMs whose way is this choice; one of them is copied. */
static size_t uses_of(const struct gemm_choices *c, const struct gemm_choice *choice, struct gemm_use *out)
{
	size_t count = 0;

	for (size_t i = 0; i < c->uses; i++)
		if (c->use[i].g.d.rows == choice->rows && gemm_is_form(&choice->form, &c->use[i].g)) {
			*out = c->use[i];
			count++;
		}
	return count;
}

enum status gpu_backend_refine(struct backend *back, int64_t rows, double seconds, gpu_step_run *run,
			       void *arg, struct error *err)
{
	struct gemm_choices *c = gpu_of(back)->choices;
	const struct op_cost cost = back->cost;
	struct refining r = {.back = back,
			     .run = run,
			     .arg = arg,
			     .uses = c ? c->uses : 0,
			     .adapted = c ? c->adapted_uses : 0};
	uint64_t began_ns;
	enum status st = gpu_tuning_begin(back, &began_ns, err);

	for (r.choice = 0; !st && c && r.choice < c->count; r.choice++) {
		if ((double)(clock_now_ns(clock_monotonic()) - began_ns) * 1e-9 > seconds)
			break;
		if (choice_of(&r)->rows != rows || choice_of(&r)->nears < 2 ||
		    uses_of(c, choice_of(&r), &r.use) < 2)
			continue;
		memset(r.seconds, 0, sizeof(r.seconds));
		st = refine(&r, err);
	}
	gpu_tuning_end(back, began_ns);
	back->cost = cost;
	return st;
}
