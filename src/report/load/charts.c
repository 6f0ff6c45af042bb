/* SPDX-License-Identifier: Apache-2.0 */
/* The charts of a load test: latencies, tokens and requests over time, distributions, the stages of a sweep,
 * and the GPUs on the same axis of time. */
#include <math.h>
#include <stdlib.h>
#include "core/json/member.h"
#include "report/load/load.h"
#include "report/text/format.h"

enum { BUCKETS = 240, STAGES = 64 };
/* Values that differ by more than this factor are drawn on a logarithmic axis. */
static const double wide_range = 50;

/* Takes memory for one more line. NULL: there is no room, or no memory. */
static struct lines_series *line_add(struct lines *l, const char *name, size_t count)
{
	struct lines_series *s = &l->series[l->count];

	if (l->count == LINES_SERIES || !count)
		return NULL;
	*s = (struct lines_series){.x = malloc(count * sizeof(double)), .y = malloc(count * sizeof(double))};
	if (!s->x || !s->y) {
		free(s->x);
		free(s->y);
		return NULL;
	}
	text_copy(s->name, sizeof(s->name), name);
	l->count++;
	return s;
}

static void point_add(struct lines_series *s, double x, double y)
{
	s->x[s->count] = x;
	s->y[s->count++] = y;
}

void load_chart_release(struct load_chart *c)
{
	for (size_t i = 0; i < c->lines.count; i++) {
		free(c->lines.series[i].x);
		free(c->lines.series[i].y);
	}
	*c = (struct load_chart){0};
}

