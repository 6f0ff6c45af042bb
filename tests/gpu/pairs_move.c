/* SPDX-License-Identifier: Apache-2.0 */
/* Our memory kernels, the driver's copy and fill and the link, on PyTorch's arrays. */
#include "core/text/text.h"
#include "kernel/memory/stream.h"
#include "move_ops.h"
#include "pairs_internal.h"
#include <inttypes.h>

struct pairs_move {
	struct pairs *pairs;
	struct move move;
	struct move_arrays arrays;
	bool sums;
};

static enum status op_of(const char *name, enum move_op *op, struct error *err)
{
	for (int i = 0; i < MOVE_OP_COUNT; i++)
		if (!strcmp(name, move_op_name((enum move_op)i))) {
			*op = (enum move_op)i;
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "no memory operation %.20s", name);
}

/* What a kernel would hang on, overrun or divide by: move_prepare trusts its caller's shapes. */
static enum status check_launch(enum move_op op, const struct pairs_launch *l, struct error *err)
{
	bool bulk = l->rung == MOVE_BULK, alone = op == MOVE_WRITE || op == MOVE_COPY;
	unsigned least = bulk && !alone ? 64 : 32; /* bulk: a warp copies, and another computes */

	if (l->rung > MOVE_BULK)
		return error_set(err, STATUS_BAD_INPUT, "%s: no version %u of the kernel", move_op_name(op),
				 l->rung);
	if (l->threads < least || l->threads > 1024 || l->threads % 32)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: blocks have %u to 1024 threads in warps of 32, not %u",
				 move_op_name(op), least, l->threads);
	if (bulk && (!l->tile_bytes || l->tile_bytes % 128 || !l->stages || l->stages > MEMORY_STAGES_MAX))
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: bulk takes 1 to %u tiles of multiples of 128 bytes, not %u of %u",
				 move_op_name(op), MEMORY_STAGES_MAX, l->stages, l->tile_bytes);
	return STATUS_OK;
}

static enum status shape_of(const struct gpu_device *d, enum move_op op, const struct pairs_launch *l,
			    struct move_shape *out, struct error *err)
{
	unsigned count;
	const struct move_shape *own = move_shapes(d, op, &count);
	enum status st;

	if (!l->rung && l->index >= count)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s has %u launch shapes on %s, there is no number %u", move_op_name(op),
				 count, gpu_name(d), l->index);
	if (!l->rung) {
		*out = own[l->index];
		return STATUS_OK;
	}
	st = check_launch(op, l, err);
	*out = (struct move_shape){.rung = (enum move_rung)l->rung,
				   .threads = l->threads,
				   .per_sm = l->per_sm,
				   .resident = l->resident,
				   .tile_bytes = l->tile_bytes,
				   .stages = l->stages,
				   .evict_first = l->evict_first};
	return st;
}

static enum status check_array(enum move_op op, const char *name, uint64_t address, bool used, unsigned align,
			       struct error *err)
{
	if (!used || (address && address % align == 0))
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "%s: array %s at 0x%" PRIx64 " does not start at a multiple of %u", move_op_name(op),
			 name, address, align);
}

static enum status check_arrays(enum move_op op, const struct move *m, const struct pairs_arrays *a,
				struct error *err)
{
	bool sums = op == MOVE_READ || op == MOVE_DOT;
	unsigned align = m->shape.rung == MOVE_BULK ? 128 : 16;
	enum status st = check_array(op, "in0", a->in0, op != MOVE_WRITE, align, err);

	if (!st)
		st = check_array(op, "in1", a->in1, op == MOVE_ADD || op == MOVE_TRIAD || op == MOVE_DOT,
				 align, err);
	if (!st)
		st = check_array(op, "out", a->out, !sums, align, err);
	if (!st)
		st = check_array(op, "partial", a->partial, sums, sizeof(double), err);
	if (!st && sums && a->partial_count < m->blocks)
		st = error_set(err, STATUS_BAD_INPUT, "%s leaves %u partial sums, there is room for %" PRIu64,
			       m->name, m->blocks, a->partial_count);
	return st;
}

static enum status prepare(struct pairs_move *m, const char *op_name, const struct pairs_launch *l,
			   const struct pairs_arrays *a, struct error *err)
{
	struct gpu_device *d = m->pairs->device;
	struct move_shape shape;
	enum move_op op = MOVE_READ;
	enum status st = op_of(op_name, &op, err);

	if (!st && !a->count)
		st = error_set(err, STATUS_BAD_INPUT, "%s: arrays of no floats cannot be timed", op_name);
	if (!st)
		st = shape_of(d, op, l, &shape, err);
	if (!st)
		st = move_prepare(&m->move, d, op, &shape, a->count, err);
	if (!st)
		st = check_arrays(op, &m->move, a, err);
	if (st)
		return st;
	m->sums = op == MOVE_READ || op == MOVE_DOT;
	m->arrays = (struct move_arrays){.in0 = a->in0,
					 .in1 = a->in1,
					 .out = a->out,
					 .partial = a->partial,
					 .count = a->count,
					 .factor = a->factor};
	return STATUS_OK;
}

struct pairs_move *pairs_move_open(struct pairs *p, const char *op, const struct pairs_launch *shape,
				   const struct pairs_arrays *arrays, char *text, size_t size)
{
	struct pairs_move *m = calloc(1, sizeof(*m));
	struct error err = {0};
	enum status st;

	if (m) {
		m->pairs = p;
		st = prepare(m, op, shape, arrays, &err);
	} else {
		st = error_set_cause(&err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for a %.20s", op);
	}
	if (pairs_told(st, &err, text, size)) {
		free(m);
		return NULL;
	}
	text_copy(text, size, m->move.name);
	return m;
}

void pairs_move_close(struct pairs_move *m)
{
	free(m);
}

int pairs_move_run(struct pairs_move *m, void *stream, char *text, size_t size)
{
	struct gpu_stream s = pairs_stream(m->pairs, stream);
	struct error err = {0};

	return pairs_told(move_launch(&m->move, &m->arrays, &s, &err), &err, text, size);
}

int pairs_move_sum(struct pairs_move *m, double *sum, char *text, size_t size)
{
	struct error err = {0};
	enum status st;

	*sum = 0;
	if (m->sums)
		st = move_sum(&m->move, m->pairs->device, m->arrays.partial, sum, &err);
	else
		st = error_set(&err, STATUS_BAD_INPUT, "%s sums nothing", m->move.name);
	return pairs_told(st, &err, text, size);
}

int pairs_copy(struct pairs *p, uint64_t to, uint64_t from, uint64_t bytes, void *stream, char *text,
	       size_t size)
{
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};

	return pairs_told(gpu_stream_copy(&s, to, from, bytes, &err), &err, text, size);
}

int pairs_fill(struct pairs *p, uint64_t to, uint32_t word, uint64_t words, void *stream, char *text,
	       size_t size)
{
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};

	return pairs_told(gpu_stream_fill32(&s, to, word, words, &err), &err, text, size);
}

int pairs_copy_to(struct pairs *p, uint64_t to, const void *from, uint64_t bytes, void *stream, char *text,
		  size_t size)
{
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};

	return pairs_told(gpu_stream_copy_to(&s, to, from, bytes, &err), &err, text, size);
}

int pairs_copy_from(struct pairs *p, void *to, uint64_t from, uint64_t bytes, void *stream, char *text,
		    size_t size)
{
	struct gpu_stream s = pairs_stream(p, stream);
	struct error err = {0};

	return pairs_told(gpu_stream_copy_from(&s, to, from, bytes, &err), &err, text, size);
}
