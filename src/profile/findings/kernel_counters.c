/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/kernel_counters.h"
#include <errno.h>

enum kind { SUM, OF_CYCLES, OF_TIME, OF_ACTIVE, OF_L2 };
static const struct {
	const char *name;
	enum kind kind;
} metrics[COUNTED_METRICS] = {
#define X(name, set, kind, ...) {#name, kind},
	COUNTER_METRICS(X)
#undef X
};

const char *counted_metric_name(enum counted_metric m)
{
	return metrics[m].name;
}

bool counted_has(const struct counted_row *r, enum counted_metric m)
{
	return r->has >> m & 1;
}

double counted_dram_bytes(const struct counted_row *r)
{
	return counted_has(r, COUNTED_dram_read_bytes) && counted_has(r, COUNTED_dram_write_bytes)
		       ? r->value[COUNTED_dram_read_bytes] + r->value[COUNTED_dram_write_bytes]
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
	const struct counted_row *a = a_, *b = b_;
	double ta = a->value[COUNTED_time_ns], tb = b->value[COUNTED_time_ns];

	if (ta != tb)
		return ta > tb ? -1 : 1;
	return (a->name > b->name) - (a->name < b->name);
}

/* What all of the runs have. */
static void fill_row(struct counted_row *row, const struct timeline_counted *const *run, size_t count)
{
	double time = 0;

	*row = (struct counted_row){.name = run[0]->name, .count = count, .has = UINT32_MAX};
	for (size_t i = 0; i < count; i++) {
		row->has &= run[i]->has;
		time += run[i]->value[COUNTED_time_ns];
	}
	for (unsigned m = 0; m < COUNTED_METRICS; m++)
		for (size_t i = 0; i < count; i++) {
			double share = time > 0 ? run[i]->value[COUNTED_time_ns] / time : 1 / (double)count;

			row->value[m] += run[i]->value[m] * (metrics[m].kind == SUM ? 1 : share);
		}
}

enum status counted_of(struct counted *c, const struct timeline *t, struct error *err)
{
	const struct timeline_counted **run = calloc(t->counteds + 1, sizeof(*run));

	*c = (struct counted){.row = calloc(t->counteds + 1, sizeof(*c->row))};
	if (!run || !c->row) {
		free(run);
		counted_release(c);
		return error_errno(err, ENOMEM, "the counters of %zu kernels", t->counteds);
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

void counted_release(struct counted *c)
{
	free(c->row);
	*c = (struct counted){0};
}
