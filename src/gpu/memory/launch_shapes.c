/* SPDX-License-Identifier: Apache-2.0 */
/* The fastest launch shapes on real devices, and the choice of shapes by device
 * (docs/explanation/methods/gpu-memory-and-links.md, "Launch shapes"). */
#include "gpu/memory/move.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/*
 * The DRAM rate per SM decides. Shapes were swept on an H100 (25 GB/s per SM) and an H200 (36 GB/s per SM);
 * the limit is half way between. One tile per block beats every persistent grid on both: the hardware starts
 * blocks in order, so all SMs stay within a narrow window of the array.
 */
#define WIDE_BYTES_PER_S_AND_SM 31e9

struct shapes {
	const struct move_shape *shapes;
	unsigned count;
};
#define SHAPES(array)                                                                                        \
	{                                                                                                    \
		array, COUNT(array)                                                                          \
	}

/* If the operation also writes, fewer concurrent blocks narrow the window further. The number still hides the
 * latency. */
static const struct move_shape narrow_read[] = {
	{.rung = MOVE_V5, .threads = 1024},
	{.rung = MOVE_V4, .threads = 512},
	{.rung = MOVE_V7, .threads = 1024},
};
static const struct move_shape narrow_write[] = {
	{.rung = MOVE_V4, .threads = 1024},
	{.rung = MOVE_V4, .threads = 128},
	{.rung = MOVE_V7, .threads = 256},
};
static const struct move_shape narrow_copy[] = {
	{.rung = MOVE_V4, .threads = 256, .resident = 3},
	{.rung = MOVE_V7, .threads = 128, .resident = 4},
	{.rung = MOVE_V9, .threads = 256, .resident = 6},
	{.rung = MOVE_V10, .threads = 128},
};
static const struct move_shape narrow_scale[] = {
	{.rung = MOVE_V4, .threads = 256, .resident = 3},
	{.rung = MOVE_V7, .threads = 128, .resident = 4},
	{.rung = MOVE_V10, .threads = 128},
};
static const struct move_shape narrow_sum[] = {
	/* add, triad */
	{.rung = MOVE_V7, .threads = 256, .resident = 2},
	{.rung = MOVE_BULK, .threads = 416, .tile_bytes = 16384, .stages = 1},
	{.rung = MOVE_V10, .threads = 1024},
};
static const struct move_shape narrow_dot[] = {
	{.rung = MOVE_V4, .threads = 1024},
	{.rung = MOVE_BULK, .threads = 288, .resident = 2, .tile_bytes = 32768, .stages = 1},
	{.rung = MOVE_V4, .threads = 512},
};

/* A limit on blocks starves these SMs. The smallest tiles narrow the window instead. */
static const struct move_shape wide_read[] = {
	{.rung = MOVE_V8, .threads = 1024},
	{.rung = MOVE_V5, .threads = 1024},
	{.rung = MOVE_V4, .threads = 1024},
};
static const struct move_shape wide_write[] = {
	{.rung = MOVE_V9, .threads = 128, .resident = 4},
	{.rung = MOVE_V4, .threads = 512, .resident = 1},
	{.rung = MOVE_V9, .threads = 128},
};
static const struct move_shape wide_copy[] = {
	{.rung = MOVE_V10, .threads = 128},
	{.rung = MOVE_V9, .threads = 128},
	{.rung = MOVE_V7, .threads = 512, .resident = 2},
	{.rung = MOVE_BULK, .threads = 32, .tile_bytes = 2048, .stages = 1, .evict_first = 1},
};
static const struct move_shape wide_scale[] = {
	{.rung = MOVE_V10, .threads = 128},
	{.rung = MOVE_V7, .threads = 1024},
	{.rung = MOVE_V9, .threads = 128},
};
static const struct move_shape wide_sum[] = {
	/* add, triad */
	{.rung = MOVE_V10, .threads = 1024},
	{.rung = MOVE_BULK, .threads = 416, .tile_bytes = 32768, .stages = 2},
	{.rung = MOVE_V4, .threads = 1024},
};
static const struct move_shape wide_dot[] = {
	{.rung = MOVE_V7, .threads = 1024},
	{.rung = MOVE_V9, .threads = 1024},
	{.rung = MOVE_V4, .threads = 512},
};

static const struct shapes narrow[MOVE_OP_COUNT] = {
	[MOVE_READ] = SHAPES(narrow_read), [MOVE_WRITE] = SHAPES(narrow_write),
	[MOVE_COPY] = SHAPES(narrow_copy), [MOVE_SCALE] = SHAPES(narrow_scale),
	[MOVE_ADD] = SHAPES(narrow_sum),   [MOVE_TRIAD] = SHAPES(narrow_sum),
	[MOVE_DOT] = SHAPES(narrow_dot),
};
static const struct shapes wide[MOVE_OP_COUNT] = {
	[MOVE_READ] = SHAPES(wide_read),   [MOVE_WRITE] = SHAPES(wide_write), [MOVE_COPY] = SHAPES(wide_copy),
	[MOVE_SCALE] = SHAPES(wide_scale), [MOVE_ADD] = SHAPES(wide_sum),     [MOVE_TRIAD] = SHAPES(wide_sum),
	[MOVE_DOT] = SHAPES(wide_dot),
};

const struct move_shape *move_shapes(const struct gpu_device *d, enum move_op op, unsigned *count)
{
	bool is_wide = gpu_dram_rate(d) > WIDE_BYTES_PER_S_AND_SM * gpu_sm_count(d);
	const struct shapes *s = is_wide ? &wide[op] : &narrow[op];

	*count = s->count;
	return s->shapes;
}
