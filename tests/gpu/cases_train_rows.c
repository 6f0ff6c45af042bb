/* SPDX-License-Identifier: Apache-2.0 */
/* What goes over rows: A adds (dropout), wants h again (SwiGLU), has a part of the rows (gather); C has a part
 * of the columns (dropout) or of the rows (embedding); B begins within a block of the generator's.
 */
#include "cases_train.h"
#include "kernel/train/rows.h"

#define OF(type, member) offsetof(struct train_##type##_args, member)

static const struct tolerance once = {0x1p-7, 1e-5}, f32 = {1e-5, 1e-5};

static void begin(struct train_build *b, const void *args, size_t size)
{
	b->file = "train_rows";
	b->args_size = size;
	memcpy(b->args, args, size);
	b->threads = TRAIN_THREADS;
	b->grid[0] = train_blocks((uint64_t)b->rows, (uint64_t)b->cols);
	if (b->c->blocks)
		b->grid[0] = b->c->blocks;
}

/* A matrix and where its distance stands. */
static struct operand *matrix(struct train_build *b, const char *name, size_t at, size_t ld_at,
			      enum number type, int64_t rows, int64_t cols, enum use use)
{
	struct operand *o = train_operand(b, name, at, type, rows, cols, use);

	train_number(b, ld_at, o->ld);
	return o;
}

static void swiglu(struct train_build *b)
{
	const struct train_swiglu_args a = {.rows = (uint32_t)b->rows, .ffn = (uint32_t)b->cols};
	const bool backward = !strcmp(b->entry, "train_swiglu_bwd");
	struct operand *o;

	begin(b, &a, sizeof(a));
	o = matrix(b, "gate_up", OF(swiglu, gate_up), OF(swiglu, ld_gate_up), NUMBER_BF16, b->rows,
		   2 * b->cols, backward ? USE_ADDED : USE_IN);
	o->width = 8;
	o->tolerance = (struct tolerance){0x1p-7, 1e-5};
	o = matrix(b, "h", OF(swiglu, h), OF(swiglu, ld_h), NUMBER_BF16, b->rows, b->cols,
		   backward ? USE_IN : USE_OUT);
	o->tolerance = once;
	if (b->flags & TRAIN_A) {
		o = matrix(b, "h again", OF(swiglu, h_again), OF(swiglu, ld_h_again), NUMBER_BF16, b->rows,
			   b->cols, USE_OUT);
		o->tolerance = once;
	}
}

/* No row twice, and not all of them. */
static int32_t spread(const struct train_build *b, int64_t i)
{
	(void)b;
	return (int32_t)(2 * i + i % 2);
}

