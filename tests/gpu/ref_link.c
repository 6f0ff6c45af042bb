/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/memory/link.cu, and the kernels that leave nothing behind. */
#include "kernel/timing/empty.h"
#include "kernel/memory/link.h"
#include "ref.h"
#include <stddef.h>

static void copy(const char *entry, struct ref_grid grid, const void *args)
{
	const struct link_args *a = args;

	(void)entry, (void)grid;
	memcpy((void *)(uintptr_t)a->to, (const void *)(uintptr_t)a->from, a->count * 16);
}

static void hop(const char *entry, struct ref_grid grid, const void *args)
{
	const struct flag_args *a = args;
	uint64_t *at = (uint64_t *)(uintptr_t)a->at;

	(void)entry, (void)grid;
	for (uint64_t i = 0; i < a->hops; i++)
		*at = ((const uint64_t *)(uintptr_t)a->next)[*at];
}

static void nothing(const char *entry, struct ref_grid grid, const void *args)
{
	(void)entry, (void)grid, (void)args;
}

const struct ref_row ref_link[] = {
	{"link_v1", copy, sizeof(struct link_args), offsetof(struct link_args, to)},
	{"link_v2", copy, sizeof(struct link_args), offsetof(struct link_args, to)},
	{"link_hop", hop, sizeof(struct flag_args), REF_NO_OUT},
	{"empty", nothing, sizeof(struct empty_args), REF_NO_OUT},
	{NULL, NULL, 0, 0},
};
