/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scales of a matrix in E4M3 in safetensors files. A number is its element times its scale. A matrix NAME
 * has its scales in one of two tensors:
 *
 *   NAME_scale       compressed-tensors
 *   NAME_scale_inv   transformers' "fp8", as in DeepSeek-V3 and Qwen3-FP8
 *
 * Both are F32, BF16 or F16. There is one scale for all elements, one per row [rows] or [rows, 1], or one per
 * 128 x 128 elements [rows / 128, cols / 128], rounded up.
 */
#ifndef MODEL_FILES_E4M3_FILE_H
#define MODEL_FILES_E4M3_FILE_H
#include "core/error.h"
#include "model/files/safetensors/shards.h"
#include "model/shape/tensor_names.h"

struct e4m3_scale {
	const struct tensor *tensor; /* NULL: the matrix has no scales */
	int64_t rows, cols;	     /* elements of one scale */
	int64_t per_row;	     /* scales of a row of tiles */
};

/* Finds the scales of a matrix in E4M3 and checks their number, type and values. BAD_INPUT or UNSUPPORTED
 * names the file and the tensor. */
enum status e4m3_file_check(const struct shards *s, const struct named *n, struct error *err);
/* The scales of a matrix that passed the check. */
struct e4m3_scale e4m3_file_scale(const struct shards *s, const struct named *n);
float e4m3_scale_at(const struct e4m3_scale *s, int64_t row, int64_t col);
/* Multiplies the numbers of columns first .. first + count - 1 of a row with their scales. */
void e4m3_scale_apply(const struct e4m3_scale *s, int64_t row, int64_t first, float *numbers, size_t count);
/* Whether a row has one scale. */
static inline bool e4m3_scale_is_of_rows(const struct e4m3_scale *s)
{
	return s->tensor && s->per_row == 1;
}
/* Whether `name` holds scales of a weight, or of its input; `weight` becomes that weight's name. */
bool e4m3_file_is_part(char weight[NAME_SIZE], const char *name);
#endif
