/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/step/rows.cu in double, with its roundings to BF16 and E4M3. */
#include "kernel/step/rows.h"
#include "ref_number.h"
#include "ref_train.h"

static void embed(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_embed_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		int64_t id = AT(const int32_t, a->token)[t];

		if (id < 0)
			id = -1 - id < (int64_t)a->places ? AT(const int32_t, a->last)[-1 - id] : -1;
		for (int64_t j = 0; j < a->cols; j++)
			AT(uint16_t, a->x)
		[t * a->ld_x + j] = id >= 0 && id < (int64_t)a->vocab
					    ? AT(const uint16_t, a->table)[id * a->ld_table + j]
					    : 0;
	}
}

/* Row t, in BF16 at `from`, to E4M3. */
static void put_e4m3(uint64_t from, uint64_t to, uint64_t scale, int64_t t, int64_t cols)
{
	float most = 0;

	for (int64_t j = 0; j < cols; j++)
		most = fmaxf(most, (float)fabs(ref_bf16(from, j)));
	AT(float, scale)[t] = most > 0 ? most / 448.0f : 1;
	for (int64_t j = 0; j < cols; j++)
		ref_number_store(ATTENTION_E4M3, AT(void, to), (uint64_t)j,
				 (double)((float)ref_bf16(from, j) * (most > 0 ? 448.0f / most : 1)));
}

static void rmsnorm(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_norm_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		double sum = 0, rstd;

		for (int64_t j = 0; j < a->cols; j++)
			sum += pow(ref_bf16(a->x, t * a->ld_x + j), 2);
		rstd = 1 / sqrt(sum / a->cols + (double)a->eps);
		if (a->rstd)
			AT(float, a->rstd)[t * a->ld_rstd] = (float)rstd;
		for (int64_t j = 0; j < a->cols; j++)
			ref_put_bf16(a->y, t * a->ld_y + j,
				     ref_bf16(a->w, j) * ref_round(ref_bf16(a->x, t * a->ld_x + j) * rstd));
		if (a->y_e4m3)
			put_e4m3(a->y + 2 * (uint64_t)(t * a->ld_y), a->y_e4m3 + (uint64_t)(t * a->ld_e4m3),
				 a->scale, t, a->cols);
	}
}

static void swiglu(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_swiglu_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t j = 0; j < a->ffn; j++) {
			const double g = ref_bf16(a->gate_up, t * a->ld_gate_up + j);

			ref_put_bf16(a->h, t * a->ld_h + j,
				     g / (1 + exp(-g)) *
					     ref_bf16(a->gate_up, t * a->ld_gate_up + a->ffn + j));
		}
}

static void mask(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_mask_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (uint32_t j = 0; j < a->cols; j++)
			if ((int32_t)(j % a->period / a->rank) != AT(const int32_t, a->adapter)[t])
				AT(uint16_t, a->u)[t * a->ld_u + j] = 0;
}

static void scale(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_scale_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t j = 0; j < a->cols; j++) {
			const int64_t adapter = a->adapter ? AT(const int32_t, a->adapter)[t] : 0;
			double y = ref_bf16(a->y, t * a->ld_y + j);

			y *= adapter >= 0 ? (double)AT(const float, a->ratio)[adapter * a->ld_ratio + j] : 1;
			y += a->bias ? ref_bf16(a->bias, j) : 0;
			y += a->residual ? ref_bf16(a->residual, t * a->ld_residual + j) : 0;
			ref_put_bf16(a->y, t * a->ld_y + j, y);
		}
}

static void quantize(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_quantize_args *a = args;

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		put_e4m3(a->x + 2 * (uint64_t)(t * a->ld_x), a->y_e4m3 + (uint64_t)(t * a->ld_e4m3), a->scale,
			 t, a->cols);
}

static void swiglu_e4m3(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_swiglu_args *a = args;

	swiglu(entry, grid, args);
	for (int64_t t = 0; t < a->rows; t++)
		put_e4m3(a->h + 2 * (uint64_t)(t * a->ld_h), a->h_e4m3 + (uint64_t)(t * a->ld_e4m3), a->scale,
			 t, a->ffn);
}

