/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/train/rows.cu on the host: sums in double, masks and weights by core/math/random.c. */
#include "core/math/random.h"
#include "kernel/train/rows.h"
#include "ref_train.h"

#define EACH(a, t, j, columns)                                                                               \
	for (int64_t t = 0; t < (a)->rows; t++)                                                              \
		for (int64_t j = 0; j < (int64_t)(columns); j++)

static void swiglu(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_swiglu_args *a = args;

	(void)entry, (void)grid;
	EACH(a, t, j, a->ffn)
	{
		double g = ref_number(a->gate_up, t * a->ld_gate_up + j);
		double u = ref_number(a->gate_up, t * a->ld_gate_up + a->ffn + j);

		ref_put_number(a->h, t * a->ld_h + j, g / (1 + exp(-g)) * u);
	}
}

static void swiglu_bwd(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_swiglu_args *a = args;

	(void)entry, (void)grid;
	EACH(a, t, j, a->ffn)
	{
		const int64_t gate = t * a->ld_gate_up + j, up = gate + a->ffn;
		double g = ref_number(a->gate_up, gate), u = ref_number(a->gate_up, up),
		       s = 1 / (1 + exp(-g));
		double dh = ref_number(a->h, t * a->ld_h + j);

		ref_put_number(a->gate_up, gate, dh * u * (s + g * s * (1 - s)));
		ref_put_number(a->gate_up, up, dh * g * s);
		if (a->h_again)
			ref_put_number(a->h_again, t * a->ld_h_again + j, g * s * u);
	}
}

static void gather(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_gather_args *a = args;
	const int32_t *row = AT(const int32_t, a->row);

	(void)entry, (void)grid;
	EACH(a, t, j, a->cols)
	{
		const int64_t from = (int64_t)row[t] - a->first;

		AT(train_real, a->to)
		[t * a->ld_to + j] =
			from >= 0 && from < a->count ? AT(const train_real, a->from)[from * a->ld_from + j] : 0;
	}
}

static void scatter_add(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_gather_args *a = args;

	(void)entry, (void)grid;
	EACH(a, t, j, a->cols)
	{
		const int64_t to = AT(const int32_t, a->row)[t] * a->ld_to + j;

		ref_put_number(a->to, to, ref_number(a->to, to) + ref_number(a->from, t * a->ld_from + j));
	}
}

/* The rows of one token among TRAIN_THREADS positions from `first` on. */
static double of_token(const struct train_embed_bwd_args *a, int32_t token, int64_t first, int64_t j, bool *any)
{
	double sum = 0;

	*any = false;
	for (int64_t t = first; t < first + TRAIN_THREADS && t < a->rows; t++)
		if (AT(const int32_t, a->token)[t] == token) {
			sum += ref_bf16(a->dx, t * a->ld_dx + j);
			*any = true;
		}
	return sum;
}

static bool has_token(const struct train_embed_bwd_args *a, int32_t token)
{
	return token >= a->first && token - a->first < (int64_t)a->count;
}

/* In BF16 the sum is rounded where the kernel does: after each TRAIN_THREADS positions from a token's first. */
static void embed_bwd_bf16(const struct train_embed_bwd_args *a)
{
	for (int64_t own = 0; own < a->rows; own++) {
		const int32_t token = AT(const int32_t, a->token)[own];
		bool is_first = has_token(a, token);

		for (int64_t t = 0; t < own; t++)
			is_first = is_first && AT(const int32_t, a->token)[t] != token;
		for (int64_t first = own; is_first && first < a->rows; first += TRAIN_THREADS)
			for (int64_t j = 0; j < a->cols; j++) {
				const int64_t to = (token - a->first) * a->ld_dtable + j;
				bool any;
				const double sum = of_token(a, token, first, j, &any);

				if (any)
					ref_put_bf16(a->dtable, to, ref_bf16(a->dtable, to) + sum);
			}
	}
}

static void embed_bwd(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_embed_bwd_args *a = args;

	(void)entry, (void)grid;
	if (a->bf16) {
		embed_bwd_bf16(a);
		return;
	}
	EACH(a, t, j, a->cols)
	{
		const int32_t token = AT(const int32_t, a->token)[t];

		if (has_token(a, token))
			AT(float, a->dtable)
		[(token - a->first) * a->ld_dtable + j] += (float)ref_number(a->dx, t * a->ld_dx + j);
	}
}

static void dropout(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_dropout_args *a = args;
	const uint32_t key[2] = {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)};

	(void)entry, (void)grid;
	EACH(a, t, j, a->cols)
	{
		const uint64_t row = a->row_begin + (uint64_t)t;
		const uint32_t counter[4] = {(uint32_t)((a->col_begin + j) / 4), (uint32_t)row, (uint32_t)(row >> 32),
					     a->site};
		const float x = (float)ref_number(a->x, t * a->ld_x + j);
		const int64_t y = t * a->ld_y + j;
		uint32_t word[4];
		float kept;

		philox4x32(word, counter, key);
		kept = word[j % 4] >= a->least ? x * a->scale : 0;
		ref_put_number(a->y, y, (double)(a->add ? (float)ref_number(a->y, y) + kept : kept));
	}
}

