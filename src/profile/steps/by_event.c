/* SPDX-License-Identifier: Apache-2.0 */
/* Finds steps by repetition. For each distinct launch or wait, it looks at the distances between occurrences,
 * counted in kernels. Something that happens once per step has a constant distance; something that happens in
 * every layer does not. */
#include <math.h>
#include <stdlib.h>
#include "profile/steps/internal.h"

/* Distances are alike if they differ from their median by at most one part in ALIKE_PART, or by one kernel.
 */
enum { ALIKE_PART = 8 };
/* At most this share of the distances may be unlike the median, for example in steps that log or evaluate.
 * None may be above twice the median. */
#define ODD_SHARE 0.2
enum { ODD_MEDIANS = 2, STRETCH_LEAST = 3 };
/* Candidates whose steps hold at least this part of the best candidate's kernel time compete. Comparing the
 * time of the steps instead would favour a warm-up in which devices are mostly idle. */
#define NEARLY 0.9
/* A candidate is a step if the host takes part in at least this share of its intervals. Other candidates are
 * layers. */
#define OUTWARD_SHARE 0.8
/* Layers also run in the warm-up, so they hold more kernel time than steps. Candidates with the host need
 * this part of the best candidate's kernel time. */
#define OUTWARD_PART 0.5
/* Numbers of steps are considered equal within this part: marks differ at the ends of stretches, and if one
 * runs ahead. */
#define ALIKE_STEPS 0.05
enum { ENDS_STEPS = 3 };

struct mark {
	uint64_t key;
	uint32_t at; /* index of the launch */
};

struct search {
	const struct launches *l;
	/* by launch: number of kernels and of launches with the host before it */
	uint32_t *kernels, *outward;
	double *ns;	   /* by launch: run time of the kernels before it */
	double whole_ns;   /* run time of all kernels */
	struct mark *mark; /* sorted by key, then position */
	uint32_t *sorted;  /* scratch space for distances */
};

/* The steps that one key would give. */
struct candidate {
	size_t first, count;	     /* in `mark` */
	uint32_t distance;	     /* median distance, in kernels */
	double inside_ns;	     /* run time of the kernels in the steps */
	size_t steps, outward, same; /* same: intervals of exactly the median distance */
	size_t begun, ended;	     /* marks at which the first stretch begins and the last one ends */
};

static int by_key(const void *a_, const void *b_)
{
	const struct mark *a = a_, *b = b_;

	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	return (a->at > b->at) - (a->at < b->at);
}

static int ascending(const void *a_, const void *b_)
{
	uint32_t a = *(const uint32_t *)a_, b = *(const uint32_t *)b_;

	return (a > b) - (a < b);
}

static uint32_t distance(const struct search *s, size_t mark)
{
	return s->kernels[s->mark[mark + 1].at] - s->kernels[s->mark[mark].at];
}

static const struct launch *launch_of(const struct search *s, size_t mark)
{
	return &s->l->launch[s->mark[mark].at];
}

static uint32_t median_distance(const struct search *s, size_t first, size_t count)
{
	for (size_t i = 0; i + 1 < count; i++)
		s->sorted[i] = distance(s, first + i);
	qsort(s->sorted, count - 1, sizeof(*s->sorted), ascending);
	return s->sorted[(count - 1) / 2];
}

static bool is_alike(uint32_t d, uint32_t median)
{
	uint32_t off = d > median ? d - median : median - d;

	return off <= (median / ALIKE_PART > 1 ? median / ALIKE_PART : 1);
}

/* Whether the next mark is later than this one in device time. */
static bool goes_on(const struct search *s, size_t mark)
{
	uint64_t from_ns = launch_of(s, mark)->start_ns, to_ns = launch_of(s, mark + 1)->start_ns;

	return from_ns < to_ns && to_ns != UINT64_MAX;
}

static bool is_odd(const struct search *s, const struct candidate *c, size_t mark)
{
	return !is_alike(distance(s, mark), c->distance);
}

/* Whether a stretch ends at this interval: there is none, it is too long, or it and the next one are unlike
 * the median. */