static double number_at(const json_t *list, size_t i)
{
	const json_t *value = json_array_get(list, i);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void curve_add(struct lines *l, const json_t *curves, const char *member, const char *name)
{
	const json_t *t = json_object_get(curves, "t_s"), *y = json_object_get(curves, member);
	const size_t count = json_array_size(y);
	struct lines_series *s = json_array_size(t) == count ? line_add(l, name, count) : NULL;

	for (size_t i = 0; s && i < count; i++)
		point_add(s, number_at(t, i), number_at(y, i));
}

/* The lowest and the highest value of a line; false: it has none. */
static bool range_of(const struct lines_series *s, double *low, double *high)
{
	*low = INFINITY;
	*high = -INFINITY;
	for (size_t i = 0; i < s->count; i++) {
		if (!isfinite(s->y[i]))
			continue;
		*low = fmin(*low, s->y[i]);
		*high = fmax(*high, s->y[i]);
	}
	return *low <= *high;
}

/* "median 12.1–34.0 ms; P99 40–210 ms" */
static void describe(struct load_chart *c)
{
	size_t used = 0;

	for (size_t i = 0; i < c->lines.count && used + 1 < sizeof(c->caption); i++) {
		char range[96];
		double low, high;

		if (!range_of(&c->lines.series[i], &low, &high))
			continue;
		format_range(range, sizeof(range), low, high, c->lines.y.unit);
		used += (size_t)snprintf(c->caption + used, sizeof(c->caption) - used, "%s%s %s",
					 used ? "; " : "", c->lines.series[i].name, range);
	}
}

static void widen(struct lines *l)
{
	double least = INFINITY, most = 0;

	for (size_t i = 0; i < l->count; i++)
		for (size_t k = 0; k < l->series[i].count; k++) {
			const double y = l->series[i].y[k];

			if (!isfinite(y) || !(y > 0))
				continue;
			least = fmin(least, y);
			most = fmax(most, y);
		}
	l->y.log = most > wide_range * least;
	l->y.zero = !l->y.log;
}

/* A chart over the time of the run; the measured window is shaded. */
static struct load_chart over_time(const json_t *curves, const char *file, const char *title,
				   const char *unit)
{
	const json_t *t = json_object_get(curves, "t_s");
	const double half = json_member_number(curves, "part_s") / 2,
		     from = json_member_number(curves, "from_s");
	const double to = json_member_number(curves, "to_s"), begin = number_at(t, 0) - half;
	const double end = number_at(t, json_array_size(t) - 1) + half;
	struct load_chart c = {.file = file,
			       .title = title,
			       .lines = {.x = {.label = "seconds after the begin of the run", .unit = "s"},
					 .y = {.label = title, .unit = unit, .zero = true}}};

	if (isfinite(begin) && isfinite(end)) {
		c.lines.x.low = begin;
		c.lines.x.high = end;
	}
	if (isfinite(from) && isfinite(to)) {
		c.lines.shade_from = from;
		c.lines.shade_to = to;
	}
	return c;
}

static struct load_chart latency_chart(const json_t *curves, const char *file, const char *title,
				       const char *name)
{
	struct load_chart c = over_time(curves, file, title, "s");
	char member[32];

	snprintf(member, sizeof(member), "%s_p50_s", name);
	curve_add(&c.lines, curves, member, "median");
	snprintf(member, sizeof(member), "%s_p99_s", name);
	curve_add(&c.lines, curves, member, "P99");
	widen(&c.lines);
	return c;
}

/* Means of a telemetry signal over equal parts of the chart's time. */
static void signal_add(struct lines *l, const struct view *v, const char *source, const char *signal,
		       const char *name)
{
	const struct series *from = record_series(v->in->record, source, signal);
	const double part = (l->x.high - l->x.low) / BUCKETS;
	struct lines_series *s;
	double sum[BUCKETS] = {0};
	unsigned count[BUCKETS] = {0}, any = 0;
	uint64_t epoch_ns;

	if (!from || !(part > 0) || !load_time_ns(v, 0, &epoch_ns))
		return;
	for (size_t i = 0; i < from->count; i++) {
		const double t_s = ((double)from->t_ns[i] - (double)epoch_ns) * 1e-9;
		const double at = (t_s - l->x.low) / part;

		if (!(at >= 0) || !(at < BUCKETS) || !isfinite(from->value[i]))
			continue;
		sum[(size_t)at] += from->value[i];
		count[(size_t)at]++;
		any++;
	}
	s = any ? line_add(l, name, BUCKETS) : NULL;
	for (size_t i = 0; s && i < BUCKETS; i++)
		if (count[i])
			point_add(s, l->x.low + ((double)i + 0.5) * part, sum[i] / count[i]);
}

static struct load_chart tokens_chart(const json_t *curves)
{
	struct load_chart c = over_time(curves, "load-tokens.svg", "output tokens per second over time", "");

	curve_add(&c.lines, curves, "output_tokens_per_s", "output tokens/s");
	return c;
}

static struct load_chart flight_chart(const struct view *v, const json_t *curves)
{
	struct load_chart c = over_time(curves, "load-requests.svg", "requests over time", "");

	curve_add(&c.lines, curves, "in_flight", "in flight");
	curve_add(&c.lines, curves, "due_per_s", "due per second");
	curve_add(&c.lines, curves, "errors", "errors");
	signal_add(&c.lines, v, "server", "running", "running in the server");
	signal_add(&c.lines, v, "server", "waiting", "waiting in the server");
	return c;
}

/* One line for each GPU. */
static struct load_chart gpu_chart(const struct view *v, const json_t *curves, const char *file,
				   const char *title, const char *unit, const char *signal)
{
	struct load_chart c = over_time(curves, file, title, unit);
	const struct record *r = v->in->record;

	for (size_t i = 0; i < r->series_count; i++)
		if (!strncmp(r->series[i].source, "gpu:", 4) && !strcmp(r->series[i].signal, signal))
			signal_add(&c.lines, v, r->series[i].source, signal,
				   r->series[i].source + strlen("gpu:"));
	return c;
}

static struct load_chart cdf_chart(const json_t *curves)
{
	static const struct {
		const char *name, *shown;
	} of[] = {{"ttft", "TTFT"}, {"e2e", "E2E"}, {"tpot", "TPOT"}};
	struct load_chart c = {
		.file = "load-cdf.svg",
		.title = "distribution of the latencies",
		.lines = {.x = {.label = "latency", .unit = "s", .log = true},
			  .y = {.label = "share of the requests", .unit = "share", .low = 0, .high = 1}}};
	const json_t *all = json_object_get(curves, "cdf"), *point;
	size_t k;

	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		const json_t *list = json_object_get(all, of[i].name);
		struct lines_series *s = line_add(&c.lines, of[i].shown, json_array_size(list));

		if (!s)
			continue;
		json_array_foreach((json_t *)list, k, point)
			point_add(s, number_at(point, 0), number_at(point, 1));
	}
	snprintf(c.caption, sizeof(c.caption),
		 "share of the requests whose latency is at most that of the axis; times from the schedule");
	return c;
}

