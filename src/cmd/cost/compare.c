/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that compare prices: with APIs, with other shares of cached input, and with other inputs. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "cmd/cost/cost.h"

#define DAY_S 86400.0
#define YEAR_S (8760.0 * 3600)

/* Dollars of the API for the run's tokens, with a share of the input cached. */
static double api_dollars(const struct price_api *a, const struct cost_subject *s, double hit)
{
	double input = isnan(s->input) ? 0 : s->input, output = isnan(s->output) ? 0 : s->output;

	return (input * ((1 - hit) * a->input + hit * a->cached_input) + output * a->output) * 1e-6;
}

/* The share of the run's input that was cached; 0 if the server did not report it. */
static double hit_of(const struct cost_subject *s)
{
	return s->input > 0 && !isnan(s->cached) ? s->cached / s->input : 0;
}

static bool wanted(const struct price_api *a, const struct cost_opts *o)
{
	return !o->api || !strcmp(a->model, o->api);
}

/* Break-even of a purchase: the volume at which the API would have cost as much as the machine, beyond its
 * electricity. */
static void add_volume(struct cost_row *row, const struct cost_subject *s, const struct cost_ways *w,
		       const struct cost_opts *o, double api)
{
	double tokens = cost_tokens(s);
	double electricity = w->electricity
				     ? cost_watts(s, o->idle_share) * s->seconds *
					       w->electricity->dollars_per_kwh * w->electricity->pue / 3.6e6
				     : (double)NAN;
	double saved = (api - electricity) / tokens;

	if (isnan(w->capital_low))
		return;
	if (isnan(saved)) {
		snprintf(row->why, sizeof(row->why), "no volume: the electricity is not known");
	} else if (saved <= 0) {
		snprintf(row->why, sizeof(row->why),
			 "no volume: the API costs less than the electricity alone");
	} else {
		row->value[3] = w->capital_low / saved * 1e-6;
		row->value[4] = w->capital_high / saved * 1e-6;
		row->value[5] = w->capital_high / saved / (tokens / s->seconds) / DAY_S;
	}
}

void cost_add_break_even(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o)
{
	const struct cost_subject *s = r->subject;
	size_t count;
	const struct price_api *a = prices_apis(r->prices, &count);
	struct cost_table *t = cost_table_add(
		r, "break_even", "Break-even against APIs, at the run's ratio of input to output",
		"rent: the utilization at which rented hours cost as much as the API; above 100 % the API costs less even than a fully used machine. buy: the millions of tokens that pay for the purchase after electricity, and the days of full load that they take");

	t->priced = true;
	cost_column_add(t, "api", "API $/M", "$/Mtoken");
	cost_column_add(t, "rent_low", "rent low", "share");
	cost_column_add(t, "rent_high", "rent high", "share");
	cost_column_add(t, "buy_low", "buy low, M", "Mtoken");
	cost_column_add(t, "buy_high", "buy high, M", "Mtoken");
	cost_column_add(t, "buy_days", "days", "day");
	for (size_t i = 0; i < count; i++) {
		double api = api_dollars(&a[i], s, hit_of(s));
		struct cost_row *row;

		if (!wanted(&a[i], o))
			continue;
		row = cost_row_add(r, t, a[i].model);
		row->value[0] = api / cost_tokens(s) * 1e6;
		row->value[1] = w->hour_low * s->seconds / api;
		row->value[2] = w->hour_high * s->seconds / api;
		add_volume(row, s, w, o, api);
		cost_row_origin(r, row, &a[i].origin);
	}
}

/* Energy of the run's tokens with a share of the input cached, over the energy at the run's own share. */
static double factor_at(const struct cost_subject *s, double hit)
{
	double own = s->split.input_j * s->input * (1 - hit_of(s)) + s->split.output_j * s->output;
	double other = s->split.input_j * s->input * (1 - hit) + s->split.output_j * s->output;

	return s->split.known ? other / own : (double)NAN;
}

static void add_own(struct cost_report *r, struct cost_table *t, const struct cost_way *way,
		    const double *hits)
{
	const struct cost_subject *s = r->subject;
	struct cost_row *row = cost_row_add(r, t, way->label);
	double own = way->per_s * s->seconds / cost_tokens(s) * 1e6;

	for (size_t i = 0; i < t->columns; i++)
		row->value[i] = own * (i == 1 ? 1 : factor_at(s, hits[i]));
	if (way->why[0])
		snprintf(row->why, sizeof(row->why), "%s", way->why);
	else if (!s->split.known)
		snprintf(row->why, sizeof(row->why),
			 "other shares need the split into prefill and decode, which is not known");
	cost_row_origin(r, row, way->origin);
}

