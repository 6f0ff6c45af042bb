/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of a run's price as text, CSV and JSON. */
#include <math.h>
#include <string.h>
#include "cmd/cost/cost.h"
#include "report/text/format.h"
#include "core/text/width.h"

enum { LABELS_MOST = 2, SCHEMA_VERSION = 1 };

static void number_text(char *out, size_t size, double value, const char *unit)
{
	double most = fabs(value);

	if (isnan(value))
		snprintf(out, size, "%s", FORMAT_NONE);
	else if (!strcmp(unit, "share"))
		snprintf(out, size, "%.1f %%", 100 * value);
	else if (most >= 1000 && most < 1e15)
		snprintf(out, size, "%.0f", value);
	else
		snprintf(out, size, "%.4g", value);
}

static void date_text(char *out, size_t size, const struct cost_row *row)
{
	snprintf(out, size, "%s%s", row->date, row->old ? " old" : "");
}

static unsigned column_width(const struct cost_table *t, size_t column)
{
	unsigned width = width_of(t->column[column].head);

	for (size_t i = 0; i < t->rows; i++) {
		char text[48];

		number_text(text, sizeof(text), t->row[i].value[column], t->column[column].unit);
		width = width_of(text) > width ? width_of(text) : width;
	}
	return width;
}

static void text_row(struct text *out, const struct cost_table *t, const struct cost_row *row, unsigned label,
		     const unsigned *width)
{
	char text[48];

	text_add(out, "  ");
	width_add(out, row ? row->label : "", label, WIDTH_LEFT);
	for (size_t i = 0; i < t->columns; i++) {
		text_add(out, "  ");
		if (row)
			number_text(text, sizeof(text), row->value[i], t->column[i].unit);
		width_add(out, row ? text : t->column[i].head, width[i], WIDTH_RIGHT);
	}
	if (t->priced) {
		if (row)
			date_text(text, sizeof(text), row);
		text_addf(out, "  %s", row ? text : "date");
	}
	text_add(out, "\n");
}

/* The reasons of values that are not known, each once, with the rows that it is for. */
static void text_reasons(struct text *out, const struct cost_table *t)
{
	for (size_t i = 0; i < t->rows; i++) {
		const char *why = t->row[i].why;
		size_t same = 0, earlier = 0;

		for (size_t k = 0; k < i; k++)
			earlier += !strcmp(t->row[k].why, why);
		if (!*why || earlier)
			continue;
		text_addf(out, "  %s", t->row[i].label);
		for (size_t k = i + 1; k < t->rows; k++)
			if (!strcmp(t->row[k].why, why) && ++same < LABELS_MOST)
				text_addf(out, "; %s", t->row[k].label);
		if (same >= LABELS_MOST)
			text_addf(out, "; %zu more row%s", same - LABELS_MOST + 1,
				  same == LABELS_MOST ? "" : "s");
		text_addf(out, ": %s\n", why);
	}
}

static void text_table(struct text *out, const struct cost_table *t)
{
	unsigned label = 0, width[COST_COLUMNS];

	for (size_t i = 0; i < t->rows; i++)
		label = width_of(t->row[i].label) > label ? width_of(t->row[i].label) : label;
	for (size_t i = 0; i < t->columns; i++)
		width[i] = column_width(t, i);
	text_addf(out, "\n%s\n", t->title);
	text_row(out, t, NULL, label, width);
	for (size_t i = 0; i < t->rows; i++)
		text_row(out, t, &t->row[i], label, width);
	text_reasons(out, t);
	if (t->note)
		text_addf(out, "  %s.\n", t->note);
}

static void text_head(struct text *out, const struct cost_subject *s)
{
	text_addf(out, "%s: %s on %s", s->run, cost_kind_name(s->kind), s->device);
	if (s->gpus > 1)
		text_addf(out, " x %u", s->gpus);
	text_addf(out, ", window of %.4g s\n", s->seconds);
	if (s->doubt[0])
		text_addf(out, "UNTRUSTED, so the prices may be wrong: %s\n", s->doubt);
	if (s->kind == COST_TRAIN) {
		text_addf(out, "%.4g trained tokens/s; whole run: %.0f tokens in %.4g s\n",
			  s->output / s->seconds, s->run_tokens, s->run_seconds);
		return;
	}
	text_addf(out, "%.0f input tokens", isnan(s->input) ? 0 : s->input);
	if (isnan(s->cached))
		text_add(out, " (cached share not reported)");
	else
		text_addf(out, " (%.1f %% cached)", s->input > 0 ? 100 * s->cached / s->input : 0.0);
	text_addf(out, ", %.0f output tokens", isnan(s->output) ? 0 : s->output);
	if (s->input > 0 && s->output > 0)
		text_addf(out, ", ratio %.3g", s->input / s->output);
	text_addf(out, ", %.4g tokens/s\n", cost_tokens(s) / s->seconds);
}

