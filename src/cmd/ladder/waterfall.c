/* SPDX-License-Identifier: Apache-2.0 */
/* waterfall.svg: the picture of a ladder, for pages that cannot include report.html. */
#include <math.h>
#include "cmd/ladder/ladder.h"
#include "report/plot/plot.h"
#include "report/text/format.h"

/* In points. Each row has the rung's name, its bar and its figures. */
enum { WIDTH = 860, MARGIN = 20, BARS = 240, BARS_END = 640, ROW = 26, BAR = 16, HEAD = 74, FOOT = 34 };
enum { SIZE = 13, SIZE_TITLE = 16, SIZE_SMALL = 11 };

double ladder_place(double rate, double lowest, double highest)
{
	return highest > lowest ? 0.1 + 0.9 * log(rate / lowest) / log(highest / lowest) : 1;
}

bool ladder_rates(const struct ladder *l, double *lowest, double *highest)
{
	*lowest = INFINITY;
	*highest = 0;
	for (int id = 0; id < RUNG_COUNT; id++)
		if (isfinite(l->rung[id].v.tokens_per_s)) {
			*lowest = fmin(*lowest, l->rung[id].v.tokens_per_s);
			*highest = fmax(*highest, l->rung[id].v.tokens_per_s);
		}
	return *highest > 0;
}

static void draw_head(struct canvas *c, const struct ladder *l)
{
	const struct canvas_style title = {.role = CANVAS_ink, .size = SIZE_TITLE, .bold = true};
	const struct canvas_style small = {.role = CANVAS_muted, .size = SIZE_SMALL};
	char factor[64], words[400];

	ladder_factor_text(factor, sizeof(factor), l->total, l->total_lowest, l->total_highest,
			   l->top > 0 ? l->rung[l->top].rounds : 0);
	if (l->top > 0)
		snprintf(words, sizeof(words), "All rungs up to %s: %s times the baseline",
			 rung_list[l->top].word, factor);
	else
		text_copy(words, sizeof(words), "No rung has a factor");
	canvas_text(c, &title, MARGIN, 30, words);
	snprintf(words, sizeof(words), "%s · %s%.200s", l->plan.host, *l->plan.shape ? "shape of " : "",
		 *l->plan.shape ? l->plan.shape : "a given model");
	canvas_text(c, &small, MARGIN, 50, words);
}

static void draw_rung(struct canvas *c, const struct ladder *l, int id, double y, double lowest,
		      double highest)
{
	const struct canvas_style name = {.role = CANVAS_ink, .size = SIZE};
	const struct canvas_style figures = {.role = CANVAS_muted, .size = SIZE};
	const struct ladder_rung *r = &l->rung[id];
	const double from =
		r->below >= 0 ? ladder_place(l->rung[r->below].v.tokens_per_s, lowest, highest) : 0;
	const double to = ladder_place(r->v.tokens_per_s, lowest, highest), width = BARS_END - BARS;
	char rate[48], words[96];

	ladder_rate_text(rate, sizeof(rate), r->v.tokens_per_s);
	if (isfinite(r->factor))
		snprintf(words, sizeof(words), "%s, times %.3g", rate, r->factor);
	else
		text_copy(words, sizeof(words), rate);
	canvas_text(c, &name, MARGIN, y + BAR - 4, rung_list[id].title);
	canvas_rect(c,
		    !id		    ? CANVAS_s0
		    : r->factor < 1 ? CANVAS_loss
				    : CANVAS_good,
		    1, BARS + width * fmin(from, to), y, fmax(1, width * fabs(to - from)), BAR);
	canvas_text(c, &figures, BARS_END + 12, y + BAR - 4, words);
}

/* Lists the rungs without a rate. */
static void draw_foot(struct canvas *c, const struct ladder *l, double y)
{
	const struct canvas_style small = {.role = CANVAS_muted, .size = SIZE_SMALL};
	struct text words = {0};

	for (int id = 0; id < RUNG_COUNT; id++)
		if (!isfinite(l->rung[id].v.tokens_per_s))
			text_addf(&words, "%s%s",
				  words.size ? ", " : "Not measured here: ", rung_list[id].title);
	canvas_text(c, &small, MARGIN, y, text_str(&words));
	c->failed = c->failed || words.failed;
	text_release(&words);
}

enum status ladder_write_waterfall(const struct ladder *l, struct error *err)
{
	char path[PATH_MAX + 32];
	double lowest, highest, y = HEAD;
	struct canvas c;
	int rows = 0;
	enum status st;

	for (int id = 0; id < RUNG_COUNT; id++)
		rows += isfinite(l->rung[id].v.tokens_per_s);
	canvas_init(&c, WIDTH, HEAD + rows * ROW + FOOT);
	draw_head(&c, l);
	if (ladder_rates(l, &lowest, &highest))
		for (int id = 0; id < RUNG_COUNT; id++)
			if (isfinite(l->rung[id].v.tokens_per_s)) {
				draw_rung(&c, l, id, y, lowest, highest);
				y += ROW;
			}
	draw_foot(&c, l, y + SIZE);
	snprintf(path, sizeof(path), "%s/waterfall.svg", l->dir);
	st = plot_write(path, PLOT_SVG, &c, "Rates of the rungs of assay ladder", err);
	canvas_release(&c);
	return st;
}
