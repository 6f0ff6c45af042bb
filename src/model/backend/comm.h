/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Communication between the ranks of a training run or a server: one table of operations with three back
 * ends (docs/explanation/design/mesh.md). It stands beside ops.h: layers know neither. All ranks call the
 * same operations in the same order, with the same sizes.
 *
 * all_reduce, reduce_scatter, all_gather and broadcast begin after all work that the back end has enqueued,
 * and return at once. Their matrix may be neither read nor written until `wait`. The other operations take
 * host memory and return when they are done. A rank that never comes lets the others wait without a limit:
 * its supervisor ends them.
 *
 * Ranges: `border` has an ascending number of elements for each rank that divides x, and one more, from 0 to
 * x.cols. It is lent until `wait`. Elements [border[r], border[r + 1]) of x belong to rank r. They may be
 * none.
 */
#ifndef MODEL_BACKEND_COMM_H
#define MODEL_BACKEND_COMM_H
#include "core/error.h"
#include "model/tensor/tensor.h"

#define COMM_PART_ONCE UINT64_MAX
enum { COMM_GATHER_MAX = 1 << 16 }; /* bytes of one rank in a gather */

struct comm_count {	     /* sums since the caller last cleared them */
	double calls, bytes; /* bytes: in the type that travels; not what passes links */
	double wait_s;	     /* time in which the caller waited */
	double planned_s;    /* of a plan: time that the operations take; 0: the links are unknown */
};

struct comm;
struct comm_ops {
	const char *name;
	/* Sum over the ranks, in place; x [1, n] is F32, or on a GPU also BF16. All ranks get the same bits.
	 * comm->travels BF16: what each rank sends is rounded, and the sum too. */
	enum status (*all_reduce)(struct comm *, struct mat x, struct error *);
	/* The sum over the ranks of each range to its rank, in place, with the bits of all_reduce; types as
	 * there. The other elements are undefined afterwards. */
	enum status (*reduce_scatter)(struct comm *, struct mat x, const size_t *border, struct error *);
	/* The ranges of all ranks to all, in place; x [1, n] is of any type of whole bytes. */
	enum status (*all_gather)(struct comm *, struct mat x, const size_t *border, struct error *);
	/* Rank 0's numbers to all; x [1, n] is F32. */
	enum status (*broadcast)(struct comm *, struct mat x, struct error *);
	/* Work enqueued from now on sees the results of all operations begun so far. */
	enum status (*wait)(struct comm *, struct error *);
	/* The bytes of all ranks to all, by rank: `all` has size times comm->size bytes. */
	enum status (*gather)(struct comm *, const void *mine, size_t size, void *all, struct error *);
	/* See comm_collect. NULL: gathers do the same. */
	enum status (*collect)(struct comm *, const void *mine, void *all, const size_t *border,
			       struct error *);
	/* Rank 0's bytes to all; `size` is equal on all. */
	enum status (*share)(struct comm *, void *bytes, size_t size, struct error *);
	/* See comm_part. NULL: nothing is compared. */
	enum status (*part)(struct comm *, const char *name, uint64_t number, uint64_t shape, struct error *);
	/* Ends communication; all ranks call it, after which *comm is gone. */
	void (*close)(struct comm *);
};

struct comm {
	const struct comm_ops *ops;
	unsigned rank, size;
	enum dtype travels; /* type of the numbers of a sum between the ranks: F32 or BF16 */
	int64_t layer; /* for the flight record of the next collective: its lowest layer; -1: all of them */
	char library[128]; /* "Open MPI v4.1.4", "NCCL 2.28.9" */
	struct comm_count count;
	/* The ranks of a shard group (train/mesh/comm_hybrid.h), whose ranges `border` has; NULL: all. Lent.
	 */
	struct comm *shards;
};

/* Brings ranges of bytes in host memory to rank 0. border: [size + 1], in bytes. mine: the rank's own range;
 * all: on rank 0, room for border[size] bytes, else NULL. */
enum status comm_collect(struct comm *c, const void *mine, void *all, const size_t *border,
			 struct error *err);
/*
 * All operations until the next call belong to part `name` of the run ("step"), number `number`. A back end
 * compares the operations of a part between the ranks before it enters them: BUG names the rank that differs.
 * Parts with equal `name` and `shape` have the same operations, so that a comparison is needed only once;
 * COMM_PART_ONCE: each operation is compared. comm NULL: does nothing.
 */
enum status comm_part(struct comm *c, const char *name, uint64_t number, uint64_t shape, struct error *err);
/* Sums of host numbers over the ranks, in place, added in the order of ranks. comm NULL: one rank. */
enum status comm_sum(struct comm *c, double *values, size_t count, struct error *err);
/* The same, and `each` numbers of every rank to all, by rank: `all` has comm->size * each numbers. One
 * operation if all fits into COMM_GATHER_MAX. comm NULL: `all` gets `mine`. */
enum status comm_sum_each(struct comm *c, double *values, size_t count, const double *mine, size_t each,
			  double *all, struct error *err);
/* The ranks that divide a vector: those of the shard group, or all. */
struct comm *comm_shards(struct comm *c);
/* The worst status of all ranks, so that all go on or none: *err then names its rank. comm NULL: `mine`. */
enum status comm_agree(struct comm *c, enum status mine, struct error *err);
#endif