void cost_add_cache(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o)
{
	const struct cost_subject *s = r->subject;
	const double hits[] = {0, hit_of(s), 0.5, 0.9};
	size_t count;
	const struct price_api *a = prices_apis(r->prices, &count);
	struct cost_table *t = cost_table_add(
		r, "cache", "Dollars per million tokens, blended, by the share of cached input",
		isnan(s->cached)
			? "the server did not report cached input: the run counts as a run without any"
			: "own prices at other shares: time and energy follow from the split into prefill and decode, "
			  "and cached input costs nothing. If an API has no price for cached input, its ordinary price "
			  "counts");

	t->priced = true;
	cost_column_add(t, "hit_0", "0 %", "$/Mtoken");
	cost_column_add(t, "hit_run", "this run", "$/Mtoken");
	cost_column_add(t, "hit_50", "50 %", "$/Mtoken");
	cost_column_add(t, "hit_90", "90 %", "$/Mtoken");
	for (size_t i = 0; i < w->count; i++)
		if (w->way[i].kind != COST_CAPITAL)
			add_own(r, t, &w->way[i], hits);
	for (size_t i = 0; i < count; i++) {
		struct cost_row *row;

		if (!wanted(&a[i], o))
			continue;
		row = cost_row_add(r, t, a[i].model);
		for (size_t k = 0; k < t->columns; k++)
			row->value[k] = api_dollars(&a[i], s, hits[k]) / cost_tokens(s) * 1e6;
		cost_row_origin(r, row, &a[i].origin);
	}
}

/* The inputs of a price; each is varied alone. */
struct inputs {
	double hour, capital, years, utilization, kwh, pue, watts, rate;
};

/* Dollars per million tokens. `own`: capital and electricity; else rented hours. */
static double price(const struct inputs *x, bool own)
{
	double per_s =
		own ? x->capital / (x->years * YEAR_S * x->utilization) + x->watts * x->pue * x->kwh / 3.6e6
		    : x->hour;

	return per_s / x->rate * 1e6;
}

static const struct {
	const char *name;
	size_t offset;
	bool own, rent;
} varied[] = {
	{"price of the hour", offsetof(struct inputs, hour), false, true},
	{"price of the purchase", offsetof(struct inputs, capital), true, false},
	{"years", offsetof(struct inputs, years), true, false},
	{"utilization", offsetof(struct inputs, utilization), true, false},
	{"price of electricity", offsetof(struct inputs, kwh), true, false},
	{"PUE", offsetof(struct inputs, pue), true, false},
	{"energy per token", offsetof(struct inputs, watts), true, false},
	{"tokens per second", offsetof(struct inputs, rate), true, true},
};

static double with(const struct inputs *x, size_t offset, double factor, bool own)
{
	struct inputs y = *x;
	double *one = (double *)((char *)&y + offset);

	*one *= factor;
	if (own && offset == offsetof(struct inputs, rate)) /* energy per token stays */
		y.watts *= factor;
	return price(&y, own);
}

static int by_spread(const void *a, const void *b)
{
	const struct cost_row *x = a, *y = b;

	return x->value[3] < y->value[3] ? 1 : x->value[3] > y->value[3] ? -1 : 0;
}

static void add_varied(struct cost_report *r, struct cost_table *t, const struct inputs *x, bool own)
{
	size_t first = t->rows;

	for (size_t i = 0; i < sizeof(varied) / sizeof(varied[0]); i++) {
		char label[120];
		struct cost_row *row;

		if (!(own ? varied[i].own : varied[i].rent))
			continue;
		snprintf(label, sizeof(label), "%s: %s", own ? "bought" : "rented", varied[i].name);
		row = cost_row_add(r, t, label);
		row->value[0] = with(x, varied[i].offset, 0.8, own);
		row->value[1] = price(x, own);
		row->value[2] = with(x, varied[i].offset, 1.2, own);
		row->value[3] = fabs(row->value[2] - row->value[0]) / row->value[1];
	}
	if (t->rows > first)
		qsort(t->row + first, t->rows - first, sizeof(*t->row), by_spread);
}

void cost_add_sensitivity(struct cost_report *r, const struct cost_ways *w, const struct cost_opts *o)
{
	const struct cost_subject *s = r->subject;
	struct cost_table *t = cost_table_add(
		r, "sensitivity", "Dollars per million tokens, each input 20 % lower and higher",
		"rented: the mean of the lowest and the highest price per hour. bought: the mean of the "
		"lowest and the highest purchase price, at 50 % utilization, and the first price of "
		"electricity. The widest spread comes first");
	struct inputs x = {.hour = 0.5 * (w->hour_low + w->hour_high),
			   .capital = 0.5 * (w->capital_low + w->capital_high),
			   .years = w->years,
			   .utilization = 0.5,
			   .kwh = w->electricity ? w->electricity->dollars_per_kwh : (double)NAN,
			   .pue = w->electricity ? w->electricity->pue : (double)NAN,
			   .watts = cost_watts(s, o->idle_share),
			   .rate = cost_tokens(s) / s->seconds};

	cost_column_add(t, "low", "-20 %", "$/Mtoken");
	cost_column_add(t, "base", "base", "$/Mtoken");
	cost_column_add(t, "high", "+20 %", "$/Mtoken");
	cost_column_add(t, "spread", "spread", "share");
	if (!isnan(price(&x, false)))
		add_varied(r, t, &x, false);
	if (!isnan(price(&x, true)))
		add_varied(r, t, &x, true);
	if (!t->rows)
		r->tables--; /* no price is known */
}
