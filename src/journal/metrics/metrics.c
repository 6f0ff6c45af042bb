/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/metrics/metrics.h"

static const struct metric_row rows[METRIC_COUNT] = {
#define X(symbol_, name_, type_, unit_, alias_, help_)                                                       \
	[METRIC_##symbol_] = {.symbol = #symbol_,                                                            \
			      .name = name_,                                                                 \
			      .unit = unit_,                                                                 \
			      .alias = alias_,                                                               \
			      .help = help_,                                                                 \
			      .type = METRIC_##type_},
	METRICS(X)
#undef X
};

static const double seconds_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
					1,     2.5,    5,     10,   20,	   40,	 80,  160};
static const double tokens_bounds[] = {1,   2,	  5,	10,   20,    50,    100,   200,
				       500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

const struct metric_row *metric_row(enum metric m)
{
	return &rows[m];
}

static const double *bounds_of(enum metric m, size_t *count)
{
	if (!strcmp(rows[m].unit, "tokens")) {
		*count = sizeof(tokens_bounds) / sizeof(tokens_bounds[0]);
		return tokens_bounds;
	}
	*count = sizeof(seconds_bounds) / sizeof(seconds_bounds[0]);
	return seconds_bounds;
}

void metrics_add(struct metrics *m, enum metric which, double amount)
{
	m->value[which] += amount;
}

void metrics_set(struct metrics *m, enum metric which, double value)
{
	m->value[which] = value;
}

void metrics_observe(struct metrics *m, enum metric which, double value)
{
	struct metric_buckets *b = &m->buckets[which];
	size_t count, i = 0;
	const double *bounds = bounds_of(which, &count);

	while (i < count && value > bounds[i])
		i++;
	b->count[i]++;
	b->total++;
	b->sum += value;
}

/* The value of a label: backslash, quote and newline are escaped. */
static void add_label(struct text *out, const char *value)
{
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			text_addf(out, "\\%c", *value);
		else if (*value == '\n')
			text_add(out, "\\n");
		else
			text_add_bytes(out, value, 1);
	}
}

static void write_histogram(struct text *out, const char *name, const struct metrics *m, enum metric which,
			    const char *label)
{
	const struct metric_buckets *b = &m->buckets[which];
	size_t count;
	const double *bounds = bounds_of(which, &count);
	uint64_t below = 0;

	for (size_t i = 0; i < count; i++) {
		below += b->count[i];
		text_addf(out, "%s_bucket{model_name=\"%s\",le=\"%g\"} %llu\n", name, label, bounds[i],
			  (unsigned long long)below);
	}
	text_addf(out, "%s_bucket{model_name=\"%s\",le=\"+Inf\"} %llu\n", name, label,
		  (unsigned long long)b->total);
	text_addf(out, "%s_sum{model_name=\"%s\"} %.9g\n%s_count{model_name=\"%s\"} %llu\n", name, label,
		  b->sum, name, label, (unsigned long long)b->total);
}

static void write_one(struct text *out, const char *name, const struct metrics *m, enum metric which,
		      const char *label)
{
	static const char *const types[] = {"counter", "gauge", "histogram"};

	text_addf(out, "# HELP %s %s (%s)\n# TYPE %s %s\n", name, rows[which].help, rows[which].unit, name,
		  types[rows[which].type]);
	if (rows[which].type == METRIC_HISTOGRAM)
		write_histogram(out, name, m, which, label);
	else
		text_addf(out, "%s{model_name=\"%s\"} %.15g\n", name, label, m->value[which]);
}

void metrics_write(struct text *out, const struct metrics *m, const char *model)
{
	struct text label = {0};

	add_label(&label, model);
	for (int i = 0; i < METRIC_COUNT; i++) {
		write_one(out, rows[i].name, m, (enum metric)i, text_str(&label));
		if (rows[i].alias)
			write_one(out, rows[i].alias, m, (enum metric)i, text_str(&label));
	}
	text_release(&label);
}
