/* SPDX-License-Identifier: Apache-2.0 */
/* Finds steps by NVTX ranges: a range that the program opens once per step, whatever its name. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "profile/steps/internal.h"

/* A range qualifies if this share of its instances launches something, and if this share of the process's
 * launches lies between its first and its last instance. */
#define LAUNCHES_SHARE 0.9
#define INSIDE_SHARE 0.5
/* The second limit for ranges whose name contains "step", "iter" or "batch". Other loops may launch more, for
 * example a benchmark after the training. */
#define STEP_INSIDE_SHARE 0.05
/* Candidates that last at least this part of the longest one compete. Among them, names of steps win, then
 * the largest number of instances. */
#define NEARLY 0.8
static const char *const words[] = {"step", "iter", "batch"};

/* One instance of a range. */
struct range {
	uint32_t group;	 /* index of a name; names that occur once each and differ in digits only form one
			    group */
	uint32_t thread; /* track */
	uint32_t event;
};

struct search {
	const struct timeline *t;
	const struct launches *l;
	struct range *range;
	size_t ranges;
	bool *numbered; /* by group: it contains several names */
};

static bool is_nccl(const struct timeline *t, const struct timeline_event *e)
{
	return !strcmp(timeline_name(t, t->range[e->detail].domain), "NCCL");
}

static int by_group(const void *a_, const void *b_, void *arg)
{
	const struct timeline *t = arg;
	const struct range *a = a_, *b = b_;
	uint64_t a_ns = t->event[a->event].start_ns, b_ns = t->event[b->event].start_ns;

	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->thread != b->thread)
		return a->thread < b->thread ? -1 : 1;
	return (a_ns > b_ns) - (a_ns < b_ns);
}

/* Compares two names without their digits. */
static int compare_stripped(const char *a, const char *b)
{
	for (;; a++, b++) {
		while (isdigit((unsigned char)*a))
			a++;
		while (isdigit((unsigned char)*b))
			b++;
		if (*a != *b || !*a)
			return (unsigned char)*a - (unsigned char)*b;
	}
}

static int by_stripped(const void *a_, const void *b_, void *arg)
{
	const struct timeline *t = arg;
	uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;
	int order = compare_stripped(t->name[a], t->name[b]);

	return order ? order : (a > b) - (a < b);
}

/* Names that occur once each and differ in digits only join the group of the first one. */
static bool join_numbered(struct search *s)
{
	const struct timeline *t = s->t;
	uint32_t *times = calloc(t->names + 1, sizeof(*times)),
		 *once = malloc((s->ranges + 1) * sizeof(*once));
	uint32_t *group = calloc(t->names + 1, sizeof(*group));
	size_t count = 0;

	for (size_t i = 0; times && once && group && i < s->ranges; i++)
		times[s->range[i].group]++;
	for (size_t i = 0; times && once && group && i < s->ranges; i++)
		if (times[s->range[i].group] == 1)
			once[count++] = s->range[i].group;
	if (count)
		qsort_r(once, count, sizeof(*once), by_stripped, (void *)(uintptr_t)t);
	for (size_t i = 0; i < count; i++) {
		bool same = i && !compare_stripped(t->name[once[i - 1]], t->name[once[i]]);

		group[once[i]] = same ? group[once[i - 1]] : once[i];
		s->numbered[group[once[i]]] |= same;
	}
	for (size_t i = 0; i < s->ranges && group; i++)
		if (group[s->range[i].group])
			s->range[i].group = group[s->range[i].group];
	free(times);
	free(once);
	free(group);
	return times && once && group;
}

