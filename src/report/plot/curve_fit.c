/* SPDX-License-Identifier: Apache-2.0 */
/* Fits latency and bandwidth lines to all sizes of one collective, whatever unit its figures have. */
#include "core/text/units.h"
#include "journal/record/record.h"
#include "report/plot/curve.h"
#include "report/view/view.h"
#include "report/text/format.h"

static const double KNOWN_HALF = 0.5; /* largest half-width of a shown value, as a share of the value */

/* One size of the collective. */
struct place {
	double bytes;
	struct latency_fit_point point;
	char way[48];
};

static bool same_but_size(const struct view_row *a, const struct view_row *b)
{
	return !strcmp(a->c->target, b->c->target) && !strcmp(a->c->probe, b->c->probe) &&
	       !strcmp(a->c->engine, b->c->engine) && a->c->round == b->c->round &&
	       record_same_options(a->c, b->c, (const char *const[]){"size", "search", NULL});
}

/* Fills a point; false: the row has no usable time. */
static bool place_of(struct place *p, const struct view_row *row)
{
	const struct record_phase *once = record_phase(row->c, "once"),
				  *phase = record_phase(row->c, row->j->phase);
	const char *size = record_option(row->c, "size");
	const char *algorithm = once ? record_text(once, "algorithm") : NULL,
		   *protocol = once ? record_text(once, "protocol") : NULL;
	double factor;

	*p = (struct place){0};
	if (!phase || !once || !record_number(phase, "time_ns_mean", &p->point.ns) || !(p->point.ns > 0) ||
	    !record_number(once, "bus_factor", &factor) || !size || units_parse(&p->bytes, size, "B", NULL))
		return false;
	p->point.x = p->bytes * factor;
	if (algorithm)
		snprintf(p->way, sizeof(p->way), "%s%s%s", algorithm, protocol ? " " : "",
			 protocol ? protocol : "");
	return true;
}

/* Inserts a point, sorted by size. The first of two points of one size stays. */
static void put(struct place *all, size_t *count, const struct place *p)
{
	size_t at = *count;

	for (size_t i = 0; i < *count; i++)
		if (all[i].bytes == p->bytes)
			return;
	if (*count == CURVE_POINTS)
		return;
	for (; at && all[at - 1].bytes > p->bytes; at--)
		all[at] = all[at - 1];
	all[at] = *p;
	++*count;
}

static size_t collect(struct place *all, const struct view *v, const struct view_row *lead)
{
	size_t count = 0;

	for (size_t i = 0; i < v->row_count; i++) {
		const struct view_row *row = &v->rows[i];
		enum verdict verdict = row->j->verdict;
		struct place p;

		if (!row->aside && verdict != VERDICT_FAIL && verdict != VERDICT_ERROR &&
		    verdict != VERDICT_UNTRUSTED && same_but_size(lead, row) && place_of(&p, row))
			put(all, &count, &p);
	}
	return count;
}

static bool fitted(const struct curve *c, const char *name)
{
	for (size_t i = 0; i < c->fit_count; i++)
		if (!strcmp(c->fit[i].name, name))
			return true;
	return false;
}

static void fit_series(struct curve *c, const struct view *v, const struct curve_series *s)
{
	struct curve_fit *f = &c->fit[c->fit_count];
	struct latency_fit_point point[CURVE_POINTS];
	struct place all[CURVE_POINTS];
	size_t count = collect(all, v, s->point[0].row);

	for (size_t i = 0; i < count; i++) {
		point[i] = all[i].point;
		point[i].way = *all[i].way ? all[i].way : NULL;
	}
	*f = (struct curve_fit){.factor = count ? all[0].point.x / all[0].bytes : 0};
	latency_fit_of(point, count, &f->fit);
	if (!f->fit.lines)
		return;
	text_copy(f->name, sizeof(f->name), s->name);
	for (size_t i = 0; i < f->fit.lines; i++) {
		const struct latency_fit_line *l = &f->fit.line[i];

		f->from[i] = all[l->first].bytes;
		f->to[i] = all[l->first + l->count - 1].bytes;
		if (f->fit.told)
			text_copy(f->way[i], sizeof(f->way[i]), all[l->first].way);
	}
	c->fit_count++;
}

void curve_fits(struct curve *c, const struct view *v)
{
	if (strcmp(c->probe, "collective"))
		return;
	for (size_t i = 0; i < c->series_count; i++)
		if (c->series[i].count && !fitted(c, c->series[i].name))
			fit_series(c, v, &c->series[i]);
}

/* False for a value whose half-width is too large to show it. */
static bool is_known(double value, double half)
{
	return value > 0 && half <= KNOWN_HALF * value;
}

static void add_line(struct text *t, const struct curve_fit *f, size_t i)
{
	const struct latency_fit_line *l = &f->fit.line[i];
	char from[32], to[32], rate[48];

	format_bytes(from, sizeof(from), f->from[i]);
	format_bytes(to, sizeof(to), f->to[i]);
	text_addf(t, "%s%s to %s%s%s: ", i ? "; " : "", from, to, *f->way[i] ? " by " : "", f->way[i]);
	if (is_known(l->latency_ns, l->latency_half))
		text_addf(t, "%.1f us", l->latency_ns / 1e3);
	else
		text_add(t, "these points do not determine the latency");
	if (is_known(l->latency_ns, l->latency_half) && l->latency_half > 0)
		text_addf(t, " ± %.1f", l->latency_half / 1e3);
	if (!is_known(l->rate, l->rate_half))
		return;
	format_quantity(rate, sizeof(rate), l->rate * 1e9, 0, "B/s");
	text_addf(t, " and %s", rate);
	if (l->rate_half > 0)
		text_addf(t, " ± %.1f %%", 100 * l->rate_half / l->rate);
}

void curve_fit_text(struct text *out, const struct curve_fit *f)
{
	char at[32];

	text_addf(out, "%s: ", f->name);
	for (size_t i = 0; i < f->fit.lines; i++) {
		if (i && f->fit.change[i - 1].at > 0) {
			format_bytes(at, sizeof(at), f->fit.change[i - 1].at / f->factor);
			text_addf(out, "; they cross at %s", at);
		}
		add_line(out, f, i);
	}
}
