/* SPDX-License-Identifier: Apache-2.0 */
#include "train/step/schedule.h"
#include <math.h>

static const double pi = 3.14159265358979323846;

enum status schedule_of(struct schedule *s, const struct config_training *t, uint64_t steps,
			struct error *err)
{
	*s = (struct schedule){
		.type = (enum config_schedule)t->lr_scheduler_type,
		.decay = (enum config_decay)t->decay_type,
		.peak = t->learning_rate,
		.min_ratio = t->min_lr_ratio,
		.pct_start = t->pct_start,
		.div_factor = t->div_factor,
		.final_div_factor = t->final_div_factor,
		.steps = steps,
		.warmup = t->warmup_steps ? t->warmup_steps : (uint64_t)ceil(t->warmup_ratio * (double)steps),
		.decay_steps = t->num_decay_steps ? t->num_decay_steps : (steps + 9) / 10,
	};
	if (s->type == CONFIG_CONSTANT ||
	    s->type == CONFIG_ONECYCLE) /* these types have no separate warm-up */
		s->warmup = 0;
	if (s->warmup > steps || (s->type == CONFIG_WSD && s->warmup + s->decay_steps > steps))
		return error_set(
			err, STATUS_BAD_INPUT,
			"training: %llu warm-up steps%s are more than the run's %llu steps; reduce them",
			(unsigned long long)s->warmup, s->type == CONFIG_WSD ? " and decay steps" : "",
			(unsigned long long)steps);
	return STATUS_OK;
}

static double share(uint64_t part, uint64_t whole)
{
	return (double)part / (double)(whole ? whole : 1);
}

/* Scales a factor so that it ends at `floor` instead of 0. */
static double above(double factor, double floor)
{
	factor = factor * (1 - floor) + floor;
	return factor > 0 ? factor : 0;
}

static double decayed(const struct schedule *s, double progress)
{
	switch (s->decay) {
	case CONFIG_DECAY_LINEAR:
		return 1 - progress;
	case CONFIG_DECAY_COSINE:
		return 0.5 * (1 + cos(pi * progress));
	case CONFIG_DECAY_1_SQRT:
		return 1 - sqrt(progress);
	}
	return 1;
}

static double wsd(const struct schedule *s, uint64_t step)
{
	uint64_t begin = s->steps - s->decay_steps;

	if (step < s->warmup)
		return above(share(step, s->warmup), s->min_ratio);
	if (step < begin)
		return 1;
	if (step < s->steps)
		return above(decayed(s, share(step - begin, s->decay_steps)), s->min_ratio);
	return s->min_ratio;
}

/* Half a cosine from a to b. */
static double anneal(double a, double b, double progress)
{
	return b + (a - b) / 2 * (1 + cos(pi * progress));
}

/* The same as PyTorch's: the border between the two phases may lie between steps. */
static double onecycle(const struct schedule *s, uint64_t step)
{
	double first = 1 / s->div_factor, last = first / s->final_div_factor;
	double top = s->pct_start * (double)s->steps - 1, end = (double)s->steps - 1;

	if (s->steps < 2)
		return first;
	if ((double)step <= top)
		return anneal(first, 1, (double)step / top);
	return anneal(1, last, ((double)step - top) / (end - top));
}

static double factor(const struct schedule *s, uint64_t step)
{
	uint64_t rest = s->steps > s->warmup ? s->steps - s->warmup : 0;

	if (s->type == CONFIG_ONECYCLE)
		return onecycle(s, step);
	if (s->type == CONFIG_WSD)
		return wsd(s, step);
	if (step < s->warmup)
		return share(step, s->warmup);
	switch (s->type) {
	case CONFIG_LINEAR:
		return step < s->steps ? share(s->steps - step, rest) : 0;
	case CONFIG_COSINE:
		return above(0.5 * (1 + cos(pi * share(step - s->warmup, rest))), s->min_ratio);
	default:
		return 1;
	}
}

double schedule_rate(const struct schedule *s, uint64_t step)
{
	return s->peak * factor(s, step);
}
