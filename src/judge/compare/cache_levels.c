/* SPDX-License-Identifier: Apache-2.0 */
/* Cache levels whose sizes differ between two runs of one machine. They are listed with the inventory,
 * without a verdict, because a shared cache only gives what its other users leave. */
#include "judge/compare/compare.h"
#include <math.h>
#include "core/math/cache_levels.h"
#include "core/text/text.h"
#include "core/text/units.h"
#include "judge/expect/expect.h"

#define SAME_END 2.5 /* ends within this factor count as equal, because cache replacement is never exact */

struct chase {
	double size[LEVELS_POINTS_MAX], latency[LEVELS_POINTS_MAX];
	size_t count;
};

/* The key without its size names the curve. */
static void curve_name(char *out, size_t room, const char *key)
{
	const char *at = strstr(key, " size=");
	size_t head = at ? (size_t)(at - key) : strlen(key);

	snprintf(out, room, "%.*s%s", (int)head, key, at ? at + 1 + strcspn(at + 1, " ") : "");
}

static double size_of(const struct record_case *c)
{
	const char *text = record_option(c, "size");
	double bytes;

	return text && !units_parse(&bytes, text, "B", NULL) && bytes > 0 ? bytes : 0;
}

static bool is_point(const struct record_case *c, const struct judgement *j)
{
	return !strcmp(c->probe, "memory") && !strcmp(j->figure_unit, "ns") && compare_fit(j) &&
	       size_of(c) > 0;
}

static void point_add(struct chase *to, double size, double latency)
{
	size_t at = to->count;

	for (size_t i = 0; i < to->count; i++)
		if (to->size[i] == size)
			return;
	if (to->count == LEVELS_POINTS_MAX)
		return;
	for (; at && to->size[at - 1] > size; at--) {
		to->size[at] = to->size[at - 1];
		to->latency[at] = to->latency[at - 1];
	}
	to->size[at] = size;
	to->latency[at] = latency;
	to->count++;
}

/* Collects the points of the curve to which this case belongs; each size counts once. */
static void collect(struct chase *to, const struct compare_run *run, const struct record_case *of)
{
	char name[200], other[200];

	to->count = 0;
	curve_name(name, sizeof(name), of->key);
	for (size_t i = 0; i < run->record->case_count; i++) {
		const struct record_case *c = &run->record->cases[i];

		if (!is_point(c, &run->judged->of_case[i]) || strcmp(c->where, of->where) ||
		    c->together != of->together)
			continue;
		curve_name(other, sizeof(other), c->key);
		if (!strcmp(name, other))
			point_add(to, size_of(c), run->judged->of_case[i].figure);
	}
}

static bool same_sizes(const struct chase *a, const struct chase *b)
{
	return a->count == b->count && !memcmp(a->size, b->size, a->count * sizeof(*a->size));
}

static bool same_levels(const struct level *a, size_t n, const struct level *b, size_t m)
{
	if (n != m)
		return false;
	for (size_t i = 0; i + 1 < n; i++)
		if (fabs(log(a[i].end / b[i].end)) > log(SAME_END))
			return false;
	return true;
}

/* Writes the sizes at which the levels end, except for the last. */
static void say(char *out, size_t room, const struct level *l, size_t n)
{
	size_t used = 0;

	snprintf(out, room, "none");
	for (size_t i = 0; i + 1 < n && used < room; i++)
		used += (size_t)snprintf(out + used, room - used, "%s%.0f", i ? ", " : "", l[i].end / 1024);
	if (used && used < room)
		snprintf(out + used, room - used, " KiB");
}

static enum status levels_differ(struct comparison *out, const struct compare_run *first,
				 const struct compare_run *run, const struct record_case *c,
				 struct error *err)
{
	struct level before[LEVELS_MAX], after[LEVELS_MAX];
	struct compare_difference *d;
	struct chase a, b;
	size_t n, m;

	collect(&a, first, c);
	collect(&b, run, c);
	/* One line per curve, and only if both runs have the same sizes. */
	if (a.count < 3 || a.size[0] != size_of(c) || !same_sizes(&a, &b))
		return STATUS_OK;
	n = levels_of(a.size, a.latency, a.count, before, LEVELS_MAX);
	m = levels_of(b.size, b.latency, b.count, after, LEVELS_MAX);
	if (!n || !m || same_levels(before, n, after, m))
		return STATUS_OK;
	d = expect_push(&out->difference, &out->difference_count, sizeof(*d), err);
	if (!d)
		return STATUS_NO_RESOURCE;
	*d = (struct compare_difference){.run = run->name, .nodes = 1};
	snprintf(d->path, sizeof(d->path), "cache levels of %.40s end at", c->where);
	say(d->before, sizeof(d->before), before, n);
	say(d->after, sizeof(d->after), after, m);
	return STATUS_OK;
}

enum status compare_levels(struct comparison *out, const struct compare_run *runs, size_t count,
			   struct error *err)
{
	const struct record *first = runs[0].record;
	enum status status = STATUS_OK;

	for (size_t i = 0; i < first->case_count && !status; i++) {
		const struct record_case *c = &first->cases[i];

		if (c->round || !is_point(c, &runs[0].judged->of_case[i]))
			continue;
		for (size_t run = 1; run < count && !status; run++)
			status = levels_differ(out, &runs[0], &runs[run], c, err);
	}
	return status;
}
