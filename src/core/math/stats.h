/* SPDX-License-Identifier: Apache-2.0 */
/* Statistics of raw samples. Formulas and their sources: docs/explanation/methods/statistics.md,
 * "Statistics". */
#ifndef CORE_MATH_STATS_H
#define CORE_MATH_STATS_H
#include <stddef.h>

struct stats {
	size_t count;
	double min, median, mean, p05, p90, p99, max, stddev, mad;
};

/* Statistics of `count` samples; does not reorder `x`. All fields are 0 for count 0. All fields but count
 * are NaN if a sample is NaN or memory is out. stddev is the sample standard deviation (n - 1). mad is the
 * median absolute deviation from the median, unscaled. Percentiles use linear interpolation (type 7). */
struct stats stats_of(const double *x, size_t count);
/* Sorts in place, ascending. */
void stats_sort(double *x, size_t count);
double stats_percentile(const double *sorted, size_t count, double share);
double stats_median(const double *x, size_t count);
/* 95 % half-width of the mean, from the means of `batches` equal blocks (>= 2; 0 means 20) and Student's
 * t. Infinity if count < 2 * batches. */
double stats_batch_half_width(const double *x, size_t count, unsigned batches);
/* Distribution-free 95 % interval of the median from order statistics. For count < 6, it is the minimum
 * and the maximum. */
void stats_median_interval(const double *x, size_t count, double *low, double *high);
/* Least-squares slope of y over t. */
double stats_slope(const double *t, const double *y, size_t count);
/* Two-sided 95 % quantile of Student's t. */
double stats_t95(size_t degrees);
#endif