static int by_x(const void *a, const void *b)
{
	const struct record_phase *p = *(const struct record_phase *const *)a,
				  *q = *(const struct record_phase *const *)b;
	const double x = json_member_number(p->values, "completed_rate"),
		     y = json_member_number(q->values, "completed_rate");

	return (x > y) - (x < y);
}

/* Latency against the rate of complete answers, a point for each stage. */
static struct load_chart sweep_chart(const struct view *v)
{
	struct load_chart c = {
		.file = "load-sweep.svg",
		.title = "latency against throughput, by stage",
		.lines = {.x = {.label = "complete answers per second", .unit = "1/s", .zero = true},
			  .y = {.label = "TTFT", .unit = "s"},
			  .marks = true}};
	static const char *const members[] = {"ttft_p50_s", "ttft_p99_s"}, *const names[] = {"TTFT, median",
											     "TTFT, P99"};
	const struct record_case *of = load_case(v);
	const struct record_phase *stage[STAGES];
	size_t count = 0;

	for (size_t i = 0; of && i < of->phase_count && count < STAGES; i++)
		if (!strncmp(of->phase[i].name, "stage ", 6) && of->phase[i].values)
			stage[count++] = &of->phase[i];
	if (count)
		qsort(stage, count, sizeof(*stage), by_x); /* all have values */
	for (size_t k = 0; k < sizeof(members) / sizeof(members[0]); k++) {
		struct lines_series *s = line_add(&c.lines, names[k], count);

		for (size_t i = 0; s && i < count; i++)
			point_add(s, json_member_number(stage[i]->values, "completed_rate"),
				  json_member_number(stage[i]->values, members[k]));
	}
	widen(&c.lines);
	return c;
}

static void keep(struct load_chart *out, size_t *count, struct load_chart c)
{
	if (!lines_any(&c.lines)) {
		load_chart_release(&c);
		return;
	}
	if (!*c.caption)
		describe(&c);
	out[(*count)++] = c;
}

size_t load_charts(struct load_chart out[LOAD_CHARTS], const struct view *v)
{
	const json_t *curves = json_object_get(load_values(v), "curves");
	size_t count = 0;

	if (!load_case(v))
		return 0;
	keep(out, &count, sweep_chart(v));
	if (!curves)
		return count;
	keep(out, &count, latency_chart(curves, "load-ttft.svg", "time to first token over time", "ttft"));
	keep(out, &count, latency_chart(curves, "load-e2e.svg", "time of whole answers over time", "e2e"));
	keep(out, &count, cdf_chart(curves));
	keep(out, &count, tokens_chart(curves));
	keep(out, &count, flight_chart(v, curves));
	keep(out, &count,
	     gpu_chart(v, curves, "load-power.svg", "power of the GPUs over time", "W", "power_w"));
	keep(out, &count,
	     gpu_chart(v, curves, "load-clock.svg", "clock of the GPUs over time", "MHz", "sm_clock_mhz"));
	keep(out, &count,
	     gpu_chart(v, curves, "load-memory.svg", "memory in use on the GPUs over time", "B",
		       "memory_used_bytes"));
	keep(out, &count,
	     gpu_chart(v, curves, "load-nvlink.svg", "NVLink: bytes that each GPU sent, over time", "B/s",
		       "gpm_nvlink_tx_rate"));
	return count;
}
