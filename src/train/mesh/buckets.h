/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts of the gradient in the order in which a backward pass completes them, from the last layer to the
 * first. The sum of a part over the ranks begins as soon as it is complete, beside the rest of the pass. The
 * parts are the same on all ranks, also on one that computes nothing in a step. If ranks divide the vector,
 * each gets the sum of its range alone.
 */
#ifndef TRAIN_MESH_BUCKETS_H
#define TRAIN_MESH_BUCKETS_H
#include "model/backend/comm.h"
#include "model/params.h"

struct bucket {
	size_t first, last;   /* elements [first, last) of the flat vector */
	int64_t layer;	      /* complete when its backward pass has run; -1: when the whole pass has */
	const size_t *border; /* if ranks divide the vector: their ranges in this part; else NULL */
};
struct buckets {
	struct bucket *list;
	size_t count, begun; /* begun: number of buckets whose sum has begun in this step */
	size_t *borders;     /* owned memory of those of the buckets */
};

/* Cuts the flat vector of `p` into parts of at least `bytes`, at the first parameters of layers. Owner:
 * caller, buckets_release. */
enum status buckets_make(struct buckets *b, const struct params *p, int64_t layers, double bytes,
			 struct error *err);
void buckets_release(struct buckets *b);
/* Begins the sums that are complete once the backward pass of `layer` has run; layer -1: all that remain. */
enum status buckets_sum(struct buckets *b, struct comm *c, const struct mat *grad, int64_t layer,
			struct error *err);
#endif
