/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/contradictions.h"
#include <math.h>
#include "core/units.h"
#include "journal/contradiction.h"

enum { CASES_MAX = 512 }; /* a suite of more is a sweep, which compares its points itself */

struct asked {
	size_t index[CASES_MAX];
	size_t count;
};

static double rate_of(const struct judgement *j)
{
	return !strcmp(j->figure_unit, "ns") ? 1e9 / j->figure : j->figure;
}

static bool counts(const struct record_case *c, const struct judgement *j)
{
	return !strcmp(c->target, "cpu") && !c->skipped && !record_follows(c) && contradiction_asks(c->key) &&
	       case_sound(c) && j->has_figure && j->figure > 0 && j->verdict != VERDICT_FAIL &&
	       j->verdict != VERDICT_ERROR && j->verdict != VERDICT_UNTRUSTED;
}

static void gather(struct asked *a, const struct judgement *of_case, const struct record *r)
{
	for (size_t i = 0; i < r->case_count; i++) {
		if (!counts(&r->cases[i], &of_case[i]))
			continue;
		if (a->count == CASES_MAX) {
			a->count = 0;
			return;
		}
		a->index[a->count++] = i;
	}
}

static bool same_case(const struct record_case *a, const struct record_case *b)
{
	return a->node == b->node && a->rank == b->rank && !strcmp(a->key, b->key);
}

/* The least (most) of all rounds of the case. */
static double extreme(const struct asked *a, const struct judgement *of_case, const struct record *r,
		      const struct record_case *c, bool least)
{
	double x = least ? INFINITY : 0;

	for (size_t i = 0; i < a->count; i++) {
		double rate = rate_of(&of_case[a->index[i]]);

		if (same_case(&r->cases[a->index[i]], c))
			x = least ? fmin(x, rate) : fmax(x, rate);
	}
	return x;
}

static void quantity(char *out, size_t size, const struct judgement *j)
{
	units_format(out, size, j->figure, j->figure_unit);
}

static void distrust(struct judgement *fast, struct judgement *slow, enum contradiction what)
{
	char more[32], less[32];

	quantity(more, sizeof(more), fast);
	quantity(less, sizeof(less), slow);
	if (what == CONTRADICTION_THREADS) {
		finding(fast, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s, and more threads did less: %s; one of the two figures is wrong", more, less);
		finding(slow, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s, and fewer threads did more: %s; one of the two figures is wrong", less, more);
	} else {
		finding(fast, VERDICT_WARN, CAUSE_WIDE_SPREAD,
			"%s, and a smaller size was slower: %s; one of the two figures is wrong", more, less);
		finding(slow, VERDICT_WARN, CAUSE_WIDE_SPREAD,
			"%s, and a larger size was faster: %s; one of the two figures is wrong", less, more);
	}
}

/* Limits what several threads may have: they wait for their turn. */
static bool has_quota(const struct judge_context *ctx)
{
	return ctx->cpu && ctx->cpu->quota > 0 && ctx->cpu->quota < ctx->cpu->usable;
}

/* One instrument at two moments of a run: by itself, and in turns with the case that it is the ceiling of. */
static void moments(struct judgement *of_case, const struct record *r, size_t peak)
{
	struct judgement *j = &of_case[peak];

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_phase *p = record_phase(&r->cases[i], "ceiling");
		const char *by = record_text(p, "ceiling_by");
		struct judgement then = *j;
		char here[32], there[32];

		if (!by || r->cases[i].node != r->cases[peak].node || strcmp(by, r->cases[peak].key) ||
		    !record_number(p, j->figure_field, &then.figure) || !(then.figure > 0) ||
		    fabs(log(then.figure / j->figure)) <= log(1 + CONTRADICTIONS_MOMENTS))
			continue;
		quantity(here, sizeof(here), j);
		quantity(there, sizeof(there), &then);
		finding(j, VERDICT_WARN, CAUSE_WIDE_SPREAD,
			"%s by itself, and %s in turns with another case of this run: the machine did not "
			"hold "
			"still",
			here, there);
		return;
	}
}

/* A round that contradicts another case, where further rounds of it settled that. */
static void outvoted(const struct asked *a, struct judgement *of_case, const struct record *r, size_t at)
{
	for (size_t i = 0; i < a->count; i++)
		if (a->index[i] != at && same_case(&r->cases[a->index[i]], &r->cases[at])) {
			finding(&of_case[at], VERDICT_WARN, CAUSE_WIDE_SPREAD,
				"it contradicted another figure of this run, and was measured again");
			return;
		}
}

static bool together(const struct asked *a, const struct judgement *of_case, const struct record *r, size_t i,
		     size_t k)
{
	const struct record_case *x = &r->cases[a->index[i]], *y = &r->cases[a->index[k]];

	return x->node == y->node && x->rank == y->rank &&
	       !strcmp(of_case[a->index[i]].phase, of_case[a->index[k]].phase);
}

static void name_outvoted(const struct asked *a, struct judgement *of_case, const struct record *r)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < a->count; k++) {
			size_t x = a->index[i], y = a->index[k];

			if (!together(a, of_case, r, i, k) ||
			    !contradiction_of(r->cases[x].key, rate_of(&of_case[x]), r->cases[y].key,
					      rate_of(&of_case[y])))
				continue;
			outvoted(a, of_case, r, x);
			outvoted(a, of_case, r, y);
		}
}

void contradictions_judge(struct judgement *of_case, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;
	struct asked a = {.count = 0};
	enum contradiction found[CASES_MAX] = {CONTRADICTION_NONE};
	size_t other[CASES_MAX];

	gather(&a, of_case, r);
	for (size_t i = 0; i < a.count; i++)
		for (size_t k = 0; k < a.count && !found[i]; k++) {
			const struct record_case *fast = &r->cases[a.index[i]], *slow = &r->cases[a.index[k]];

			if (!together(&a, of_case, r, i, k))
				continue;
			found[i] = contradiction_of(fast->key, extreme(&a, of_case, r, fast, true), slow->key,
						    extreme(&a, of_case, r, slow, false));
			if (found[i] == CONTRADICTION_THREADS && has_quota(ctx))
				found[i] = CONTRADICTION_NONE;
			other[i] = k;
		}
	for (size_t i = 0; i < a.count; i++)
		if (found[i])
			for (size_t k = 0; k < a.count; k++)
				if (same_case(&r->cases[a.index[k]], &r->cases[a.index[other[i]]]))
					distrust(&of_case[a.index[i]], &of_case[a.index[k]], found[i]);
	if (!has_quota(ctx))
		name_outvoted(&a, of_case, r);
	for (size_t i = 0; i < a.count; i++)
		if (!strcmp(r->cases[a.index[i]].probe, "peak"))
			moments(of_case, r, a.index[i]);
}