/* Norm and rotation of a head; each result rounded to BF16. */
static void turn(const struct step_rope_args *a, int64_t t, uint64_t norm, double *x)
{
	const float *angles = AT(const float, a->cos_sin) + AT(const int32_t, a->position)[t] * a->ld_cos_sin;
	const int64_t half = a->head_dim / 2;
	double sum = 0, rstd;

	for (int64_t j = 0; j < a->head_dim; j++)
		sum += x[j] * x[j];
	rstd = 1 / sqrt(sum / a->head_dim + (double)a->eps);
	for (int64_t j = 0; norm && j < a->head_dim; j++)
		x[j] = ref_bf16(norm, j) * ref_round(x[j] * rstd);
	for (int64_t j = 0; j < half; j++) {
		const double c = (double)angles[j], s = (double)angles[half + j], first = x[j];

		x[j] = ref_round(first * c - x[half + j] * s);
		x[half + j] = ref_round(x[half + j] * c + first * s);
	}
}

static void put_cache(const struct step_rope_args *a, int64_t slot, int64_t which, const double *x)
{
	const int64_t at = slot * a->ld_kv + which * a->head_dim;
	float most = 0;

	for (int64_t j = 0; j < a->head_dim; j++)
		most = isnan(most) || fabs(x[j]) <= (double)most ? most : (float)fabs(x[j]);
	if (a->scale)
		AT(float, a->scale)
		[paged_scale_at((uint64_t)slot, (uint32_t)which, (uint64_t)a->ld_scale, a->page_bits)] =
			most / 448.0f;
	for (int64_t j = 0; j < a->head_dim; j++) {
		if (!a->scale)
			ref_put_bf16(a->kv, at + j, x[j]);
		else if (isnan(most))
			AT(uint8_t, a->kv)[at + j] = 0x7f;
		else
			ref_number_store(ATTENTION_E4M3, AT(void, a->kv), (uint64_t)(at + j),
					 most > 0 ? (double)((float)x[j] * (448.0f / most)) : 0);
	}
}

static void rope(const char *entry, struct ref_grid grid, const void *args)
{
	const struct step_rope_args *a = args;
	const int64_t all = (int64_t)a->heads + 2 * a->kv_heads;
	double x[STEP_HEAD_DIM_MAX];

	(void)entry, (void)grid;
	for (int64_t t = 0; t < a->rows; t++)
		for (int64_t h = 0; h < all; h++) {
			const int64_t at = t * a->ld_qkv + h * a->head_dim;

			for (int64_t j = 0; j < a->head_dim; j++)
				x[j] = ref_bf16(a->qkv, at + j);
			if (h < (int64_t)a->heads + a->kv_heads)
				turn(a, t, h < a->heads ? a->q_norm : a->k_norm, x);
			if (h >= a->heads)
				put_cache(a, AT(const int32_t, a->slot)[t], h - a->heads, x);
			else
				for (int64_t j = 0; j < a->head_dim; j++)
					ref_put_bf16(a->qkv, at + j, x[j]);
		}
}

#define ROW(entry, run, type, out)                                                                           \
	{                                                                                                    \
		entry, run, sizeof(struct type), offsetof(struct type, out)                                  \
	}
const struct ref_row ref_step_rows[] = {
	ROW("step_embed", embed, step_embed_args, x),
	ROW("step_rmsnorm", rmsnorm, step_norm_args, y),
	ROW("step_swiglu", swiglu, step_swiglu_args, h),
	ROW("step_rope", rope, step_rope_args, qkv),
	ROW("step_adapter_mask", mask, step_mask_args, u),
	ROW("step_adapter_scale", scale, step_scale_args, y),
	ROW("step_swiglu_e4m3", swiglu_e4m3, step_swiglu_args, h),
	ROW("step_swiglu_e4m3_wide", swiglu_e4m3, step_swiglu_args, h),
	ROW("step_quantize", quantize, step_quantize_args, y_e4m3),
	{NULL, NULL, 0, 0},
};
