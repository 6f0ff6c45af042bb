/* SPDX-License-Identifier: Apache-2.0 */
#include "load/client/times.h"
#include <math.h>

static const double first_s = 1e-6, width = 1.05, log_width = 0.04879016416943200;

void load_times_add(struct load_times *t, uint64_t ns)
{
	const double place = log(((double)ns * 1e-9) / first_s) / log_width;
	const int last = LOAD_TIMES_BUCKETS - 1;

	t->bucket[!(place > 0) ? 0 : place > last ? last : (int)place]++;
	t->count++;
}

void load_times_merge(struct load_times *to, const struct load_times *from)
{
	for (int i = 0; i < LOAD_TIMES_BUCKETS; i++)
		to->bucket[i] += from->bucket[i];
	to->count += from->count;
}

double load_times_quantile(const struct load_times *t, double share)
{
	uint64_t before = 0;

	for (int i = 0; i < LOAD_TIMES_BUCKETS && t->count; i++) {
		before += t->bucket[i];
		if ((double)before >= share * (double)t->count)
			return first_s * pow(width, i + 0.5);
	}
	return (double)NAN;
}
