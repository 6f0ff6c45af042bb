/* SPDX-License-Identifier: Apache-2.0 */
/* Expected sums of the loops of kernel/mma/args.h, by plain integer arithmetic. The kernels' tests use them
 * too. */
#include "probe/shared/mma.h"

static const unsigned bytes_of[] = {
#define X(name, text, bytes) bytes,
	MMA_TYPES(X)
#undef X
};

struct mma_tile mma_tile_of(enum mma_type type, bool sm90)
{
	if (type == MMA_FP32)
		return (struct mma_tile){1, 1, 1, MMA_CHAINS};
	if (type == MMA_FP64)
		return sm90 ? (struct mma_tile){16, 8, 8, MMA_SM90_FP64_TILES}
			    : (struct mma_tile){8, 8, 4, MMA_TILES};
	if (sm90)
		return (struct mma_tile){64, MMA_SM90_COLUMNS, MMA_SM90_K_BYTES / bytes_of[type], 1};
	return (struct mma_tile){16, 8, 32 / bytes_of[type], MMA_TILES};
}

/* Row and column of a thread's accumulator r. Source: PTX ISA, fragments of mma and matrix D of wgmma. */
static void place_of(enum mma_type type, bool sm90, unsigned thread, unsigned r, unsigned *row,
		     unsigned *column)
{
	unsigned lane = thread % 32, warp = thread / 32;

	if (type == MMA_FP32) {
		*row = thread;
		*column = r / 4;
	} else if (sm90 && type != MMA_FP64) {
		*row = thread / 128 * 64 + warp % 4 * 16 + lane / 4 + r / 2 % 2 * 8;
		*column = r / 4 * 8 + lane % 4 * 2 + r % 2;
	} else if (type == MMA_FP64 && !sm90) {
		*row = warp * 8 + lane / 4;
		*column = r / 2 * 8 + lane % 4 * 2 + r % 2;
	} else {
		*row = warp * 16 + lane / 4 + r / 2 % 2 * 8;
		*column = r / 4 * 8 + lane % 4 * 2 + r % 2;
	}
}

int64_t mma_expect(enum mma_type type, bool sm90, unsigned thread)
{
	struct mma_tile t = mma_tile_of(type, sm90);
	unsigned held = type == MMA_FP32	   ? MMA_CHAINS
			: sm90 && type != MMA_FP64 ? t.rows * t.columns / 128
						   : t.rows * t.columns / 32 * t.tiles;
	int64_t sum = 0;

	for (unsigned r = 0; r < held; r++) {
		unsigned row, column;
		int64_t product = 0;

		place_of(type, sm90, thread, r, &row, &column);
		for (unsigned k = 0; k < t.k; k++)
			product += MMA_A(row, k) * MMA_B(k, column);
		sum += (2 * (int64_t)r + 1) * 2 * product;
	}
	return sum;
}
