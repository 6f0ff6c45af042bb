/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The 4-bit formats of bitsandbytes, NF4 and FP4. The elements of a matrix, row after row, form blocks of 64.
 * An element is a code of 4 bits, an index into a table of 16 numbers in [-1, 1]. Its value is the number
 * times the block's absmax, computed in F32 and rounded once to the wanted type. With double quantization
 * ("nested") an absmax is a byte: an index into a map of 256 numbers, times the F32 absmax of its group of
 * 256 blocks, plus one offset for the matrix.
 *
 * The codes are those of bitsandbytes' CUDA kernels, which write nearly all checkpoints, with two exceptions.
 * They approximate 1 / absmax, which is rounded correctly here: that never changes a code of NF4 for BF16
 * weights; others change if they lie within a unit in the last place of a limit between two codes. And the
 * offset is the mean of all absmax, rounded once; PyTorch's sum depends on its order of additions.
 */
#ifndef MODEL_BNB4_BNB4_H
#define MODEL_BNB4_BNB4_H
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "core/process/cpu_pool.h"
#include "kernel/bnb4/tables.h"
#include "model/tensor/tensor.h"

/* A quantized matrix, in host or device memory. While planning all pointers are NULL. */
struct bnb4 {
	int64_t rows, cols;
	enum bnb4_type type;
	bool nested;	       /* double quantization */
	uint8_t *codes;	       /* two per byte, the first in the high half: bnb4_code_bytes */
	uint8_t *absmax_codes; /* one per block; NULL: not nested */
	float *absmax;	       /* one per block; nested: one per group. In host memory any alignment */
	float *offset;	       /* one number; NULL: not nested */
	float *map;	       /* 256 numbers for absmax_codes; NULL: not nested */
};

/* Numbers of blocks and of groups; the last one of each may be incomplete. */
uint64_t bnb4_blocks(int64_t rows, int64_t cols);
uint64_t bnb4_groups(int64_t rows, int64_t cols);
uint64_t bnb4_code_bytes(int64_t rows, int64_t cols);
/* Memory of a matrix as bnb4_place lays it out: about 0.516 bytes per element if nested, else 0.563. */
uint64_t bnb4_bytes(int64_t rows, int64_t cols, bool nested);
/* Sets the pointers of a matrix with known rows, cols and nested to parts of one piece of memory of
 * bnb4_bytes(). If the piece begins at a multiple of 256, so does each part. base NULL: all become NULL. */
void bnb4_place(struct bnb4 *m, void *base);

/* The 16 numbers of a type, and the map of 256 numbers that quantizing uses for an absmax. */
const float *bnb4_table(enum bnb4_type type);
const float *bnb4_absmax_map(void);
const char *bnb4_type_name(enum bnb4_type type); /* "nf4", "fp4" */

/* The rest is for host memory. pool NULL: the calling thread works alone. The number of threads does not
 * change the result. */

/* Quantizes a matrix of F32, BF16 or F16, with any ld and without NaN and infinity, into the memory of `m`,
 * whose fields are all set. NO_RESOURCE: no memory for the F32 absmax of a nested matrix. */
enum status bnb4_quantize(const struct bnb4 *m, const struct mat *from, struct cpu_pool *pool,
			  struct error *err);
/* Writes the rows [row, row + to->rows) to a matrix of F32, BF16 or F16 with any ld. */
void bnb4_dequantize(const struct bnb4 *m, int64_t row, const struct mat *to, struct cpu_pool *pool);
/* The absmax of a block in F32. */
float bnb4_absmax(const struct bnb4 *m, uint64_t block);
/* Whether every stored absmax and the offset are numbers whose products are finite. */
bool bnb4_finite(const struct bnb4 *m);
#endif
