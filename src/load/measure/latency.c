/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/latency.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "core/math/stats.h"
#include "load/measure/percentile.h"

/* More pooled gaps than these (128 MB) are thinned: only those of every n-th request are taken. */
enum { GAPS_MOST = 1 << 24 };
/* Usage counts an end token without text, and a character may need several tokens. */
static const double chunks_differ_most = 0.01;
static const double late_s = 1e-3;

static void put(json_t *out, const char *name, const char *part, const char *end, double value)
{
	char key[64];

	snprintf(key, sizeof(key), "%s_%s%s", name, part, end);
	load_put(out, key, value);
}

static void put_percentiles(json_t *out, const char *name, const double *x, const double *sorted,
			    size_t count)
{
	static const struct {
		const char *word;
		double share;
	} parts[] = {{"p50", 0.5}, {"p90", 0.9}, {"p95", 0.95}, {"p99", 0.99}, {"p999", 0.999}};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		const struct load_percentile p = load_percentile_of(x, sorted, count, parts[i].share);

		if (!p.known)
			continue;
		put(out, name, parts[i].word, "_s", p.value);
		put(out, name, parts[i].word, "_low_s", p.low);
		put(out, name, parts[i].word, "_high_s", p.high);
	}
}

static void put_mean(json_t *out, const char *name, const double *x, size_t count)
{
	const double half = stats_batch_half_width(x, count, 0);
	long double sum = 0;
	double mean;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	mean = (double)(sum / (long double)count);
	put(out, name, "mean", "_s", mean);
	put(out, name, "mean", "_low_s", mean - half);
	put(out, name, "mean", "_high_s", mean + half);
}

static json_t *cdf_of(const double *sorted, size_t count)
{
	const size_t points = count < LOAD_CDF_POINTS ? count : LOAD_CDF_POINTS;
	json_t *list = json_array();

	for (size_t i = 1; i <= points && list; i++) {
		const size_t rank = (size_t)ceil((double)i * (double)count / (double)points);

		json_array_append_new(list,
				      json_pack("[f, f]", sorted[rank - 1], (double)rank / (double)count));
	}
	return list;
}

static bool put_series(json_t *out, json_t *cdf, const char *name, const struct load_series *s)
{
	double *sorted;

	put(out, name, "samples", "", (double)s->count);
	if (!s->count)
		return true;
	sorted = malloc(s->count * sizeof(*sorted));
	if (!sorted)
		return false;
	memcpy(sorted, s->x, s->count * sizeof(*sorted));
	stats_sort(sorted, s->count);
	put_percentiles(out, name, s->x, sorted, s->count);
	put_mean(out, name, s->x, s->count);
	put(out, name, "min", "_s", sorted[0]);
	put(out, name, "max", "_s", sorted[s->count - 1]);
	json_object_set_new(cdf, name, cdf_of(sorted, s->count));
	free(sorted);
	return true;
}

static bool put_latency(json_t *out, json_t *cdf, const struct load_window *w, const char *name,
			enum load_latency kind)
{
	struct load_series s = {0};
	const bool done = load_window_latencies(&s, w, kind) && put_series(out, cdf, name, &s);

	load_series_release(&s);
	return done;
}

/* True: the chunks of the streams are single tokens, so gaps between them are inter-token latencies. */
static bool chunks_are_tokens(const struct load_window *w)
{
	double tokens = 0, differ = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct load_record *r = w->due[i];
		const int64_t known = load_output_tokens(r);
		double apart;

		if (!load_is_answered(r) || !r->chunks)
			continue;
		if (known == LOAD_UNKNOWN)
			return false;
		apart = fabs((double)known - (double)r->chunks) - 1; /* an end token */
		tokens += (double)known;
		differ += apart > 0 ? apart : 0;
	}
	return differ <= chunks_differ_most * tokens;
}

/* Gaps of a request stay together: a stall of the server then falls into one or two batches. */
static bool put_gaps(json_t *out, json_t *cdf, const struct load_window *w)
{
	struct load_series s = {0};
	uint64_t gaps = 0;
	size_t every;
	bool done = true;

	for (size_t i = 0; i < w->count; i++)
		gaps += load_is_answered(w->due[i]) ? w->due[i]->gap_count : 0;
	every = 1 + (size_t)(gaps / GAPS_MOST);
	for (size_t i = 0; i < w->count && done; i += every)
		for (uint32_t g = 0; g < w->due[i]->gap_count && load_is_answered(w->due[i]) && done; g++)
			done = load_series_add(&s, 1e-6 * w->due[i]->gap_us[g]);
	done = done && put_series(out, cdf, chunks_are_tokens(w) ? "itl" : "chunk_gap", &s);
	load_series_release(&s);
	return done;
}

/* No interval: this is a check of the client, not a figure of the server. */
static bool put_lag(json_t *out, const struct load_window *w)
{
	struct load_series s = {0};
	const bool done = load_window_latencies(&s, w, LOAD_LAG);
	size_t late = 0;

	for (size_t i = 0; i < s.count; i++)
		late += s.x[i] > late_s;
	load_put(out, "late_sends", (double)late);
	if (s.count)
		stats_sort(s.x, s.count);
	load_put(out, "client_lag_p50_s", stats_percentile(s.x, s.count, 0.5));
	load_put(out, "client_lag_p99_s", stats_percentile(s.x, s.count, 0.99));
	load_put(out, "client_lag_max_s", stats_percentile(s.x, s.count, 1));
	load_series_release(&s);
	return done;
}

bool load_latencies_put(json_t *out, json_t *cdf, const struct load_window *w)
{
	return put_latency(out, cdf, w, "ttft", LOAD_TTFT) &&
	       put_latency(out, cdf, w, "ttft_send", LOAD_TTFT_SEND) &&
	       put_latency(out, cdf, w, "tpot", LOAD_TPOT) && put_gaps(out, cdf, w) &&
	       put_latency(out, cdf, w, "e2e", LOAD_E2E) &&
	       put_latency(out, cdf, w, "e2e_send", LOAD_E2E_SEND) && put_lag(out, w);
}
