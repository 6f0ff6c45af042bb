/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "counter/counter.h"

const struct counter_row counter_rows[COUNTER_METRIC_COUNT] = {
#define X(name, set, kind, metric, factor, unit, meaning)                                                    \
	{#name, metric, unit, meaning, factor, COUNTER_##set, COUNTER_##kind},
	COUNTER_METRICS(X)
#undef X
};

const struct counter_row counter_sampled_rows[COUNTER_SAMPLED_COUNT] = {
#define X(name, metric, factor, unit, meaning) {#name, metric, unit, meaning, factor, 0, COUNTER_SHARE},
	COUNTER_SAMPLED(X)
#undef X
};

const char *counter_tensor_metric(const char *type)
{
	static const struct {
		const char *type, *metric;
	} rows[] = {
#define X(type, metric) {#type, metric},
		COUNTER_TENSOR_TYPES(X)
#undef X
	};

	for (size_t i = 0; type && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(type, rows[i].type))
			return rows[i].metric;
	return NULL;
}
