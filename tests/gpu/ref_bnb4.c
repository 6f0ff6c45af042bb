/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/bnb4/bnb4.h on the host. Codes and numbers are those of model/bnb4; double quantization is written
 * out. */
#include "kernel/bnb4/bnb4.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "model/bnb4/bnb4.h"
#include "model/tensor/dtype.h"
#include "ref.h"

#define AT(type, address) ((type *)(uintptr_t)(address))

static struct bnb4 matrix_of(const struct bnb4_codes *a, int64_t rows, int64_t cols, uint32_t type)
{
	return (struct bnb4){.rows = rows,
			     .cols = cols,
			     .type = (enum bnb4_type)type,
			     .nested = a->absmax_codes,
			     .codes = AT(uint8_t, a->codes),
			     .absmax_codes = AT(uint8_t, a->absmax_codes),
			     .absmax = AT(float, a->absmax),
			     .offset = AT(float, a->offset),
			     .map = AT(float, a->map)};
}

static void dequantize(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_dequantize_args *a = args;

	(void)entry;
	(void)grid;
	for (uint32_t i = 0; i < a->count; i++) {
		const struct bnb4_matrix_args *m = &a->matrix[i];
		const struct bnb4 from = matrix_of(&m->from, m->rows, m->cols, m->type);
		const struct mat to = {.data = AT(void, m->to),
				       .rows = m->rows,
				       .cols = m->cols,
				       .ld = m->ld,
				       .dtype = DTYPE_BF16};

		bnb4_dequantize(&from, 0, &to, NULL);
	}
}

/* Dequantizes all parts to BF16, then quantizes tile by tile. */
static void to_fp8(const char *entry, struct ref_grid grid, const void *args)
{
	const struct bnb4_fp8_args *a = args;
	const struct train_fp8_weights *q = &a->q;
	uint16_t *w = malloc(2 * (size_t)q->rows * q->cols);
	const struct train_fp8_weights_args all = {.w = (uintptr_t)w, .ld_w = q->cols, .q = *q};

	(void)entry;
	for (uint32_t i = 0; w && i < a->parts; i++) {
		const struct bnb4_fp8_part *p = &a->part[i];
		const uint32_t end = i + 1 < a->parts ? a->part[i + 1].begin : q->rows;
		const struct bnb4 from = matrix_of(&p->from, end - p->begin, q->cols, p->type);
		const struct mat to = {.data = w + (size_t)p->begin * q->cols,
				       .rows = end - p->begin,
				       .cols = q->cols,
				       .ld = q->cols,
				       .dtype = DTYPE_BF16};

		bnb4_dequantize(&from, 0, &to, NULL);
	}
	for (const struct ref_row *row = ref_train_fp8; w && row->entry; row++)
		if (!strcmp(row->entry, "train_fp8_weights"))
			row->run(row->entry, grid, &all);
	free(w);
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
	{"bnb4_to_fp8", to_fp8, sizeof(struct bnb4_fp8_args), offsetof(struct bnb4_fp8_args, q.to)},
	{"bnb4_quantize", quantize, sizeof(struct bnb4_quantize_args),
	 offsetof(struct bnb4_quantize_args, codes)},
	{"bnb4_group_sums", group_sums, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, sums)},
	{"bnb4_mean", mean, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, offset)},
	{"bnb4_nest", nest, sizeof(struct bnb4_nest_args), offsetof(struct bnb4_nest_args, absmax_codes)},
	{NULL, NULL, 0, 0},
};
