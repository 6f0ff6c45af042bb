/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between machines, or on one machine over time. */
#include "judge/compare.h"
#include "judge/context.h"
#include "core/text.h"
#include "judge/expect.h"
#include "judge/inventory.h"

enum { DIFFERENCES_MAX = 200 };

struct into {
	struct comparison *out;
	const char *run;
};

static enum status differ(void *arg, const char *path, const json_t *a, const json_t *b, struct error *err)
{
	struct comparison *out = ((struct into *)arg)->out;
	struct compare_difference *d;

	if (out->difference_count == DIFFERENCES_MAX)
		return STATUS_OK;
	d = expect_grow(out->difference, out->difference_count, sizeof(*d), err);
	if (!d)
		return STATUS_NO_RESOURCE;
	out->difference = d;
	d += out->difference_count++;
	text_copy(d->path, sizeof(d->path), path);
	inventory_leaf(a, d->before, sizeof(d->before));
	inventory_leaf(b, d->after, sizeof(d->after));
	d->run = ((struct into *)arg)->run;
	return STATUS_OK;
}

enum status compare_inventory(struct comparison *out, const struct compare_run *runs, size_t count,
			      struct error *err)
{
	enum status status = STATUS_OK;
	const json_t *first, *other;
	size_t i;

	first = context_facts(runs[0].record);
	for (i = 1; i < count && !status; i++) {
		other = context_facts(runs[i].record);
		if (first && other)
			status = inventory_walk("", first, other, differ, &(struct into){out, runs[i].name},
						err);
	}
	return status;
}
