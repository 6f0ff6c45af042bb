/* SPDX-License-Identifier: Apache-2.0 */
#include "report/tables/collective_ways.h"
#include <math.h>
#include "core/text/units.h"
#include "report/text/format.h"

static const struct record_case *case_of(const struct view *v, const struct judge_way *w)
{
	return &v->in->record->cases[w->best];
}

/* True for the same collective on the same target, at any size. */
static bool one_grid(const struct view *v, const struct judge_way *a, const struct judge_way *b)
{
	struct text x = {0}, y = {0}, how = {0};
	bool same;

	format_collective(&x, &how, case_of(v, a));
	format_collective(&y, &how, case_of(v, b));
	same = !strcmp(case_of(v, a)->where, case_of(v, b)->where) && !strcmp(text_str(&x), text_str(&y));
	text_release(&x);
	text_release(&y);
	text_release(&how);
	return same;
}

bool ways_lead(const struct view *v, size_t way)
{
	const struct judge_way *w = v->in->judged->way;

	for (size_t i = 0; i < way; i++)
		if (one_grid(v, &w[i], &w[way]))
			return false;
	return true;
}

void ways_name(struct text *out, const struct view *v, const struct judge_way *w)
{
	struct text what = {0}, how = {0};

	format_collective(&what, &how, case_of(v, w));
	if (w->searched)
		pseudonym_map_add(&v->names, out,
				  w->variant ? w->variant : "the variant that the search found");
	if (how.size)
		text_addf(out, "%s%s", w->searched ? ", " : "", text_str(&how));
	else if (!w->searched)
		text_add(out, "NCCL's default, on a stream");
	text_release(&what);
	text_release(&how);
}

/* Writes "x 2.410 ± 0.030", with the wider half of the interval. */
static void gain_text(char *out, size_t size, const struct judge_way *w)
{
	double half = fmax(w->ratio - w->low, w->high - w->ratio);

	if (!(w->ratio > 0))
		text_copy(out, size, "not measured");
	else if (w->has_plain && w->best == w->plain && !w->searched)
		text_copy(out, size, "x 1");
	else if (w->low > 0)
		snprintf(out, size, "x %.3f ± %.3f%s", w->ratio, half,
			 w->low > 1 ? "" : ", no significant gain");
	else
		snprintf(out, size, "x %.3f", w->ratio);
}

static void choice_text(char *out, size_t size, const struct judge_way *w)
{
	char ways[48] = "", tried[64] = "";

	if (w->ways > 1)
		snprintf(ways, sizeof(ways), "fastest of %u ways", w->ways);
	if (w->tried)
		snprintf(tried, sizeof(tried), "%ssearch of %u variants%s", w->ways > 1 ? ", " : "", w->tried,
			 w->searched ? "" : ", none faster");
	snprintf(out, size, "%s%s", ways, tried);
}

static void add_row(struct grid *g, const struct view *v, const struct judge_way *w)
{
	const char *size = record_option(case_of(v, w), "size");
	struct text best = {0}, algorithm = {0};
	double bytes;
	char one[96];

	if (size && !units_parse(&bytes, size, "B", NULL))
		format_bytes(one, sizeof(one), bytes);
	else
		text_copy(one, sizeof(one), FORMAT_NONE);
	grid_cell(g, one);
	ways_name(&best, v, w);
	grid_cell(g, text_str(&best));
	format_quantity(one, sizeof(one), w->figure, 0, w->unit);
	grid_cell(g, one);
	gain_text(one, sizeof(one), w);
	grid_cell(g, one);
	if (w->algorithm)
		text_addf(&algorithm, "%s%s%s", w->algorithm, w->protocol ? " " : "",
			  w->protocol ? w->protocol : "");
	grid_cell(g, algorithm.size ? text_str(&algorithm) : "not reported");
	choice_text(one, sizeof(one), w);
	grid_cell(g, one);
	text_release(&best);
	text_release(&algorithm);
}

void ways_grid(struct grid *g, const struct view *v, size_t way)
{
	const struct judgements *j = v->in->judged;
	struct text what = {0}, how = {0};

	format_collective(&what, &how, case_of(v, &j->way[way]));
	text_addf(&g->title, "The best way to run %s: ", text_str(&what));
	pseudonym_map_add(&v->names, &g->title, case_of(v, &j->way[way])->where);
	text_release(&what);
	text_release(&how);
	grid_column(g, "size", true);
	grid_column(g, "best way", false);
	grid_column(g, "figure", true);
	grid_column(g, "gain", false);
	grid_column(g, "algorithm", false);
	grid_column(g, "chosen by", false);
	for (size_t i = way; i < j->way_count; i++)
		if (one_grid(v, &j->way[i], &j->way[way]))
			add_row(g, v, &j->way[i]);
	text_add(
		&g->note,
		"Gain: time by NCCL's default choice (plain buffers, one call at a time on a stream) divided by the best time, with its 95 % interval if known. For two windows the interval is at least 1 %. Algorithm: reported by NCCL for the best way");
}
