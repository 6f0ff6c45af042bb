/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensor parallel training (docs/explanation/design/tensor_parallel.md): which part of each tensor a rank
 * holds, and the collectives between the parts of a layer. Two layouts of activations: `own rows` of all
 * columns (residuals, norms), and all rows of `own columns` (heads, features of the MLP).
 */
#ifndef MODEL_DECODER_SPLIT_H
#define MODEL_DECODER_SPLIT_H
#include "model/backend/comm.h"
#include "model/backend/ops.h"
#include "model/params.h"
#include "model/shape/shape.h"

enum {
	SPLIT_MOST = 64,
	SPLIT_CHUNKS = 4,
	SPLIT_COLUMNS = 4 /* columns that share a call of dropout's random numbers */
};

struct split {
	unsigned rank, ranks; /* ranks 0 or 1: nothing is split */
	struct comm *comm;    /* of the ranks that share the model; lent; NULL: a plan of memory alone */
	int chunks;	      /* of columns in which partial sums travel; 0: by their size */
	size_t border[SPLIT_CHUNKS][SPLIT_MOST + 1];
};

static inline bool split_is(const struct split *s)
{
	return s && s->ranks > 1;
}

/* BAD_INPUT: the shape cannot be divided among so many ranks. The message has the numbers that can. */
enum status split_check(const struct shape *whole, unsigned ranks, struct error *err);
/* The part of a shape that each rank computes: its heads and features. `vocab` is rounded up, so that tables
 * of parameters are equal on all ranks; the last rank's rows beyond the vocabulary are 0 and stay 0. */
struct shape split_shape(const struct shape *whole, unsigned ranks);

struct split_range {
	int64_t begin, count;
};
/* The rank's own rows of `rows`. */
struct split_range split_rows(const struct split *s, int64_t rows);
/* The rank's own ids of a vocabulary; at least one. */
struct split_range split_vocabulary(const struct split *s, int64_t vocab);

/* What a rank holds of a tensor, by its name in the table of parameters or in files. */
struct split_part {
	int64_t row, rows, col, cols; /* its place in the whole tensor, which has sizes all_rows, all_cols */
	int64_t all_rows, all_cols;
	unsigned sharers; /* ranks that hold the same part: all of a copied tensor */
	bool first;	  /* this rank is the first of them */
};
/* `rows`, `cols`: of the whole tensor. */
struct split_part split_part_of(const struct split *s, const struct shape *whole, const char *name,
				int64_t rows, int64_t cols);

/* Each rank has written its own rows of `all`, which is packed but for a tail: gives all rows to all. */
enum status split_gather(struct split *s, struct mat all, struct error *err);
/* `all` [rows, cols] without a tail, in the layout of all rows, is a partial sum. The own rows become the
 * sum; the other rows are undefined. */
enum status split_sum(struct split *s, struct mat all, struct error *err);
/* The same in two calls, between which the device has other work: begins the sum of chunk number `chunk`, and
 * waits for all that have begun. */
enum status split_sum_begin(struct split *s, struct mat all, int chunk, struct error *err);
enum status split_wait(struct split *s, struct error *err);
/* Columns of a chunk of partial sums with so many columns; the last one may have fewer. */
int64_t split_chunk(const struct split *s, int64_t cols);

/* The own part of a tensor of random numbers, which are those of the whole one. */
enum status split_random(struct backend *back, struct mat to, const struct random_fill *whole,
			 const struct split_part *part, struct error *err);

struct model;
/* Elements of the room in which gradients of shared tensors are added, for model_place. */
size_t split_room(const struct model *m);
/* After the last backward pass of a step: adds the gradients of tensors that several ranks hold. */
enum status split_sum_gradient(struct model *m, struct backend *back, struct error *err);
#endif
