/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of the kernels for NF4 and FP4 (kernel/bnb4/bnb4.h): quantizing BF16 when a model is loaded, and
 * dequantizing several matrices at once. They only enqueue, so they can be captured.
 */
#ifndef GPU_BNB4_BNB4_KERNELS_H
#define GPU_BNB4_BNB4_KERNELS_H
#include "gpu/device/gpu.h"
#include "kernel/bnb4/bnb4.h"

/* Lent by the device. */
struct bnb4_kernels {
	struct gpu_kernel *dequantize, *to_fp8, *quantize, *group_sums, *mean, *nest;
};

/* A quantized matrix on the device; the parts are those of struct bnb4 (model/bnb4/bnb4.h). */
struct bnb4_weight {
	gpu_ptr codes;			   /* at a multiple of 4 */
	gpu_ptr absmax_codes, offset, map; /* 0: no double quantization */
	gpu_ptr absmax;
	int64_t rows, cols;
	enum bnb4_type type;
};

/* What a matrix becomes in BF16. */
struct bnb4_output {
	struct bnb4_weight from;
	gpu_ptr to; /* at a multiple of 16 */
	int64_t ld; /* elements; a multiple of 8 */
};

/* UNSUPPORTED: no code for this device. */
enum status bnb4_kernels_open(struct bnb4_kernels *k, struct gpu_device *d, struct error *err);
/* UNSUPPORTED: a row is not a multiple of 8 elements, or there are too many elements. */
enum status bnb4_kernels_check(int64_t rows, int64_t cols, struct error *err);
/* Device memory that quantizing needs besides the result, at a multiple of 8; 0 without double quantization.
 */
uint64_t bnb4_kernels_scratch(int64_t rows, int64_t cols, bool nested);
/* Quantizes a BF16 matrix at a multiple of 16 with ld a multiple of 8. The bits are those of bnb4_quantize.
 */
enum status bnb4_kernels_quantize(const struct bnb4_kernels *k, const struct bnb4_weight *to, gpu_ptr from,
				  int64_t ld, gpu_ptr scratch, struct gpu_stream *s, struct error *err);
/* Dequantizes `count` matrices, up to 16 per launch. The bits are those of bnb4_dequantize. */
enum status bnb4_kernels_dequantize(const struct bnb4_kernels *k, const struct bnb4_output *out, size_t count,
				    struct gpu_stream *s, struct error *err);
/* A linear layer in E4M3 with scales of 128 x 128 elements. Its rows are those of `count` matrices, one after
 * the other, at most BNB4_PARTS_MOST. The numbers are those of bnb4_kernels_dequantize. */
enum status bnb4_kernels_to_fp8(const struct bnb4_kernels *k, const struct bnb4_weight *part, size_t count,
				const struct train_fp8_weights *to, struct gpu_stream *s, struct error *err);
#endif
