/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/steps.h"
#include <errno.h>
#include <stdlib.h>
#include "core/stats.h"
#include "profile/steps_internal.h"

/* Start-up ends before the first steps in a row, each of at most so many medians. */
enum { SETTLED_STEPS = 3 };
#define SETTLED_MEDIANS 2.0

static int ascending(const void *a_, const void *b_)
{
	double a = *(const double *)a_, b = *(const double *)b_;

	return (a > b) - (a < b);
}

static double span_ns(const struct windows_span *s)
{
	return (double)(s->to_ns - s->from_ns);
}

/* Durations of the steps, ascending. Caller frees; NULL: no memory. */
static double *durations_of(const struct steps_found *f)
{
	double *ns = malloc((f->steps + 1) * sizeof(*ns));

	for (size_t i = 0; ns && i < f->steps; i++)
		ns[i] = span_ns(&f->step[i]);
	if (ns && f->steps)
		qsort(ns, f->steps, sizeof(*ns), ascending);
	return ns;
}

/* The first step of those that have settled; all of them where none has. */
static size_t settled_from(const struct steps_found *f, double median_ns)
{
	size_t row = 0;

	for (size_t i = 0; i < f->steps; i++) {
		row = span_ns(&f->step[i]) <= SETTLED_MEDIANS * median_ns ? row + 1 : 0;
		if (row == SETTLED_STEPS)
			return i + 1 - SETTLED_STEPS;
	}
	return f->steps;
}

/* Whether enough of what the process did lies in the steps and not too much behind them. */
static bool is_steady(const struct steps_found *f, const struct launches *l)
{
	double all = 0, inside = 0, behind = 0;
	size_t step = 0;

	for (size_t i = 0; i < l->count && f->steps; i++) {
		uint64_t at_ns = l->launch[i].start_ns;
		double ns = (double)l->launch[i].ns;

		while (step + 1 < f->steps && at_ns >= f->step[step].to_ns)
			step++;
		all += ns;
		inside += at_ns >= f->step[step].from_ns && at_ns < f->step[step].to_ns ? ns : 0;
		behind += at_ns >= f->step[f->steps - 1].to_ns ? ns : 0;
	}
	return f->steps >= STEPS_LEAST && inside >= STEPS_LEAST_INSIDE * all &&
	       behind <= STEPS_MOST_BEHIND * all;
}

static bool drop_start_up(struct steps_found *f)
{
	double *ns = durations_of(f);
	size_t from;

	if (!ns)
		return false;
	from = f->steps ? settled_from(f, stats_percentile(ns, f->steps, 0.5)) : 0;
	free(ns);
	f->steps -= from;
	memmove(f->step, f->step + from, f->steps * sizeof(*f->step));
	return true;
}

static bool describe(struct steps_process *p, const struct steps_found *f)
{
	double *ns = durations_of(f), sum = 0;

	if (!ns)
		return false;
	for (size_t i = 0; i < f->steps; i++)
		sum += ns[i];
	p->mark = f->mark;
	p->kind = f->kind;
	p->name = f->name;
	p->numbered = f->numbered;
	p->steps = f->steps;
	p->mean_ns = sum / (double)f->steps;
	p->median_ns = stats_percentile(ns, f->steps, 0.5);
	p->p10_ns = stats_percentile(ns, f->steps, 0.1);
	p->p90_ns = stats_percentile(ns, f->steps, 0.9);
	free(ns);
	return true;
}

/* By ranges, else by events. Without steps *f has none. */
static bool find(struct steps_found *f, const struct timeline *t, uint16_t process, const struct launches *l)
{
	static bool (*const ways[])(struct steps_found *, const struct timeline *, uint16_t,
				    const struct launches *) = {steps_by_range, steps_by_event};

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		*f = (struct steps_found){0};
		if (!ways[i](f, t, process, l) || !drop_start_up(f))
			return false;
		if (is_steady(f, l))
			return true;
		free(f->step);
	}
	*f = (struct steps_found){0};
	return true;
}

static void bound(struct steps_process *p, const struct timeline *t, uint16_t process)
{
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];

		if (e->process != process || !timeline_on_device(e->kind) || e->track == TIMELINE_NONE)
			continue;
		p->first_ns = p->first_ns ? p->first_ns : e->start_ns;
		p->last_ns = e->end_ns > p->last_ns ? e->end_ns : p->last_ns;
	}
}

static bool find_all(struct steps *s, struct steps_found *found, const struct timeline *t)
{
	bool made = true;

	for (uint16_t p = 0; p < t->processes && made; p++) {
		struct launches l;

		made = launches_of(&l, t, p) && find(&found[p], t, p, &l);
		free(l.launch);
		s->steps += made ? found[p].steps : 0;
		bound(&s->process[p], t, p);
		if (made && found[p].steps)
			made = describe(&s->process[p], &found[p]);
	}
	if (!made || !windows_make(&s->each, t, s->steps) || !windows_make(&s->start_up, t, t->processes))
		return false;
	for (uint16_t p = 0; p < t->processes; p++) {
		for (size_t i = 0; i < found[p].steps; i++)
			windows_add(&s->each, t, p, found[p].step[i].from_ns, found[p].step[i].to_ns);
		if (found[p].steps)
			windows_add(&s->start_up, t, p, s->process[p].first_ns, found[p].step[0].from_ns);
	}
	return true;
}

enum status steps_of(struct steps *s, const struct timeline *t, struct error *err)
{
	struct steps_found *found = calloc(t->processes + 1, sizeof(*found));
	bool made;

	*s = (struct steps){.process = calloc(t->processes + 1, sizeof(*s->process))};
	made = found && s->process && find_all(s, found, t);
	for (size_t p = 0; found && p < t->processes; p++)
		free(found[p].step);
	free(found);
	if (made)
		return STATUS_OK;
	steps_release(s);
	return error_errno(err, ENOMEM, "the steps of %zu events", t->events);
}

void steps_release(struct steps *s)
{
	free(s->process);
	windows_release(&s->each);
	windows_release(&s->start_up);
	*s = (struct steps){0};
}

const struct windows *steps_steady(const struct steps *s)
{
	return s->steps ? &s->each : NULL;
}
