/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks of a case differ in a window: METHODS "Several ranks". */
#include <errno.h>
#include "core/stats.h"
#include "run/phases.h"

#define LATE_SHARE 0.8 /* of single iterations: a rank that is last in so many is named */

static void mean_values(const struct rank_times *t, struct result *r)
{
	double least = 0, most = 0;
	unsigned longest = 0;

	for (unsigned rank = 0; rank < t->ranks; rank++) {
		double sum = 0;

		for (size_t k = 0; k < t->count; k++)
			sum += t->ns[rank][k];
		if (!rank || sum < least)
			least = sum;
		if (!rank || sum > most) {
			most = sum;
			longest = rank;
		}
	}
	result_f64(r, &field_rank_ns_min, least / (double)t->count);
	result_f64(r, &field_rank_ns_max, most / (double)t->count);
	result_u64(r, &field_rank_longest, longest);
}

/* Of an operation in which nobody is done before all have begun: who comes last has the shortest. */
static void tell_waits(const struct rank_times *t, struct result *r)
{
	double *skew = calloc(t->count, sizeof(*skew)), waited = 0, whole = 0;
	size_t *last = calloc(t->ranks, sizeof(*last));

	for (size_t k = 0; skew && last && k < t->count; k++) {
		double least = t->ns[0][k], most = least, sum = 0;
		unsigned shortest = 0;

		for (unsigned rank = 0; rank < t->ranks; rank++) {
			double ns = t->ns[rank][k];

			sum += ns;
			most = ns > most ? ns : most;
			if (ns < least) {
				least = ns;
				shortest = rank;
			}
		}
		skew[k] = most - least;
		last[shortest]++;
		waited += sum / t->ranks - least;
		whole += most;
	}
	if (skew && last && whole > 0) {
		result_f64(r, &field_wait_share, waited / whole);
		result_f64(r, &field_skew_ns, stats_median(skew, t->count));
		for (unsigned rank = 0; rank < t->ranks; rank++)
			if ((double)last[rank] >= LATE_SHARE * (double)t->count)
				result_u64(r, &field_rank_late, rank);
	}
	free(skew);
	free(last);
}

static bool single(const struct window *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->sample[i].batch != 1)
			return false;
	return w->count > 1;
}

void timing_wait_values(const struct window *w, struct result *r)
{
	if (w->ranks && single(w))
		tell_waits(w->ranks, r);
}

void timing_rank_values(const struct window *w, struct result *r)
{
	if (!w->ranks || !w->ranks->count)
		return;
	result_u64(r, &field_ranks, w->ranks->ranks);
	mean_values(w->ranks, r);
	timing_wait_values(w, r);
}
