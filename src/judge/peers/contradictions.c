/* SPDX-License-Identifier: Apache-2.0 */
#include "judge/peers/contradictions.h"
#include <math.h>
#include "core/text/units.h"
#include "journal/figure/contradiction.h"

/* A case that is compared with others, with the parts of its key that are needed often. */
struct asked {
	size_t index;
	uint64_t quantity, key;	      /* hashes; cases with different hashes are different */
	double rate, width;	      /* width: 95 % half-width, as a share */
	double least, most;	      /* over all rounds of the case */
	double least_wide, most_wide; /* half-widths of those two rounds */
};

struct all_asked {
	struct asked *of;
	size_t count;
};

static double rate_of(const struct judgement *j)
{
	return !strcmp(j->figure_unit, "ns") ? 1e9 / j->figure : j->figure;
}

static bool counts(const struct record_case *c, const struct judgement *j)
{
	return !strcmp(c->target, "cpu") && !c->skipped && !record_is_isolation(c) &&
	       contradiction_asks(c->key) && case_sound(c) && j->has_figure && j->figure > 0 &&
	       j->verdict != VERDICT_FAIL && j->verdict != VERDICT_ERROR && j->verdict != VERDICT_UNTRUSTED;
}

static bool same_case(const struct record_case *a, const struct record_case *b)
{
	return a->node == b->node && a->rank == b->rank && !strcmp(a->key, b->key);
}

static struct asked asked_of(const struct judgement *of_case, const struct record *r, size_t index)
{
	const struct record_case *c = &r->cases[index];
	struct asked a = {.index = index, .quantity = contradiction_quantity(c->key)};

	a.key = contradiction_hash(c->key);
	a.rate = a.least = a.most = rate_of(&of_case[index]);
	if (!record_number(record_phase(c, of_case[index].phase), "half_width_share", &a.width))
		a.width = 0;
	a.least_wide = a.most_wide = a.width;
	return a;
}

/* Finds the slowest and the fastest round of each case. */
static void extremes(struct all_asked *a, const struct record *r)
{
	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < a->count; k++) {
			struct asked *one = &a->of[i], *round = &a->of[k];

			if (one->key != round->key ||
			    !same_case(&r->cases[one->index], &r->cases[round->index]))
				continue;
			if (round->rate < one->least) {
				one->least = round->rate;
				one->least_wide = round->width;
			}
			if (round->rate > one->most) {
				one->most = round->rate;
				one->most_wide = round->width;
			}
		}
}

static bool gather(struct all_asked *a, const struct judgement *of_case, const struct record *r)
{
	size_t count = 0;

	for (size_t i = 0; i < r->case_count; i++)
		count += counts(&r->cases[i], &of_case[i]);
	a->of = calloc(count + 1, sizeof(*a->of));
	if (!a->of)
		return false;
	for (size_t i = 0; i < r->case_count; i++)
		if (counts(&r->cases[i], &of_case[i]))
			a->of[a->count++] = asked_of(of_case, r, i);
	extremes(a, r);
	return true;
}

static void quantity(char *out, size_t size, const struct judgement *j)
{
	units_format(out, size, j->figure, j->figure_unit);
}

/* For a point of a curve or a ceiling, which no plan requires to be judged, the verdict stays and only the
 * reason changes. */
static void note(struct judgement *j, const char *text)
{
	size_t used = strlen(j->reason);

	if (j->verdict != VERDICT_MEASURED)
		finding(j, VERDICT_WARN, CAUSE_WIDE_SPREAD, "%s", text);
	else if (!strstr(j->reason, text))
		snprintf(j->reason + used, sizeof(j->reason) - used, "%s%s", used ? "; " : "", text);
}

