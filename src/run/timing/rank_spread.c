/* SPDX-License-Identifier: Apache-2.0 */
/* Differences between the ranks of a case in one window: docs/explanation/methods/measuring.md, "Several
 * ranks". */
#include "core/math/stats.h"
#include "run/timing/phases.h"

#define LATE_SHARE 0.8 /* a rank that is last in this share of the single iterations is named */

static void compare_means(const struct rank_times *t, struct rank_spread *out)
{
	double *means = calloc(t->ranks, sizeof(*means));

	for (unsigned rank = 0; means && rank < t->ranks; rank++) {
		double mean = 0;

		for (size_t k = 0; k < t->count; k++)
			mean += t->ns[rank][k] / (double)t->count;
		if (!rank || mean < out->ns_min) {
			out->ns_min = mean;
			out->shortest = rank;
		}
		if (!rank || mean > out->ns_max) {
			out->ns_max = mean;
			out->longest = rank;
		}
		means[rank] = mean;
	}
	if (means) {
		out->ranks = t->ranks;
		out->ns_median = stats_median(means, t->ranks);
	}
	free(means);
}

/* One iteration on all ranks. */
struct moment {
	double least, most, mean;
	unsigned shortest;
};

static struct moment moment_of(const struct rank_times *t, size_t k)
{
	struct moment m = {.least = t->ns[0][k], .most = t->ns[0][k]};

	for (unsigned rank = 0; rank < t->ranks; rank++) {
		double ns = t->ns[rank][k];

		m.mean += ns / t->ranks;
		m.most = ns > m.most ? ns : m.most;
		if (ns < m.least) {
			m.least = ns;
			m.shortest = rank;
		}
	}
	return m;
}

/* For an operation in which no rank ends before all have begun. Then the rank that begins last has the
 * shortest time. */
static void compare_singles(const struct rank_times *t, struct rank_spread *out)
{
	double *skew = calloc(t->count, sizeof(*skew)), waited = 0, whole = 0;
	size_t *last = calloc(t->ranks, sizeof(*last));

	for (size_t k = 0; skew && last && k < t->count; k++) {
		struct moment m = moment_of(t, k);

		skew[k] = m.most - m.least;
		last[m.shortest]++;
		waited += m.mean - m.least;
		whole += m.most;
	}
	if (skew && last && whole > 0) {
		out->single = true;
		out->wait_share = waited / whole;
		out->skew_ns = stats_median(skew, t->count);
		for (unsigned rank = 0; rank < t->ranks; rank++)
			if ((double)last[rank] >= LATE_SHARE * (double)t->count)
				out->late = (int)rank;
	}
	free(skew);
	free(last);
}

struct rank_spread rank_spread_of(const struct rank_times *t, bool single)
{
	struct rank_spread out = {.late = -1};

	if (!t->count)
		return out;
	compare_means(t, &out);
	if (single)
		compare_singles(t, &out);
	return out;
}

void rank_row_samples(const struct rank_times *t, size_t from, struct sample *sample)
{
	for (size_t k = from; k < t->count; k++)
		sample[k].ns = 0;
	/* First: when the last rank has done each sample, since the row began. */
	for (unsigned rank = 0; rank < t->ranks; rank++) {
		double end = 0;

		for (size_t k = from; k < t->count; k++) {
			end += t->ns[rank][k] * (double)sample[k].batch;
			sample[k].ns = end > sample[k].ns ? end : sample[k].ns;
		}
	}
	for (size_t k = t->count; k-- > from;)
		sample[k].ns = (sample[k].ns - (k > from ? sample[k - 1].ns : 0)) / (double)sample[k].batch;
}

void timing_wait_values(const struct window *w, struct result *r)
{
	if (!w->ranks.single)
		return;
	result_f64(r, &field_wait_share, w->ranks.wait_share);
	result_f64(r, &field_skew_ns, w->ranks.skew_ns);
	if (w->ranks.late >= 0)
		result_u64(r, &field_rank_late, (uint64_t)w->ranks.late);
}

void timing_rank_values(const struct window *w, struct result *r)
{
	if (!w->ranks.ranks)
		return;
	result_u64(r, &field_ranks, w->ranks.ranks);
	result_f64(r, &field_rank_ns_min, w->ranks.ns_min);
	result_f64(r, &field_rank_ns_median, w->ranks.ns_median);
	result_f64(r, &field_rank_ns_max, w->ranks.ns_max);
	result_u64(r, &field_rank_shortest, w->ranks.shortest);
	result_u64(r, &field_rank_longest, w->ranks.longest);
	timing_wait_values(w, r);
}