/* Index of the first launch or wait whose call begins at that time or later. */
static size_t place_from(const struct launches *l, uint64_t at_ns)
{
	size_t low = 0, high = l->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->launch[middle].at_ns < at_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The first launch of the instance; NULL: it launched nothing. */
static const struct launch *launch_in(const struct launches *l, const struct timeline_event *range)
{
	for (size_t i = place_from(l, range->start_ns); i < l->count && l->launch[i].at_ns < range->end_ns;
	     i++)
		if (!l->launch[i].waits)
			return &l->launch[i];
	return NULL;
}

struct candidate {
	size_t first, count; /* in `range` */
	uint64_t span_ns;    /* time on the host */
	size_t launching;    /* instances that launched something */
	size_t inside;	     /* launches from the first to the last instance */
	bool nested;	     /* an instance begins before the previous one has ended */
	bool step;	     /* the name says that it is a step */
};

static bool says_step(const char *name)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

static struct candidate measured(const struct search *s, size_t first, size_t count)
{
	const struct timeline_event *begin = &s->t->event[s->range[first].event];
	const struct timeline_event *end = &s->t->event[s->range[first + count - 1].event];
	struct candidate c = {.first = first,
			      .count = count,
			      .span_ns = end->end_ns - begin->start_ns,
			      .step = says_step(timeline_name(s->t, begin->name))};
	uint64_t until_ns = 0;

	for (size_t i = first; i < first + count; i++) {
		const struct timeline_event *e = &s->t->event[s->range[i].event];

		c.launching += launch_in(s->l, e) != NULL;
		c.nested |= e->start_ns < until_ns;
		until_ns = e->end_ns;
	}
	c.inside = place_from(s->l, end->end_ns) - place_from(s->l, begin->start_ns);
	return c;
}

static bool is_candidate(const struct search *s, const struct candidate *c)
{
	return !c->nested && (double)c->launching >= LAUNCHES_SHARE * (double)c->count &&
	       (double)c->inside >= (c->step ? STEP_INSIDE_SHARE : INSIDE_SHARE) * (double)s->l->count;
}

static bool is_better(const struct candidate *c, const struct candidate *best)
{
	if (c->step != best->step)
		return c->step;
	return c->count > best->count;
}

static struct candidate choose(const struct search *s)
{
	struct candidate best = {0};
	uint64_t longest_ns = 0;

	for (int pass = 0; pass < 2; pass++) {
		size_t end;

		for (size_t i = 0; i < s->ranges; i = end) {
			struct candidate c;

			for (end = i + 1; end < s->ranges && s->range[end].group == s->range[i].group &&
					  s->range[end].thread == s->range[i].thread;)
				end++;
			if (end - i <= STEPS_LEAST)
				continue;
			c = measured(s, i, end - i);
			if (!is_candidate(s, &c))
				continue;
			if (!pass)
				longest_ns = c.span_ns > longest_ns ? c.span_ns : longest_ns;
			else if ((double)c.span_ns >= NEARLY * (double)longest_ns &&
				 (!best.count || is_better(&c, &best)))
				best = c;
		}
	}
	return best;
}

/* Converts instances to steps. A range that launched nothing has no time on a device: it becomes part of the
 * previous step. */
static bool keep(struct steps_found *f, const struct search *s, const struct candidate *c)
{
	uint64_t from_ns = 0;

	f->step = malloc((c->count + 1) * sizeof(*f->step));
	if (!f->step)
		return false;
	for (size_t i = c->first; i < c->first + c->count; i++) {
		const struct timeline_event *e = &s->t->event[s->range[i].event];
		const struct launch *launch = launch_in(s->l, e);
		uint64_t at_ns = launch ? launch->start_ns : 0;

		if (at_ns <= from_ns)
			continue;
		if (from_ns)
			f->step[f->steps++] = (struct windows_span){from_ns, at_ns};
		from_ns = at_ns;
	}
	f->mark = STEPS_RANGE;
	f->kind = TIMELINE_RANGE;
	f->name = s->t->event[s->range[c->first].event].name;
	f->numbered = s->numbered[s->range[c->first].group];
	return true;
}

static bool collect(struct search *s, uint16_t process)
{
	const struct timeline *t = s->t;

	s->range = malloc((t->ranges + 1) * sizeof(*s->range));
	s->numbered = calloc(t->names + 1, sizeof(*s->numbered));
	if (!s->range || !s->numbered)
		return false;
	for (size_t i = 0; i < t->events; i++) {
		const struct timeline_event *e = &t->event[i];

		if (e->kind == TIMELINE_RANGE && e->process == process && e->name && !is_nccl(t, e) &&
		    s->ranges < t->ranges)
			s->range[s->ranges++] = (struct range){e->name, e->track, (uint32_t)i};
	}
	if (!join_numbered(s))
		return false;
	qsort_r(s->range, s->ranges, sizeof(*s->range), by_group, (void *)(uintptr_t)t);
	return true;
}

bool steps_by_range(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l)
{
	struct search s = {.t = t, .l = l};
	bool made = collect(&s, process);

	if (made && s.ranges && l->count) {
		struct candidate best = choose(&s);

		made = !best.count || keep(f, &s, &best);
	}
	free(s.range);
	free(s.numbered);
	return made;
}
