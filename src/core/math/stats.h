/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics on raw samples. Sources of the formulae: docs/explanation/methods, "Statistics". */
#ifndef CORE_MATH_STATS_H
#define CORE_MATH_STATS_H
#include <stddef.h>

struct stats {
	size_t count;
	double min, median, mean, p05, p90, p99, max, stddev, mad;
};

/* All zero for count 0; all but count NaN where a sample is NaN or memory is out. stddev: of the sample (n -
 * 1). mad: median absolute deviation from the median, unscaled. Does not reorder `x`. Percentiles by linear
 * interpolation (type 7). */
struct stats stats_of(const double *x, size_t count);
/* Ascending, in place. */
void stats_sort(double *x, size_t count);
double stats_percentile(const double *sorted, size_t count, double share);
double stats_median(const double *x, size_t count);
/* 95 % half-width of the mean by batch means over `batches` (>= 2) equal blocks, Student's t; 0 batches: 20.
 * Infinity when count < 2 * batches. */
double stats_batch_half_width(const double *x, size_t count, unsigned batches);
/* Distribution-free 95 % interval of the median by order statistics; needs count >= 6, else low = min, high =
 * max. */
void stats_median_interval(const double *x, size_t count, double *low, double *high);
/* Least-squares slope of y over t. */
double stats_slope(const double *t, const double *y, size_t count);
/* Two-sided 95 % quantile of Student's t. */
double stats_t95(size_t degrees);
#endif
