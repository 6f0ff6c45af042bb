/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/nccl/nccl.h"
#include <errno.h>
#include "core/math/stats.h"
#include "profile/nccl/internal.h"

static const struct {
	const char *name;
	enum bus_load load;
} operations[] = {
#define X(id, function, name, load, part) [NCCL_##id] = {name, load},
	NCCL_OPERATIONS(X)
#undef X
};

const char *nccl_operation_name(enum nccl_operation op)
{
	return operations[op].name;
}

enum bus_load nccl_operation_load(enum nccl_operation op)
{
	return operations[op].load;
}

bool nccl_is_kernel(const char *name)
{
	return !strncmp(name, "nccl", 4) && strstr(name, "Kernel");
}

static int by_event(const void *a_, const void *b_)
{
	const struct nccl_kernel *a = a_, *b = b_;

	return (a->event > b->event) - (a->event < b->event);
}

const struct nccl_launch *nccl_launch_of(const struct nccl *n, uint32_t event)
{
	struct nccl_kernel sought = {.event = event}, *found = NULL;

	if (n->kernels)
		found = bsearch(&sought, n->kernel, n->kernels, sizeof(*n->kernel), by_event);
	return found ? &n->launch[found->launch] : NULL;
}

static int by_kind(const void *a_, const void *b_, void *arg)
{
	const struct nccl *n = arg;
	const struct nccl_launch *a = &n->launch[*(const uint32_t *)a_],
				 *b = &n->launch[*(const uint32_t *)b_];

	if (a->operation != b->operation)
		return a->operation < b->operation ? -1 : 1;
	if (a->comm != b->comm)
		return a->comm < b->comm ? -1 : 1;
	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	if (a->calls != b->calls)
		return a->calls < b->calls ? -1 : 1;
	return a->graph - b->graph;
}

static int by_total(const void *a_, const void *b_)
{
	const struct nccl_row *a = a_, *b = b_;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	if (a->operation != b->operation)
		return a->operation < b->operation ? -1 : 1;
	return (a->size > b->size) - (a->size < b->size);
}

/* Fills a row from launches of the same kind. `ns`: scratch space for twice as many numbers. */
static void fill_row(struct nccl_row *row, const struct nccl *n, const uint32_t *order, size_t count,
		     double *ns)
{
	const struct nccl_launch *first = &n->launch[order[0]];
	double *fastest = ns + count, link_bytes = 0;

	*row = (struct nccl_row){.comm = first->comm,
				 .size = first->size,
				 .ranks = first->ranks,
				 .calls = first->calls,
				 .operation = first->operation,
				 .graph = first->graph,
				 .count = count};
	for (size_t i = 0; i < count; i++) {
		const struct nccl_launch *l = &n->launch[order[i]];

		ns[i] = (double)(l->end_ns - l->start_ns);
		fastest[i] = (double)l->fastest_ns;
		row->total += ns[i];
		row->waiting += (double)(l->ready_ns - l->start_ns);
		row->paired += l->paired;
		link_bytes += l->link_bytes / (double)count;
	}
	stats_sort(ns, count);
	stats_sort(fastest, count);
	row->mean = row->total / (double)count;
	row->min = ns[0];
	row->p50 = stats_percentile(ns, count, 0.5);
	row->p90 = stats_percentile(ns, count, 0.9);
	row->p99 = stats_percentile(ns, count, 0.99);
	row->max = ns[count - 1];
	row->fastest_p50 = stats_percentile(fastest, count, 0.5);
	if (row->fastest_p50 > 0) {
		row->algorithm_rate = (double)row->size / row->fastest_p50 * 1e9;
		row->bus_rate = link_bytes / row->fastest_p50 * 1e9;
	}
}

/* Fills n->row. false: out of memory. */
static bool tabulate(struct nccl *n)
{
	uint32_t *order = calloc(n->launches + 1, sizeof(*order));
	double *ns = calloc(2 * n->launches + 1, sizeof(*ns));
	size_t rows = 0;

	for (size_t i = 0; order && i < n->launches; i++)
		order[i] = (uint32_t)i;
	if (order && n->launches)
		qsort_r(order, n->launches, sizeof(*order), by_kind, n);
	for (size_t i = 0; order && i < n->launches; i++)
		rows += !i || by_kind(&order[i - 1], &order[i], n);
	n->row = order && ns ? calloc(rows + 1, sizeof(*n->row)) : NULL;
	for (size_t i = 0, end; n->row && i < n->launches; i = end) {
		for (end = i + 1; end < n->launches && !by_kind(&order[i], &order[end], n);)
			end++;
		fill_row(&n->row[n->rows++], n, order + i, end - i, ns);
	}
	free(order);
	free(ns);
	if (n->rows)
		qsort(n->row, n->rows, sizeof(*n->row), by_total);
	return n->row;
}

enum status nccl_of(struct nccl *n, const struct timeline *t, struct error *err)
{
	*n = (struct nccl){0};
	if (!nccl_join(n, t) || !nccl_pair(n, t) || !tabulate(n)) {
		nccl_release(n);
		return error_errno(err, ENOMEM, "cannot find NCCL's operations in %zu events", t->events);
	}
	if (n->kernels)
		qsort(n->kernel, n->kernels, sizeof(*n->kernel), by_event);
	return STATUS_OK;
}

void nccl_release(struct nccl *n)
{
	free(n->launch);
	free(n->kernel);
	free(n->row);
	*n = (struct nccl){0};
}

bool *nccl_paired(const struct nccl *n, const struct timeline *t)
{
	bool *pairs = calloc(t->processes + 1, sizeof(*pairs));

	for (size_t i = 0; pairs && i < n->launches; i++)
		pairs[n->launch[i].process] |= n->launch[i].paired;
	return pairs;
}
