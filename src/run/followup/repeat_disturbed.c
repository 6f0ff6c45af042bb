/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second round. It repeats headline cases that other work on the host disturbed (on the CPU, or over the
 * host link), and CPU cases whose figures contradict each other. They run at the end as cases of their own
 * (`extend`, with `again`: the repeated case). The round takes at most a quarter of the run's time so far,
 * and at most six seconds. It begins no case after the suite's time limit (`within`).
 */
#include <errno.h>
#include "journal/figure/contradiction.h"
#include "machine/machine.h"
#include "run/timing/phases.h"
#include "run/supervisor/supervisor.h"

#define SHARE_OF_RUN 0.25
#define MOST_NS 6000000000u
enum { CONTRADICTED_MAX = 4096 };
#define WIDE_RATIO 0.10 /* width of the interval of the turns, as a share of their median */

static double number(const json_t *values, const char *name, double fallback)
{
	const json_t *v = json_object_get(values, name);

	return json_is_number(v) ? json_number_value(v) : fallback;
}

/* Other work on the host can disturb CPUs, memory and the bus. It cannot disturb a GPU's own memory or links
 * between GPUs. */
static bool host_link(const struct bench_case *c)
{
	return c->work.link_bytes > 0 && c->target.gpu_count == 1;
}

static bool shared_with_others(const struct bench_case *c)
{
	return c->target.kind == TARGET_CPU || host_link(c);
}

void repeat_disturbed_note(struct run *r, const struct bench_case *c, const char *phase, const json_t *values)
{
	const struct cpu *cpu = machine_cpu(r->machine);
	double threads = number(values, "threads", 1), granted = 1,
	       ratio = number(values, "ceiling_ratio", 0);
	double width = number(values, "ceiling_ratio_high", 0) - number(values, "ceiling_ratio_low", 0);

	if (strcmp(phase, "sustained") || !shared_with_others(c) || c->order == STEP_TOGETHER || c->team ||
	    c->id >= r->plan->case_count || c->require == REQUIRE_NOTHING)
		return;
	if (cpu->quota > 0 && cpu->quota < threads)
		granted = cpu->quota / threads;
	if (ratio > 0 ? width > WIDE_RATIO * ratio : number(values, "half_width_share", 0) > PHASE_WIDE)
		r->disturbed[c->id] = true;
	if (host_link(c) && number(values, "settled", 1) < 1)
		r->disturbed[c->id] = true;
	if (number(values, "cpu_share", 1) < PHASE_CPU_SHARE * granted)
		r->disturbed[c->id] = true;
}

/* Repeats the case in a step of its own. False: the run cannot continue. */
static bool repeat(struct run *r, const struct bench_case *first)
{
	struct bench_case c = *first; /* the plan still owns its members */
	struct step step = {.cases = &c, .count = 1};
	double *ratio;
	bool on;

	c.order = STEP_IN_ORDER; /* a lockstep case is repeated by itself */
	on = run_extend(r, &step, "again", json_pack("[i]", (int)first->id));
	ratio = &r->note[first->id].ceiling_ratio; /* run_extend() may have moved the array */
	if (on && r->note[c.id].ceiling_ratio > *ratio)
		*ratio = r->note[c.id].ceiling_ratio;
	return on;
}

/* Time at which the last repetition may begin. */
static uint64_t last_begin(const struct run *r, uint64_t now)
{
	uint64_t budget = (uint64_t)(SHARE_OF_RUN * (double)(now - r->t0_ns)), end;
	uint64_t whole = r->t0_ns + (uint64_t)(r->plan->within_s * 1e9);

	end = now + (budget < MOST_NS ? budget : MOST_NS);
	return r->plan->within_s > 0 && whole < end ? whole : end;
}

static const struct bench_case *case_at(const struct plan *p, size_t step, size_t place)
{
	const struct bench_case *c = &p->steps[step].cases[place];

	return c->target.kind == TARGET_CPU && !c->skip && !c->team && c->require != REQUIRE_NOTHING &&
			       contradiction_asks(c->key)
		       ? c
		       : NULL;
}

/* Compares this case with all others of the plan. */
static void contradict(struct run *r, const struct bench_case *fast)
{
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct bench_case *slow = case_at(r->plan, i, k);

			if (!slow || strcmp(fast->target_text, slow->target_text) ||
			    !contradiction_of(fast->key, r->note[fast->id].rate, slow->key,
					      r->note[slow->id].rate))
				continue;
			r->disturbed[fast->id] = r->disturbed[slow->id] = true;
		}
}

/* Both cases of a contradiction are repeated, because either may be wrong. Plans with very many cases are not
 * checked. */
void repeat_disturbed_contradictions(struct run *r)
{
	for (size_t i = 0; i < r->plan->count && r->plan->case_count <= CONTRADICTED_MAX; i++)
		for (size_t k = 0; k < r->plan->steps[i].count; k++) {
			const struct bench_case *c = case_at(r->plan, i, k);

			if (c)
				contradict(r, c);
		}
}

void repeat_disturbed(struct run *r)
{
	uint64_t end = last_begin(r, clock_now_ns(r->o->clock));
	bool on = !run_stopping(r) && !r->status && !r->repeated;

	if (on)
		repeat_disturbed_contradictions(r);
	for (size_t i = 0; i < r->plan->count; i++)
		for (size_t k = 0; on && k < r->plan->steps[i].count; k++) {
			const struct bench_case *c = &r->plan->steps[i].cases[k];

			if (r->disturbed[c->id] && clock_now_ns(r->o->clock) < end)
				on = repeat(r, c);
		}
}
