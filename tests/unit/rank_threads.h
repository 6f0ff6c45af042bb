/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranks that are threads of a test: a back end of model/backend/comm.h in their common memory, which adds in
 * the order of ranks. All work is done by `wait`, so a caller that reads or writes a matrix too early gets
 * wrong numbers. A fault may be planted in the collectives of one rank.
 */
#ifndef UNIT_RANK_THREADS_H
#define UNIT_RANK_THREADS_H
#include <pthread.h>
#include <stdlib.h>
#include "model/backend/comm.h"
#include "model/tensor/dtype.h"

enum { RANK_THREADS_MOST = 8, RANK_PENDING = 16 };
enum rank_collective { RANK_ALL_REDUCE, RANK_REDUCE_SCATTER, RANK_ALL_GATHER, RANK_GATHER, RANK_COLLECTIVES };

struct rank_threads {
	unsigned size;
	pthread_barrier_t barrier;
	struct mat x[RANK_THREADS_MOST]; /* what each rank gives */
	const void *mine[RANK_THREADS_MOST];
	struct rank_thread {
		struct comm comm;
		struct rank_threads *all;
		unsigned count[RANK_COLLECTIVES];
		struct rank_pending {
			enum rank_collective kind;
			struct mat x;
			const size_t *border;
		} pending[RANK_PENDING];
		unsigned pendings;
	} rank[RANK_THREADS_MOST];
	/* Planted: in call number `fault_at` of this kind, rank `fault_rank` gives zeros. fault_kind
	 * RANK_COLLECTIVES: none. */
	enum rank_collective fault_kind;
	unsigned fault_rank, fault_at;
};

static inline struct rank_thread *rank_thread_of(struct comm *c)
{
	return (struct rank_thread *)c;
}

static inline void rank_meet(struct rank_threads *t)
{
	pthread_barrier_wait(&t->barrier);
}

static inline double rank_number(const struct mat *x, size_t i)
{
	return x->dtype == DTYPE_F64 ? ((const double *)x->data)[i] : (double)((const float *)x->data)[i];
}

static inline void rank_put(const struct mat *x, size_t i, double value)
{
	if (x->dtype == DTYPE_F64)
		((double *)x->data)[i] = value;
	else
		((float *)x->data)[i] = (float)value;
}

/* Begins a collective; [first, last): the elements that this rank gives. */
static inline void rank_begin(struct rank_thread *r, enum rank_collective kind, struct mat x, size_t first,
			      size_t last)
{
	struct rank_threads *t = r->all;

	if (t->fault_kind == kind && t->fault_rank == r->comm.rank && t->fault_at == r->count[kind])
		for (size_t i = first; i < last; i++)
			rank_put(&x, i, 0);
	r->count[kind]++;
	r->comm.count.calls++;
	r->comm.count.bytes += (double)dtype_bytes(x.dtype, (uint64_t)x.cols);
	t->x[r->comm.rank] = x;
	rank_meet(t);
}

static inline enum status rank_sum(struct rank_thread *r, enum rank_collective kind, struct mat x,
				   const size_t *border, struct error *err)
{
	struct rank_threads *t = r->all;
	const size_t first = border ? border[r->comm.rank] : 0;
	const size_t last = border ? border[r->comm.rank + 1] : (size_t)x.cols;
	double *sums = calloc(last - first + 1, sizeof(*sums));

	if (!sums)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a test");
	rank_begin(r, kind, x, 0, (size_t)x.cols);
	for (size_t i = first; i < last; i++)
		for (unsigned other = 0; other < t->size; other++)
			sums[i - first] += rank_number(&t->x[other], i);
	rank_meet(t);
	for (size_t i = first; i < last; i++)
		rank_put(&x, i, sums[i - first]);
	free(sums);
	rank_meet(t);
	return STATUS_OK;
}

static inline enum status rank_ask(struct comm *c, enum rank_collective kind, struct mat x,
				   const size_t *border, struct error *err)
{
	struct rank_thread *r = rank_thread_of(c);

	if (r->pendings == RANK_PENDING)
		return error_set(err, STATUS_BUG, "more than %d collectives without a wait", RANK_PENDING);
	r->pending[r->pendings++] = (struct rank_pending){kind, x, border};
	return STATUS_OK;
}

static inline enum status rank_all_reduce(struct comm *c, struct mat x, struct error *err)
{
	return rank_ask(c, RANK_ALL_REDUCE, x, NULL, err);
}

static inline enum status rank_reduce_scatter(struct comm *c, struct mat x, const size_t *border,
					      struct error *err)
{
	return rank_ask(c, RANK_REDUCE_SCATTER, x, border, err);
}

static inline enum status rank_all_gather(struct comm *c, struct mat x, const size_t *border,
					  struct error *err)
{
	return rank_ask(c, RANK_ALL_GATHER, x, border, err);
}

static inline void rank_collect(struct rank_thread *r, struct mat x, const size_t *border)
{
	struct rank_threads *t = r->all;
	const unsigned rank = r->comm.rank;

	rank_begin(r, RANK_ALL_GATHER, x, border[rank], border[rank + 1]);
	for (unsigned other = 0; other < t->size; other++)
		for (size_t i = border[other]; other != rank && i < border[other + 1]; i++)
			rank_put(&x, i, rank_number(&t->x[other], i));
	rank_meet(t);
}

static inline enum status rank_wait(struct comm *c, struct error *err)
{
	struct rank_thread *r = rank_thread_of(c);
	enum status st = STATUS_OK;

	for (unsigned i = 0; i < r->pendings && !st; i++) {
		const struct rank_pending *p = &r->pending[i];

		if (p->kind == RANK_ALL_GATHER)
			rank_collect(r, p->x, p->border);
		else
			st = rank_sum(r, p->kind, p->x, p->border, err);
	}
	r->pendings = 0;
	return st;
}

static inline enum status rank_gather(struct comm *c, const void *mine, size_t size, void *all,
				      struct error *err)
{
	struct rank_thread *r = rank_thread_of(c);
	struct rank_threads *t = r->all;

	(void)err;
	t->mine[c->rank] = mine;
	rank_meet(t);
	for (unsigned other = 0; other < t->size; other++)
		memcpy((char *)all + other * size, t->mine[other], size);
	rank_meet(t);
	return STATUS_OK;
}

static const struct comm_ops rank_threads_ops = {
	.name = "threads",
	.all_reduce = rank_all_reduce,
	.reduce_scatter = rank_reduce_scatter,
	.all_gather = rank_all_gather,
	.wait = rank_wait,
	.gather = rank_gather,
};

static inline void rank_threads_open(struct rank_threads *t, unsigned size)
{
	*t = (struct rank_threads){.size = size, .fault_kind = RANK_COLLECTIVES};
	pthread_barrier_init(&t->barrier, NULL, size);
	for (unsigned r = 0; r < size; r++)
		t->rank[r] = (struct rank_thread){.comm = {.ops = &rank_threads_ops, .rank = r, .size = size},
						  .all = t};
}

static inline void rank_threads_close(struct rank_threads *t)
{
	pthread_barrier_destroy(&t->barrier);
}
#endif
