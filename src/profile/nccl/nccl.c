/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/nccl/nccl.h"
#include <errno.h>
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

enum status nccl_of(struct nccl *n, const struct timeline *t, struct error *err)
{
	*n = (struct nccl){0};
	if (!nccl_join(n, t) || !nccl_pair(n, t) || !nccl_tabulate(n)) {
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
