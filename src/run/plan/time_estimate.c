/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates the time of a plan. The constants come from committed runs: tests/unit/plan_time.c. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "run/worker/device.h"
#include "run/timing/phases.h"

/* clang-format off */
#define READING_S 0.01
#define START_S 0.4           /* a worker that opens a GPU */
/* its turn among workers that start together: the driver creates contexts one by one */
#define START_GPU_S 0.15
#define START_MORE_S 0.45     /* each further GPU of a worker: the driver initializes all listed GPUs */
#define POINT_S 0.05          /* memory, verification and ramp of a burst on a GPU */
#define HEADLINE_S 0.5        /* the same for a headline case, with its burst */
#define SETTLE_MOST_S 2.0     /* settling, if the first windows agree */
#define SUSTAINED_S 1.5       /* default length */
/* a session of hardware counters: its passes, and the first session of each worker */
#define COUNTED_S 0.4
#define SEARCH_S 1.0          /* listing and timing a GPU's variants */
#define SEARCH_RANK_S 1.75    /* per rank of several: every variant has its own communicators */
#define RANKS_S 1.0           /* the first communicators of a worker */
#define RANK_POINT_S 0.015    /* per rank: making and checking a point */
#define ATTENTION_S 0.6       /* reference rows of attention on the CPU */
#define ATTENTION_BACK 1.3e-9 /* seconds per FLOP of one head: a backward pass, checked before and after */
#define CPU_POINT_S 0.03
#define CPU_WINDOWS 1.7       /* windows of a point; disturbed windows are repeated */
#define CPU_HEADLINE_S 0.9
#define CPU_TURNS 2.1         /* windows interleaved with the ceiling */
/* clang-format on */

static bool searches(const struct bench_case *c)
{
	return c->engine->variants && strstr(c->key, " search=") && !strstr(c->key, " search=first");
}

/* The integer after a word of a key, such as " heads="; 1: the key does not have the word. */
static double key_number(const char *key, const char *word)
{
	const char *at = strstr(key, word);

	return at ? fmax(1, strtod(at + strlen(word), NULL)) : 1;
}

/* Verification of attention. For a backward pass, one head is calculated by the definition. */
static double attention_seconds(const struct bench_case *c)
{
	double heads = key_number(c->key, " batch=") * key_number(c->key, " heads=");

	return ATTENTION_S + (strstr(c->key, " pass=backward") ? ATTENTION_BACK * c->work.flop / heads : 0);
}

double plan_case_seconds(const struct bench_case *c)
{
	double wish = fmax(c->seconds, c->seconds_capped),
	       singles = phase_single_several(&c->target, &c->work) ? PHASE_SINGLE_S : 0;
	bool gpu = device_wanted(c);

	if (c->skip)
		return 0;
	if (c->probe->kind == PROBE_READING)
		return READING_S;
	if (gpu && !strcmp(c->probe->name, "attention"))
		singles += attention_seconds(c);
	if (c->phases == PHASES_BURST) {
		wish = wish > 0 ? wish : PHASE_BURST_NS * 1e-9;
		if (c->target.ranks > 1)
			singles += RANK_POINT_S * c->target.ranks;
		return gpu ? POINT_S + wish + singles : CPU_POINT_S + CPU_WINDOWS * wish + singles;
	}
	if (!gpu)
		return CPU_HEADLINE_S + CPU_TURNS * (wish > 0 ? wish : SUSTAINED_S);
	if (phase_counted_may(c))
		singles += COUNTED_S;
	return HEADLINE_S + (wish > 0 ? fmin(SETTLE_MOST_S, wish) + wish : SETTLE_MOST_S + SUSTAINED_S) +
	       (!searches(c)	      ? 0
		: c->target.ranks > 1 ? SEARCH_RANK_S * c->target.ranks
				      : SEARCH_S) +
	       singles;
}

/* Start time of the worker of a GPU case, if the previous worker cannot be reused. *last becomes this case.
 * `beside`: number of workers that start together. */
static double start_seconds(const struct bench_case **last, const struct bench_case *c, unsigned beside)
{
	const struct bench_case *before = *last;

	if (c->skip || !c->engine)
		return 0;
	*last = c;
	if (!device_wanted(c) ||
	    (before && !strcmp(before->group, c->group) && !strcmp(case_place(before), case_place(c))))
		return 0;
	return START_S + START_GPU_S * (beside ? beside : 1) +
	       (c->target.gpu_count > 1 ? START_MORE_S * (c->target.gpu_count - 1) : 0) +
	       (c->target.ranks > 1 ? RANKS_S : 0);
}

/* Time of one target in a lockstep step with `lanes` targets. */
static double lane_seconds(const struct step *s, const char *target, unsigned lanes)
{
	const struct bench_case *last = NULL;
	double sum = 0;

	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->cases[i].target_text, target))
			sum += start_seconds(&last, &s->cases[i], lanes) + plan_case_seconds(&s->cases[i]);
	return sum;
}

static unsigned lanes_of(const struct step *s)
{
	unsigned lanes = 0;

	for (size_t i = 0; i < s->count; i++)
		lanes += !strcmp(s->cases[i].key, s->cases[0].key);
	return lanes;
}

/* TOGETHER: the longest case. LOCKSTEP: the GPU with the longest sum. Otherwise the sum of all cases. */
static double step_seconds(const struct step *s, const struct bench_case **last)
{
	unsigned lanes = s->count && s->order ? lanes_of(s) : 0;
	const struct bench_case *none = NULL;
	double sum = 0, most = 0;

	for (size_t i = 0; i < s->count; i++) {
		const struct bench_case *c = &s->cases[i];

		if (s->order == STEP_TOGETHER)
			most = fmax(most, start_seconds(&none, c, (unsigned)s->count) + plan_case_seconds(c));
		else if (s->order == STEP_LOCKSTEP && !strcmp(c->key, s->cases[0].key))
			most = fmax(most, lane_seconds(s, c->target_text, lanes));
		else if (!s->order)
			sum += start_seconds(last, c, 0) + plan_case_seconds(c);
	}
	if (s->order)
		*last = NULL; /* its workers have ended */
	return sum + most;
}

double plan_seconds(const struct plan *p)
{
	const struct bench_case *last = NULL;
	double sum = 0;

	for (size_t i = 0; i < p->count; i++)
		sum += step_seconds(&p->steps[i], &last);
	return sum;
}
