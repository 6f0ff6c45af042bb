/* SPDX-License-Identifier: Apache-2.0 */
/* Communication of a plan: counts, and the time of a ring over the slowest link on its way. */
#include <errno.h>
#include <stdlib.h>
#include "model/tensor/dtype.h"
#include "train/mesh/comm_open.h"

struct comm_plan {
	struct comm comm;
	struct comm_links links;
};

/* The rate at which one rank's data passes the slowest link; 0: unknown. The ring leaves each node once,
 * through all of its ports. */
static double slowest(const struct comm_links *l)
{
	const bool within = l->local > 1, between = l->nodes > 1;

	if ((within && !(l->link > 0)) || (between && !(l->network > 0)))
		return 0;
	if (!within || !between)
		return within ? l->link : l->network;
	return l->link < l->network ? l->link : l->network;
}

/* `passes`: share of the bytes that passes each link. */
static enum status count(struct comm *c, const struct mat *x, enum dtype type, double passes)
{
	struct comm_plan *p = (struct comm_plan *)c;
	const double bytes = (double)dtype_bytes(type, (uint64_t)(x->rows * x->cols)),
		     rate = slowest(&p->links);

	c->count.calls++;
	c->count.bytes += bytes;
	if (rate > 0)
		c->count.planned_s += passes * bytes / rate;
	return STATUS_OK;
}

/* Only numbers in F32 are rounded on their way. */
static enum dtype travels(const struct comm *c, const struct mat *x)
{
	return x->dtype == DTYPE_F32 ? c->travels : x->dtype;
}

static enum status plan_all_reduce(struct comm *c, struct mat x, struct error *err)
{
	(void)err;
	return count(c, &x, travels(c, &x), 2 * (double)(c->size - 1) / c->size);
}

/* A range passes all links of the ring but the one that leads away from its rank, or to it. */
static enum status count_ranges(struct comm *c, const struct mat *x, const size_t *border, enum dtype type)
{
	size_t least = (size_t)x->cols;

	for (unsigned r = 0; r < c->size; r++)
		least = border[r + 1] - border[r] < least ? border[r + 1] - border[r] : least;
	return count(c, x, type, x->cols ? 1 - (double)least / (double)x->cols : 0);
}

static enum status plan_reduce_scatter(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	(void)err;
	return count_ranges(c, &x, border, travels(c, &x));
}

static enum status plan_all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	(void)err;
	return count_ranges(c, &x, border, x.dtype);
}

static enum status plan_broadcast(struct comm *c, struct mat x, struct error *err)
{
	(void)err;
	return count(c, &x, x.dtype, 1);
}

static enum status plan_wait(struct comm *c, struct error *err)
{
	(void)c, (void)err;
	return STATUS_OK;
}

/* Host numbers are few; a plan has none of other ranks. */
static enum status plan_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	(void)err;
	for (unsigned r = 0; r < c->size; r++)
		memcpy((char *)all + r * size, mine, size);
	return STATUS_OK;
}

static enum status plan_share(struct comm *c, void *bytes, size_t size, struct error *err)
{
	(void)c, (void)bytes, (void)size, (void)err;
	return STATUS_OK;
}

static void plan_close(struct comm *c)
{
	free(c);
}

static const struct comm_ops plan_ops = {
	.name = "plan",
	.all_reduce = plan_all_reduce,
	.reduce_scatter = plan_reduce_scatter,
	.all_gather = plan_all_gather,
	.broadcast = plan_broadcast,
	.wait = plan_wait,
	.gather = plan_gather,
	.share = plan_share,
	.close = plan_close,
};

enum status comm_plan_open(struct comm **out, const struct comm_links *links, struct error *err)
{
	struct comm_plan *p = calloc(1, sizeof(*p));

	*out = p ? &p->comm : NULL;
	if (!p)
		return error_errno(err, ENOMEM, "the plan of communication");
	p->comm = (struct comm){.ops = &plan_ops, .size = links->local * links->nodes};
	p->links = *links;
	return STATUS_OK;
}
