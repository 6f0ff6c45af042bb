/* SPDX-License-Identifier: Apache-2.0 */
#include "core/math/stats.h"

#include <math.h>

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void stats_sort(double *x, size_t count)
{
	qsort(x, count, sizeof(*x), compare);
}

/* A sorted copy. NULL if a sample is NaN (which has no order) or memory is out. The caller frees it with
 * free(). */
static double *sorted_copy(const double *x, size_t count)
{
	double *copy;
	size_t i;

	for (i = 0; i < count; i++)
		if (isnan(x[i]))
			return NULL;
	copy = malloc(count * sizeof(*copy));
	if (!copy)
		return NULL;
	memcpy(copy, x, count * sizeof(*copy));
	stats_sort(copy, count);
	return copy;
}

double stats_percentile(const double *sorted, size_t count, double share)
{
	double at, low;
	size_t i;

	if (!count)
		return NAN;
	at = share * (double)(count - 1);
	if (!(at > 0))
		return sorted[0];
	low = floor(at);
	i = (size_t)low;
	if (i + 1 >= count)
		return sorted[count - 1];
	return sorted[i] + (at - low) * (sorted[i + 1] - sorted[i]);
}

static double mean_of(const double *x, size_t count)
{
	long double sum = 0;
	size_t i;

	for (i = 0; i < count; i++)
		sum += x[i];
	return (double)(sum / (long double)count);
}

/* Sample variance (divided by n - 1); 0 for one value. */
static double variance_of(const double *x, size_t count, double mean)
{
	long double sum = 0;
	size_t i;

	if (count < 2)
		return 0;
	for (i = 0; i < count; i++)
		sum += ((long double)x[i] - mean) * ((long double)x[i] - mean);
	return (double)(sum / (long double)(count - 1));
}

struct stats stats_of(const double *x, size_t count)
{
	struct stats s = {.count = count};
	double *sorted;
	size_t i;

	if (!count)
		return s;
	sorted = sorted_copy(x, count);
	if (!sorted) {
		s.min = s.median = s.mean = s.p05 = s.p90 = s.p99 = s.max = s.stddev = s.mad = NAN;
		return s;
	}
	s.min = sorted[0];
	s.max = sorted[count - 1];
	s.median = stats_percentile(sorted, count, 0.5);
	s.p05 = stats_percentile(sorted, count, 0.05);
	s.p90 = stats_percentile(sorted, count, 0.9);
	s.p99 = stats_percentile(sorted, count, 0.99);
	s.mean = mean_of(x, count);
	s.stddev = sqrt(variance_of(x, count, s.mean));
	for (i = 0; i < count; i++)
		sorted[i] = fabs(sorted[i] - s.median);
	stats_sort(sorted, count);
	s.mad = stats_percentile(sorted, count, 0.5);
	free(sorted);
	return s;
}

double stats_median(const double *x, size_t count)
{
	return count ? stats_of(x, count).median : NAN;
}

double stats_batch_half_width(const double *x, size_t count, unsigned batches)
{
	long double sum = 0, squares = 0;
	size_t block, i;
	double variance;

	if (!batches)
		batches = 20;
	if (batches < 2 || count / 2 < batches)
		return INFINITY;
	block = count / batches;
	x += count - block * batches; /* skip the oldest samples, which do not fill a block */
	for (i = 0; i < batches; i++)
		sum += mean_of(x + i * block, block);
	for (i = 0; i < batches; i++) {
		long double d = mean_of(x + i * block, block) - sum / batches;

		squares += d * d;
	}
	variance = (double)(squares / (batches - 1));
	return stats_t95(batches - 1) * sqrt(variance / batches);
}

/* Largest k with P(X < k) <= 2.5 % for X ~ Binomial(count, 1/2). The k-th smallest and k-th largest
 * samples are the ends of the median's 95 % interval. */
static size_t median_rank(size_t count)
{
	double n = (double)count, below = 0;
	size_t k;

	for (k = 0; k < count; k++) {
		double i = (double)k;

		below += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1) - n * log(2));
		if (below > 0.025)
			break;
	}
	return k;
}

void stats_median_interval(const double *x, size_t count, double *low, double *high)
{
	size_t k = count < 6 ? 1 : median_rank(count);
	double *sorted = count ? sorted_copy(x, count) : NULL;

	*low = sorted ? sorted[k - 1] : NAN;
	*high = sorted ? sorted[count - k] : NAN;
	free(sorted);
}

double stats_slope(const double *t, const double *y, size_t count)
{
	double mean_t, mean_y, top = 0, bottom = 0;
	size_t i;

	if (count < 2)
		return 0;
	mean_t = mean_of(t, count);
	mean_y = mean_of(y, count);
	for (i = 0; i < count; i++) {
		top += (t[i] - mean_t) * (y[i] - mean_y);
		bottom += (t[i] - mean_t) * (t[i] - mean_t);
	}
	return bottom > 0 ? top / bottom : 0;
}

double stats_t95(size_t degrees)
{
	static const double exact[] = {12.706204736432095, 4.302652729911275, 3.182446305284263,
				       2.776445105197793,  2.570581835636197, 2.446911848791681,
				       2.364624251592785,  2.306004135033371, 2.262157162740992,
				       2.228138851964939};
	const double z = 1.959963984540054, z2 = z * z;
	double v = (double)degrees;

	if (!degrees)
		return INFINITY;
	if (degrees <= sizeof(exact) / sizeof(exact[0]))
		return exact[degrees - 1];
	/* Abramowitz and Stegun 26.7.5; error below 1e-5 from 11 degrees of freedom on */
	return z + z * (z2 + 1) / (4 * v) + z * (5 * z2 * z2 + 16 * z2 + 3) / (96 * v * v) +
	       z * (3 * z2 * z2 * z2 + 19 * z2 * z2 + 17 * z2 - 15) / (384 * v * v * v) +
	       z * (79 * z2 * z2 * z2 * z2 + 776 * z2 * z2 * z2 + 1482 * z2 * z2 - 1920 * z2 - 945) /
		       (92160 * v * v * v * v);
}
