/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a comparison as tables on a terminal. */
#include "cmd/compare/compare.h"
#include <stdbool.h>
#include "report/text/fact_label.h"
#include "core/text/width.h"
#include "report/text/format.h"

enum {
	CASE_COLUMNS = 48,
	TARGET_COLUMNS = 9, /* minimum width; "node-b/gpu0" needs more */
	TARGET_MOST = 40,
	VALUE_COLUMNS = 12,
	LEAF_COLUMNS = 30,
	LEAF = sizeof(((struct compare_difference *)0)->before),
	REASONS_MAX = 32,
	NAME = 1024
};

/* The comparison to show, and the widths of the columns. */
struct showing {
	struct text *out;
	const struct comparison *c;
	const struct compare_run *runs;
	size_t count;
	unsigned target, run; /* column widths */
};

static void cell(struct text *out, unsigned columns, enum width_align align, const char *text)
{
	width_add(out, text, columns, align);
	text_add(out, "  ");
}

/* `shown`: the figure of a case that has several; NULL: the case has one. */
static void case_cells(const struct showing *s, const struct record_case *c, const char *shown)
{
	char title[128];

	format_title(title, sizeof(title), c);
	if (shown)
		snprintf(title + strlen(title), sizeof(title) - strlen(title), ": %s", shown);
	cell(s->out, CASE_COLUMNS, WIDTH_LEFT, title);
	cell(s->out, s->target, WIDTH_LEFT, c->where);
}

static void case_headings(const struct showing *s)
{
	cell(s->out, CASE_COLUMNS, WIDTH_LEFT, "case");
	cell(s->out, s->target, WIDTH_LEFT, "target");
}

static void widen(unsigned *columns, const char *text, unsigned most)
{
	unsigned n = width_of(text);

	n = n < most ? n : most;
	*columns = *columns > n ? *columns : n;
}

/* Sets column widths that hold the longest run and target names, because names must not be truncated. */
static void measure(struct showing *s)
{
	char name[NAME];

	s->target = TARGET_COLUMNS;
	s->run = 3; /* "run" */
	for (size_t i = 0; i < s->c->row_count; i++)
		widen(&s->target, s->c->row[i].c->where, TARGET_MOST);
	for (size_t i = 0; i < s->c->outlier_count; i++)
		widen(&s->target, s->c->outlier[i].c->where, TARGET_MOST);
	for (size_t i = 0; i < s->c->pair_count; i++)
		widen(&s->target, s->c->pair[i].c->where, TARGET_MOST);
	for (size_t i = 0; i < s->count; i++) {
		compare_name(name, sizeof(name), s->runs, s->count, s->runs[i].name);
		widen(&s->run, name, NAME);
	}
}

static void run_cell(const struct showing *s, const char *run)
{
	char name[NAME];

	compare_name(name, sizeof(name), s->runs, s->count, run);
	cell(s->out, s->run, WIDTH_LEFT, name);
}

static void value_cell(struct text *out, double value, const char *unit)
{
	char shown[32];

	if (!strcmp(unit, "share"))
		format_share(shown, sizeof(shown), value);
	else
		format_quantity(shown, sizeof(shown), value, 0, unit);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, shown);
}

static void percent(char *out, size_t size, double share)
{
	snprintf(out, size, "%+.1f %%", 100 * share);
}

static void row_headings(const struct showing *s)
{
	struct text *out = s->out;

	case_headings(s);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "before");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "after");
	cell(out, 8, WIDTH_RIGHT, "change");
	cell(out, 9, WIDTH_RIGHT, "at clock");
	cell(out, 6, WIDTH_RIGHT, "noise");
	text_add(out, "result\n");
}

