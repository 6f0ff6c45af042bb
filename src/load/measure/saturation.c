/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/saturation.h"
#include <math.h>
#include <stdlib.h>
#include "core/math/stats.h"
#include "load/measure/arrivals.h"

/* GuideLLM's rule of over-saturation; "doubled" is ours, for short tests of fast servers. */
static const double window_least_s = 30, ttft_bad_s = 2.5;
/* Residuals with a higher lag-1 correlation, or too few independent ones, are taken as a random walk. */
static const double rho_most = 0.75, worth_least = 4, walk_factor = 1.2;
enum { SECONDS_MOST = 100000, POINTS_LEAST = 5 };

/* Points of one second each. */
struct points {
	struct load_series t, y;
};

static double residual(const double *t, const double *y, size_t i, double mean_t, double mean_y, double slope)
{
	return y[i] - mean_y - slope * (t[i] - mean_t);
}

static double mean_of(const double *x, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	return sum / (double)count;
}

/* Of residuals with their lag-1 correlation rho, as an autoregressive process. */
static double half_if_stationary(double squares, double spread, double worth)
{
	return stats_t95((size_t)worth - 2) * sqrt(squares / (worth - 2) / spread);
}

/* Of a random walk: its least-squares slope has the variance 6/5 of that of its steps' mean. */
static double half_if_walk(const double *t, const double *y, size_t count)
{
	const size_t steps = count - 1;
	const double each_t = (t[steps] - t[0]) / (double)steps, each_y = (y[steps] - y[0]) / (double)steps;
	double squares = 0;

	for (size_t i = 0; i < steps; i++)
		squares += (y[i + 1] - y[i] - each_y) * (y[i + 1] - y[i] - each_y);
	return stats_t95(steps - 1) * sqrt(walk_factor * squares / (double)(steps - 1) / (double)steps) /
	       each_t;
}

struct load_slope load_slope_of(const double *t, const double *y, size_t count)
{
	struct load_slope s = {.value = stats_slope(t, y, count)};
	double mean_t, mean_y, squares = 0, lagged = 0, spread = 0, before = 0, rho, worth, half;

	if (count < POINTS_LEAST)
		return s;
	mean_t = mean_of(t, count);
	mean_y = mean_of(y, count);
	for (size_t i = 0; i < count; i++) {
		const double e = residual(t, y, i, mean_t, mean_y, s.value);

		squares += e * e;
		lagged += e * before;
		before = e;
		spread += (t[i] - mean_t) * (t[i] - mean_t);
	}
	if (!(spread > 0))
		return s;
	rho = squares > 0 ? fmax(0, lagged / squares) : 0;
	worth = (double)count * (1 - rho) / (1 + rho);
	half = rho > rho_most || worth < worth_least ? half_if_walk(t, y, count)
						     : half_if_stationary(squares, spread, worth);
	s.low = s.value - half;
	s.high = s.value + half;
	s.known = true;
	return s;
}

static void put_slope(json_t *out, const char *name, const struct load_slope *s)
{
	char key[64];

	if (!s->known)
		return;
	load_put(out, name, s->value);
	snprintf(key, sizeof(key), "%s_low", name);
	load_put(out, key, s->low);
	snprintf(key, sizeof(key), "%s_high", name);
	load_put(out, key, s->high);
}

struct change {
	uint64_t at_ns;
	int by;
};

static int compare_change(const void *a, const void *b)
{
	const struct change *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->by - y->by; /* an end before a begin at the same time */
}

static bool put_most(json_t *out, const struct load_window *w)
{
	struct change *list = malloc((2 * w->all->count + 1) * sizeof(*list));
	size_t count = 0;
	long now = 0, most = 0;

	if (!list)
		return false;
	for (size_t i = 0; i < w->all->count; i++) {
		const struct load_record *r = &w->all->record[i];

		if (r->sent_ns == LOAD_NEVER || r->end_ns == LOAD_NEVER || r->sent_ns >= w->spec->to_ns ||
		    r->end_ns < w->spec->from_ns)
			continue;
		list[count++] = (struct change){r->sent_ns, 1};
		list[count++] = (struct change){r->end_ns, -1};
	}
	qsort(list, count, sizeof(*list), compare_change);
	for (size_t i = 0; i < count && list[i].at_ns < w->spec->to_ns; i++) {
		const bool within = list[i].at_ns >= w->spec->from_ns;

		most = within && now > most ? now : most;
		now += list[i].by;
		most = within && now > most ? now : most;
	}
	free(list);
	load_put(out, "in_flight_most", (double)most);
	return true;
}

