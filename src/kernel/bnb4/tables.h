/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables and rounding rules of bitsandbytes' 4-bit formats, for the host and for kernels. An element x of
 * a block is x / absmax when it is rounded to a code, so it lies in [-1, 1].
 */
#ifndef KERNEL_BNB4_TABLES_H
#define KERNEL_BNB4_TABLES_H
#include <stdint.h>
#include "kernel/train/dynamic_map.h"

enum {
	BNB4_BLOCK = 64,  /* elements per absmax */
	BNB4_GROUP = 256, /* blocks per F32 absmax of double quantization */
	BNB4_CODES = 16,
	BNB4_MAP = 256 /* numbers that a byte of an absmax selects from */
};

/* NF4: quantiles of the normal distribution. FP4: a sign, then an index into magnitudes that are not sorted.
 */
/* clang-format off */
#define BNB4_TYPE_LIST(X) \
	X(NF4, "nf4")     \
	X(FP4, "fp4")
#define X(name, ...) BNB4_##name,
enum bnb4_type { BNB4_TYPE_LIST(X) BNB4_TYPE_COUNT };
#undef X

#define BNB4_NF4_TABLE                                                                        \
	-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,             \
	-0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,            \
	0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, \
	0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f
#define BNB4_FP4_TABLE                                                                        \
	0.0f, 0.005208333333f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f,      \
	-0.0f, -0.005208333333f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f

/* NF4: the code is the number of limits that x exceeds. */
#define BNB4_NF4_LIMITS                                                                       \
	-0.8480964004993439f, -0.6106329262256622f, -0.4599952697753906f,                     \
	-0.33967943489551544f, -0.23460740596055984f, -0.13791173323988914f,                  \
	-0.045525018125772476f, 0.03979014977812767f, 0.1202552504837513f,                    \
	0.2035212516784668f, 0.2920137718319893f, 0.3893125355243683f, 0.5016634166240692f,   \
	0.6427869200706482f, 0.8614784181118011f
/* FP4: the number of limits that |x| exceeds selects the low three bits. The fifth limit is not the midpoint,
 * 7 / 12 in F32, but bitsandbytes' constant. */
#define BNB4_FP4_LIMITS                                                                       \
	0.00260417f, 0.0859375f, 0.20833333f, 0.29166667f, 0.4166667f, 0.583333f, 0.8333333f
#define BNB4_FP4_ORDER 0, 1, 6, 7, 4, 5, 2, 3

/* clang-format on */

/* The map of an absmax's byte. bitsandbytes computes it with PyTorch, on CPUs with AVX2 or AVX-512 as here.
 * On other CPUs some numbers differ in the last place, so a file's own map is used for its matrices. */
#define BNB4_ABSMAX_MAP DYNAMIC_SIGNED

#ifdef __CUDACC__
#define BNB4_RULE __device__ static __forceinline__
#else
#define BNB4_RULE static inline
#endif

/* The byte for x in [-1, 1]: the nearest number of the map; between two, the even index. */
BNB4_RULE uint32_t bnb4_absmax_code(const float *map, float x)
{
	int pivot = 127, above = 255, below = 0;

	for (int step = 64; step; step >>= 1) {
		if (x > map[pivot]) {
			below = pivot;
			pivot += step;
		} else {
			above = pivot;
			pivot -= step;
		}
	}
	if (x > map[pivot])
		return (uint32_t)(x > (map[above] + map[pivot]) * 0.5f ? above : pivot);
	return (uint32_t)(x < (map[below] + map[pivot]) * 0.5f ? below : pivot);
}
#endif
