/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of tensors that several ranks of tensor parallel hold. These are norms, A of q, k, v, gate and
 * up, and B of o and down. If there are fewer key-value heads than ranks, these are shared too. Each rank has
 * a partial sum. The pieces are copied to a room, where each has the size of the whole tensor, added in one
 * collective, and copied back. If copies of the model divide the gradient (ZeRO), each rank adds what its own
 * range has of these tensors. The ranks that share a copy have equal tables of parameters, so they have equal
 * ranges.
 */
#include "model/decoder/split.h"
#include "model/model.h"
#include "model/tensor/matrix.h"

enum { ROOM = 1 << 24 }; /* elements that are added at once, or more if one tensor is larger */

/* A shared tensor's own part, and its place in the whole one. */
struct piece {
	size_t offset, count; /* of the flat vector */
	size_t place, room;   /* in the whole tensor; elements of that */
};

/* False: no other rank holds the tensor, or the own range of the gradient has nothing of it. The own part is
 * one range of the whole one: it is copied, or rows, or columns of a vector. */
static bool piece_of(const struct model *m, int i, struct piece *out)
{
	const struct param *p = &m->params.table[i], *whole = &m->whole->params.table[i];
	const struct split_part part =
		split_part_of(&m->split, &m->whole->shape, p->name, whole->rows, whole->cols);
	const size_t begin = params_begin(&m->params), end = params_end(&m->params),
		     last = p->offset + (size_t)(p->rows * p->cols);
	const size_t first = p->offset > begin ? p->offset : begin, until = last < end ? last : end;

	*out = (struct piece){.offset = first,
			      .count = first < until ? until - first : 0,
			      .place = (size_t)(part.row * whole->cols + part.col) + first - p->offset,
			      .room = (size_t)(whole->rows * whole->cols)};
	return part.sharers > 1 && out->count;
}

size_t split_room(const struct model *m)
{
	size_t sum = 0, most = 0;
	struct piece one;

	for (int i = 0; split_is(&m->split) && i < m->params.count; i++) {
		if (!piece_of(m, i, &one))
			continue;
		sum += one.room;
		most = one.room > most ? one.room : most;
	}
	if (most < ROOM)
		most = ROOM;
	return sum < most ? sum : most;
}

static struct mat cut(const struct mat *vector, size_t first, size_t count)
{
	struct mat m = mat_cols(vector, (int64_t)first, (int64_t)count);

	m.ld = m.cols;
	return m;
}

/* Copies the own parts of tensors [first, last) to the room, or back. *used: elements of the room. */
static enum status copy(struct model *m, struct backend *back, int first, int last, bool there, size_t *used,
			struct error *err)
{
	enum status st = STATUS_OK;
	struct piece one;

	*used = 0;
	for (int i = first; i < last && !st; i++) {
		struct mat grad, room;

		if (!piece_of(m, i, &one))
			continue;
		grad = params_cut(&m->params, &m->params.grad, one.offset, one.count);
		room = cut(&m->shared_grad, *used + one.place, one.count);
		st = back->ops->convert(back, there ? grad : room, there ? room : grad, err);
		*used += one.room;
	}
	return st;
}

static enum status sum(struct model *m, struct backend *back, int first, int last, size_t count,
		       struct error *err)
{
	struct comm *c = m->split.comm;
	const struct mat room = cut(&m->shared_grad, 0, count);
	enum status st = back->ops->zero(back, room, err);

	if (!st)
		st = copy(m, back, first, last, true, &count, err);
	if (c)
		c->layer = -1;
	if (!st && c)
		st = c->ops->all_reduce(c, room, err);
	if (!st && c)
		st = c->ops->wait(c, err);
	return st ? st : copy(m, back, first, last, false, &count, err);
}

enum status split_sum_gradient(struct model *m, struct backend *back, struct error *err)
{
	size_t used = 0;
	enum status st = STATUS_OK;
	struct piece one;
	int first = 0;

	if (!split_is(&m->split))
		return STATUS_OK;
	for (int i = 0; i < m->params.count && !st; i++) {
		if (!piece_of(m, i, &one))
			continue;
		if (used && used + one.room > (size_t)m->shared_grad.cols) {
			st = sum(m, back, first, i, used, err);
			first = i;
			used = 0;
		}
		used += one.room;
	}
	return st || !used ? st : sum(m, back, first, m->params.count, used, err);
}
