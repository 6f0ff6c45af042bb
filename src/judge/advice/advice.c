/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/advice/advice.h"
#include <stdarg.h>
#include "judge/advice/attention_engines.h"
#include "judge/gap/gap.h"
#include "judge/advice/blas_kernels.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct advice *advice_add(struct judgement *out, const char *knob, const char *format, ...)
{
	struct advice *a;
	va_list args;

	if (out->advice_count == COUNT(out->advice))
		return NULL;
	a = &out->advice[out->advice_count++];
	snprintf(a->knob, sizeof(a->knob), "%s", knob);
	va_start(args, format);
	vsnprintf(a->evidence, sizeof(a->evidence), format, args);
	va_end(args);
	return a;
}

static const struct factor *factor(const struct judgement *j, const char *name)
{
	size_t i;

	for (i = 0; i < j->gap_count; i++)
		if (!strcmp(j->gap[i].name, name) && j->gap[i].present)
			return &j->gap[i];
	return NULL;
}

/* Finds the same work with zeros as data in this run, which takes power out of the comparison. A search may
 * differ, since the figure is always that of the library's first choice. */
static bool zeros_case(const struct subject *s, struct subject *out)
{
	static const char *const but[] = {"data", "search", NULL};
	const struct record *r = s->ctx->record;
	size_t i;

	for (i = 0; i < r->case_count; i++) {
		const struct record_case *c = &r->cases[i];
		const char *data = record_option(c, "data");

		if (!data || strcmp(data, "zeros") || !case_sound(c) || !record_same_but(c, s->c, but))
			continue;
		subject_of(out, s->ctx, c);
		if (out->has_figure && !strcmp(out->phase_name, s->phase_name))
			return true;
	}
	return false;
}

static bool power_capped(const struct judgement *j)
{
	const struct factor *clock = factor(j, "clock");

	return clock && clock->clock_limit == HELD_BY_POWER;
}

static void about_clock(struct judgement *out, const struct subject *s)
{
	const struct factor *clock = factor(out, "clock");
	struct subject zeros;
	struct advice *a;

	if (!clock || clock->value >= GAP_LOW)
		return;
	a = advice_add(out, power_capped(out) ? "power limit and cooling" : "find what limits the clock",
		       "clock %s", clock->signal);
	if (!a)
		return;
	if (power_capped(out) && zeros_case(s, &zeros) && s->figure > 0)
		snprintf(a->gain, sizeof(a->gain),
			 "up to x %.2f: the same work on zeros, which need less power, reached that",
			 zeros.figure / s->figure);
	else
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f", 1 / clock->value);
}

static void about_variant(struct judgement *out, const struct subject *s)
{
	double ratio, low, high;
	const struct record_phase *best = record_phase(s->c, "best");
	const char *name = best ? record_text(best, "variant") : case_text(s->c, "variant");
	struct advice *a;

	if (!case_number(s->c, "best_ratio", &ratio) || !case_number(s->c, "best_ratio_low", &low) ||
	    !case_number(s->c, "best_ratio_high", &high) || low <= 1)
		return;
	a = advice_add(out, "algorithm",
		       "%.80s compared with the first choice in interleaved pairs of this run",
		       name ? name : "the best found");
	if (a)
		snprintf(a->gain, sizeof(a->gain), "x %.3f (%.3f .. %.3f)", ratio, low, high);
}

static void about_pipe(struct judgement *out, const struct subject *s)
{
	const struct factor *pipe = factor(out, "pipe"), *waves = factor(out, "waves");
	struct advice *a;

	if (!strcmp(s->c->probe, "attention")) {
		attention_advice(out, s);
		return;
	}
	if (waves && waves->value < 0.95)
		a = advice_add(out, "shape: a whole number of waves of tiles", "waves %.3f", waves->value);
	else if (pipe && pipe->value < 0.90)
		a = advice_add(out, "a kernel that keeps the pipe busier", "%.120s", pipe->signal);
	else
		return;
	if (a)
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f%s",
			 1 / (waves && waves->value < 0.95 ? waves : pipe)->value,
			 power_capped(out) ? "; almost nothing while the power cap applies" : "");
}

