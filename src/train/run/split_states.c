/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States with tensor parallel that rank 0 writes alone (docs/explanation/design/tensor_parallel.md,
 * "Checkpoints"): each rank of the first copy of the model sends its part of each tensor to rank 0, which has
 * the undivided states, and gets it back after a resume. If copies divide the states (ZeRO), each rank of the
 * first shard group sends what its range has of its parts. So a checkpoint does not depend on the number of
 * ranks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "model/tensor/dtype.h"
#include "train/run/internal.h"

enum { PIECE = 4 << 20 }; /* bytes that are shared at once */

/* Elements of a part of a tensor. A part has the rows beyond a vocabulary too, which no file has. */
struct range {
	size_t first, count;
};

/* One tensor of one state. */
struct moved {
	struct split_part part;
	size_t width;	  /* bytes of a number */
	struct range has; /* what this rank has of its part */
	struct mat own;	  /* that, on the device or in host memory */
	bool on_host;
	uint8_t *whole;	 /* rank 0's undivided tensor; NULL on other ranks */
	uint8_t *packed; /* room for the parts of all ranks on rank 0, else for the own one; owned */
	size_t *border;	 /* [ranks + 1], in bytes; owned */
};

static void moved_release(struct moved *v)
{
	free(v->packed);
	free(v->border);
	*v = (struct moved){0};
}

static struct split_part part_of(const struct train *t, unsigned place, int i)
{
	const struct model *m = t->stepper.model;
	const struct param *whole = &m->whole->params.table[i];
	const struct split s = {.rank = place, .ranks = m->split.ranks};

	return split_part_of(&s, &m->whole->shape, whole->name, whole->rows, whole->cols);
}

/* What the rank of place `shard` in its shard group has of its part of tensor i. All ranks that share a copy
 * have equal tables of parameters. */
static struct range range_of(const struct train *t, unsigned shard, int i)
{
	const struct params *p = &t->stepper.model->params;
	const size_t begin = p->table[i].offset, end = begin + (size_t)(p->table[i].rows * p->table[i].cols);
	const size_t from = p->border && p->border[shard] > begin ? p->border[shard] : begin,
		     to = p->border && p->border[shard + 1] < end ? p->border[shard + 1] : end;

	return (struct range){from - begin, from < to ? to - from : 0};
}

/* The bytes that each rank sends: those of the first shard group, and of equal parts the first one's. */
static void put_borders(struct moved *v, const struct train *t, int i)
{
	for (unsigned r = 0; r < t->comm->size; r++) {
		const unsigned shard = r / t->mesh.tensor;
		const bool sends = shard < t->mesh.shard && part_of(t, r % t->mesh.tensor, i).first;

		v->border[r + 1] = v->border[r] + (sends ? range_of(t, shard, i).count * v->width : 0);
	}
}

static enum status moved_make(struct moved *v, struct train *t, int i, enum params_state which,
			      struct error *err)
{
	struct params *local = &t->stepper.model->params, *whole = &t->host_params.params;
	const struct param *own = &local->table[i], *all = &whole->table[i];
	struct mat *state = params_state(local, which), *host = params_state(whole, which);
	const size_t tensor = (size_t)(all->rows * all->cols);

	*v = (struct moved){.part = part_of(t, t->mesh.tensor_rank, i),
			    .width = dtype_bytes(state->dtype, 1),
			    .has = range_of(t, t->mesh.shard_rank, i),
			    .on_host = params_state_offloaded(local, which)};
	if (v->has.count)
		v->own = params_cut(local, state, own->offset + v->has.first, v->has.count);
	if (t->host_params.memory)
		v->whole = (uint8_t *)host->data + all->offset * v->width;
	/* a part has at most as many bytes as the whole, and the rows beyond a vocabulary at most one more
	 * row per rank */
	v->packed = calloc(tensor + (size_t)(t->mesh.tensor * (unsigned)all->cols), v->width);
	v->border = calloc((size_t)t->comm->size + 1, sizeof(*v->border));
	return v->packed && v->border ? STATUS_OK : error_errno(err, ENOMEM, "a part of the states");
}

