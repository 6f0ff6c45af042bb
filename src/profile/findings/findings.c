/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/findings/findings.h"

static enum status part_of(struct findings_part *part, const struct findings *f,
			   const struct windows *windows, struct error *err)
{
	enum status st = summary_of(&part->summary, f->t, windows, err);

	if (!st)
		st = breakdown_of(&part->breakdown, f->t, &f->nccl, windows, err);
	return st ? st : copies_of(&part->copies, f->t, windows, f->bounds.link_rate, err);
}

static enum status find_steady(struct findings *f, struct error *err)
{
	enum status st = steps_of(&f->steps, f->t, &f->nccl, err);

	if (st || !f->steps.steps)
		return st;
	st = part_of(&f->steady, f, steps_steady(&f->steps), err);
	if (!st)
		st = breakdown_of(&f->start_up, f->t, &f->nccl, &f->steps.start_up, err);
	return st ? st : straggler_of(&f->late, f->t, &f->nccl, &f->steps, &f->steady.breakdown, err);
}

enum status findings_of(struct findings *f, const struct timeline *t, const struct findings_bounds *bounds,
			struct error *err)
{
	enum status st;

	*f = (struct findings){.t = t};
	if (bounds)
		f->bounds = *bounds;
	st = nccl_of(&f->nccl, t, err);
	if (!st)
		st = part_of(&f->whole, f, NULL, err);
	if (!st)
		st = find_steady(f, err);
	if (!st)
		st = kernel_counters_of(&f->counted, t, err);
	if (st)
		findings_release(f);
	return st;
}

static void part_release(struct findings_part *part)
{
	summary_release(&part->summary);
	breakdown_release(&part->breakdown);
	copies_release(&part->copies);
}

void findings_release(struct findings *f)
{
	part_release(&f->whole);
	part_release(&f->steady);
	breakdown_release(&f->start_up);
	steps_release(&f->steps);
	nccl_release(&f->nccl);
	kernel_counters_release(&f->counted);
	*f = (struct findings){0};
}

const struct findings_part *findings_main(const struct findings *f)
{
	return f->steps.steps ? &f->steady : &f->whole;
}

double findings_device_s(const struct findings_part *part)
{
	double ns = 0;

	for (size_t i = 0; i < part->breakdown.devices; i++)
		ns += (double)part->breakdown.device[i].span_ns;
	return ns * 1e-9;
}
