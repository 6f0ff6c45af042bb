/* SPDX-License-Identifier: Apache-2.0 */
/*
 * States with tensor parallel (docs/explanation/design/tensor_parallel.md, "Checkpoints"): each rank of the
 * first copy of the model sends its part of each tensor to rank 0, which has the undivided states, and gets
 * it back after a resume. So a checkpoint does not depend on the number of ranks.
 */
#include <errno.h>
#include <stdlib.h>
#include "model/tensor/dtype.h"
#include "train/run/internal.h"

enum { PIECE = 4 << 20 }; /* bytes that are shared at once */

/* One tensor of one state. */
struct moved {
	struct split_part part;
	size_t width;	 /* bytes of a number */
	struct mat own;	 /* on the device; with the rows beyond a vocabulary */
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

static size_t bytes_of(const struct moved *v, const struct split_part *part)
{
	return (size_t)(part->rows * part->cols) * v->width;
}

/* The bytes that each rank sends: those of the first copy, and of equal parts the first one's. */
static void put_borders(struct moved *v, const struct train *t, int i)
{
	for (unsigned r = 0; r < t->comm->size; r++) {
		const bool sends = r < t->mesh.tensor;
		const struct split_part part = part_of(t, sends ? r : 0, i);

		v->border[r + 1] = v->border[r] + (sends && part.first ? bytes_of(v, &part) : 0);
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
			    .width = dtype_bytes(state->dtype, 1)};
	v->own = *state;
	v->own.cols = v->own.ld = own->rows * own->cols;
	v->own.data = (uint8_t *)state->data + own->offset * v->width;
	if (t->host_params.memory)
		v->whole = (uint8_t *)host->data + all->offset * v->width;
	/* a part has at most as many bytes as the whole, and the rows beyond a vocabulary at most one more
	 * row per rank */
	v->packed = calloc(tensor + (size_t)(t->mesh.tensor * (unsigned)all->cols), v->width);
	v->border = calloc((size_t)t->comm->size + 1, sizeof(*v->border));
	return v->packed && v->border ? STATUS_OK : error_errno(err, ENOMEM, "a part of the states");
}

/* Copies between the undivided tensor and a rank's packed part. */
static void copy_part(const struct moved *v, const struct split_part *part, uint8_t *packed, bool from_whole)
{
	const size_t row = (size_t)part->cols * v->width, pitch = (size_t)part->all_cols * v->width;

	for (int64_t i = 0; i < part->rows; i++) {
		uint8_t *whole = v->whole + (size_t)(part->row + i) * pitch + (size_t)part->col * v->width;

		memcpy(from_whole ? packed + (size_t)i * row : whole,
		       from_whole ? whole : packed + (size_t)i * row, row);
	}
}

static enum status collect(struct moved *v, struct train *t, int i, struct error *err)
{
	uint8_t *mine = malloc(dtype_bytes(v->own.dtype, (uint64_t)v->own.cols) + 1);
	enum status st = mine ? STATUS_OK : error_errno(err, ENOMEM, "a part of the states");

	put_borders(v, t, i);
	if (!st)
		st = t->stepper.back.ops->get(&t->stepper.back, v->own, mine, err);
	if (!st)
		st = comm_collect(t->comm, mine, v->whole ? v->packed : NULL, v->border, err);
	for (unsigned r = 0; !st && v->whole && r < t->mesh.tensor; r++) {
		const struct split_part part = part_of(t, r, i);

		if (part.first)
			copy_part(v, &part, v->packed + v->border[r], false);
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
	if (!st) {
		copy_part(&from, part, v->packed, true);
		st = t->stepper.back.ops->put(&t->stepper.back, v->own, v->packed, err);
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
