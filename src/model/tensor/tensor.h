/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types, matrices in memory, and tensors in files. Everything is row-major, outermost dimension
 * first.
 */
#ifndef MODEL_TENSOR_TENSOR_H
#define MODEL_TENSOR_TENSOR_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * name, safetensors' name ("": none), ggml's id (-1: none), elements and bytes of a block. The first ones are
 * used in computations; the others occur in files, and dtype_unpacks says which of them can be converted to
 * float.
 */
/* clang-format off */
#define DTYPE_LIST(X)                     \
	X(F32, "F32", 0, 1, 4)            \
	X(BF16, "BF16", 30, 1, 2)         \
	X(F16, "F16", 1, 1, 2)            \
	X(E4M3, "F8_E4M3", -1, 1, 1)      \
	X(I32, "I32", 26, 1, 4)           \
	X(F64, "F64", 28, 1, 8)           \
	X(Q8_0, "", 8, 32, 34)            \
	X(Q4_1, "", 3, 32, 20)            \
	X(Q4_0, "", 2, 32, 18)            \
	X(E5M2, "F8_E5M2", -1, 1, 1)      \
	X(I64, "I64", 27, 1, 8)           \
	X(I16, "I16", 25, 1, 2)           \
	X(I8, "I8", 24, 1, 1)             \
	X(U64, "U64", -1, 1, 8)           \
	X(U32, "U32", -1, 1, 4)           \
	X(U16, "U16", -1, 1, 2)           \
	X(U8, "U8", -1, 1, 1)             \
	X(BOOL, "BOOL", -1, 1, 1)         \
	X(Q5_0, "", 6, 32, 22)            \
	X(Q5_1, "", 7, 32, 24)            \
	X(Q8_1, "", 9, 32, 36)            \
	X(Q2_K, "", 10, 256, 84)          \
	X(Q3_K, "", 11, 256, 110)         \
	X(Q4_K, "", 12, 256, 144)         \
	X(Q5_K, "", 13, 256, 176)         \
	X(Q6_K, "", 14, 256, 210)         \
	X(Q8_K, "", 15, 256, 292)         \
	X(IQ2_XXS, "", 16, 256, 66)       \
	X(IQ2_XS, "", 17, 256, 74)        \
	X(IQ3_XXS, "", 18, 256, 98)       \
	X(IQ1_S, "", 19, 256, 50)         \
	X(IQ4_NL, "", 20, 32, 18)         \
	X(IQ3_S, "", 21, 256, 110)        \
	X(IQ2_S, "", 22, 256, 82)         \
	X(IQ4_XS, "", 23, 256, 136)       \
	X(IQ1_M, "", 29, 256, 56)         \
	X(TQ1_0, "", 34, 256, 54)         \
	X(TQ2_0, "", 35, 256, 66)         \
	X(MXFP4, "", 39, 32, 17)
/* clang-format on */

#define X(name, ...) DTYPE_##name,
enum dtype { DTYPE_LIST(X) DTYPE_COUNT };
#undef X

/* Scales of a matrix in tiles of rows x cols: a number is its element times the scale of its tile, which is
 * data[row / rows * step_row + col / cols * step_col]. */
struct scales {
	float *data;	    /* NULL while planning */
	int64_t rows, cols; /* rows 0: the matrix has no scales */
	int64_t step_row, step_col;
};

/* A matrix in memory. ld is the distance of rows in elements, so slices and parts of combined weights are
 * views. */
struct mat {
	void *data;	      /* in host or device memory; NULL while planning */
	struct scales scales; /* E4M3 only */
	/* BF16 activations of a GPU: the same rows in E4M3, written with these by rmsnorm and swiglu and read
	 * by GEMMs with E4M3 weights; views have none. NULL: none. */
	const struct mat *e4m3;
	/* The same transposed, with scales along the rows, read by GEMMs of a weight gradient. If gate_up has
	 * both, swiglu and swiglu_bwd write only the copies of h and gate_up, and nothing in BF16. NULL:
	 * none. */
	const struct mat *e4m3_columns;
	int32_t *overflows; /* of such copies: where its scales that are not finite are counted, or NULL */
	int64_t rows, cols, ld;
	enum dtype dtype;
	bool panels; /* quantized weights, packed for a CPU's GEMMs (model/cpu/invariant/quantised_gemm.h) */
};

enum { TENSOR_RANK_MAX = 8 };

/* A tensor of a mapped file. The reader has checked that `size` fits dtype and dimensions. */
struct tensor {
	const char *name; /* lent by the file's reader, as is data */
	const uint8_t *data;
	uint64_t size; /* bytes */
	int64_t dim[TENSOR_RANK_MAX];
	int rank; /* 0: a scalar */
	enum dtype dtype;
};

static inline float bf16_to_f32(uint16_t b)
{
	uint32_t bits = (uint32_t)b << 16;
	float f;

	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Rounds to nearest, ties to even; NaN stays NaN. */
static inline uint16_t bf16_of_f32(float f)
{
	uint32_t bits;

	memcpy(&bits, &f, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)(bits >> 16 | 0x40u);
	return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* E4M3 has 3 bits of mantissa, no infinity, and one NaN of each sign. Its largest number is 448. */
#define E4M3_MOST 448.0f
static inline float e4m3_to_f32(uint8_t b)
{
	uint32_t bits = (uint32_t)(b & 0x7fu) << 20;
	float f;

	memcpy(&f, &bits, sizeof(f));
	f *= 0x1p120f;
	memcpy(&bits, &f, sizeof(bits));
	bits |= (b & 0x7fu) == 0x7fu ? 0x7fc00000u : 0;
	bits |= (uint32_t)(b & 0x80u) << 24;
	memcpy(&f, &bits, sizeof(f));
	return f;
}

/* Rounds to nearest, ties to even. Numbers beyond the largest become the largest; NaN stays NaN. */
static inline uint8_t e4m3_of_f32(float f)
{
	uint32_t bits, magnitude;
	float small;

	memcpy(&bits, &f, sizeof(bits));
	magnitude = bits & 0x7fffffffu;
	if (magnitude > 0x7f800000u)
		magnitude = 0x7fu;
	else if (magnitude >= 0x43e00000u) /* 448 */
		magnitude = 0x7eu;
	else if (magnitude < 0x3c800000u) { /* 2^-6: the smallest normal number */
		memcpy(&small, &magnitude, sizeof(small));
		small += 0x1p14f; /* whose last place is the smallest number, 2^-9 */
		memcpy(&magnitude, &small, sizeof(magnitude));
		magnitude &= 0xfu;
	} else {
		magnitude = (magnitude + 0x7ffffu + (magnitude >> 20 & 1u)) >> 20;
		magnitude -= (127u - 7u) << 3;
	}
	return (uint8_t)((bits >> 24 & 0x80u) | magnitude);
}
#endif
