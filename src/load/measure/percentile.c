/* SPDX-License-Identifier: Apache-2.0 */
#include "load/measure/percentile.h"
#include <math.h>
#include "core/math/stats.h"

enum { BATCHES = 20 };
static const double side = 0.025, z95 = 1.959963984540054;
/* Beyond this many standard deviations and some more, a binomial has less than 1e-15 of its mass. */
static const double reach = 10, reach_more = 20;

/* P(K = k) for K ~ Binomial(n, p) */
static double mass(double n, double k, double p)
{
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p));
}

/* The largest r with P(K < r) <= 2.5 %. */
static size_t lower_rank(size_t n, double p)
{
	const double mean = (double)n * p, from = floor(mean - reach * sqrt(mean * (1 - p)) - reach_more);
	double k = from > 0 ? from : 0, m = mass((double)n, k, p), below = 0;

	while (below + m <= side && k < (double)n) {
		below += m;
		m *= ((double)n - k) / (k + 1) * (p / (1 - p));
		k++;
	}
	return (size_t)k;
}

void load_percentile_ranks(size_t count, size_t worth, double share, size_t *low, size_t *high)
{
	const double scale = ((double)count + 1) / ((double)worth + 1);
	/* P(K >= s) <= 2.5 % is P(n - K < n + 1 - s) <= 2.5 % of Binomial(n, 1 - p) */
	const size_t r = lower_rank(worth, share), s = worth + 1 - lower_rank(worth, 1 - share);

	*low = (size_t)floor((double)r * scale);
	*high = s > worth ? count + 1 : (size_t)ceil((double)s * scale);
	if (*high > count)
		*high = count + 1;
}

static double share_below(const double *x, size_t count, double limit)
{
	size_t below = 0;

	for (size_t i = 0; i < count; i++)
		below += x[i] <= limit;
	return (double)below / (double)count;
}

double load_share_inflation(const double *x, size_t count, double limit)
{
	const double student = stats_t95(BATCHES - 1) / z95;
	const size_t block = count / BATCHES;
	double share[BATCHES], mean = 0, squares = 0, inflation;

	if (count < LOAD_BATCHED_LEAST)
		return 1;
	x += count - block * BATCHES; /* the oldest samples fill no block */
	for (int i = 0; i < BATCHES; i++) {
		share[i] = share_below(x + (size_t)i * block, block, limit);
		mean += share[i] / BATCHES;
	}
	for (int i = 0; i < BATCHES; i++)
		squares += (share[i] - mean) * (share[i] - mean);
	if (!(mean > 0 && mean < 1))
		return 1;
	inflation = (double)block * squares / (BATCHES - 1) / (mean * (1 - mean));
	/* the variance of few blocks is itself uncertain, which matters only where it is used */
	return inflation > 1 ? inflation * student * student : 1;
}

struct load_percentile load_percentile_of(const double *x, const double *sorted, size_t count, double share)
{
	struct load_percentile p = {.value = stats_percentile(sorted, count, share)};
	size_t worth, low, high;

	if (!count)
		return p;
	worth = (size_t)((double)count / load_share_inflation(x, count, p.value));
	load_percentile_ranks(count, worth ? worth : 1, share, &low, &high);
	if (!low || high > count)
		return p;
	p.low = sorted[low - 1];
	p.high = sorted[high - 1];
	p.known = true;
	return p;
}

void load_share_interval(double share, double worth, double *low, double *high)
{
	const double z2 = z95 * z95 / worth, middle = (share + z2 / 2) / (1 + z2);
	const double half = z95 / (1 + z2) * sqrt(share * (1 - share) / worth + z2 / (4 * worth));

	*low = fmax(0, middle - half);
	*high = fmin(1, middle + half);
}