static void distrust(struct judgement *fast, struct judgement *slow, enum contradiction what)
{
	char more[32], less[32], text[160];

	quantity(more, sizeof(more), fast);
	quantity(less, sizeof(less), slow);
	if (what == CONTRADICTION_THREADS) {
		finding(fast, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s, but more threads reached less: %s; one of the two figures is wrong", more, less);
		finding(slow, VERDICT_UNTRUSTED, CAUSE_WIDE_SPREAD,
			"%s, but fewer threads reached more: %s; one of the two figures is wrong", less,
			more);
		return;
	}
	snprintf(text, sizeof(text), "%s, but a smaller size was slower: %s", more, less);
	note(fast, text);
	snprintf(text, sizeof(text), "%s, but a larger size was faster: %s", less, more);
	note(slow, text);
}

/* With a CPU quota, more threads can be slower, because they wait for each other's CPU time. */
static bool has_quota(const struct judge_context *ctx)
{
	return ctx->cpu && ctx->cpu->quota > 0 && ctx->cpu->quota < ctx->cpu->usable;
}

/* Compares the two measurements of one ceiling: by itself, and interleaved with the case that it is the
 * ceiling of. */
static void moments(struct judgement *of_case, const struct record *r, size_t peak)
{
	struct judgement *j = &of_case[peak];

	for (size_t i = 0; i < r->case_count; i++) {
		const struct record_phase *p = record_phase(&r->cases[i], "ceiling");
		const char *by = record_text(p, "ceiling_by");
		struct judgement then = *j;
		char here[32], there[32], text[192];

		if (!by || r->cases[i].node != r->cases[peak].node || strcmp(by, r->cases[peak].key) ||
		    !record_number(p, j->figure_field, &then.figure) || !(then.figure > 0) ||
		    fabs(log(then.figure / j->figure)) <= log(1 + CONTRADICTIONS_MOMENTS))
			continue;
		quantity(here, sizeof(here), j);
		quantity(there, sizeof(there), &then);
		snprintf(text, sizeof(text),
			 "this run measured it twice: %s alone, but %s interleaved with another case. So the "
			 "machine was not in a steady state",
			 here, there);
		note(j, text);
		return;
	}
}

static bool together(const struct asked *a, const struct asked *b, const struct judgement *of_case,
		     const struct record *r)
{
	const struct record_case *x = &r->cases[a->index], *y = &r->cases[b->index];

	return a->quantity == b->quantity && a->key != b->key && x->node == y->node && x->rank == y->rank &&
	       !strcmp(of_case[a->index].phase, of_case[b->index].phase);
}

/* The smallest cache that holds this many bytes; 4: none holds them, or the sizes are not known. */
static unsigned level_of(const struct cpu *cpu, double bytes)
{
	if (cpu && bytes <= (double)cpu->l1d_bytes)
		return 1;
	if (cpu && bytes <= (double)cpu->l2_bytes)
		return 2;
	return cpu && bytes <= (double)cpu->l3_bytes ? 3 : 4;
}

/* One thread in one cache and all threads in another cache measure different quantities. */
static bool same_level(const struct judge_context *ctx, const struct record_case *a,
		       const struct record_case *b)
{
	double x = contradiction_size(a->key), y = contradiction_size(b->key);

	return x == y || level_of(ctx->cpu, x) == level_of(ctx->cpu, y);
}

/* The contradiction between two rates, beyond the tolerance and both 95 % half-widths. `more` is the rate of
 * a, `less` that of b. */
static enum contradiction between(const struct judge_context *ctx, const struct asked *a, double more,
				  double more_wide, const struct asked *b, double less, double less_wide)
{
	const struct record_case *x = &ctx->record->cases[a->index], *y = &ctx->record->cases[b->index];
	enum contradiction what = contradiction_of(x->key, more / (1 + more_wide + less_wide), y->key, less);

	if (what == CONTRADICTION_THREADS && (has_quota(ctx) || !same_level(ctx, x, y)))
		return CONTRADICTION_NONE;
	return what;
}

/* Marks a round that contradicts another case, if further rounds of it resolved the contradiction. */
static void outvoted(const struct all_asked *a, struct judgement *of_case, const struct record *r, size_t at)
{
	const struct asked *one = &a->of[at];

	for (size_t i = 0; i < a->count; i++)
		if (i != at && a->of[i].key == one->key &&
		    same_case(&r->cases[a->of[i].index], &r->cases[one->index])) {
			finding(&of_case[one->index], VERDICT_WARN, CAUSE_WIDE_SPREAD,
				"it contradicted another figure of this run, so the case was measured again");
			return;
		}
}

static void name_outvoted(const struct all_asked *a, struct judgement *of_case,
			  const struct judge_context *ctx)
{
	const struct record *r = ctx->record;

	for (size_t i = 0; i < a->count; i++)
		for (size_t k = 0; k < a->count; k++) {
			const struct asked *x = &a->of[i], *y = &a->of[k];

			if (!together(x, y, of_case, r) ||
			    between(ctx, x, x->rate, x->width, y, y->rate, y->width) != CONTRADICTION_THREADS)
				continue;
			outvoted(a, of_case, r, i);
			outvoted(a, of_case, r, k);
		}
}

/* Finds the case that contradicts this one in every round; a->count: none does. */
static size_t find_other(enum contradiction *what, const struct all_asked *a, size_t i,
			 const struct judgement *of_case, const struct judge_context *ctx)
{
	const struct asked *fast = &a->of[i];

	for (size_t k = 0; k < a->count; k++) {
		const struct asked *slow = &a->of[k];

		if (!together(fast, slow, of_case, ctx->record))
			continue;
		*what = between(ctx, fast, fast->least, fast->least_wide, slow, slow->most, slow->most_wide);
		if (*what)
			return k;
	}
	return a->count;
}

/* All pairs are found first, from the verdicts that the cases have by themselves. */
bool contradictions_judge(struct judgement *of_case, const struct judge_context *ctx)
{
	const struct record *r = ctx->record;
	struct all_asked a = {.count = 0};
	enum contradiction *what = NULL;
	size_t *other = NULL;
	bool ok = gather(&a, of_case, r);

	what = ok ? calloc(a.count + 1, sizeof(*what)) : NULL;
	other = ok ? calloc(a.count + 1, sizeof(*other)) : NULL;
	ok = what && other;
	for (size_t i = 0; ok && i < a.count; i++)
		other[i] = find_other(&what[i], &a, i, of_case, ctx);
	for (size_t i = 0; ok && i < a.count; i++)
		for (size_t k = 0; other[i] < a.count && k < a.count; k++)
			if (a.of[k].key == a.of[other[i]].key &&
			    same_case(&r->cases[a.of[k].index], &r->cases[a.of[other[i]].index]))
				distrust(&of_case[a.of[i].index], &of_case[a.of[k].index], what[i]);
	if (ok)
		name_outvoted(&a, of_case, ctx);
	for (size_t i = 0; ok && i < a.count; i++)
		if (!strcmp(r->cases[a.of[i].index].probe, "peak"))
			moments(of_case, r, a.of[i].index);
	free(a.of);
	free(what);
	free(other);
	return ok;
}