static void row_show(const struct showing *s, const struct compare_row *r)
{
	struct text *out = s->out;
	char raw[32], at_clock[32] = "", noise[32];

	percent(raw, sizeof(raw), r->raw);
	snprintf(noise, sizeof(noise), "%.1f %%", 100 * (r->has_normalised ? r->noise : r->noise_raw));
	if (r->has_normalised)
		percent(at_clock, sizeof(at_clock), r->normalised);
	case_cells(s, r->c, r->shown);
	value_cell(out, r->before, r->unit);
	value_cell(out, r->after, r->unit);
	cell(out, 8, WIDTH_RIGHT, raw);
	cell(out, 9, WIDTH_RIGHT, at_clock);
	cell(out, 6, WIDTH_RIGHT, noise);
	text_addf(out, "%s%s", compare_change_text(r->change),
		  compare_slower(r) && !r->judged ? ", not judged" : "");
	if (r->verdict_before != r->verdict_after)
		text_addf(out, "; was %s, is %s", verdict_name(r->verdict_before),
			  verdict_name(r->verdict_after));
	text_add(out, "\n");
}

/* Cases that cannot be compared and whose verdict did not change to a failure: one line per reason, or one
 * per case with `all`. */
static void not_comparable_show(const struct showing *s, bool all)
{
	const struct comparison *c = s->c;
	struct text *out = s->out;
	const char *reason[REASONS_MAX];
	size_t count[REASONS_MAX] = {0}, reasons = 0, i, k;

	for (i = 0; i < c->row_count; i++) {
		const struct compare_row *r = &c->row[i];

		if (r->change != COMPARE_NOT_COMPARABLE)
			continue;
		if (all || r->verdict_after == VERDICT_FAIL) {
			case_cells(s, r->c, r->shown);
			text_addf(out, "%s: was %s, is %s; %s\n", compare_change_text(r->change),
				  verdict_name(r->verdict_before), verdict_name(r->verdict_after), r->why);
			continue;
		}
		for (k = 0; k < reasons && !text_alike(reason[k], r->why); k++)
			;
		if (k == reasons && reasons < REASONS_MAX)
			reason[reasons++] = r->why;
		count[k < REASONS_MAX ? k : REASONS_MAX - 1]++;
	}
	for (k = 0; k < reasons; k++)
		text_addf(out, "%zu not comparable%s: %s\n", count[k], count[k] > 1 ? ", the first" : "",
			  reason[k]);
}

static void history_show(const struct showing *s, bool all)
{
	const struct comparison *c = s->c;
	struct text *out = s->out;
	size_t i, same = 0, shown = 0;

	for (i = 0; i < c->row_count; i++) {
		const struct compare_row *r = &c->row[i];

		if (r->change == COMPARE_NOT_COMPARABLE)
			continue;
		if (!all && r->change == COMPARE_SAME && r->verdict_before == r->verdict_after) {
			same++;
			continue;
		}
		if (!shown++)
			row_headings(s);
		row_show(s, r);
	}
	if (same)
		text_addf(out, "%zu %swithin noise (--all shows them)\n", same, shown ? "more " : "");
	not_comparable_show(s, all);
	if (*c->advice)
		text_addf(out, "%s\n", c->advice);
	if (c->only_before || c->only_after)
		text_addf(out, "cases in the first run only: %zu; in the last run only: %zu\n",
			  c->only_before, c->only_after);
}

static void outliers_show(const struct showing *s)
{
	const struct comparison *c = s->c;
	struct text *out = s->out;
	size_t i;

	if (!c->outlier_count)
		return;
	cell(out, s->run, WIDTH_LEFT, "run");
	case_headings(s);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "value");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "others");
	cell(out, 8, WIDTH_RIGHT, "off by");
	cell(out, 4, WIDTH_LEFT, "is");
	text_add(out, "limit\n");
	for (i = 0; i < c->outlier_count; i++) {
		const struct compare_outlier *o = &c->outlier[i];
		char off[32];

		percent(off, sizeof(off), o->deviation);
		run_cell(s, o->run);
		case_cells(s, o->c, NULL);
		value_cell(out, o->value, o->unit);
		value_cell(out, o->median, o->unit);
		cell(out, 8, WIDTH_RIGHT, off);
		cell(out, 4, WIDTH_LEFT, o->slower ? "slow" : "fast");
		text_addf(out, "%.1f %% of %u\n", 100 * o->limit, o->siblings);
	}
}