/* SMs without work come from launch gaps or from fewer blocks than SMs. If the waves are low, the shape is to
 * blame and has its own advice. */
static void about_sms(struct judgement *out, const struct subject *s)
{
	const struct unit_use *sm = &out->metric[UNIT_USE_SM];
	const struct factor *waves = factor(out, "waves");
	struct advice *a;

	if (!*s->type || !sm->from || sm->value > unit_use_rows[UNIT_USE_SM].target || !(sm->value > 0) ||
	    (waves && waves->value < 0.95))
		return;
	a = advice_add(out,
		       "give every SM work: a larger shape or batch, or a CUDA graph that closes the "
		       "gaps between launches",
		       "SMs with a warp in flight in %.1f %% of elapsed cycles (%s)", 100 * sm->value,
		       sm->from);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f", 1 / sm->value);
}

static void about_one(struct judgement *out, const char *name, double below, const char *knob)
{
	const struct factor *f = factor(out, name);
	struct advice *a;

	if (!f || f->value >= below)
		return;
	a = advice_add(out, knob, "%s %.3f: %.120s", name, f->value, f->signal);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f", 1 / f->value);
}

/* Fewer threads can be faster if threads share a core's caches. A gain is only promised if this run measured
 * it. */
static void about_threads(struct judgement *out, const struct subject *s)
{
	const struct factor *threads = factor(out, "threads"), *cpu_time = factor(out, "cpu time");
	double explained = cpu_time && cpu_time->value < 1 ? cpu_time->value : 1;
	struct subject one;
	struct advice *a;

	if (out->judged_by != JUDGED_CEILING || out->cause != CAUSE_BELOW_CEILING || !*s->type)
		return;
	if (gap_one_thread(s, &one) && one.figure > s->figure) {
		a = advice_add(out, "one thread per core (OPENBLAS_NUM_THREADS, OMP_NUM_THREADS)",
			       "one thread alone was faster%s%.120s", threads ? "; " : "",
			       threads ? threads->signal : "");
		if (a)
			snprintf(a->gain, sizeof(a->gain), "x %.2f: one thread reached that",
				 one.figure / s->figure);
		return;
	}
	a = advice_add(out, "another BLAS library or build, OPENBLAS_CORETYPE, or the number of threads",
		       "%.2f of this machine's own ceiling", out->share_of_bound);
	if (a)
		snprintf(a->gain, sizeof(a->gain), "at most x %.2f", explained / out->share_of_bound);
}

static void about_cpu(struct judgement *out, const struct subject *s)
{
	const struct cpu *cpu = s->ctx->cpu;
	struct advice *a;

	if (!s->gpu && cpu && cpu->quota > 0 && cpu->quota < cpu->usable) {
		a = advice_add(out, "CPU quota (cpu.max)", "quota %.1f of %u usable CPUs", cpu->quota,
			       cpu->usable);
		if (a)
			snprintf(a->gain, sizeof(a->gain), "at most x %.2f", cpu->usable / cpu->quota);
	}
	if (!s->gpu)
		about_threads(out, s);
}

void advice_of(struct judgement *out, const struct subject *s)
{
	out->advice_count = 0;
	if (!out->has_figure || !strcmp(s->c->probe, "peak")) /* ceilings are not for tuning */
		return;
	blas_retry_advise(out, s);
	about_clock(out, s);
	about_variant(out, s);
	about_pipe(out, s);
	about_sms(out, s);
	about_one(out, "useful", 0.97, "shape: multiples of the tile");
	about_one(out, "memory clock", 0.99, "the cause of the low memory clock");
	about_one(out, "width", 0.99,
		  "PCIe lanes: compare with lspci and reseat the card if lspci reports the same");
	about_one(out, "generation", 0.99, "PCIe generation: BIOS, riser, slot");
	about_one(out, "numa", 0.97, "bind the process to the GPU's NUMA node");
	about_cpu(out, s);
}
