/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Percentiles with a distribution-free 95 % interval from order statistics. Requests that share a queue have
 * similar latencies, so the interval counts fewer samples than there are. docs/explanation/methods/load.md,
 * "Percentiles".
 */
#ifndef LOAD_MEASURE_PERCENTILE_H
#define LOAD_MEASURE_PERCENTILE_H
#include <stdbool.h>
#include <stddef.h>

struct load_percentile {
	double value, low, high;
	bool known; /* the interval lies within the sample */
};
/* `x` has the order of the schedule, `sorted` is ascending, both of `count`. share: 0 < share < 1. */
struct load_percentile load_percentile_of(const double *x, const double *sorted, size_t count, double share);
/*
 * Ranks, from 1, of the samples that are the ends of the interval, if `count` samples are worth `worth`
 * independent ones (1 .. count). *low 0 or *high > count: that end lies outside the sample.
 */
void load_percentile_ranks(size_t count, size_t worth, double share, size_t *low, size_t *high);
/*
 * How many times larger the variance of the share of x <= limit is than that of independent samples, by
 * batch means; at least 1. 1 for fewer than LOAD_BATCHED_LEAST samples.
 */
enum { LOAD_BATCHED_LEAST = 40 };
double load_share_inflation(const double *x, size_t count, double limit);
/* 95 % interval of a share of `count` samples that are worth `worth` (Wilson's). */
void load_share_interval(double share, double worth, double *low, double *high);
#endif
