/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/throughput.h"
#include <math.h>
#include <stdlib.h>
#include "core/math/stats.h"
#include "load/measure/arrivals.h"

/* Two parts for each of the 20 batches of an interval. */
enum { PARTS = 40 };
/* Above this share of answers without a token count, the rate of tokens is not known. */
static const double uncounted_most = 0.01;

static bool tokens_are_known(const struct load_window *w)
{
	size_t answered = 0, uncounted = 0;

	for (size_t i = 0; i < w->all->count; i++) {
		const struct load_record *r = &w->all->record[i];

		if (!load_is_answered(r))
			continue;
		answered++;
		uncounted += load_output_tokens(r) == LOAD_UNKNOWN;
	}
	return (double)uncounted <= uncounted_most * (double)answered;
}

static void put_rate(json_t *out, const char *name, const struct load_bins *b)
{
	const double width_s = 1e-9 * b->width_ns;
	const double half = stats_batch_half_width(b->sum, b->count, 0) / width_s;
	double sum = 0, rate;
	char key[64];

	for (size_t i = 0; i < b->count; i++)
		sum += b->sum[i];
	rate = sum / (width_s * (double)b->count);
	load_put(out, name, rate);
	snprintf(key, sizeof(key), "%s_low", name);
	load_put(out, key, fmax(0, rate - half));
	snprintf(key, sizeof(key), "%s_high", name);
	load_put(out, key, rate + half);
}

static bool put_token_rates(json_t *out, const struct load_window *w)
{
	struct load_bins b;

	if (!load_bins_open(&b, w->spec->from_ns, w->spec->to_ns, PARTS))
		return false;
	for (size_t i = 0; i < w->all->count; i++)
		load_bins_add_output(&b, &w->all->record[i], w->tokens_per_chunk);
	put_rate(out, "output_tokens_per_s", &b);
	for (size_t i = 0; i < w->all->count; i++)
		load_bins_add_prompt(&b, &w->all->record[i]);
	put_rate(out, "total_tokens_per_s", &b);
	free(b.sum);
	return true;
}

static void put_token_counts(json_t *out, const struct load_window *w)
{
	double prompt = 0, output = 0, chunks = 0;
	bool streamed = false;

	for (size_t i = 0; i < w->count; i++) {
		const struct load_record *r = w->due[i];

		if (!load_is_answered(r))
			continue;
		prompt += r->prompt_usage >= 0 ? (double)r->prompt_usage : r->prompt_asked;
		output += load_output_tokens(r) >= 0 ? (double)load_output_tokens(r) : 0;
		chunks += r->chunks;
		streamed |= r->chunks > 0 && load_output_tokens(r) >= 0;
	}
	load_put(out, "prompt_tokens", prompt);
	load_put(out, "chunks", chunks);
	if (tokens_are_known(w))
		load_put(out, "output_tokens", output);
	if (streamed)
		load_put(out, "tokens_per_chunk", w->tokens_per_chunk);
}

static void put_request_rates(json_t *out, const struct load_window *w)
{
	size_t handed = 0, completed = 0;

	for (size_t i = 0; i < w->all->count; i++) {
		const struct load_record *r = &w->all->record[i];

		handed += load_window_holds(w, r->handed_ns);
		completed += load_is_answered(r) && load_window_holds(w, r->end_ns);
	}
	if (!w->spec->closed_loop) {
		load_put(out, "offered_rate", w->spec->offered);
		load_put(out, "due_rate", (double)w->count / w->length_s);
	}
	load_put(out, "achieved_rate", (double)handed / w->length_s);
	load_put(out, "completed_rate", (double)completed / w->length_s);
	if (w->count)
		load_put(out, "send_deviation", fabs((double)handed - (double)w->count) / (double)w->count);
}

bool load_throughput_put(json_t *out, const struct load_window *w)
{
	put_token_counts(out, w);
	if (!(w->length_s > 0))
		return true;
	put_request_rates(out, w);
	return !tokens_are_known(w) || put_token_rates(out, w);
}
