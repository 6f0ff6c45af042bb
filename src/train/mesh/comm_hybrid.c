/* SPDX-License-Identifier: Apache-2.0 */
#include "train/mesh/comm_hybrid.h"
#include <errno.h>
#include <stdlib.h>
#include "model/tensor/dtype.h"

enum { ALL, SHARDS, COPIES, PARTS };
struct comm_hybrid {
	struct comm comm;
	struct comm *part[PARTS];
};

static struct comm_hybrid *hybrid_of(struct comm *c)
{
	return (struct comm_hybrid *)c;
}

/* The ranks of an operation, with the settings of the caller. */
static struct comm *part_of(struct comm *c, int which)
{
	struct comm *part = hybrid_of(c)->part[which];

	part->travels = c->travels;
	part->layer = c->layer;
	return part;
}

/* Moves the counts of the parts to the caller's. */
static enum status counted(struct comm *c, enum status st)
{
	for (int i = 0; i < PARTS; i++) {
		struct comm_count *from = &hybrid_of(c)->part[i]->count;

		c->count.calls += from->calls;
		c->count.bytes += from->bytes;
		c->count.wait_s += from->wait_s;
		c->count.planned_s += from->planned_s;
		*from = (struct comm_count){0};
	}
	return st;
}

static enum status hybrid_all_reduce(struct comm *c, struct mat x, struct error *err)
{
	struct comm *all = part_of(c, ALL);

	return counted(c, all->ops->all_reduce(all, x, err));
}

/* All ranks make both operations, also those whose range is empty. */
static enum status hybrid_reduce_scatter(struct comm *c, struct mat x, const size_t *border,
					 struct error *err)
{
	struct comm *shards = part_of(c, SHARDS), *copies = part_of(c, COPIES);
	const size_t first = border[shards->rank], count = border[shards->rank + 1] - first;
	struct mat own = x;
	enum status st = shards->ops->reduce_scatter(shards, x, border, err);

	own.cols = own.ld = (int64_t)count;
	if (x.data) /* NULL while planning */
		own.data = (char *)x.data + dtype_bytes(x.dtype, first);
	if (!st)
		st = copies->ops->all_reduce(copies, own, err);
	return counted(c, st);
}

static enum status hybrid_all_gather(struct comm *c, struct mat x, const size_t *border, struct error *err)
{
	struct comm *shards = part_of(c, SHARDS);

	return counted(c, shards->ops->all_gather(shards, x, border, err));
}

static enum status hybrid_broadcast(struct comm *c, struct mat x, struct error *err)
{
	struct comm *all = part_of(c, ALL);

	return counted(c, all->ops->broadcast(all, x, err));
}

static enum status hybrid_wait(struct comm *c, struct error *err)
{
	struct comm *all = part_of(c, ALL);

	return counted(c, all->ops->wait(all, err));
}

static enum status hybrid_gather(struct comm *c, const void *mine, size_t size, void *all, struct error *err)
{
	struct comm *ranks = part_of(c, ALL);

	return counted(c, ranks->ops->gather(ranks, mine, size, all, err));
}

static enum status hybrid_share(struct comm *c, void *bytes, size_t size, struct error *err)
{
	struct comm *all = part_of(c, ALL);

	return counted(c, all->ops->share(all, bytes, size, err));
}

static enum status hybrid_part(struct comm *c, const char *name, uint64_t number, uint64_t shape,
			       struct error *err)
{
	return counted(c, comm_part(part_of(c, ALL), name, number, shape, err));
}

static void hybrid_close(struct comm *c)
{
	struct comm_hybrid *h = hybrid_of(c);

	for (int i = PARTS - 1; i >= 0; i--)
		if (h->part[i])
			h->part[i]->ops->close(h->part[i]);
	free(h);
}

static const struct comm_ops hybrid_ops = {
	.name = "hybrid",
	.all_reduce = hybrid_all_reduce,
	.reduce_scatter = hybrid_reduce_scatter,
	.all_gather = hybrid_all_gather,
	.broadcast = hybrid_broadcast,
	.wait = hybrid_wait,
	.gather = hybrid_gather,
	.share = hybrid_share,
	.part = hybrid_part,
	.close = hybrid_close,
};

enum status comm_hybrid_open(struct comm **out, struct comm *all, struct comm *shards, struct comm *copies,
			     struct error *err)
{
	struct comm_hybrid *h = calloc(1, sizeof(*h));

	*out = h ? &h->comm : NULL;
	if (!h) {
		copies->ops->close(copies);
		shards->ops->close(shards);
		all->ops->close(all);
		return error_errno(err, ENOMEM, "the communication of shard groups");
	}
	h->comm = *all;
	h->comm.ops = &hybrid_ops;
	h->comm.shards = shards;
	h->part[ALL] = all;
	h->part[SHARDS] = shards;
	h->part[COPIES] = copies;
	return STATUS_OK;
}
