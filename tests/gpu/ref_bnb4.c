/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/bnb4/bnb4.h on the host. Codes and numbers are those of model/bnb4; double quantization is written
 * out. */
#include "kernel/bnb4/bnb4.h"
#include <math.h>
#include <string.h>
#include "model/bnb4/bnb4.h"
#include "model/tensor/dtype.h"
#include "ref.h"

#define AT(type, address) ((type *)(uintptr_t)(address))

static void dequantize_one(const struct bnb4_matrix_args *a, bool e4m3)
{
	const struct bnb4 m = {.rows = a->rows,
			       .cols = a->cols,
			       .type = (enum bnb4_type)a->type,
			       .nested = a->absmax_codes,
			       .codes = AT(uint8_t, a->codes),
			       .absmax_codes = AT(uint8_t, a->absmax_codes),
			       .absmax = AT(float, a->absmax),
			       .offset = AT(float, a->offset),
			       .map = AT(float, a->map)};
	const struct mat to = {
		.data = AT(void, a->to), .rows = a->rows, .cols = a->cols, .ld = a->ld, .dtype = DTYPE_BF16};

	if (!e4m3) {
		bnb4_dequantize(&m, 0, &to, NULL);
		return;
	}
	for (uint32_t row = 0; row < a->rows; row++) {
		for (uint32_t col = 0; col < a->cols; col++) {
			const uint64_t i = (uint64_t)row * a->cols + col;
			const float scale =
				AT(const float,
				   a->scale)[(row >> a->row_shift) * a->scale_ld + (col >> a->col_shift)];
			const float number = bnb4_table(m.type)[m.codes[i / 2] >> (i % 2 ? 0 : 4) & 15] *
					     bnb4_absmax(&m, i / BNB4_BLOCK);

			AT(uint8_t, a->to)
			[(uint64_t)row * (uint64_t)a->ld + col] = e4m3_of_f32(number * (1 / scale));
		}
	}
}

static void dequantize(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_dequantize_args *a = args;

	(void)grid;
	for (uint32_t i = 0; i < a->count; i++)
		dequantize_one(&a->matrix[i], strstr(entry, "e4m3"));
}

static void quantize(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_quantize_args *a = args;
	const struct bnb4 m = {.rows = a->rows,
			       .cols = a->cols,
			       .type = (enum bnb4_type)a->type,
			       .codes = AT(uint8_t, a->codes),
			       .absmax = AT(float, a->absmax)};
	const struct mat from = {.data = AT(void, a->from),
				 .rows = a->rows,
				 .cols = a->cols,
				 .ld = a->ld,
				 .dtype = DTYPE_BF16};

	(void)entry;
	(void)grid;
	bnb4_quantize(&m, &from, NULL, NULL);
}

static void group_sums(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_nest_args *a = args;

	(void)entry;
	(void)grid;
	for (uint32_t i = 0; i < a->blocks; i++) {
		double *sum = &AT(double, a->sums)[i / BNB4_GROUP];

		*sum = (i % BNB4_GROUP ? *sum : 0) + (double)AT(const float, a->block_absmax)[i];
	}
}

static void mean(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_nest_args *a = args;
	double sum = 0;

	(void)entry;
	(void)grid;
	for (uint32_t i = 0; i < a->groups; i++)
		sum += AT(const double, a->sums)[i];
	*AT(float, a->offset) = (float)(sum / a->blocks);
}

static void nest(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_nest_args *a = args;
	const float offset = *AT(const float, a->offset), *absmax = AT(const float, a->block_absmax);

	(void)entry;
	(void)grid;
	memcpy(AT(float, a->map), bnb4_absmax_map(), BNB4_MAP * sizeof(float));
	for (uint32_t first = 0; first < a->blocks; first += BNB4_GROUP) {
		const uint32_t end = a->blocks - first < BNB4_GROUP ? a->blocks : first + BNB4_GROUP;
		float most = 0;

		for (uint32_t i = first; i < end; i++)
			most = fmaxf(most, fabsf(absmax[i] - offset));
		AT(float, a->absmax)[first / BNB4_GROUP] = most;
		for (uint32_t i = first; i < end; i++)
			AT(uint8_t, a->absmax_codes)
			[i] = (uint8_t)bnb4_absmax_code(bnb4_absmax_map(), (absmax[i] - offset) * (1 / most));
	}
}

const struct ref_row ref_bnb4[] = {
	{"bnb4_dequantize", dequantize, sizeof(struct bnb4_dequantize_args),
	 offsetof(struct bnb4_dequantize_args, matrix[0].to)},
	{"bnb4_dequantize_e4m3", dequantize, sizeof(struct bnb4_dequantize_args),
	 offsetof(struct bnb4_dequantize_args, matrix[0].to)},
	{"bnb4_quantize", quantize, sizeof(struct bnb4_quantize_args),
	 offsetof(struct bnb4_quantize_args, codes)},
	{"bnb4_group_sums", group_sums, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, sums)},
	{"bnb4_mean", mean, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, offset)},
	{"bnb4_nest", nest, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, absmax_codes)},
	{NULL, NULL, 0, 0},
};
