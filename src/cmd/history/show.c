/* SPDX-License-Identifier: Apache-2.0 */
/* Shows a history on a terminal and as JSON. */
#include <math.h>
#include <string.h>
#include "cmd/history/history.h"
#include "report/text/format.h"
#include "core/text/width.h"

enum { CASE_COLUMNS = 44, TARGET_COLUMNS = 9, VALUE_COLUMNS = 12, SPARKS = 8, SPARKS_MAX = 40 };
#define ROOM 0.05 /* a sparkline shows at least this share above and below, so that noise looks flat */

static const char *const sparks[SPARKS] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

static void cell(struct text *out, unsigned columns, enum width_align align, const char *text)
{
	width_add(out, text, columns, align);
	text_add(out, "  ");
}

/* The newest points, one character each. */
static void sparkline(struct text *out, const struct history_series *s)
{
	size_t first = s->count > SPARKS_MAX ? s->count - SPARKS_MAX : 0;
	double low = INFINITY, high = 0, middle;

	for (size_t i = first; i < s->count; i++) {
		low = fmin(low, s->point[i].value);
		high = fmax(high, s->point[i].value);
	}
	middle = (low + high) / 2;
	low = fmin(low, middle * (1 - ROOM));
	high = fmax(high, middle * (1 + ROOM));
	for (size_t i = first; i < s->count; i++) {
		int level = (int)((s->point[i].value - low) / (high - low) * (SPARKS - 1) + 0.5);

		text_add(out, sparks[level < 0 ? 0 : level >= SPARKS ? SPARKS - 1 : level]);
	}
}

/* "v" below a change for the worse, "^" below another one. */
static void marks_line(struct text *out, const struct history_series *s)
{
	size_t first = s->count > SPARKS_MAX ? s->count - SPARKS_MAX : 0;

	for (size_t i = first; i < s->count; i++)
		text_add(out, !s->point[i].marked ? " " : history_worse(s, &s->point[i]) ? "v" : "^");
}

static bool any_mark(const struct history_series *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->point[i].marked)
			return true;
	return false;
}

static void value_cell(struct text *out, double value, const char *unit)
{
	char shown[32];

	format_quantity(shown, sizeof(shown), value, 0, unit);
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, shown);
}

static void series_show(struct text *out, const struct history_series *s)
{
	char title[128];

	format_title(title, sizeof(title), s->c);
	cell(out, CASE_COLUMNS, WIDTH_LEFT, title);
	cell(out, TARGET_COLUMNS, WIDTH_LEFT, s->c->where);
	value_cell(out, s->point[0].value, s->unit);
	value_cell(out, s->point[s->count - 1].value, s->unit);
	sparkline(out, s);
	text_add(out, "\n");
	if (!any_mark(s))
		return;
	cell(out, CASE_COLUMNS + TARGET_COLUMNS + 2 * VALUE_COLUMNS + 6, WIDTH_LEFT, "");
	marks_line(out, s);
	text_add(out, "\n");
}

static void change_show(struct text *out, const struct history *h, const struct history_series *s,
			const struct history_point *p)
{
	char title[128], before[32], now[32];

	format_title(title, sizeof(title), s->c);
	format_quantity(before, sizeof(before), p->before, 0, s->unit);
	format_quantity(now, sizeof(now), p->value, 0, s->unit);
	text_addf(out, "%s  ", history_wall(&h->run[p->run]));
	width_add(out, h->run[p->run].name, width_of(h->run[p->run].name), WIDTH_LEFT);
	text_addf(out, "\n    %s, %s: %s (%+.1f %%) %s -> %s; noise %.1f %%, from %u earlier figure%s%s\n",
		  title, s->c->where, compare_change_text(p->change), 100 * p->raw, before, now,
		  100 * p->noise, p->baselines, p->baselines == 1 ? "" : "s",
		  p->judged ? "" : "; not judged");
}

void history_show(struct text *out, const struct history *h)
{
	size_t single = 0;

	text_addf(out, "%zu runs of this machine, %s to %s\n", h->run_count, history_wall(&h->run[0]),
		  history_wall(&h->run[h->run_count - 1]));
	text_addf(out, "%zu significant change%s\n\n", h->marks, h->marks == 1 ? "" : "s");
	cell(out, CASE_COLUMNS, WIDTH_LEFT, "case");
	cell(out, TARGET_COLUMNS, WIDTH_LEFT, "target");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "first");
	cell(out, VALUE_COLUMNS, WIDTH_RIGHT, "last");
	text_add(out, "trend (v: worse, ^: better)\n");
	for (size_t i = 0; i < h->count; i++) {
		if (h->series[i].count > 1)
			series_show(out, &h->series[i]);
		single += h->series[i].count == 1;
	}
	if (single)
		text_addf(out, "%zu case%s in one run only\n", single, single == 1 ? " is" : "s are");
	for (size_t i = 0, shown = 0; i < h->count; i++)
		for (size_t k = 0; k < h->series[i].count; k++)
			if (h->series[i].point[k].marked) {
				text_add(out, shown++ ? "" : "\nChanges\n");
				change_show(out, h, &h->series[i], &h->series[i].point[k]);
			}
}

static json_t *point_json(const struct history *h, const struct history_series *s,
			  const struct history_point *p)
{
	json_t *o = json_pack("{s:s, s:s, s:f, s:s, s:b}", "run", h->run[p->run].name, "wall",
			      history_wall(&h->run[p->run]), "value", p->value, "change",
			      compare_change_text(p->change), "marked", p->marked);

	if (o && p->change != COMPARE_NOT_COMPARABLE) {
		json_object_set_new(o, "before", json_real(p->before));
		json_object_set_new(o, "raw", json_real(p->raw));
		json_object_set_new(o, "noise", json_real(p->noise));
		json_object_set_new(o, "baselines", json_integer(p->baselines));
		json_object_set_new(o, "judged", json_boolean(p->judged));
		json_object_set_new(o, "worse", json_boolean(p->marked && history_worse(s, p)));
	}
	return o;
}

json_t *history_json(const struct history *h)
{
	json_t *list = json_array();

	for (size_t i = 0; i < h->count; i++) {
		const struct history_series *s = &h->series[i];
		json_t *points = json_array();

		for (size_t k = 0; k < s->count; k++)
			json_array_append_new(points, point_json(h, s, &s->point[k]));
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "key", s->c->key, "target",
						      s->c->where, "unit", s->unit, "points", points));
	}
	return json_pack("{s:i, s:i, s:o}", "runs", (int)h->run_count, "changes", (int)h->marks, "series",
			 list);
}
