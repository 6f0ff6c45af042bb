/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/arrivals.h"
#include <math.h>
#include <stdlib.h>

bool load_bins_open(struct load_bins *b, uint64_t from_ns, uint64_t to_ns, size_t count)
{
	*b = (struct load_bins){.count = count, .from_ns = from_ns};
	b->width_ns = to_ns > from_ns && count ? (double)(to_ns - from_ns) / (double)count : 0;
	if (!(b->width_ns > 0))
		b->count = 0;
	b->sum = calloc(count + 1, sizeof(*b->sum));
	return b->sum != NULL;
}

void load_bins_add(struct load_bins *b, uint64_t at_ns, double amount)
{
	double place;

	if (at_ns == LOAD_NEVER || at_ns < b->from_ns || !b->count)
		return;
	place = (double)(at_ns - b->from_ns) / b->width_ns;
	if (place < (double)b->count)
		b->sum[(size_t)place] += amount;
}

static void add_chunks(struct load_bins *b, const struct load_record *r, double each)
{
	const double length_ns = r->last_token_ns == LOAD_NEVER || r->last_token_ns < r->first_token_ns
					 ? 0
					 : (double)(r->last_token_ns - r->first_token_ns);
	const double step_ns = r->chunks > 1 ? length_ns / (r->chunks - 1) : 0;
	uint64_t at_ns = r->first_token_ns;

	for (uint32_t i = 0; i < r->chunks; i++) {
		load_bins_add(b, at_ns, each);
		if (!r->gap_count) /* not recorded */
			at_ns = r->first_token_ns + (uint64_t)(step_ns * (i + 1));
		else if (i < r->gap_count)
			at_ns += 1000 * (uint64_t)r->gap_us[i];
	}
}

void load_bins_add_output(struct load_bins *b, const struct load_record *r, double tokens_per_chunk)
{
	const int64_t known = load_output_tokens(r);
	const bool cancelled = r->error == LOAD_ERROR_CANCELLED;

	if (!load_is_answered(r) && !cancelled)
		return;
	if (!r->chunks) {
		if (!cancelled && known > 0)
			load_bins_add(b, r->end_ns, (double)known);
		return;
	}
	add_chunks(b, r, !cancelled && known >= 0 ? (double)known / r->chunks : tokens_per_chunk);
}

void load_bins_add_prompt(struct load_bins *b, const struct load_record *r)
{
	const double tokens = r->prompt_usage >= 0 ? (double)r->prompt_usage : r->prompt_asked;

	if (load_is_answered(r))
		load_bins_add(b, r->first_token_ns == LOAD_NEVER ? r->end_ns : r->first_token_ns, tokens);
	else if (r->error == LOAD_ERROR_CANCELLED && r->first_token_ns != LOAD_NEVER)
		load_bins_add(b, r->first_token_ns, tokens);
}

void load_bins_add_flight(struct load_bins *b, const struct load_record *r)
{
	double from, to;

	if (r->sent_ns == LOAD_NEVER || r->end_ns == LOAD_NEVER || r->end_ns <= b->from_ns || !b->count)
		return;
	from = r->sent_ns > b->from_ns ? (double)(r->sent_ns - b->from_ns) : 0;
	to = fmin((double)(r->end_ns - b->from_ns), b->width_ns * (double)b->count);
	if (from >= to)
		return;
	for (size_t i = (size_t)(from / b->width_ns); i < b->count && (double)i * b->width_ns < to; i++) {
		const double begin = fmax(from, (double)i * b->width_ns);
		const double end = fmin(to, (double)(i + 1) * b->width_ns);

		b->sum[i] += end > begin ? 1e-9 * (end - begin) : 0;
	}
}
