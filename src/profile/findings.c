/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings.h"

enum status findings_of(struct findings *f, const struct timeline *t, const struct findings_bounds *bounds,
			struct error *err)
{
	enum status st;

	*f = (struct findings){.t = t};
	if (bounds)
		f->bounds = *bounds;
	st = summary_of(&f->summary, t, err);
	if (!st)
		st = nccl_of(&f->nccl, t, err);
	if (!st)
		st = breakdown_of(&f->breakdown, t, &f->nccl, err);
	if (!st)
		st = copies_of(&f->copies, t, f->bounds.link_rate, err);
	if (!st)
		st = counted_of(&f->counted, t, err);
	if (st)
		findings_release(f);
	return st;
}

void findings_release(struct findings *f)
{
	summary_release(&f->summary);
	nccl_release(&f->nccl);
	breakdown_release(&f->breakdown);
	copies_release(&f->copies);
	counted_release(&f->counted);
	*f = (struct findings){0};
}

double findings_device_s(const struct findings *f)
{
	double ns = 0;

	for (size_t i = 0; i < f->breakdown.devices; i++)
		ns += (double)(f->breakdown.device[i].last_ns - f->breakdown.device[i].first_ns);
	return ns * 1e-9;
}
