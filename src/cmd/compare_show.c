/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as tables for a terminal. */
#include "cmd/compare.h"
#include <stdbool.h>
#include "report/fact_label.h"
#include "report/width.h"
#include "report/words.h"

enum { CASE_COLUMNS = 48, TARGET_COLUMNS = 9, VALUE_COLUMNS = 12, RUN_COLUMNS = 24, REASONS_MAX = 32 };

static void cell(struct text *out, unsigned columns, enum width_align align, const char *text)
{
	width_add(out, text, columns, align);
	text_add(out, "  ");
}

static void case_cells(struct text *out, const struct record_case *c)
{
	char title[128];

	words_title(title, sizeof(title), c);
	cell(out, CASE_COLUMNS, WIDTH_LEFT, title);
	cell(out, TARGET_COLUMNS, WIDTH_LEFT, c->where);
}

static void case_headings(struct text *out)
{
	cell(out, CASE_COLUMNS, WIDTH_LEFT, "case");
	cell(out, TARGET_COLUMNS, WIDTH_LEFT, "target");
}

static void value_cell(struct text *out, double value, const char *unit)
{
	char shown[32];

	words_quantity(shown, sizeof(shown), value, 0, unit);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, shown);
}

static void percent(char *out, size_t size, double share)
{
	snprintf(out, size, "%+.1f %%", 100 * share);
}

static void row_headings(struct text *out)
{
	case_headings(out);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "before");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "after");
	cell(out, 8, WIDTH_RIGHT, "change");
	cell(out, 9, WIDTH_RIGHT, "at clock");
	cell(out, 6, WIDTH_RIGHT, "noise");
	text_add(out, "what it is\n");
}

static void row_show(struct text *out, const struct compare_row *r)
{
	char raw[32], at_clock[32] = "", noise[32];

	percent(raw, sizeof(raw), r->raw);
	snprintf(noise, sizeof(noise), "%.1f %%", 100 * (r->has_normalised ? r->noise : r->noise_raw));
	if (r->has_normalised)
		percent(at_clock, sizeof(at_clock), r->normalised);
	case_cells(out, r->c);
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

/* Cases that cannot be compared and turned no verdict: one line a reason, or each with `all`. */
static void not_comparable_show(struct text *out, const struct comparison *c, bool all)
{
	const char *reason[REASONS_MAX];
	size_t count[REASONS_MAX] = {0}, reasons = 0, i, k;

	for (i = 0; i < c->row_count; i++) {
		const struct compare_row *r = &c->row[i];

		if (r->change != COMPARE_NOT_COMPARABLE)
			continue;
		if (all || r->verdict_after == VERDICT_FAIL) {
			case_cells(out, r->c);
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

static void history_show(struct text *out, const struct comparison *c, bool all)
{
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
			row_headings(out);
		row_show(out, r);
	}
	if (same)
		text_addf(out, "%zu %swithin noise (--all shows them)\n", same, shown ? "more " : "");
	not_comparable_show(out, c, all);
	if (c->only_before || c->only_after)
		text_addf(out, "%zu cases were in the first run alone, %zu are in the last alone\n",
			  c->only_before, c->only_after);
}

static void outliers_show(struct text *out, const struct comparison *c)
{
	size_t i;

	if (!c->outlier_count)
		return;
	cell(out, RUN_COLUMNS, WIDTH_LEFT, "run");
	case_headings(out);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "value");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "others");
	cell(out, 8, WIDTH_RIGHT, "off by");
	text_add(out, "limit\n");
	for (i = 0; i < c->outlier_count; i++) {
		const struct compare_outlier *o = &c->outlier[i];
		char off[32];

		percent(off, sizeof(off), o->deviation);
		cell(out, RUN_COLUMNS, WIDTH_LEFT, o->run);
		case_cells(out, o->c);
		value_cell(out, o->value, o->unit);
		value_cell(out, o->median, o->unit);
		cell(out, 8, WIDTH_RIGHT, off);
		text_addf(out, "%.1f %% of %u\n", 100 * o->limit, o->siblings);
	}
}

static void pairs_show(struct text *out, const struct comparison *c, const char *first)
{
	const char *run = "";
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
			case_headings(out);
			cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "A");
			cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "B");
			text_add(out, "  B / A\n");
		}
		case_cells(out, p->c);
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

static void inventory_show(struct text *out, const struct comparison *c)
{
	size_t i;

	if (c->difference_count)
		text_add(out, "\nInventory\n");
	for (i = 0; i < c->difference_count; i++) {
		const struct compare_difference *d = &c->difference[i];
		char label[160], before[96], after[96], where[288];

		fact_label(label, sizeof(label), d->path);
		node_label(where, sizeof(where), d, label);
		fact_leaf(before, sizeof(before), d->path, d->before);
		fact_leaf(after, sizeof(after), d->path, d->after);
		cell(out, 40, WIDTH_LEFT, where);
		cell(out, 30, WIDTH_LEFT, before);
		text_add(out, "-> ");
		cell(out, 30, WIDTH_LEFT, after);
		width_add(out, d->run, RUN_COLUMNS, WIDTH_LEFT);
		text_add(out, "\n");
	}
}

void compare_show(struct text *out, const struct comparison *c, const struct compare_run *runs, bool all)
{
	text_addf(out, "%s\n\n", c->headline);
	if (c->fleet) {
		outliers_show(out, c);
		pairs_show(out, c, runs[0].name);
	} else {
		history_show(out, c, all);
	}
	inventory_show(out, c);
}
