/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/steps/steps.h"
#include <errno.h>
#include <stdlib.h>
#include "core/math/stats.h"
#include "profile/breakdown/host_calls.h"
#include "profile/steps/internal.h"

/* Start-up ends before the first SETTLED_STEPS steps in a row that take at most SETTLED_MEDIANS medians each.
 */
enum { SETTLED_STEPS = 3 };
#define SETTLED_MEDIANS 2.0
/* More steps than any program has. A malformed file may claim more, and each step that is analyzed separately
 * takes memory. */
enum { APART_MOST = 20000000 };

static double span_ns(const struct windows_span *s)
{
	return (double)(s->to_ns - s->from_ns);
}

/* Durations of the steps, ascending. The caller frees them. NULL: out of memory. */
static double *durations_of(const struct steps_found *f)
{
	double *ns = malloc((f->steps + 1) * sizeof(*ns));

	for (size_t i = 0; ns && i < f->steps; i++)
		ns[i] = span_ns(&f->step[i]);
	if (ns)
		stats_sort(ns, f->steps);
	return ns;
}

/* Index of the first step after start-up; 0 if the steps never settle. */
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

/* Whether enough of the process's work lies in the steps. Steps that were not found by a range must also not
 * have too much work after them. */
static bool is_steady(const struct steps_found *f, const struct launches *l)
{
	double all = 0, inside = 0, behind = 0;

	for (size_t i = 0; i < l->count && f->steps; i++) {
		uint64_t at_ns = l->launch[i].start_ns;
		double ns = (double)l->launch[i].ns;

		all += ns;
		inside += windows_in(f->step, f->steps, at_ns) ? ns : 0;
		behind += at_ns >= f->step[f->steps - 1].to_ns ? ns : 0;
	}
	return f->steps >= STEPS_LEAST && inside >= STEPS_LEAST_INSIDE * all &&
	       behind <= STEPS_MOST_BEHIND * all;
}

static bool drop_start_up(struct steps_found *f)
{
	double *ns;
	size_t from;

	if (!f->steps)
		return true;
	ns = durations_of(f);
	if (!ns)
		return false;
	from = settled_from(f, stats_percentile(ns, f->steps, 0.5));
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

/* Finds steps by ranges, or else by events. *f is empty if there are none. */
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

/* Finds the first and last time at which each process did something on a device. */
static void bound_all(struct steps *s, const struct timeline *t)
{
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];
		struct steps_process *p = &s->process[e->process];

		if (!timeline_on_device(e->kind) || e->track == TIMELINE_NONE)
			continue;
		p->first_ns = p->first_ns ? p->first_ns : e->start_ns;
		p->last_ns = e->end_ns > p->last_ns ? e->end_ns : p->last_ns;
	}
}

/* The process whose steps the ranks share; SIZE_MAX: none has steps. */
static size_t leader_of(const struct steps_found *found, const bool *pairs, size_t processes)
{
	size_t leader = SIZE_MAX;

	for (size_t p = 0; p < processes; p++) {
		const struct steps_found *f = &found[p], *best = leader < SIZE_MAX ? &found[leader] : NULL;
		bool range = f->mark == STEPS_RANGE;

		if (!pairs[p] || !f->steps)
			continue;
		if (!best || range > (best->mark == STEPS_RANGE) ||
		    (range == (best->mark == STEPS_RANGE) && f->steps > best->steps))
			leader = p;
	}
	return leader;
}

/* Processes that did nothing on a device, such as data loaders, have no steps. */
static bool find_all(struct steps *s, struct steps_found *found, const struct timeline *t)
{
	bool *waits = host_calls_that_wait(t), made = waits;

	bound_all(s, t);
	for (uint16_t p = 0; p < t->processes && made; p++) {
		struct launches l = {0};

		if (!s->process[p].first_ns)
			continue;
		made = launches_of(&l, t, p, waits) && find(&found[p], t, p, &l);
		free(l.launch);
	}
	free(waits);
	return made;
}

/* Each process gets its own steps, or those of the leading rank. */
static bool keep_all(struct steps *s, const struct steps_found *found, const struct timeline *t,
		     const bool *pairs)
{
	size_t leader = leader_of(found, pairs, t->processes);
	bool made = true;

	for (size_t p = 0; p < t->processes && made; p++) {
		const struct steps_found *f = &found[pairs[p] && leader < SIZE_MAX ? leader : p];

		if (f->steps && s->process[p].first_ns)
			made = describe(&s->process[p], f);
		s->steps += s->process[p].steps;
	}
	if (!made || !windows_make(&s->each, t, s->steps) || !windows_make(&s->start_up, t, t->processes))
		return false;
	s->each.apart = leader < SIZE_MAX && s->steps <= APART_MOST;
	for (uint16_t p = 0; p < t->processes; p++) {
		const struct steps_found *f = &found[pairs[p] && leader < SIZE_MAX ? leader : p];

		if (!s->process[p].steps)
			continue;
		for (size_t i = 0; i < f->steps; i++)
			windows_add(&s->each, t, p, f->step[i].from_ns, f->step[i].to_ns);
		windows_add(&s->start_up, t, p, s->process[p].first_ns, f->step[0].from_ns);
	}
	return true;
}

enum status steps_of(struct steps *s, const struct timeline *t, const struct nccl *n, struct error *err)
{
	struct steps_found *found = calloc(t->processes + 1, sizeof(*found));
	bool *pairs = nccl_paired(n, t), made;

	*s = (struct steps){.process = calloc(t->processes + 1, sizeof(*s->process))};
	made = found && pairs && s->process && find_all(s, found, t) && keep_all(s, found, t, pairs);
	for (size_t p = 0; found && p < t->processes; p++)
		free(found[p].step);
	free(found);
	free(pairs);
	if (made)
		return STATUS_OK;
	steps_release(s);
	return error_errno(err, ENOMEM, "cannot find the steps in %zu events", t->events);
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
