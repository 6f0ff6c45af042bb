/* SPDX-License-Identifier: Apache-2.0 */
/* Compares, by time, cases of one collective at one size that differ only in how they run (launch, buffers,
 * algorithm, protocol, CTAs). A variant found by a search takes part through its interleaved pairs. */
#include "judge/advice/collective_ways.h"
#include <math.h>
#include "core/text/text.h"
#include "core/text/units.h"
#include "judge/case/context.h"
#include "journal/figure/figure.h"

static const struct {
	const char *option, *own; /* its value if nothing was requested */
} how[] = {{"algorithm", "auto"}, {"buffers", "plain"}, {"ctas", "0"},
	   {"launch", "stream"},  {"protocol", "auto"}, {"search", "first"}};
/* Two windows at different times differ by at least this share, even on an unchanged machine. */
#define BETWEEN_WINDOWS 0.01

enum { HOW = sizeof(how) / sizeof(how[0]) };

/* True if both cases are equal except for how they run and for the option `but`. */
static bool alike(const struct record_case *a, const struct record_case *b, const char *but)
{
	const char *names[HOW + 2] = {0};

	for (size_t i = 0; i < HOW; i++)
		names[i] = how[i].option;
	names[HOW] = but;
	return !strcmp(a->where, b->where) && !strcmp(a->phases, b->phases) && a->round == b->round &&
	       record_same_but(a, b, names);
}

static bool by_default(const struct record_case *c)
{
	for (size_t i = 0; i < HOW; i++) {
		const char *text = record_option(c, how[i].option);

		if (strcmp(how[i].option, "search") && text && strcmp(text, how[i].own))
			return false;
	}
	return true;
}

/* Time of one call, over the judged window. */
struct timed {
	double ns, half; /* half-width of its 95 % interval as a share; 0: not known */
};

static bool timed_of(struct timed *t, const struct record_case *c, const struct judgement *j)
{
	const struct record_phase *p = record_phase(c, j->phase);

	*t = (struct timed){0};
	if (strcmp(c->probe, "collective") || j->superseded || record_is_isolation(c) || !j->has_figure ||
	    j->verdict == VERDICT_FAIL || j->verdict == VERDICT_ERROR || j->verdict == VERDICT_UNTRUSTED ||
	    !record_number(p, "time_ns_mean", &t->ns) || !(t->ns > 0))
		return false;
	record_number(p, "half_width_share", &t->half);
	return true;
}

/* A variant found by this case's search that is faster than the case's own way, with its whole 95 % interval.
 */
struct won {
	double ratio, low, high;
	const struct record_phase *best;
};

static bool won_by(struct won *w, const struct record_case *c)
{
	w->best = record_phase(c, "best");
	return record_number(w->best, "best_ratio", &w->ratio) &&
	       record_number(w->best, "best_ratio_low", &w->low) && w->low > 1 &&
	       record_number(w->best, "best_ratio_high", &w->high);
}

struct group {
	const struct record *r;
	const struct judgements *out;
	struct timed plain; /* of NCCL's own choice, on a stream */
	struct timed best;
};

static const char *told(const struct record_case *c, bool searched, const char *field)
{
	char name[40];

	snprintf(name, sizeof(name), "%s%s", searched ? "best_" : "", field);
	return record_text(record_phase(c, "once"), name);
}

static void take(struct judge_way *w, struct group *g, size_t at, double ns, double half,
		 const struct won *won)
{
	if (w->ways && !(ns < g->best.ns))
		return;
	g->best = (struct timed){ns, half};
	w->best = at;
	w->searched = won != NULL;
	w->ratio = won ? won->ratio : 1;
	w->low = won ? won->low : 1;
	w->high = won ? won->high : 1;
}

static void look(struct judge_way *w, struct group *g, size_t at, const struct timed *t)
{
	const struct record_case *c = &g->r->cases[at];
	struct won won;
	double tried;

	if (by_default(c) && !w->has_plain) {
		w->has_plain = true;
		w->plain = at;
		g->plain = *t;
	}
	take(w, g, at, t->ns, t->half, NULL);
	w->ways++;
	if (record_number(record_phase(c, "best"), "variants_tried", &tried))
		w->tried += (unsigned)tried;
	if (won_by(&won, c))
		take(w, g, at, t->ns / won.ratio, 0, &won);
}

