/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of energy and price of one run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cost/cost.h"

struct cost_table *cost_table_add(struct cost_report *r, const char *name, const char *title,
				  const char *note)
{
	struct cost_table *t = &r->table[r->tables++];

	*t = (struct cost_table){.name = name, .title = title, .note = note};
	return t;
}

void cost_column_add(struct cost_table *t, const char *name, const char *head, const char *unit)
{
	if (t->columns == COST_COLUMNS)
		return;
	t->column[t->columns].name = name;
	t->column[t->columns].head = head;
	t->column[t->columns++].unit = unit;
}

struct cost_row *cost_row_add(struct cost_report *r, struct cost_table *t, const char *label)
{
	static struct cost_row dropped; /* never read */
	struct cost_row *grown = realloc(t->row, (t->rows + 1) * sizeof(*grown)), *row;

	if (grown)
		t->row = grown;
	else
		r->failed = true;
	row = grown ? &grown[t->rows++] : &dropped;
	*row = (struct cost_row){0};
	snprintf(row->label, sizeof(row->label), "%s", label);
	for (size_t i = 0; i < COST_COLUMNS; i++)
		row->value[i] = NAN;
	return row;
}

void cost_row_origin(struct cost_report *r, struct cost_row *row, const struct price_origin *origin)
{
	if (!origin)
		return;
	snprintf(row->date, sizeof(row->date), "%s", origin->date);
	row->source = origin->source;
	row->old = price_is_old(origin, r->date);
}

static void add_watts(struct cost_report *r, struct cost_table *t, const struct energy *e, const char *label)
{
	struct cost_row *row;

	if (!e->devices)
		return;
	row = cost_row_add(r, t, label);
	if (!e->known) {
		snprintf(row->why, sizeof(row->why), "%s", e->why);
		return;
	}
	row->value[0] = e->joules;
	row->value[1] = e->error_j;
	row->value[2] = e->joules / r->subject->seconds;
	if (e->disagrees)
		snprintf(row->why, sizeof(row->why),
			 "counter and integrated power differ by %.1f %%: do not trust the energy",
			 100 * fabs(e->integral_j / e->joules - 1));
}

static void add_energy(struct cost_report *r)
{
	const struct cost_subject *s = r->subject;
	struct cost_table *t = cost_table_add(r, "energy", "Energy of the window", NULL);
	struct cost_row *row;
	char label[120];

	cost_column_add(t, "joules", "J", "J");
	cost_column_add(t, "error_joules", "+- J", "J");
	cost_column_add(t, "watts", "mean W", "W");
	snprintf(label, sizeof(label), "%u GPU%s, by counter", s->gpu.devices,
		 s->gpu.devices == 1 ? "" : "s");
	add_watts(r, t, &s->gpu, label);
	if (s->gpu.integrated) {
		row = cost_row_add(r, t, "the same, by integrated power");
		row->value[0] = s->gpu.integral_j;
		row->value[2] = s->gpu.integral_j / s->seconds;
	}
	add_watts(r, t, &s->cpu, "CPU packages, by RAPL");
	add_watts(r, t, &s->dram, "memory, by RAPL");
	snprintf(label, sizeof(label), "counted%s%s", s->energy.parts[0] ? ": " : "", s->energy.parts);
	row = cost_row_add(r, t, label);
	row->value[0] = s->energy.joules;
	row->value[1] = s->energy.error_j;
	row->value[2] = cost_watts(s, 0);
	snprintf(row->why, sizeof(row->why), "%s", s->energy.why);
	row = cost_row_add(r, t, "whole node, by its power meter (in no figure above)");
	row->value[0] = s->node_w * s->seconds;
	row->value[2] = s->node_w;
	snprintf(row->why, sizeof(row->why), "%s", s->node_why);
	row = cost_row_add(r, t, "idle: the lowest second before the window (in no figure above)");
	row->value[2] = s->idle_w;
	snprintf(row->why, sizeof(row->why), "%s", s->idle_why);
}

static void add_per_token(struct cost_report *r)
{
	const struct cost_subject *s = r->subject;
	const bool train = s->kind == COST_TRAIN;
	struct cost_table *t = cost_table_add(r, "energy_per_token", "Energy per token", NULL);
	struct cost_row *row;
	double joules = s->energy.joules, tokens = cost_tokens(s);

	cost_column_add(t, "joules", "J", "J");
	cost_column_add(t, "tokens_per_joule", "tokens/J", "token/J");
	row = cost_row_add(r, t, train ? "per trained token" : "per token, input and output");
	row->value[0] = joules / tokens;
	row->value[1] = tokens / joules;
	snprintf(row->why, sizeof(row->why), "%s", s->energy.why);
	if (train)
		return;
	row = cost_row_add(r, t, "per output token, all energy");
	row->value[0] = s->output > 0 ? joules / s->output : (double)NAN;
	row->value[1] = s->output > 0 ? s->output / joules : (double)NAN;
	snprintf(row->why, sizeof(row->why), "%s", s->energy.why);
	row = cost_row_add(r, t, "prefill, per input token not cached");
	if (s->split.known) {
		row->value[0] = s->split.input_j;
		row->value[1] = 1 / s->split.input_j;
	}
	snprintf(row->why, sizeof(row->why), "%s", s->split.why);
	row = cost_row_add(r, t, "decode, per output token");
	if (s->split.known) {
		row->value[0] = s->split.output_j;
		row->value[1] = 1 / s->split.output_j;
	}
	snprintf(row->why, sizeof(row->why), "%s", s->split.why);
}

