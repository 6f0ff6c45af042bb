/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses again among the ways of a GEMM that took little more time than the fastest one (choose.c), by the
 * time of a step. In a step, kernels begin before the kernel ahead of them has ended, and some ways of the
 * library begin with a copy or a memset. On an H200, the way that was fastest by itself took up to 45 %
 * longer in a step than another one.
 */
#include <math.h>
#include "core/clock.h"
#include "model/gpu/gemm/gemm.h"

enum { STEPS = 3, ROUNDS = 3 };
static const double again = 1.02; /* times the shortest time: such a way is timed again */
static const double gain = 0.99;  /* times that of the way that runs anyway: another one must take less */

struct refining {
	struct backend *back;
	gpu_step_run *run;
	void *arg;
	uint64_t end_ns;
	size_t uses, adapted; /* noted before; those of the steps that are timed are forgotten */
	struct gemm_use use;  /* one of the GEMMs whose way is chosen */
	size_t choice;
	double seconds[GEMM_NEAR_MOST]; /* 0: not timed; infinite: does not run */
};

static struct gemm_choice *choice_of(const struct refining *r)
{
	return &gpu_of(r->back)->choices->choice[r->choice];
}

static bool is_late(const struct refining *r)
{
	return clock_now_ns(clock_monotonic()) > r->end_ns;
}

/* Whether way i is an algorithm of the library that its plan must know. */
static bool is_planned(const struct refining *r, unsigned i)
{
	const struct gemm_way *way = &choice_of(r)->near[i];

	return way->engine == GEMM_LIBRARY && way->words[0];
}

static enum status plan_of(const struct refining *r, struct gemm_plan **plan, struct error *err)
{
	struct matmul_operands ignored;

	return gemm_plans_find(r->back, &r->use.g, plan, &ignored, err);
}

static enum status take_way(const struct refining *r, unsigned i, struct error *err)
{
	struct gemm_choice *c = choice_of(r);
	struct gemm_plan *plan;
	enum status st;

	c->way = c->near[i];
	if (!is_planned(r, i))
		return STATUS_OK;
	st = plan_of(r, &plan, err);
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

/* UNSUPPORTED if the step replaced the way, because it does not run with these operands. */
static enum status check_taken(const struct refining *r, unsigned i, struct error *err)
{
	struct gemm_plan *plan;
	enum status st = is_planned(r, i) ? plan_of(r, &plan, err) : STATUS_OK;

	if (!st && is_planned(r, i) && !plan->recalled)
		return error_set(err, STATUS_UNSUPPORTED, "the library's algorithm does not run in a step");
	return st;
}

/* A way that does not run is not chosen. */
static enum status time_way(struct refining *r, unsigned i, struct error *err)
{
	struct error why = {0};
	double seconds = 0;
	enum status st = take_way(r, i, &why);

	if (!st)
		st = gpu_time(r->back, run_step, r, STEPS, &seconds, &why);
	if (!st)
		st = check_taken(r, i, &why);
	return gemm_note_time(st, seconds, true, &r->seconds[i], &why, err);
}

/* The number of ways if none was timed. */
static unsigned fastest(const struct refining *r)
{
	const unsigned nears = choice_of(r)->nears;
	unsigned best = nears;

	for (unsigned i = 0; i < nears; i++)
		if (r->seconds[i] > 0 && !isinf(r->seconds[i]) &&
		    (best == nears || r->seconds[i] < r->seconds[best]))
			best = i;
	return best;
}

/* Back to the way that runs anyway, by the library's first candidate if that is one it no longer takes. */
static enum status keep_first(const struct refining *r, struct error *err)
{
	struct error ignored = {0};
	struct gemm_plan *plan;
	enum status st = take_way(r, 0, &ignored);

	if (!st || st != STATUS_UNSUPPORTED)
		return st ? error_set_cause(err, st, ignored.cause, "%s", ignored.text) : STATUS_OK;
	st = plan_of(r, &plan, err);
	if (st)
		return st;
	plan->recalled = false;
	return matmul_plan_first(plan->plan, err);
}

static enum status refine(struct refining *r, struct error *err)
{
	enum status st = STATUS_OK;
	unsigned best;

	for (unsigned round = 0; !st && round < ROUNDS; round++) {
		const double limit =
			round && fastest(r) < choice_of(r)->nears ? again * r->seconds[fastest(r)] : INFINITY;

		for (unsigned i = 0; !st && i < choice_of(r)->nears && !(round + i && is_late(r)); i++)
			if (r->seconds[i] <= limit && !isinf(r->seconds[i]))
				st = time_way(r, i, err);
	}
	if (st)
		return st;
	best = fastest(r);
	if (best == choice_of(r)->nears || (r->seconds[0] > 0 && r->seconds[best] > gain * r->seconds[0]))
		return keep_first(r, err);
	return take_way(r, best, err);
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

bool gpu_backend_has_ways(const struct backend *back, int64_t rows)
{
	const struct gemm_choices *c = gpu_of(back)->choices;

	for (size_t i = 0; c && i < c->count; i++)
		if (c->choice[i].rows == rows && c->choice[i].nears > 1)
			return true;
	return false;
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

	r.end_ns = began_ns + (uint64_t)(seconds > 0 ? seconds * 1e9 : 0);
	for (r.choice = 0; !st && c && r.choice < c->count && !is_late(&r); r.choice++) {
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