/* Copies a range of a rank's part between the undivided tensor and `packed`. */
static void copy_range(const struct moved *v, const struct split_part *part, struct range range,
		       uint8_t *packed, bool from_whole)
{
	const size_t cols = (size_t)part->cols, end = range.first + range.count;

	for (size_t at = range.first, n; at < end && at / cols < (size_t)part->rows; at += n) {
		const size_t row = (size_t)part->row + at / cols, col = (size_t)part->col + at % cols;
		uint8_t *whole = v->whole + (row * (size_t)part->all_cols + col) * v->width;
		uint8_t *one = packed + (at - range.first) * v->width;

		n = cols - at % cols < end - at ? cols - at % cols : end - at;
		memcpy(from_whole ? one : whole, from_whole ? whole : one, n * v->width);
	}
}

/* Copies the own range to `bytes`, or back. */
static enum status copy_own(const struct moved *v, struct backend *back, uint8_t *bytes, bool put,
			    struct error *err)
{
	const size_t size = dtype_bytes(v->own.dtype, (uint64_t)v->own.cols);

	if (!v->has.count)
		return STATUS_OK;
	if (!v->on_host)
		return put ? back->ops->put(back, v->own, bytes, err)
			   : back->ops->get(back, v->own, bytes, err);
	memcpy(put ? v->own.data : bytes, put ? bytes : v->own.data, size);
	return STATUS_OK;
}

static enum status collect(struct moved *v, struct train *t, int i, struct error *err)
{
	uint8_t *mine = malloc(dtype_bytes(v->own.dtype, (uint64_t)v->own.cols) + 1);
	enum status st = mine ? STATUS_OK : error_errno(err, ENOMEM, "a part of the states");

	put_borders(v, t, i);
	if (!st)
		st = copy_own(v, &t->stepper.back, mine, false, err);
	if (!st)
		st = comm_collect(t->comm, mine, v->whole ? v->packed : NULL, v->border, err);
	for (unsigned r = 0; !st && v->whole && r < t->mesh.tensor * t->mesh.shard; r++) {
		const struct split_part part = part_of(t, r % t->mesh.tensor, i);

		if (v->border[r + 1] > v->border[r])
			copy_range(v, &part, range_of(t, r / t->mesh.tensor, i), v->packed + v->border[r],
				   false);
	}
	free(mine);
	return st;
}

/* Rank 0's tensor passes all ranks piece by piece; each keeps its part. */
static enum status divide(struct moved *v, struct train *t, int i, struct error *err)
{
	const struct split_part *part = &v->part;
	const size_t bytes = (size_t)(part->all_rows * part->all_cols) * v->width;
	uint8_t *tensor = v->whole ? v->whole : malloc(bytes + 1);
	struct moved from = *v;
	enum status st = tensor ? STATUS_OK : error_errno(err, ENOMEM, "a tensor of the checkpoint");

	(void)i;
	for (size_t at = 0, n; at < bytes && !st; at += n) {
		n = bytes - at < PIECE ? bytes - at : PIECE;
		st = t->comm->ops->share(t->comm, tensor + at, n, err);
	}
	from.whole = tensor;
	if (!st && v->has.count) {
		copy_range(&from, part, v->has, v->packed, true);
		st = copy_own(v, &t->stepper.back, v->packed, true, err);
	}
	if (!v->whole)
		free(tensor);
	return st;
}

/* Of a state that is not moved, none has a part: moments in 8 bits are refused with tensor parallel. */
static enum status each(struct train *t,
			enum status (*act)(struct moved *, struct train *, int, struct error *),
			struct error *err)
{
	enum status st = STATUS_OK;

	for (int s = 0; s < PARAMS_STATE_COUNT && !st; s++) {
		if (!params_state_bytes(&t->host_params.params, (enum params_state)s))
			continue;
		for (int i = 0; i < t->host_params.params.count && !st; i++) {
			struct moved v;

			st = moved_make(&v, t, i, (enum params_state)s, err);
			if (!st)
				st = act(&v, t, i, err);
			moved_release(&v);
		}
	}
	return st;
}

enum status run_split_collect(struct train *t, struct error *err)
{
	return each(t, collect, err);
}

enum status run_split_divide(struct train *t, struct error *err)
{
	return each(t, divide, err);
}
