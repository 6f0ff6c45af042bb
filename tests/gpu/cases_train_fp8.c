/* SPDX-License-Identifier: Apache-2.0 */
/* What quantizes for GEMMs in FP8. A plants numbers that are not finite, which are counted; for SwiGLU it wants h
 * again, for columns C wants the rows too, for SwiGLU no h. B plants a row and a column of much larger numbers. */
#include "cases_train.h"
#include "kernel/train/fp8.h"

#define OF(type, member) offsetof(struct train_fp8_##type##_args, member)

static const struct tolerance once = {0x1p-7, 1e-5};
/* Where the norm or SwiGLU may have rounded otherwise: a neighbouring element of E4M3, and a scale of a
 * neighbouring largest number. Both move an element by at most 2^-5, and its neighbours are 2^-4 away or more,
 * so it becomes a neighbour at most. */
static const struct tolerance neighbour = {0.13, 1e-3}, near_scale = {0x1p-7, 1e-5};

static int64_t tiles(int64_t elements)
{
	return (elements + TRAIN_FP8_TILE - 1) / TRAIN_FP8_TILE;
}

static void begin(struct train_build *b, const void *args, size_t size)
{
	b->file = "train_fp8";
	b->args_size = size;
	memcpy(b->args, args, size);
	b->threads = TRAIN_THREADS;
	b->grid[0] = train_fp8_blocks((uint64_t)b->rows, (uint64_t)b->cols);
}

static struct operand *matrix(struct train_build *b, const char *name, size_t at, size_t ld_at, int64_t rows,
			      int64_t cols, enum use use)
{
	struct operand *o = train_operand(b, name, at, NUMBER_BF16, rows, cols, use);

	train_number(b, ld_at, o->ld);
	return o;
}

/* E4M3: rows begin at multiples of 8 bytes, whatever the other operands do. */
static struct operand *elements(struct train_build *b, const char *name, size_t at, size_t ld_at, int64_t rows,
				int64_t cols)
{
	struct operand *o = train_operand(b, name, at, NUMBER_E4M3, rows, cols, USE_OUT);

	o->ld = (cols + 7) / 8 * 8 + (b->flags & (TRAIN_SLICED | TRAIN_ODD) ? 8 : 0);
	o->shift = 0;
	train_number(b, ld_at, o->ld);
	return o;
}

static struct operand *scales(struct train_build *b, const char *name, size_t at, size_t step_at, int64_t rows,
			      int64_t cols)
{
	struct operand *o = train_operand(b, name, at, NUMBER_F32, rows, cols, USE_OUT);

	train_number(b, step_at, o->ld);
	return o;
}

static int32_t nothing_yet(const struct train_build *b, int64_t i)
{
	(void)b, (void)i;
	return 7;
}

static void counter(struct train_build *b, size_t at)
{
	struct operand *o = train_operand(b, "overflows", at, NUMBER_I32, 1, 1, USE_ADDED);

	o->ld = 1;
	o->shift = 0;
	o->number = nothing_yet;
}

/* The first operand is the input. */
static void plant(struct train_build *b)
{
	const struct operand *o = &b->operand[0];
	uint16_t *x = (uint16_t *)(void *)o->host + o->shift;

	for (int64_t j = 0; b->flags & TRAIN_B && j < o->cols; j++)
		x[o->rows / 2 * o->ld + j] |= 0x4400; /* a row of magnitudes from 2^8 on */
	for (int64_t i = 0; b->flags & TRAIN_B && i < o->rows; i++)
		x[i * o->ld + o->cols / 2] = (uint16_t)(i % 3 ? 0 : 0x0100); /* a column of zeros and of 2^-125 */
	if (!(b->flags & TRAIN_A))
		return;
	x[0] = 0x7f80;						/* infinity */
	x[o->ld + o->cols - 1] = 0x7fc1;			/* NaN */
	x[(o->rows - 1) * o->ld + o->cols / 3] = 0xff80;	/* -infinity */
}