static void column_sums(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_columns_args *a = args;
	const int64_t parts = grid.blocks / ((a->cols + 255) / 256), each = (a->rows + parts - 1) / parts;

	(void)entry;
	for (int64_t part = 0; part < parts; part++)
		for (int64_t j = 0; j < a->cols; j++) {
			double sum = 0;

			for (int64_t t = part * each; t < (part + 1) * each && t < a->rows; t++)
				sum += ref_number(a->x, t * a->ld_x + j);
			AT(float, a->sums)[part * a->cols + j] = (float)sum;
		}
}

#ifndef TRAIN_F32
static void convert(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_convert_args *a = args;

	(void)grid;
	EACH(a, t, j, a->cols)
	{
		const int64_t from = t * a->ld_from + j, to = t * a->ld_to + j;

		if (!strcmp(entry, "train_to_bf16"))
			AT(uint16_t, a->to)[to] = bf16_of_f32(AT(const float, a->from)[from]);
		else if (!strcmp(entry, "train_to_f32"))
			AT(float, a->to)[to] = bf16_to_f32(AT(const uint16_t, a->from)[from]);
		else
			ref_put_bf16(a->to, to, ref_bf16(a->to, to) + ref_bf16(a->from, from));
	}
}

static void copy(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_copy_args *a = args;

	(void)grid;
	for (int64_t t = 0; t < a->rows; t++) {
		if (!strcmp(entry, "train_zero"))
			memset(AT(char, a->to) + t * a->pitch_to, 0, a->bytes);
		else
			memcpy(AT(char, a->to) + t * a->pitch_to, AT(const char, a->from) + t * a->pitch_from,
			       a->bytes);
	}
}

static void sums_add(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_sums_args *a = args;

	(void)entry, (void)grid;
	for (uint64_t j = 0; j < a->cols; j++) {
		double sum = 0;

		for (uint64_t i = 0; i < a->count; i++)
			sum += (double)AT(const float, a->sums)[i * a->cols + j];
		if (a->bf16)
			ref_put_bf16(a->out, (int64_t)j, ref_bf16(a->out, (int64_t)j) + sum);
		else
			AT(float, a->out)[j] += (float)sum;
	}
}

static void random_rows(const char *entry, struct ref_grid grid, const void *args)
{
	const struct train_random_args *a = args;

	(void)grid;
	EACH(a, t, j, a->cols)
	{
		const uint64_t i = a->first + (uint64_t)t * a->cols + (uint64_t)j;
		const float product = a->width * random_f32(a->seed, a->stream, i), w = a->centre + product;

		if (!strcmp(entry, "train_random_bf16"))
			AT(uint16_t, a->to)[t * a->ld_to + j] = bf16_of_f32(w);
		else
			AT(float, a->to)[t * a->ld_to + j] = w;
	}
}
#endif

#define ROW(name, run, type, member)                                                                         \
	{                                                                                                    \
		name, run, sizeof(struct type), offsetof(struct type, member)                                \
	}
const struct ref_row REF_TRAIN_ROWS(ref_train_rows)[] = {
	ROW(REF_TRAIN_ENTRY("train_swiglu"), swiglu, train_swiglu_args, h),
	ROW(REF_TRAIN_ENTRY("train_swiglu_bwd"), swiglu_bwd, train_swiglu_args, gate_up),
	ROW(REF_TRAIN_ENTRY("train_gather"), gather, train_gather_args, to),
	ROW(REF_TRAIN_ENTRY("train_scatter_add"), scatter_add, train_gather_args, to),
	ROW(REF_TRAIN_ENTRY("train_embed_bwd"), embed_bwd, train_embed_bwd_args, dtable),
	ROW(REF_TRAIN_ENTRY("train_dropout"), dropout, train_dropout_args, y),
	ROW(REF_TRAIN_ENTRY("train_column_sums"), column_sums, train_columns_args, sums),
#ifndef TRAIN_F32
	ROW("train_to_bf16", convert, train_convert_args, to),
	ROW("train_to_f32", convert, train_convert_args, to),
	ROW("train_add_bf16", convert, train_convert_args, to),
	ROW("train_copy", copy, train_copy_args, to),
	ROW("train_zero", copy, train_copy_args, to),
	ROW("train_sums_add", sums_add, train_sums_args, out),
	ROW("train_random_bf16", random_rows, train_random_args, to),
	ROW("train_random_f32", random_rows, train_random_args, to),
#endif
	{NULL, NULL, 0, 0},
};
