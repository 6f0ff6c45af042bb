/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/kernel_counters.h"
#include <errno.h>

enum kind { SUM, OF_CYCLES, OF_TIME, OF_ACTIVE, OF_L2 };
static const struct {
	const char *name;
	enum kind kind;
} metrics[KERNEL_COUNTER_METRICS] = {
#define X(name, set, kind, ...) {#name, kind},
	COUNTER_METRICS(X)
#undef X
};

const char *kernel_counters_metric_name(enum kernel_counters_metric m)
{
	return metrics[m].name;
}

bool kernel_counters_has(const struct kernel_counters_row *r, enum kernel_counters_metric m)
{
	return r->has >> m & 1;
}

double kernel_counters_dram_bytes(const struct kernel_counters_row *r)
{
	return kernel_counters_has(r, KERNEL_COUNTER_dram_read_bytes) &&
			       kernel_counters_has(r, KERNEL_COUNTER_dram_write_bytes)
		       ? r->value[KERNEL_COUNTER_dram_read_bytes] + r->value[KERNEL_COUNTER_dram_write_bytes]
		       : 0;
}

static int by_name(const void *a_, const void *b_)
{
	const struct timeline_counted *a = *(const struct timeline_counted *const *)a_,
				      *b = *(const struct timeline_counted *const *)b_;

	return (a->name > b->name) - (a->name < b->name);
}

static int by_time(const void *a_, const void *b_)
{
	const struct kernel_counters_row *a = a_, *b = b_;
	double ta = a->value[KERNEL_COUNTER_time_ns], tb = b->value[KERNEL_COUNTER_time_ns];

	if (ta != tb)
		return ta > tb ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* A metric gets a value only if every run has it. */
static void fill_row(struct kernel_counters_row *row, const struct timeline_counted *const *run, size_t count)
{
	double time = 0;

	*row = (struct kernel_counters_row){.name = run[0]->name, .count = count, .has = UINT32_MAX};
	for (size_t i = 0; i < count; i++) {
		row->has &= run[i]->has;
		time += run[i]->value[KERNEL_COUNTER_time_ns];
	}
	for (unsigned m = 0; m < KERNEL_COUNTER_METRICS; m++)
		for (size_t i = 0; i < count; i++) {
			double share =
				time > 0 ? run[i]->value[KERNEL_COUNTER_time_ns] / time : 1 / (double)count;

			row->value[m] += run[i]->value[m] * (metrics[m].kind == SUM ? 1 : share);
		}
}

enum status kernel_counters_of(struct kernel_counters *c, const struct timeline *t, struct error *err)
{
	const struct timeline_counted **run = calloc(t->counteds + 1, sizeof(*run));

	*c = (struct kernel_counters){.row = calloc(t->counteds + 1, sizeof(*c->row))};
	if (!run || !c->row) {
		free(run);
		kernel_counters_release(c);
		return error_errno(err, ENOMEM, "cannot build the table of %zu kernels' counters",
				   t->counteds);
	}
	for (size_t i = 0; i < t->counteds; i++)
		run[i] = &t->counted[i];
	if (t->counteds)
		qsort(run, t->counteds, sizeof(*run), by_name);
	for (size_t i = 0, end; i < t->counteds; i = end) {
		for (end = i + 1; end < t->counteds && run[end]->name == run[i]->name;)
			end++;
		fill_row(&c->row[c->rows++], run + i, end - i);
	}
	if (c->rows)
		qsort(c->row, c->rows, sizeof(*c->row), by_time);
	free(run);
	return STATUS_OK;
}

void kernel_counters_release(struct kernel_counters *c)
{
	free(c->row);
	*c = (struct kernel_counters){0};
}