/* Fills the gain over NCCL's own choice on a stream. The interleaved pairs of a search give it directly.
 * Otherwise it comes from two windows, and their own scatter does not include changes between them. */
static void compare(struct judge_way *w, const struct group *g)
{
	double within = sqrt(g->plain.half * g->plain.half + g->best.half * g->best.half);
	double half = fmax(within, BETWEEN_WINDOWS);

	if (by_default(&g->r->cases[w->best]))
		return;
	w->ratio = w->low = w->high = 0;
	if (!w->has_plain)
		return;
	w->ratio = g->plain.ns / g->best.ns;
	if (w->searched || !(g->plain.half > 0) || !(g->best.half > 0))
		return;
	w->low = w->ratio * (1 - half);
	w->high = w->ratio * (1 + half);
}

/* Fills the figure of its own window, and what NCCL reported for it. */
static void describe(struct judge_way *w, const struct group *g)
{
	const struct record_case *c = &g->r->cases[w->best];
	const struct judgement *j = &g->out->of_case[w->best];
	const struct record_phase *best = record_phase(c, "best");

	w->figure = j->figure;
	text_copy(w->unit, sizeof(w->unit), j->figure_unit);
	if (w->searched) {
		w->variant = record_text(best, "variant");
		if (!record_number(best, j->figure_field, &w->figure))
			w->figure = NAN;
	}
	w->algorithm = told(c, w->searched, "algorithm");
	w->protocol = told(c, w->searched, "protocol");
}

static double bytes_of(const struct record_case *c)
{
	const char *size = record_option(c, "size");
	double bytes = 0;

	return size && !units_parse(&bytes, size, "B", NULL) ? bytes : 0;
}

/* Inserts it after the smaller sizes of the same collective. */
static enum status put(struct judgements *out, const struct record *r, const struct judge_way *w,
		       struct error *err)
{
	struct judge_way *more = expect_grow(out->way, out->way_count, sizeof(*more), err);
	const struct record_case *c = &r->cases[w->best];
	size_t at = out->way_count;

	if (!more)
		return STATUS_NO_RESOURCE;
	out->way = more;
	for (size_t i = 0; i < out->way_count; i++) {
		const struct record_case *other = &r->cases[more[i].best];

		if (!alike(c, other, "size"))
			continue;
		at = i + 1;
		if (bytes_of(other) > bytes_of(c)) {
			at = i;
			break;
		}
	}
	memmove(more + at + 1, more + at, (out->way_count - at) * sizeof(*more));
	more[at] = *w;
	out->way_count++;
	return STATUS_OK;
}

static bool seen(const struct judgements *out, const struct record *r, size_t lead)
{
	struct timed t;

	for (size_t i = 0; i < lead; i++)
		if (timed_of(&t, &r->cases[i], &out->of_case[i]) &&
		    alike(&r->cases[i], &r->cases[lead], NULL))
			return true;
	return false;
}

enum status ways_judge(struct judgements *out, const struct record *r, struct error *err)
{
	enum status st = STATUS_OK;
	struct timed t;

	for (size_t lead = 0; lead < r->case_count && !st; lead++) {
		struct group g = {.r = r, .out = out};
		struct judge_way w = {0};

		if (!timed_of(&t, &r->cases[lead], &out->of_case[lead]) || seen(out, r, lead))
			continue;
		for (size_t i = lead; i < r->case_count; i++)
			if (timed_of(&t, &r->cases[i], &out->of_case[i]) &&
			    alike(&r->cases[lead], &r->cases[i], NULL))
				look(&w, &g, i, &t);
		if (w.ways < 2 && !w.tried)
			continue;
		compare(&w, &g);
		describe(&w, &g);
		st = put(out, r, &w, err);
	}
	return st;
}

void ways_release(struct judgements *out)
{
	free(out->way);
}