static bool add_point(struct points *p, double t, double y)
{
	return load_series_add(&p->t, t) && load_series_add(&p->y, y);
}

static bool find_flight(struct points *p, double *mean, const struct load_window *w, size_t seconds)
{
	struct load_bins b;
	bool done = load_bins_open(&b, w->spec->from_ns, w->spec->to_ns, seconds);

	*mean = 0;
	if (!done)
		return false;
	for (size_t i = 0; i < w->all->count; i++)
		load_bins_add_flight(&b, &w->all->record[i]);
	for (size_t i = 0; i < b.count && done; i++) {
		done = add_point(p, ((double)i + 0.5) * 1e-9 * b.width_ns, b.sum[i] / (1e-9 * b.width_ns));
		*mean += b.sum[i] / w->length_s;
	}
	free(b.sum);
	return done;
}

/* Mean TTFT of the requests due in each second that has answers. */
static bool find_ttft(struct points *p, const struct load_window *w, size_t seconds)
{
	struct load_bins sum = {0}, count = {0};
	bool done = load_bins_open(&sum, w->spec->from_ns, w->spec->to_ns, seconds) &&
		    load_bins_open(&count, w->spec->from_ns, w->spec->to_ns, seconds);

	for (size_t i = 0; i < w->count && done; i++) {
		const double ttft = load_latency_of(w->due[i], LOAD_TTFT);

		if (isnan(ttft))
			continue;
		load_bins_add(&sum, w->due[i]->scheduled_ns, ttft);
		load_bins_add(&count, w->due[i]->scheduled_ns, 1);
	}
	for (size_t i = 0; i < sum.count && done; i++)
		if (count.sum[i] > 0)
			done = add_point(p, ((double)i + 0.5) * 1e-9 * sum.width_ns,
					 sum.sum[i] / count.sum[i]);
	free(sum.sum);
	free(count.sum);
	return done;
}

static bool ttft_is_bad(const struct points *p, const struct load_slope *s, const struct load_window *w)
{
	const double mean = mean_of(p->y.x, p->y.count), growth = s->value * w->length_s;
	size_t bad = 0;

	for (size_t i = 0; i < p->y.count; i++)
		bad += p->y.x[i] > ttft_bad_s;
	return 2 * bad > p->y.count || growth > mean - growth / 2; /* the line ends above twice its begin */
}

static bool put_slopes(json_t *out, const struct load_window *w, struct points *flight, struct points *ttft)
{
	const size_t seconds = w->length_s < SECONDS_MOST ? (size_t)ceil(w->length_s) : SECONDS_MOST;
	struct load_slope of_flight, of_ttft;
	double mean;

	if (!find_flight(flight, &mean, w, seconds) || !find_ttft(ttft, w, seconds))
		return false;
	load_put(out, "in_flight_mean", mean);
	if (w->spec->closed_loop) /* the number of users bounds both */
		return true;
	of_flight = load_slope_of(flight->t.x, flight->y.x, flight->y.count);
	of_ttft = load_slope_of(ttft->t.x, ttft->y.x, ttft->y.count);
	put_slope(out, "in_flight_slope", &of_flight);
	put_slope(out, "ttft_slope", &of_ttft);
	if (of_flight.known && of_ttft.known && w->length_s >= window_least_s)
		load_put(out, "over_saturated",
			 of_flight.low > 0 && of_ttft.low > 0 && ttft_is_bad(ttft, &of_ttft, w) ? 1 : 0);
	return true;
}

bool load_saturation_put(json_t *out, const struct load_window *w)
{
	struct points flight = {0}, ttft = {0};
	bool done = !(w->length_s > 0) || (put_most(out, w) && put_slopes(out, w, &flight, &ttft));

	load_series_release(&flight.t);
	load_series_release(&flight.y);
	load_series_release(&ttft.t);
	load_series_release(&ttft.y);
	return done;
}
