/* SPDX-License-Identifier: Apache-2.0 */
/* The ways to pay for the time and the energy of a run. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "cmd/cost/cost.h"

#define YEAR_S (8760.0 * 3600)
#define KWH_J 3.6e6

static const int utilizations[] = {100, 50, 25, 10}; /* % */

static struct cost_way *add(struct cost_ways *w, const struct price_origin *origin, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
static struct cost_way *add(struct cost_ways *w, const struct price_origin *origin, const char *format, ...)
{
	struct cost_way *way = &w->way[w->count < COST_WAYS - 1 ? w->count++ : w->count];
	va_list list;

	*way = (struct cost_way){.per_s = NAN, .origin = origin};
	va_start(list, format);
	vsnprintf(way->label, sizeof(way->label), format, list);
	va_end(list);
	return way;
}

static void because(struct cost_way *way, const char *why)
{
	snprintf(way->why, sizeof(way->why), "%s", why);
}

static enum status choose_electricity(struct cost_ways *w, const struct prices *p, const struct cost_opts *o,
				      struct error *err)
{
	size_t count;
	const struct price_electricity *e = prices_electricity(p, &count);
	const char *names[64], *near;

	w->electricity = count ? e : NULL;
	if (!o->electricity)
		return STATUS_OK;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(e[i].name, o->electricity)) {
			w->electricity = &e[i];
			return STATUS_OK;
		}
	for (size_t i = 0; i < count && i < 64; i++)
		names[i] = e[i].name;
	near = opt_nearest(o->electricity, names, count < 64 ? count : 64);
	return error_set(err, STATUS_BAD_INPUT, "--electricity %s: %s has no electricity of this name%s%s",
			 o->electricity, prices_file(p), near ? "; did you mean " : "", near ? near : "");
}

static void add_electricity(struct cost_ways *w, const struct cost_subject *s, const struct prices *p,
			    const struct cost_opts *o)
{
	size_t count;
	const struct price_electricity *e = prices_electricity(p, &count);

	for (size_t i = 0; i < count && i < 16; i++) {
		struct cost_way *way = add(w, &e[i].origin, "electricity %s, $%.3g/kWh, PUE %.3g", e[i].name,
					   e[i].dollars_per_kwh, e[i].pue);

		way->kind = COST_ELECTRICITY;
		way->per_j = e[i].dollars_per_kwh * e[i].pue / KWH_J;
		way->per_s = cost_watts(s, o->idle_share) * way->per_j;
		if (isnan(way->per_s))
			because(way, s->energy.known ? s->idle_why : s->energy.why);
	}
}

static void add_hour(struct cost_ways *w, const struct cost_subject *s, const struct price_gpu *row,
		     double price, const char *end)
{
	struct cost_way *way =
		add(w, &row->origin, "GPU-hours, %s%s $%.4g x %u", row->sku, end, price, s->gpus);

	way->kind = COST_HOUR;
	way->per_s = price * s->gpus / 3600;
}

/* Why no row of the prices fits the GPUs. */
static void no_row(struct cost_way *way, const struct cost_subject *s, const char *what, const char *option)
{
	if (s->gpus_why[0])
		snprintf(way->why, sizeof(way->why), "%.120s", s->gpus_why);
	else if (!s->gpus)
		snprintf(way->why, sizeof(way->why), "the number of GPUs is not known: give --gpus");
	else
		snprintf(way->why, sizeof(way->why), "the prices have no %s of %s: give %s", what,
			 s->sku[0] ? s->sku : s->device, option);
}

static void add_hours(struct cost_ways *w, const struct cost_subject *s, const struct prices *p)
{
	const struct price_gpu *row = s->gpus ? prices_gpu_hour(p, s->sku) : NULL;

	w->hour_low = w->hour_high = NAN;
	if (s->price_per_hour > 0) {
		struct cost_way *way = add(w, NULL, "machine-hours, stated $%.4g", s->price_per_hour);

		way->kind = COST_HOUR;
		w->hour_low = w->hour_high = way->per_s = s->price_per_hour / 3600;
	}
	if (row) {
		add_hour(w, s, row, row->low, row->low < row->high ? " low" : "");
		if (row->low < row->high)
			add_hour(w, s, row, row->high, " high");
	} else if (!(s->price_per_hour > 0)) {
		struct cost_way *way = add(w, NULL, "GPU-hours");

		way->kind = COST_HOUR;
		no_row(way, s, "GPU-hours", "--price-per-hour");
	}
	if (isnan(w->hour_low) && row) {
		w->hour_low = row->low * s->gpus / 3600;
		w->hour_high = row->high * s->gpus / 3600;
	}
}

static void add_purchase(struct cost_ways *w, double dollars, const struct price_origin *origin,
			 const char *name)
{
	for (size_t i = 0; i < sizeof(utilizations) / sizeof(utilizations[0]); i++) {
		struct cost_way *way = add(w, origin, "capital%s $%.0f over %.3g years, %d %% used", name,
					   dollars, w->years, utilizations[i]);

		way->kind = COST_CAPITAL;
		way->per_s = dollars / (w->years * YEAR_S * utilizations[i] / 100);
	}
}

static void add_capital(struct cost_ways *w, const struct cost_subject *s, const struct prices *p,
			const struct cost_opts *o)
{
	const struct price_gpu *row = s->gpus && !(o->capital > 0) ? prices_capital(p, s->sku) : NULL;

	w->capital_low = w->capital_high = NAN;
	w->years = o->years > 0 ? o->years : row ? row->years : 3;
	if (o->capital > 0) {
		w->capital_low = w->capital_high = o->capital;
		add_purchase(w, o->capital, NULL, ", stated");
	} else if (row) {
		w->capital_low = row->low * s->gpus;
		w->capital_high = row->high * s->gpus;
		add_purchase(w, w->capital_low, &row->origin, row->low < row->high ? " low" : "");
		if (row->low < row->high)
			add_purchase(w, w->capital_high, &row->origin, " high");
	} else {
		struct cost_way *way = add(w, NULL, "capital");

		way->kind = COST_CAPITAL;
		no_row(way, s, "capital", "--capital");
		if (s->gpus_why[0] && !strcmp(s->device, "CPU"))
			because(way, "the run used no GPU: give --capital");
	}
}

static enum status check_sku(const struct prices *p, const struct cost_opts *o, struct error *err)
{
	size_t count;
	const struct price_gpu *rows = prices_gpu_hours(p, &count);
	const char *names[64], *near;

	if (!o->sku || prices_gpu_hour(p, o->sku) || prices_capital(p, o->sku) || o->price_per_hour > 0)
		return STATUS_OK;
	for (size_t i = 0; i < count && i < 64; i++)
		names[i] = rows[i].sku;
	near = opt_nearest(o->sku, names, count < 64 ? count : 64);
	return error_set(err, STATUS_BAD_INPUT, "--sku %s: %s has no price of this GPU%s%s", o->sku,
			 prices_file(p), near ? "; did you mean " : "", near ? near : "");
}

enum status cost_ways_make(struct cost_ways *out, const struct cost_subject *s, const struct prices *p,
			   const struct cost_opts *o, struct error *err)
{
	enum status st;

	*out = (struct cost_ways){0};
	st = choose_electricity(out, p, o, err);
	if (!st)
		st = check_sku(p, o, err);
	if (st)
		return st;
	add_electricity(out, s, p, o);
	add_hours(out, s, p);
	add_capital(out, s, p, o);
	return STATUS_OK;
}
