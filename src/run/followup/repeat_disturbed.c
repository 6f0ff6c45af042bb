/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second round: headline cases that other work on the host disturbed (on the CPU, or over the host link)
 * and CPU figures that contradict each other run once more at the end, as cases of their own (`extend`, with
 * `again`: the case they repeat). It takes no more than a quarter of the run so far and six seconds, and
 * begins nothing after what the suite gives itself
 * (`within`).
 */
#include <errno.h>
#include "journal/figure/contradiction.h"
#include "machine/machine.h"
#include "run/timing/phases.h"
#include "run/supervisor/supervisor.h"

#define SHARE_OF_RUN 0.25
#define MOST_NS 6000000000u
enum { CONTRADICTED_MAX = 4096 };
#define WIDE_RATIO 0.10 /* interval of the turns, over their median */

static double number(const json_t *values, const char *name, double fallback)
{
	const json_t *v = json_object_get(values, name);

	return json_is_number(v) ? json_number_value(v) : fallback;
}

/* What neighbours on the host can disturb: CPUs, memory and the bus are theirs too. A GPU's own memory is
 * not, nor are links between GPUs. */
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

/* One case more, in a step of its own. False: nothing runs any more. */
static bool repeat(struct run *r, const struct bench_case *first)
{
	struct bench_case c = *first; /* what it owns stays the plan's */
	struct step step = {.cases = &c, .count = 1};
	double *ratio;
	bool on;

	c.order = STEP_IN_ORDER; /* what ran in lockstep is repeated by itself */
	on = run_extend(r, &step, "again", json_pack("[i]", (int)first->id));
	ratio = &r->note[first->id].ceiling_ratio; /* there was more room needed, perhaps */
	if (on && r->note[c.id].ceiling_ratio > *ratio)
		*ratio = r->note[c.id].ceiling_ratio;
	return on;
}

/* When the last repetition has to begin. */
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

/* This case against all others of the plan. */
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

/* Figures of which one must be wrong are measured again, both. A sweep of very many is left as it is. */
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