/* The share of a joint cost that belongs to the input: that of its energy by the split. NAN: not known. */
static double input_share(const struct cost_subject *s)
{
	double prefilled = s->input - (isnan(s->cached) ? 0 : s->cached), input, output;

	if (!s->split.known)
		return NAN;
	input = s->split.input_j * prefilled;
	output = s->split.output_j * s->output;
	return input / (input + output);
}

static void add_prices(struct cost_report *r, const struct cost_ways *w)
{
	const struct cost_subject *s = r->subject;
	const bool train = s->kind == COST_TRAIN;
	struct cost_table *t = cost_table_add(
		r, "price", train ? "Dollars per million trained tokens" : "Dollars per million tokens",
		train ? NULL
		: s->split.known
			? "input and output: the cost is divided as the energy of prefill and decode. blended: per token of the run's own mix, cached input included. output only: the whole cost on the output tokens"
			: "blended: per token of the run's own mix, cached input included. output only: the whole cost "
			  "on the output tokens. Without a split into prefill and decode, there is no separate price "
			  "of input and of output");
	double tokens = cost_tokens(s), share = input_share(s);

	t->priced = true;
	if (!train && s->split.known) {
		cost_column_add(t, "input", "input", "$/Mtoken");
		cost_column_add(t, "output", "output", "$/Mtoken");
	}
	cost_column_add(t, "blended", train ? "$" : "blended", "$/Mtoken");
	if (!train)
		cost_column_add(t, "output_only", "output only", "$/Mtoken");
	cost_column_add(t, "tokens_per_dollar", "tokens/$", "token/$");
	for (size_t i = 0; i < w->count; i++) {
		struct cost_row *row = cost_row_add(r, t, w->way[i].label);
		double dollars = w->way[i].per_s * s->seconds;
		size_t c = 0;

		if (!train && s->split.known) {
			row->value[c++] = s->input > 0 ? dollars * share / s->input * 1e6 : (double)NAN;
			row->value[c++] =
				s->output > 0 ? dollars * (1 - share) / s->output * 1e6 : (double)NAN;
		}
		row->value[c++] = dollars / tokens * 1e6;
		if (!train)
			row->value[c++] = s->output > 0 ? dollars / s->output * 1e6 : (double)NAN;
		row->value[c++] = tokens / dollars;
		snprintf(row->why, sizeof(row->why), "%s", w->way[i].why);
		cost_row_origin(r, row, w->way[i].origin);
	}
}

/* Of training: what the whole run cost, from loading the model to saving the result. */
static void add_run(struct cost_report *r, const struct cost_ways *w)
{
	const struct cost_subject *s = r->subject;
	struct cost_table *t = cost_table_add(
		r, "run", "Dollars of this run",
		"from the start of loading to the end of saving, with start-up, tuning and evaluations");

	t->priced = true;
	cost_column_add(t, "dollars", "$", "$");
	for (size_t i = 0; i < w->count; i++) {
		const struct cost_way *way = &w->way[i];
		struct cost_row *row = cost_row_add(r, t, way->label);

		row->value[0] = way->kind == COST_ELECTRICITY ? s->run_energy.joules * way->per_j
							      : way->per_s * s->run_seconds;
		snprintf(row->why, sizeof(row->why), "%s",
			 way->kind == COST_ELECTRICITY ? s->run_energy.why : way->why);
		cost_row_origin(r, row, way->origin);
	}
}

void cost_report_make(struct cost_report *r, const struct cost_subject *s, const struct cost_ways *w,
		      const struct prices *p, const struct cost_opts *o)
{
	*r = (struct cost_report){.subject = s, .prices = p, .date = o->date};
	add_energy(r);
	add_per_token(r);
	add_prices(r, w);
	if (s->kind == COST_TRAIN) {
		add_run(r, w);
	} else {
		cost_add_break_even(r, w, o);
		cost_add_cache(r, w, o);
	}
	cost_add_sensitivity(r, w, o);
}

void cost_report_release(struct cost_report *r)
{
	for (size_t i = 0; i < r->tables; i++)
		free(r->table[i].row);
	*r = (struct cost_report){0};
}
