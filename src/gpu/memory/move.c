/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/memory/move.h"
#include "kernel/memory/stream.h"
#include "vendor/cuda.h"
#include <inttypes.h>

static const struct {
	const char *name;
	unsigned reads, writes;
} ops[] = {
#define X(name, text, reads, writes) {text, reads, writes},
	MOVE_OPS(X)
#undef X
};

/* 16-byte words that a block processes per iteration. */
static uint64_t tile_vectors(const struct move_shape *s)
{
	static const unsigned unroll[] = {
		[MOVE_V1] = 1 /* four iterations */,
		[MOVE_V2] = 1,
		[MOVE_V3] = 4,
		[MOVE_V4] = 4,
		[MOVE_V5] = 8,
		[MOVE_V6] = 16,
		[MOVE_V7] = 4,
		[MOVE_V8] = 8,
		[MOVE_V9] = 2,
		[MOVE_V10] = 1,
	};

	if (s->rung == MOVE_BULK)
		return s->tile_bytes / 16 * (s->per_sm ? 1 : s->stages);
	return (uint64_t)s->threads * unroll[s->rung];
}

static void name_it(struct move *m, enum move_op op)
{
	const struct move_shape *s = &m->shape;
	char blocks[32] = "a tile a block", resident[32] = "";

	if (s->per_sm)
		snprintf(blocks, sizeof(blocks), "%u blocks an SM", s->per_sm);
	if (s->resident)
		snprintf(resident, sizeof(resident), ", %u at once", s->resident);
	if (s->rung == MOVE_BULK)
		snprintf(m->name, sizeof(m->name), "%s_bulk, %u x %u B, %s%s%s", ops[op].name, s->stages,
			 s->tile_bytes, s->per_sm ? blocks : "a group a block", resident,
			 s->evict_first ? ", evict first" : "");
	else
		snprintf(m->name, sizeof(m->name), "%s_v%d, %u threads, %s%s", ops[op].name, s->rung,
			 s->threads, blocks, resident);
}

/* Sets the dynamic shared memory: the bulk tiles' size, and as much as keeps more than `resident` blocks off
 * the SM. */
static enum status ask_for_shared(struct move *m, struct gpu_device *d, enum move_op op, struct error *err)
{
	const struct move_shape *s = &m->shape;
	int most = gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
	unsigned room = most > 0 ? (unsigned)most : 0, fit;
	enum status st;

	if (s->rung == MOVE_BULK)
		m->shared_bytes =
			op == MOVE_WRITE ? s->tile_bytes : ops[op].reads * s->stages * s->tile_bytes;
	/* An SM has 1 KiB more than a block may request, and each block reserves 1 KiB. */
	if (s->resident && (room + 1024) / s->resident > m->shared_bytes + 2048)
		m->shared_bytes = ((room + 1024) / s->resident - 2048) / 128 * 128;
	if (m->shared_bytes > room)
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: a block needs %u bytes of shared memory, more than %s allows", m->name,
				 m->shared_bytes, gpu_name(d));
	st = gpu_kernel_occupancy(m->kernel, s->threads, m->shared_bytes, &fit, err);
	if (!st && !fit)
		st = error_set(err, STATUS_UNSUPPORTED, "%s: %s has too few registers for one block", m->name,
			       gpu_name(d));
	return st;
}

enum status move_prepare(struct move *m, struct gpu_device *d, enum move_op op,
			 const struct move_shape *shape, uint64_t count, struct error *err)
{
	uint64_t tiles = (count / 4 + tile_vectors(shape)) / tile_vectors(shape), blocks;
	bool bulk = shape->rung == MOVE_BULK;
	char entry[32];
	enum status st;

	*m = (struct move){.shape = *shape};
	name_it(m, op);
	if (shape->rung == MOVE_V6 && shape->threads > 512)
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: this kernel supports at most 512 threads per block", m->name);
	if (bulk && count % 4)
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: bulk copies need a multiple of 4 floats, not %" PRIu64, m->name, count);
	if (shape->rung == MOVE_V10 && (!ops[op].writes || shape->per_sm || count / 4 >= UINT32_MAX))
		return error_set(
			err, STATUS_UNSUPPORTED,
			"%s: this kernel supports only writing operations of up to 64 GiB with one tile per block",
			m->name);
	snprintf(entry, sizeof(entry), bulk ? "%s_bulk" : "%s_v%d", ops[op].name, shape->rung);
	st = gpu_kernel(d, &m->kernel, bulk ? "memory_bulk" : "memory", entry, err);
	if (!st)
		st = ask_for_shared(m, d, op, err);
	if (st)
		return st;
	blocks = shape->per_sm ? (uint64_t)shape->per_sm * gpu_sm_count(d) : tiles;
	m->blocks = (unsigned)(blocks < tiles ? blocks : tiles);
	return STATUS_OK;
}

enum status move_launch(const struct move *m, const struct move_arrays *a, struct gpu_stream *s,
			struct error *err)
{
	struct memory_args args = {
		.in0 = a->in0,
		.in1 = a->in1,
		.out = a->out,
		.partial = a->partial,
		.count = a->count,
		.factor = a->factor,
		.tile_bytes = m->shape.tile_bytes,
		.stages = m->shape.stages,
		.evict_first = m->shape.evict_first,
		.grouped = !m->shape.per_sm,
		.vectors = (uint32_t)(a->count / 4),
	};

	return gpu_launch_1d(m->kernel, s, m->blocks, m->shape.threads, m->shared_bytes, &args, err);
}

uint64_t move_blocks_max(uint64_t count)
{
	return count / 512 + 8192; /* blocks have at least 128 threads; grids with a fixed number of blocks
				    * per SM stay below 8192 */
}

enum status move_sum(const struct move *m, struct gpu_device *d, gpu_ptr partial, double *sum,
		     struct error *err)
{
	double *p = calloc(m->blocks, sizeof(*p));
	enum status st;

	*sum = 0;
	if (!p)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %u partial sums", m->blocks);
	st = gpu_copy_from(d, p, partial, m->blocks * sizeof(*p), err);
	for (unsigned i = 0; i < m->blocks && !st; i++)
		*sum += p[i];
	free(p);
	return st;
}
