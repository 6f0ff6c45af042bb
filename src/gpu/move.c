/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/move.h"
#include "kernel/memory.h"
#include "vendor/cuda.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *name;
	unsigned reads, writes;
} ops[] = {
#define X(name, text, reads, writes) {text, reads, writes},
	MOVE_OPS(X)
#undef X
};

static const struct move_shape read_shapes[] = {
	{MOVE_V3, 256, 8, 0, 0, 0},
	{MOVE_V6, 512, 0, 0, 0, 0},
	{MOVE_V4, 256, 8, 0, 0, 0},
	{MOVE_BULK, 288, 2, 16384, 6, 0},
};
static const struct move_shape write_shapes[] = {
	{MOVE_BULK, 128, 2, 16384, 1, 0},
	{MOVE_V4, 256, 0, 0, 0, 0},
	{MOVE_V5, 256, 0, 0, 0, 0},
};
static const struct move_shape copy_shapes[] = {
	{MOVE_BULK, 32, 2, 16384, 6, 0},
	{MOVE_V4, 256, 0, 0, 0, 0},
	{MOVE_V3, 256, 8, 0, 0, 0},
};
static const struct move_shape shapes_one[] = {
	/* scale */
	{MOVE_V4, 256, 0, 0, 0, 0},
	{MOVE_V3, 256, 8, 0, 0, 0},
	{MOVE_BULK, 288, 2, 16384, 6, 0},
};
static const struct move_shape shapes_two[] = {
	/* add, triad */
	{MOVE_V4, 256, 0, 0, 0, 0},
	{MOVE_V3, 256, 8, 0, 0, 0},
	{MOVE_BULK, 288, 1, 16384, 6, 0},
};
static const struct move_shape dot_shapes[] = {
	{MOVE_V3, 256, 8, 0, 0, 0},
	{MOVE_V4, 256, 8, 0, 0, 0},
	{MOVE_BULK, 288, 1, 16384, 6, 0},
};

const char *move_op_name(enum move_op op)
{
	return ops[op].name;
}

uint64_t move_bytes(enum move_op op, uint64_t count)
{
	return (ops[op].reads + ops[op].writes) * count * sizeof(float);
}

const struct move_shape *move_shapes(enum move_op op, unsigned *count)
{
	static const struct {
		const struct move_shape *shapes;
		unsigned count;
	} table[MOVE_OP_COUNT] = {
		[MOVE_READ] = {read_shapes, COUNT(read_shapes)},
		[MOVE_WRITE] = {write_shapes, COUNT(write_shapes)},
		[MOVE_COPY] = {copy_shapes, COUNT(copy_shapes)},
		[MOVE_SCALE] = {shapes_one, COUNT(shapes_one)},
		[MOVE_ADD] = {shapes_two, COUNT(shapes_two)},
		[MOVE_TRIAD] = {shapes_two, COUNT(shapes_two)},
		[MOVE_DOT] = {dot_shapes, COUNT(dot_shapes)},
	};

	*count = table[op].count;
	return table[op].shapes;
}

/* 16-byte words that a block takes in one turn. */
static uint64_t tile_vectors(const struct move_shape *s)
{
	static const unsigned unroll[] = {
		[MOVE_V1] = 1 /* four turns */,
		[MOVE_V2] = 1,
		[MOVE_V3] = 4,
		[MOVE_V4] = 4,
		[MOVE_V5] = 8,
		[MOVE_V6] = 16,
		[MOVE_V7] = 4,
	};

	if (s->rung == MOVE_BULK)
		return s->tile_bytes / 16;
	return (uint64_t)s->threads * unroll[s->rung];
}

static void name_it(struct move *m, enum move_op op)
{
	const struct move_shape *s = &m->shape;
	char blocks[32] = "a tile a block";

	if (s->per_sm)
		snprintf(blocks, sizeof(blocks), "%u blocks an SM", s->per_sm);
	if (s->rung == MOVE_BULK)
		snprintf(m->name, sizeof(m->name), "%s_bulk, %u x %u B, %s%s", ops[op].name, s->stages,
			 s->tile_bytes, blocks, s->evict_first ? ", evict first" : "");
	else
		snprintf(m->name, sizeof(m->name), "%s_v%d, %u threads, %s", ops[op].name, s->rung,
			 s->threads, blocks);
}

enum status move_prepare(struct move *m, struct gpu_device *d, enum move_op op,
			 const struct move_shape *shape, uint64_t count, struct error *err)
{
	uint64_t tiles = (count / 4 + tile_vectors(shape)) / tile_vectors(shape), blocks;
	char entry[32];
	enum status st;

	*m = (struct move){.shape = *shape};
	name_it(m, op);
	if (shape->rung == MOVE_BULK) {
		if (count % 4)
			return error_set(err, STATUS_UNSUPPORTED,
					 "%s: bulk copies move 16 bytes at least, %llu floats are not",
					 m->name, (unsigned long long)count);
		m->shared_bytes = op == MOVE_WRITE ? shape->tile_bytes
						   : ops[op].reads * shape->stages * shape->tile_bytes;
		snprintf(entry, sizeof(entry), "%s_bulk", ops[op].name);
		st = gpu_kernel(d, &m->kernel, "memory_bulk", entry, err);
	} else {
		snprintf(entry, sizeof(entry), "%s_v%d", ops[op].name, shape->rung);
		st = gpu_kernel(d, &m->kernel, "memory", entry, err);
	}
	if (st)
		return st;
	if ((int)m->shared_bytes > gpu_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN))
		return error_set(err, STATUS_UNSUPPORTED,
				 "%s: %u bytes of shared memory are more than %s gives a block", m->name,
				 m->shared_bytes, gpu_name(d));
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
	};

	return gpu_launch_1d(m->kernel, s, m->blocks, m->shape.threads, m->shared_bytes, &args, err);
}

uint64_t move_blocks_max(uint64_t count)
{
	return count / 512 +
	       8192; /* blocks have 128 threads or more; grids of blocks an SM stay below 8192 */
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