static bool breaks(const struct search *s, const struct candidate *c, size_t mark)
{
	size_t last = c->first + c->count - 1;

	if (mark == last || !goes_on(s, mark) || distance(s, mark) > ODD_MEDIANS * c->distance + 1)
		return true;
	return is_odd(s, c, mark) && mark + 1 < last && is_odd(s, c, mark + 1);
}

/* Called for each interval of the candidate's stretches that are long and regular enough. */
typedef void each_step(void *arg, const struct search *s, size_t mark);
static void each_of(const struct search *s, const struct candidate *c, each_step *step, void *arg)
{
	size_t from = c->first, odd = 0;

	for (size_t i = c->first; i < c->first + c->count; i++) {
		if (!breaks(s, c, i)) {
			odd += is_odd(s, c, i);
			continue;
		}
		if (i - from >= STRETCH_LEAST && (double)odd <= ODD_SHARE * (double)(i - from))
			for (size_t k = from; k < i; k++)
				step(arg, s, k);
		from = i + 1;
		odd = 0;
	}
}

static void measure(void *arg, const struct search *s, size_t mark)
{
	struct candidate *c = arg;

	c->begun = c->steps++ ? c->begun : mark;
	c->ended = mark + 1;
	c->inside_ns += s->ns[s->mark[mark + 1].at] - s->ns[s->mark[mark].at];
	c->outward += s->outward[s->mark[mark + 1].at] > s->outward[s->mark[mark].at];
	c->same += distance(s, mark) == c->distance;
}

static struct candidate measured(const struct search *s, size_t first, size_t count)
{
	struct candidate c = {.first = first, .count = count, .distance = median_distance(s, first, count)};

	each_of(s, &c, measure, &c);
	return c;
}

/* Something that repeats only in the start-up is not a step: then most of the work or of the launches comes
 * after it. */
static bool is_steady(const struct search *s, const struct candidate *c)
{
	double behind = c->steps ? (double)(s->l->count - s->mark[c->ended].at) : 0;

	if (behind > STEPS_MOST_BEHIND * (double)s->l->count)
		return false;
	return c->steps >= STEPS_LEAST && c->inside_ns >= STEPS_LEAST_INSIDE * s->whole_ns &&
	       s->whole_ns - s->ns[s->mark[c->ended].at] <= STEPS_MOST_BEHIND * s->whole_ns;
}

typedef bool visit_candidate(const struct candidate *c, void *arg);
static void each_candidate(const struct search *s, size_t marks, visit_candidate *visit, void *arg)
{
	size_t end;

	for (size_t i = 0; i < marks; i = end) {
		for (end = i + 1; end < marks && s->mark[end].key == s->mark[i].key;)
			end++;
		if (end - i > STEPS_LEAST) {
			struct candidate c = measured(s, i, end - i);

			if (is_steady(s, &c))
				visit(&c, arg);
		}
	}
}

struct choice {
	double most_ns, most_outward_ns; /* most kernel time in the steps of any candidate, and of any
					    candidate with the host */
	bool outward;			 /* candidates with the host are the steps; others are layers */
	const struct search *s;
	struct candidate best;
};

static bool is_outward(const struct candidate *c)
{
	return (double)c->outward >= OUTWARD_SHARE * (double)c->steps;
}

static bool find_most(const struct candidate *c, void *arg)
{
	struct choice *choice = arg;

	choice->most_ns = fmax(choice->most_ns, c->inside_ns);
	if (is_outward(c))
		choice->most_outward_ns = fmax(choice->most_outward_ns, c->inside_ns);
	choice->outward = choice->most_outward_ns >= OUTWARD_PART * choice->most_ns;
	return true;
}

static bool nearly_most(const struct candidate *c, const struct choice *choice)
{
	return c->inside_ns >= NEARLY * (choice->outward ? choice->most_outward_ns : choice->most_ns);
}

/* Share of all intervals, from the first stretch to the last one, that have exactly the same distance. */
static double sameness(const struct candidate *c)
{
	return c->steps ? (double)c->same / (double)(c->ended - c->begun) : -1;
}