static void gather(struct train_build *b)
{
	const struct train_gather_args a = {.rows = (uint32_t)b->rows,
					    .cols = (uint32_t)b->cols,
					    .first = b->flags & TRAIN_A ? 3 : 0,
					    .count = (uint32_t)(b->flags & TRAIN_A ? b->rows : 2 * b->rows + 1)};
	const bool scatter = !strcmp(b->entry, "train_scatter_add");
	struct operand *o;

	begin(b, &a, sizeof(a));
	matrix(b, "from", OF(gather, from), OF(gather, ld_from), NUMBER_BF16,
	       scatter ? b->rows : a.count, b->cols, USE_IN);
	o = matrix(b, "to", OF(gather, to), OF(gather, ld_to), NUMBER_BF16,
		   scatter ? 2 * b->rows + 1 : b->rows, b->cols, scatter ? USE_ADDED : USE_OUT);
	o->tolerance = (struct tolerance){0, 0};
	o = train_operand(b, "row", OF(gather, row), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = spread;
	o->ld = 1;
	b->bytes = (scatter ? 6.0 : 4.0) * (double)b->rows * (double)b->cols;
}

/* Few tokens, often repeated, and one run of a single token: padding. */
static int32_t token(const struct train_build *b, int64_t i)
{
	return i > b->rows * 3 / 4 ? 5 : (int32_t)(i * i * 31 % 17);
}

static void embed_bwd(struct train_build *b)
{
	const struct train_embed_bwd_args a = {
		.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols, .bf16 = b->flags & TRAIN_A ? 1 : 0,
		.first = b->flags & TRAIN_C ? 4 : 0, .count = b->flags & TRAIN_C ? 9 : 20};
	struct operand *o;

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)b->rows;
	matrix(b, "dx", OF(embed_bwd, dx), OF(embed_bwd, ld_dx), NUMBER_BF16, b->rows, b->cols, USE_IN);
	o = matrix(b, "dtable", OF(embed_bwd, dtable), OF(embed_bwd, ld_dtable),
		   a.bf16 ? NUMBER_BF16 : NUMBER_F32, a.count, b->cols, USE_ADDED);
	o->tolerance = a.bf16 ? once : f32;
	o = train_operand(b, "token", OF(embed_bwd, token), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = token;
	o->ld = 1;
}

static void dropout(struct train_build *b)
{
	const float p = 0.1f;
	const struct train_dropout_args a = {
		.rows = (uint32_t)b->rows,
		.cols = (uint32_t)b->cols,
		.seed = 0x123456789abcdefu,
		.row_begin = ((uint64_t)1 << 32) - 3, /* the row's number passes 32 bits */
		.site = 77,
		.least = (uint32_t)((double)p * 0x1p32),
		.scale = 1 / (1 - p),
		.add = b->flags & TRAIN_A ? 1 : 0,
		.col_begin = b->flags & TRAIN_C ? 580 : 0,
	};

	begin(b, &a, sizeof(a));
	matrix(b, "x", OF(dropout, x), OF(dropout, ld_x), NUMBER_BF16, b->rows, b->cols, USE_IN);
	matrix(b, "y", OF(dropout, y), OF(dropout, ld_y), NUMBER_BF16, b->rows, b->cols,
	       a.add ? USE_ADDED : USE_OUT);
}

static void convert(struct train_build *b)
{
	const struct train_convert_args a = {.rows = (uint32_t)b->rows, .cols = (uint64_t)b->cols};
	const char *e = b->entry;

	begin(b, &a, sizeof(a));
	matrix(b, "from", OF(convert, from), OF(convert, ld_from),
	       strcmp(e, "train_to_bf16") ? NUMBER_BF16 : NUMBER_F32, b->rows, b->cols, USE_IN);
	matrix(b, "to", OF(convert, to), OF(convert, ld_to),
	       strcmp(e, "train_to_f32") ? NUMBER_BF16 : NUMBER_F32, b->rows, b->cols,
	       strcmp(e, "train_add_bf16") ? USE_OUT : USE_ADDED);
}

static void copy(struct train_build *b)
{
	const struct train_copy_args a = {.rows = (uint32_t)b->rows, .bytes = (uint64_t)b->cols};

	begin(b, &a, sizeof(a));
	b->grid[0] = train_blocks((uint64_t)b->rows, (uint64_t)(b->cols + 1) / 2);
	if (strcmp(b->entry, "train_zero"))
		matrix(b, "from", OF(copy, from), OF(copy, pitch_from), NUMBER_BYTE, b->rows, b->cols,
		       USE_IN);
	matrix(b, "to", OF(copy, to), OF(copy, pitch_to), NUMBER_BYTE, b->rows, b->cols, USE_OUT);
}

static void column_sums(struct train_build *b)
{
	const struct train_columns_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};
	struct operand *o;

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(b->cols + 255) / 256;
	b->grid[1] = train_column_parts((uint64_t)b->rows);
	matrix(b, "x", OF(columns, x), OF(columns, ld_x), NUMBER_BF16, b->rows, b->cols, USE_IN);
	o = train_operand(b, "sums", OF(columns, sums), NUMBER_F32, b->grid[1], b->cols, USE_OUT);
	o->ld = b->cols;
	o->tolerance = f32;
}

static void sums_add(struct train_build *b)
{
	const struct train_sums_args a = {
		.count = (uint64_t)b->rows, .cols = (uint64_t)b->cols, .bf16 = b->flags & TRAIN_A ? 1 : 0};
	struct operand *o;

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(b->cols + 31) / 32;
	o = train_operand(b, "sums", offsetof(struct train_sums_args, sums), NUMBER_F32, b->rows, b->cols,
			  USE_IN);
	o->ld = b->cols;
	o = train_operand(b, "out", offsetof(struct train_sums_args, out), a.bf16 ? NUMBER_BF16 : NUMBER_F32, 1,
			  b->cols, USE_ADDED);
	o->tolerance = a.bf16 ? once : f32;
}

static void random_rows(struct train_build *b)
{
	const struct train_random_args a = {
		.rows = (uint32_t)b->rows,
		.cols = (uint64_t)b->cols,
		.seed = 42,
		.stream = 0x89abcdefu,
		.first = b->flags & TRAIN_B ? 4 * (uint64_t)b->cols + 3 : (uint64_t)1 << 33,
		.centre = b->flags & TRAIN_A ? 1.0f : 0.0f,
		.width = 0.02f * 1.7320508f,
	};

	begin(b, &a, sizeof(a));
	matrix(b, "to", OF(random, to), OF(random, ld_to),
	       strcmp(b->entry, "train_random_bf16") ? NUMBER_F32 : NUMBER_BF16, b->rows, b->cols, USE_OUT);
}

const struct train_maker makers_train_rows[] = {
	{"train_swiglu", swiglu},
	{"train_swiglu_bwd", swiglu},
	{"train_gather", gather},
	{"train_scatter_add", gather},
	{"train_embed_bwd", embed_bwd},
	{"train_dropout", dropout},
	{"train_to_bf16", convert},
	{"train_to_f32", convert},
	{"train_add_bf16", convert},
	{"train_copy", copy},
	{"train_zero", copy},
	{"train_column_sums", column_sums},
	{"train_sums_add", sums_add},
	{"train_random_bf16", random_rows},
	{"train_random_f32", random_rows},
	{NULL, NULL},
};
