/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>
#include "counter/counter.h"

const struct counter_row counter_rows[COUNTER_METRIC_COUNT] = {
#define X(name, set, kind, metric, factor, unit, meaning)                                                    \
	{#name, metric, unit, meaning, factor, COUNTER_##set, COUNTER_##kind},
	COUNTER_METRICS(X)
#undef X
};

const struct counter_row counter_sampled_rows[COUNTER_SAMPLED_COUNT] = {
#define X(name, metric, factor, unit, meaning) {#name, metric, unit, meaning, factor, 0, COUNTER_OF_TIME},
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

static double sum(const struct counter_values *v, enum counter_metric m)
{
	return v->has[m] ? v->value[m] : NAN;
}

/* The quantity that a share or rate refers to; 1 for a sum. */
static double over(const struct counter_values *v, enum counter_kind kind)
{
	double cycles = sum(v, COUNTER_METRIC_sm_cycles);

	switch (kind) {
	case COUNTER_OF_CYCLES:
		return cycles;
	case COUNTER_OF_TIME:
		return sum(v, COUNTER_METRIC_time_ns);
	case COUNTER_OF_ACTIVE:
		return cycles * sum(v, COUNTER_METRIC_sm_active_share);
	case COUNTER_OF_L2:
		return sum(v, COUNTER_METRIC_l2_bytes);
	case COUNTER_SUM:
		break;
	}
	return 1;
}

struct counter_values counter_beyond(const struct counter_values *whole, const struct counter_values *part)
{
	struct counter_values out = {0};

	for (unsigned i = 0; i < COUNTER_METRIC_COUNT; i++) {
		enum counter_kind kind = counter_rows[i].kind;
		double w = over(whole, kind), p = over(part, kind);
		double value = sum(whole, i) * w - sum(part, i) * p;

		if (kind != COUNTER_SUM)
			value /= w - p;
		out.has[i] = isfinite(value) && value >= 0;
		out.value[i] = out.has[i] ? value : 0;
	}
	return out;
}