/* Prefers kernels as marks. A copy that runs ahead on its own stream follows the pace of the host, so its
 * times are not those of the step. */
static bool is_kernel(const struct search *s, const struct candidate *c)
{
	return launch_of(s, c->first)->kernel;
}

/* Among candidates with the host, the one with most steps wins, so that two steps are not counted as one. If
 * the numbers are nearly equal, a kernel is preferred to a copy or a wait. */
static bool has_more_steps(const struct search *s, const struct candidate *c, const struct candidate *b)
{
	const size_t more = c->steps > b->steps ? c->steps - b->steps : b->steps - c->steps;

	if (is_kernel(s, c) != is_kernel(s, b) &&
	    ((double)more <= ALIKE_STEPS * (double)b->steps || more <= ENDS_STEPS))
		return is_kernel(s, c);
	return c->steps > b->steps;
}

/* Without the host, distances tell steps from layers: those of a layer are not all the same. */
static bool find_best(const struct candidate *c, void *arg)
{
	struct choice *choice = arg;
	const struct candidate *b = &choice->best;
	double same = sameness(c), best = sameness(b);

	if (!nearly_most(c, choice) || (choice->outward && !is_outward(c)))
		return true;
	if (!b->steps || (choice->outward ? has_more_steps(choice->s, c, b)
					  : same > best || (same >= best && c->steps > b->steps)))
		choice->best = *c;
	return true;
}

static void keep(void *arg, const struct search *s, size_t mark)
{
	struct steps_found *f = arg;
	uint64_t from_ns = launch_of(s, mark)->start_ns;

	if (f->steps && from_ns < f->step[f->steps - 1].to_ns)
		return; /* on another stream: it began before the previous step ended */
	f->step[f->steps++] = (struct windows_span){from_ns, launch_of(s, mark + 1)->start_ns};
}

static bool prepare(struct search *s)
{
	const struct launches *l = s->l;
	uint32_t kernels = 0, outward = 0;
	double ns = 0;

	s->kernels = malloc((l->count + 1) * sizeof(*s->kernels));
	s->outward = malloc((l->count + 1) * sizeof(*s->outward));
	s->ns = malloc((l->count + 1) * sizeof(*s->ns));
	s->mark = malloc((l->count + 1) * sizeof(*s->mark));
	s->sorted = malloc((l->count + 1) * sizeof(*s->sorted));
	if (!s->kernels || !s->outward || !s->ns || !s->mark || !s->sorted)
		return false;
	for (size_t i = 0; i < l->count; i++) {
		s->kernels[i] = kernels;
		s->outward[i] = outward;
		s->ns[i] = ns;
		ns += (double)l->launch[i].ns;
		kernels += l->launch[i].kernel;
		outward += l->launch[i].outward;
		s->mark[i] = (struct mark){l->launch[i].key, (uint32_t)i};
	}
	s->whole_ns = ns;
	qsort(s->mark, l->count, sizeof(*s->mark), by_key);
	return true;
}

static bool choose(struct search *s, struct steps_found *f)
{
	struct choice choice = {.s = s};
	size_t marks = s->l->count;

	each_candidate(s, marks, find_most, &choice);
	each_candidate(s, marks, find_best, &choice);
	if (!choice.best.steps)
		return true;
	f->step = malloc((choice.best.steps + 1) * sizeof(*f->step));
	if (!f->step)
		return false;
	each_of(s, &choice.best, keep, f);
	f->mark = STEPS_EVENT;
	f->kind = launch_kind(launch_of(s, choice.best.first));
	f->name = launch_name(launch_of(s, choice.best.first));
	return true;
}

bool steps_by_event(struct steps_found *f, const struct timeline *t, uint16_t process,
		    const struct launches *l)
{
	struct search s = {.l = l};
	bool made = !l->count || (prepare(&s) && choose(&s, f));

	(void)t;
	(void)process;
	free(s.kernels);
	free(s.outward);
	free(s.ns);
	free(s.mark);
	free(s.sorted);
	return made;
}