static void rows_operands(struct train_build *b, size_t at, int64_t rows, int64_t cols,
			  const struct tolerance *element, const struct tolerance *scale)
{
	elements(b, "E4M3", at + offsetof(struct train_fp8_rows, to), at + offsetof(struct train_fp8_rows, ld),
		 rows, cols)
		->tolerance = *element;
	scales(b, "scales", at + offsetof(struct train_fp8_rows, scale),
	       at + offsetof(struct train_fp8_rows, step), tiles(cols), rows)
		->tolerance = *scale;
	counter(b, at + offsetof(struct train_fp8_rows, overflows));
}

static const struct tolerance exact = {0, 0};

static void quantize(struct train_build *b)
{
	const struct train_fp8_quantize_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};

	begin(b, &a, sizeof(a));
	matrix(b, "x", OF(quantize, x), OF(quantize, ld_x), b->rows, b->cols, USE_IN);
	rows_operands(b, OF(quantize, y), b->rows, b->cols, &exact, &exact);
	b->prepare = plant;
}

static void columns(struct train_build *b)
{
	const struct train_fp8_columns_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(tiles(b->cols) * tiles(b->rows));
	b->shared_bytes = TRAIN_FP8_SQUARE_SHARED;
	matrix(b, "x", OF(columns, x), OF(columns, ld_x), b->rows, b->cols, USE_IN);
	rows_operands(b, OF(columns, y), b->cols, b->rows, &exact, &exact);
	if (b->flags & TRAIN_C)
		rows_operands(b, OF(columns, q), b->rows, b->cols, &exact, &exact);
	b->prepare = plant;
}

static void weights(struct train_build *b)
{
	const struct train_fp8_weights_args a = {.q = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols}};

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(tiles(b->cols) * tiles(b->rows));
	b->shared_bytes = TRAIN_FP8_TURN_SHARED;
	matrix(b, "w", OF(weights, w), OF(weights, ld_w), b->rows, b->cols, USE_IN);
	elements(b, "E4M3", OF(weights, q.to), OF(weights, q.ld_to), b->rows, b->cols);
	scales(b, "scales", OF(weights, q.scale), OF(weights, q.step), tiles(b->rows), tiles(b->cols));
	counter(b, OF(weights, q.overflows));
	b->prepare = plant;
	if (b->flags & TRAIN_C)
		return;
	elements(b, "transposed", OF(weights, q.transposed), OF(weights, q.ld_transposed), b->cols, b->rows);
	scales(b, "scales transposed", OF(weights, q.scale_transposed), OF(weights, q.step_transposed),
	       tiles(b->cols), tiles(b->rows));
}

/* Rows of the operand begin at multiples of 16 bytes. */
static void transpose(struct train_build *b)
{
	const struct train_fp8_transpose_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};
	struct operand *o;

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(tiles(b->cols) * tiles(b->rows));
	b->shared_bytes = TRAIN_FP8_TURN_SHARED;
	o = train_operand(b, "from", OF(transpose, from), NUMBER_E4M3, b->rows, b->cols, USE_IN);
	o->ld = (b->cols + 15) / 16 * 16 + (b->flags & TRAIN_SLICED ? 16 : 0);
	o->shift = 0;
	train_number(b, OF(transpose, ld_from), o->ld);
	o = train_operand(b, "scales", OF(transpose, scale), NUMBER_F32, tiles(b->rows), tiles(b->cols), USE_IN);
	train_number(b, OF(transpose, step), o->ld);
	elements(b, "transposed", OF(transpose, to), OF(transpose, ld_to), b->cols, b->rows);
	scales(b, "scales transposed", OF(transpose, scale_to), OF(transpose, step_to), tiles(b->cols),
	       tiles(b->rows));
}

