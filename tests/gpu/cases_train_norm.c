/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and RoPE: A adds a residual or wants dw; of heads A has a norm, B wants dw. Head cases: cols = heads
 * * 256 + dim. */
#include "cases_train.h"
#include "kernel/train/rmsnorm_rope.h"

#define NORM(member) offsetof(struct train_norm_args, member)
#define BWD(member) offsetof(struct train_norm_bwd_args, member)
#define HEAD(member) offsetof(struct train_head_args, member)

static const struct tolerance once = {0x1p-7, 1e-4}, f32 = {1e-5, 1e-5};

static void rmsnorm(struct train_build *b)
{
	const struct train_norm_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols, .eps = 1e-5f};
	const bool add = b->flags & TRAIN_A;
	struct operand *o;

	b->file = "train_norm";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "x", NORM(x), NUMBER_BF16, b->rows, b->cols, add ? USE_ADDED : USE_IN);
	train_number(b, NORM(ld_x), o->ld);
	o->width = 2;
	if (add) {
		o = train_operand(b, "add", NORM(add), NUMBER_BF16, b->rows, b->cols, USE_IN);
		train_number(b, NORM(ld_add), o->ld);
	}
	o = train_operand(b, "w", NORM(w), NUMBER_BF16, 1, b->cols, USE_IN);
	o->centre = 1;
	o->width = 0.5;
	o = train_operand(b, "y", NORM(y), NUMBER_BF16, b->rows, b->cols, USE_OUT);
	train_number(b, NORM(ld_y), o->ld);
	o->tolerance = train_twice_rounded;
	o = train_operand(b, "rstd", NORM(rstd), NUMBER_F32, b->rows, 1, USE_OUT);
	train_number(b, NORM(ld_rstd), o->ld);
	o->tolerance = f32;
	b->grid[0] = (unsigned)b->rows;
	b->threads = train_row_threads((uint64_t)b->cols);
}

static void rmsnorm_bwd(struct train_build *b)
{
	const struct train_norm_bwd_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};
	struct operand *o;

	b->file = "train_norm";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	b->grid[0] = (unsigned)b->rows;
	if (b->flags & TRAIN_A && b->grid[0] > TRAIN_SUMS_MAX)
		b->grid[0] = TRAIN_SUMS_MAX;
	if (b->c->blocks)
		b->grid[0] = b->c->blocks;
	o = train_operand(b, "dy", BWD(dy), NUMBER_BF16, b->rows, b->cols, USE_IN);
	train_number(b, BWD(ld_dy), o->ld);
	o = train_operand(b, "x", BWD(x), NUMBER_BF16, b->rows, b->cols, USE_IN);
	train_number(b, BWD(ld_x), o->ld);
	o->width = 2;
	o = train_operand(b, "w", BWD(w), NUMBER_BF16, 1, b->cols, USE_IN);
	o->centre = 1;
	o->width = 0.5;
	o = train_operand(b, "rstd", BWD(rstd), NUMBER_F32, b->rows, 1, USE_IN);
	train_number(b, BWD(ld_rstd), o->ld);
	o->centre = 0.9;
	o->width = 0.2;
	o = train_operand(b, "dx", BWD(dx), NUMBER_BF16, b->rows, b->cols, USE_ADDED);
	train_number(b, BWD(ld_dx), o->ld);
	o->tolerance = once;
	if (b->flags & TRAIN_A) {
		o = train_operand(b, "sums", BWD(sums), NUMBER_F32, b->grid[0], b->cols, USE_OUT);
		o->ld = b->cols;
		o->tolerance =
			(struct tolerance){1e-3, 1e-3}; /* an xhat between two BF16s may round either way */
	}
	b->threads = train_row_threads((uint64_t)b->cols);
}

static int32_t position(const struct train_build *b, int64_t i)
{
	return (int32_t)(i * 7 % (b->rows < 200 ? b->rows : 200));
}

static void head_operands(struct train_build *b, bool backward)
{
	const struct train_head_args *a = (const void *)b->args;
	const int64_t cols = (int64_t)a->heads * a->dim, positions = b->rows < 200 ? b->rows : 200;
	struct operand *o = train_operand(b, "x", HEAD(x), NUMBER_BF16, b->rows, cols, USE_ADDED);

	train_number(b, HEAD(ld_x), o->ld);
	o->tolerance =
		b->flags & TRAIN_A ? (struct tolerance){0x1p-6, 0x1p-6} : (struct tolerance){0x1p-7, 1e-5};
	o = train_operand(b, "position", HEAD(position), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = position;
	o->ld = 1;
	o = train_operand(b, "cos_sin", HEAD(cos_sin), NUMBER_F32, positions, a->dim, USE_IN);
	train_number(b, HEAD(ld_cos_sin), o->ld);
	if (!(b->flags & TRAIN_A))
		return;
	o = train_operand(b, "w", HEAD(w), NUMBER_BF16, 1, a->dim, USE_IN);
	o->centre = 1;
	o->width = 0.5;
	o = train_operand(b, "raw", HEAD(raw), NUMBER_BF16, b->rows, cols, backward ? USE_IN : USE_OUT);
	train_number(b, HEAD(ld_raw), o->ld);
	o = train_operand(b, "rstd", HEAD(rstd), NUMBER_F32, b->rows, a->heads, backward ? USE_IN : USE_OUT);
	train_number(b, HEAD(ld_rstd), o->ld);
	o->centre = 0.9;
	o->width = 0.2;
	o->tolerance = f32;
	if (b->flags & TRAIN_B) {
		o = train_operand(b, "sums", HEAD(sums), NUMBER_F32, b->grid[0], a->dim, USE_OUT);
		o->ld = a->dim;
		o->tolerance = (struct tolerance){1e-3, 1e-3};
	}
}

static void head(struct train_build *b)
{
	const bool backward = !strcmp(b->entry, "train_head_rope_bwd");
	struct train_head_args a = {.rows = (uint32_t)b->rows, .eps = 1e-6f};

	/* dim 256 has no remainder to stand in */
	a.heads = (uint32_t)(b->cols - 1) / 256;
	a.dim = (uint32_t)(b->cols - 1) % 256 + 1;
	b->file = "train_norm";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	b->threads = TRAIN_THREADS;
	b->grid[0] = train_blocks((uint64_t)b->rows, (uint64_t)a.heads * a.dim);
	if (b->flags & TRAIN_B && b->grid[0] > TRAIN_SUMS_MAX)
		b->grid[0] = TRAIN_SUMS_MAX;
	if (b->c->blocks)
		b->grid[0] = b->c->blocks;
	head_operands(b, backward);
}

const struct train_maker makers_train_norm[] = {
	{"train_rmsnorm", rmsnorm},
	{"train_rmsnorm_bwd", rmsnorm_bwd},
	{"train_head_rope", head},
	{"train_head_rope_bwd", head},
	{NULL, NULL},
};