static void pairs_show(const struct showing *s)
{
	const struct comparison *c = s->c;
	const char *first = s->runs[0].name, *run = "";
	struct text *out = s->out;
	size_t i;

	for (i = 0; i < c->pair_count; i++) {
		const struct compare_pair *p = &c->pair[i];

		if (strcmp(run, p->run)) {
			run = p->run;
			text_addf(out, "%sA: ", i ? "\n" : "");
			width_add(out, first, width_of(first), WIDTH_LEFT);
			text_add(out, "\nB: ");
			width_add(out, run, width_of(run), WIDTH_LEFT);
			text_add(out, "\n\n");
			case_headings(s);
			cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "A");
			cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "B");
			text_add(out, "  B / A\n");
		}
		case_cells(s, p->c, NULL);
		value_cell(out, p->first, p->unit);
		value_cell(out, p->other, p->unit);
		text_addf(out, "%7.3f\n", p->ratio);
	}
}

/* "node-b and 3 more: driver: version" */
static void node_label(char *out, size_t size, const struct compare_difference *d, const char *label)
{
	char more[32] = "";

	if (d->nodes > 1)
		snprintf(more, sizeof(more), " and %u more", d->nodes - 1);
	snprintf(out, size, "%s%s%s%s", d->node, more, *d->node ? ": " : "", label);
}

/* Two values that are too wide for the table and begin alike: shows them from shortly before the first
 * difference. */
static void leaves_show(struct text *out, const char *before, const char *after)
{
	const size_t lead = 8;
	size_t same = 0;
	struct text a = {0}, b = {0};

	while (before[same] && before[same] == after[same])
		same++;
	if (same <= lead || (width_of(before) <= LEAF_COLUMNS && width_of(after) <= LEAF_COLUMNS))
		same = lead;
	same -= lead;
	while (same && (before[same] & 0xc0) == 0x80) /* not inside a multi-byte character */
		same--;
	text_addf(&a, "%s%s", same ? "\u2026" : "", before + same);
	text_addf(&b, "%s%s", same ? "\u2026" : "", after + same);
	cell(out, LEAF_COLUMNS, WIDTH_LEFT, text_str(&a));
	text_add(out, "-> ");
	cell(out, LEAF_COLUMNS, WIDTH_LEFT, text_str(&b));
	text_release(&a);
	text_release(&b);
}

static void inventory_show(const struct showing *s)
{
	const struct comparison *c = s->c;

	if (c->difference_count)
		text_add(s->out, "\nInventory\n");
	for (size_t i = 0; i < c->difference_count; i++) {
		const struct compare_difference *d = &c->difference[i];
		char label[160], before[LEAF], after[LEAF], where[288], run[NAME];

		fact_label(label, sizeof(label), d->path);
		node_label(where, sizeof(where), d, label);
		fact_leaf(before, sizeof(before), d->path, d->before);
		fact_leaf(after, sizeof(after), d->path, d->after);
		compare_name(run, sizeof(run), s->runs, s->count, d->run);
		cell(s->out, 40, WIDTH_LEFT, where);
		leaves_show(s->out, before, after);
		width_add(s->out, run, width_of(run), WIDTH_LEFT);
		text_add(s->out, "\n");
	}
}

void compare_show(struct text *out, const struct comparison *c, const struct compare_run *runs, size_t count,
		  bool all)
{
	struct showing s = {.out = out, .c = c, .runs = runs, .count = count};

	measure(&s);
	text_addf(out, "%s\n\n", c->headline);
	if (c->fleet) {
		outliers_show(&s);
		pairs_show(&s);
	} else {
		history_show(&s, all);
	}
	inventory_show(&s);
}