static void rmsnorm(struct train_build *b)
{
	const struct train_fp8_norm_args a = {
		.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols, .eps = 1e-5f};
	struct operand *o;

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)b->rows;
	b->threads = train_row_threads((uint64_t)b->cols);
	b->shared_bytes = TRAIN_FP8_NORM_SHARED;
	matrix(b, "x", OF(norm, x), OF(norm, ld_x), b->rows, b->cols, USE_IN);
	o = train_operand(b, "w", OF(norm, w), NUMBER_BF16, 1, b->cols, USE_IN);
	o->centre = 1;
	matrix(b, "y", OF(norm, y), OF(norm, ld_y), b->rows, b->cols, USE_OUT)->tolerance =
		train_twice_rounded;
	o = train_operand(b, "rstd", OF(norm, rstd), NUMBER_F32, b->rows, 1, USE_OUT);
	o->tolerance = (struct tolerance){1e-5, 1e-5};
	train_number(b, OF(norm, ld_rstd), o->ld);
	/* a scale is the largest y, divided */
	rows_operands(b, OF(norm, q), b->rows, b->cols, &neighbour, &train_twice_rounded);
}

static void swiglu(struct train_build *b)
{
	const struct train_fp8_swiglu_args a = {.rows = (uint32_t)b->rows, .ffn = (uint32_t)b->cols};
	const bool backward = !strcmp(b->entry, "train_fp8_swiglu_bwd");
	struct operand *o;

	begin(b, &a, sizeof(a));
	o = matrix(b, "gate_up", OF(swiglu, gate_up), OF(swiglu, ld_gate_up), b->rows, 2 * b->cols,
		   backward ? USE_ADDED : USE_IN);
	o->width = 8;
	o->tolerance = once;
	if (!(b->flags & TRAIN_C))
		matrix(b, "h", OF(swiglu, h), OF(swiglu, ld_h), b->rows, b->cols, backward ? USE_IN : USE_OUT)
			->tolerance = once;
	if (b->flags & TRAIN_A)
		matrix(b, "h again", OF(swiglu, h_again), OF(swiglu, ld_h_again), b->rows, b->cols, USE_OUT)
			->tolerance = once;
	rows_operands(b, OF(swiglu, q), b->rows, (backward ? 2 : 1) * b->cols, &neighbour, &near_scale);
}

static void swiglu_columns(struct train_build *b)
{
	const struct train_fp8_swiglu_columns_args a = {.rows = (uint32_t)b->rows, .ffn = (uint32_t)b->cols};

	begin(b, &a, sizeof(a));
	b->grid[0] = (unsigned)(tiles(b->cols) * tiles(b->rows));
	b->shared_bytes = TRAIN_FP8_SWIGLU_SHARED;
	matrix(b, "gate_up", OF(swiglu_columns, gate_up), OF(swiglu_columns, ld_gate_up), b->rows, 2 * b->cols,
	       USE_IN)
		->width = 8;
	matrix(b, "dh", OF(swiglu_columns, dh), OF(swiglu_columns, ld_dh), b->rows, b->cols, USE_IN);
	rows_operands(b, OF(swiglu_columns, q), b->rows, 2 * b->cols, &neighbour, &near_scale);
	rows_operands(b, OF(swiglu_columns, y), 2 * b->cols, b->rows, &neighbour, &near_scale);
	rows_operands(b, OF(swiglu_columns, again), b->cols, b->rows, &neighbour, &near_scale);
	if (b->flags & TRAIN_A)
		b->prepare = plant;
}

static void add_bias(struct train_build *b)
{
	const struct train_fp8_bias_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};

	begin(b, &a, sizeof(a));
	matrix(b, "y", OF(bias, y), OF(bias, ld_y), b->rows, b->cols, USE_ADDED)->tolerance = exact;
	train_operand(b, "bias", OF(bias, bias), NUMBER_BF16, 1, b->cols, USE_IN);
}

const struct train_maker makers_train_fp8[] = {
	{"train_fp8_quantize", quantize}, {"train_fp8_columns", columns}, {"train_fp8_weights", weights},
	{"train_fp8_transpose", transpose},
	{"train_fp8_rmsnorm", rmsnorm},	  {"train_fp8_swiglu", swiglu},	  {"train_fp8_swiglu_bwd", swiglu},
	{"train_fp8_swiglu_bwd_columns", swiglu_columns},
	{"train_fp8_add_bias", add_bias}, {NULL, NULL},
};