void cost_show_text(struct text *out, const struct cost_report *r)
{
	text_head(out, r->subject);
	text_addf(out, "prices: %s; a price is old if it is more than %d days older than %s\n",
		  prices_file(r->prices), PRICE_OLD_DAYS, r->date);
	for (size_t i = 0; i < r->tables; i++)
		text_table(out, &r->table[i]);
}

/* A field of CSV: quoted if it must be. */
static void csv_field(struct text *out, const char *s)
{
	if (!strpbrk(s, "\",\n")) {
		text_add(out, s);
		return;
	}
	text_add(out, "\"");
	for (; *s; s++)
		text_addf(out, *s == '"' ? "\"\"" : "%c", *s);
	text_add(out, "\"");
}

static void csv_value(struct text *out, const struct cost_report *r, const struct cost_table *t,
		      const struct cost_row *row, size_t column)
{
	csv_field(out, r->subject->run);
	text_addf(out, ",%s,", t->name);
	csv_field(out, row->label);
	text_addf(out, ",%s,", t->column[column].name);
	if (!isnan(row->value[column]))
		text_addf(out, "%.10g", row->value[column]);
	text_addf(out, ",%s,%s,%s,", t->column[column].unit, row->date, row->old ? "yes" : "");
	csv_field(out, row->source ? row->source : "");
	text_add(out, ",");
	csv_field(out, row->why);
	text_add(out, "\n");
}

void cost_show_csv(struct text *out, const struct cost_report *r, bool heading)
{
	if (heading)
		text_add(out, "run,table,row,column,value,unit,date,old,source,why\n");
	for (size_t i = 0; i < r->tables; i++)
		for (size_t k = 0; k < r->table[i].rows; k++)
			for (size_t c = 0; c < r->table[i].columns; c++)
				csv_value(out, r, &r->table[i], &r->table[i].row[k], c);
}

static void put_number(json_t *o, const char *name, double value)
{
	if (isfinite(value))
		json_object_set_new(o, name, json_real(value));
}

static json_t *row_json(const struct cost_table *t, const struct cost_row *row)
{
	json_t *o = json_pack("{s:s}", "row", row->label);

	for (size_t i = 0; i < t->columns; i++)
		put_number(o, t->column[i].name, row->value[i]);
	if (*row->why)
		json_object_set_new(o, "why", json_string(row->why));
	if (*row->date)
		json_object_set_new(o, "date", json_string(row->date));
	if (row->source)
		json_object_set_new(o, "source", json_string(row->source));
	if (row->old)
		json_object_set_new(o, "old", json_true());
	return o;
}

static json_t *table_json(const struct cost_table *t)
{
	json_t *o = json_pack("{s:s}", "title", t->title), *units = json_object(), *rows = json_array();

	for (size_t i = 0; i < t->columns; i++)
		json_object_set_new(units, t->column[i].name, json_string(t->column[i].unit));
	for (size_t i = 0; i < t->rows; i++)
		json_array_append_new(rows, row_json(t, &t->row[i]));
	json_object_set_new(o, "units", units);
	json_object_set_new(o, "rows", rows);
	if (t->note)
		json_object_set_new(o, "note", json_string(t->note));
	return o;
}

json_t *cost_show_json(const struct cost_report *r)
{
	const struct cost_subject *s = r->subject;
	json_t *o = json_pack("{s:s, s:i, s:s, s:s, s:s, s:s}", "schema", "assay.cost", "schema_version",
			      SCHEMA_VERSION, "run", s->run, "kind", cost_kind_name(s->kind), "device",
			      s->device, "date", r->date);
	json_t *tables = json_object();

	json_object_set_new(
		o, "prices",
		json_pack("{s:s, s:s}", "file", prices_file(r->prices), "sha256", prices_hash(r->prices)));
	json_object_set_new(o, "gpus", json_integer(s->gpus));
	if (s->doubt[0])
		json_object_set_new(o, "untrusted", json_string(s->doubt));
	put_number(o, "window_s", s->seconds);
	put_number(o, s->kind == COST_TRAIN ? "trained_tokens" : "output_tokens", s->output);
	put_number(o, "input_tokens", s->input);
	put_number(o, "cached_tokens", s->cached);
	for (size_t i = 0; i < r->tables; i++)
		json_object_set_new(tables, r->table[i].name, table_json(&r->table[i]));
	json_object_set_new(o, "tables", tables);
	return o;
}
