/* SPDX-License-Identifier: Apache-2.0 */
/* The small kernels of a step against their references. RoPE: A has norms, B an E4M3 cache; cols = heads +
 * 256 kv_heads + 65536 (head_dim / 16). */
#include "cases_step.h"
#include "kernel/step/rows.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define EMBED(member) offsetof(struct step_embed_args, member)
#define NORM(member) offsetof(struct step_norm_args, member)
#define SWIGLU(member) offsetof(struct step_swiglu_args, member)
#define QUANTIZE(field) offsetof(struct step_quantize_args, field)
#define MASK(member) offsetof(struct step_mask_args, member)
#define SCALE(member) offsetof(struct step_scale_args, member)
#define ROPE(member) offsetof(struct step_rope_args, member)

enum { VOCAB = 211, PLACES = 5, ADAPTERS = 3 };

static int32_t token(const struct train_build *b, int64_t i)
{
	(void)b;
	return (int32_t)(i % 3 == 1 ? -1 - i % PLACES
			 : i == 6   ? VOCAB
			 : i == 9   ? -1 - PLACES
				    : i * 31 % VOCAB);
}

static int32_t last(const struct train_build *b, int64_t i)
{
	(void)b;
	return (int32_t)(i * 57 % VOCAB);
}

static void embed(struct train_build *b)
{
	const struct step_embed_args a = {
		.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols, .vocab = VOCAB, .places = PLACES};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "token", EMBED(token), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = token;
	o->ld = 1;
	o = train_operand(b, "last", EMBED(last), NUMBER_I32, PLACES, 1, USE_IN);
	o->number = last;
	o->ld = 1;
	o = train_operand(b, "table", EMBED(table), NUMBER_BF16, VOCAB, b->cols, USE_IN);
	train_number(b, EMBED(ld_table), o->ld);
	o = train_operand(b, "x", EMBED(x), NUMBER_BF16, b->rows, b->cols, USE_OUT);
	train_number(b, EMBED(ld_x), o->ld);
	b->grid[0] = step_blocks((uint64_t)b->rows, (uint64_t)b->cols);
	b->threads = STEP_THREADS;
}

/* Rows in E4M3, with their factors. */
static void short_rows(struct train_build *b, size_t rows, size_t scale, size_t ld)
{
	struct operand *o = train_operand(b, "in E4M3", rows, NUMBER_BYTE, b->rows, b->cols, USE_OUT);

	train_number(b, ld, o->ld);
	o->tolerance = (struct tolerance){0, 0.02}; /* a code beside the reference's: 1 of about 80 */
	o = train_operand(b, "scale", scale, NUMBER_F32, b->rows, 1, USE_OUT);
	o->ld = 1;
	o->tolerance = (struct tolerance){0x1p-6, 1e-5};
}

static void rmsnorm(struct train_build *b)
{
	const struct step_norm_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols, .eps = 1e-5f};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "x", NORM(x), NUMBER_BF16, b->rows, b->cols, USE_IN);
	train_number(b, NORM(ld_x), o->ld);
	o->width = 2;
	o = train_operand(b, "w", NORM(w), NUMBER_BF16, 1, b->cols, USE_IN);
	o->centre = 1;
	o->width = 0.5;
	o = train_operand(b, "y", NORM(y), NUMBER_BF16, b->rows, b->cols, USE_OUT);
	train_number(b, NORM(ld_y), o->ld);
	o->tolerance = (struct tolerance){0x1p-6, 1e-5}; /* two roundings may fall the other way */
	if (!(b->flags & TRAIN_A)) {
		o = train_operand(b, "rstd", NORM(rstd), NUMBER_F32, b->rows, 1, USE_OUT);
		train_number(b, NORM(ld_rstd), o->ld);
		o->tolerance = (struct tolerance){1e-5, 1e-5};
	}
	if (b->flags & TRAIN_B)
		short_rows(b, NORM(y_e4m3), NORM(scale), NORM(ld_e4m3));
	b->grid[0] = (unsigned)b->rows;
	b->threads = step_norm_threads((uint64_t)b->cols);
	b->shared_bytes = STEP_NORM_SHARED;
}

static void swiglu(struct train_build *b)
{
	const struct step_swiglu_args a = {.rows = (uint32_t)b->rows, .ffn = (uint32_t)b->cols};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "gate_up", SWIGLU(gate_up), NUMBER_BF16, b->rows, 2 * b->cols, USE_IN);
	train_number(b, SWIGLU(ld_gate_up), o->ld);
	o->width = 4;
	o = train_operand(b, "h", SWIGLU(h), NUMBER_BF16, b->rows, b->cols, USE_OUT);
	train_number(b, SWIGLU(ld_h), o->ld);
	o->tolerance = (struct tolerance){0x1p-7, 1e-5};
	b->grid[0] = step_blocks((uint64_t)b->rows, (uint64_t)b->cols);
	b->threads = STEP_THREADS;
}

static void swiglu_e4m3(struct train_build *b)
{
	swiglu(b);
	short_rows(b, SWIGLU(h_e4m3), SWIGLU(scale), SWIGLU(ld_e4m3));
	b->grid[0] = (unsigned)b->rows;
	b->threads = STEP_FFN_THREADS;
	b->shared_bytes = STEP_NORM_SHARED;
}

static void swiglu_e4m3_wide(struct train_build *b)
{
	swiglu_e4m3(b);
	b->threads = STEP_FFN_WIDE_THREADS;
}

static void quantize(struct train_build *b)
{
	const struct step_quantize_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "x", QUANTIZE(x), NUMBER_BF16, b->rows, b->cols, USE_IN);
	train_number(b, QUANTIZE(ld_x), o->ld);
	o->width = 4;
	short_rows(b, QUANTIZE(y_e4m3), QUANTIZE(scale), QUANTIZE(ld_e4m3));
	b->grid[0] = (unsigned)b->rows;
	b->threads = step_quantize_threads((uint64_t)b->cols);
	b->shared_bytes = STEP_NORM_SHARED;
}

static int32_t position(const struct train_build *b, int64_t i)
{
	return (int32_t)(i * 7 % (b->rows < 200 ? b->rows : 200));
}

/* The last row is padding. */
static int32_t slot(const struct train_build *b, int64_t i)
{
	return (int32_t)(i == b->rows - 1 && i > 1 ? 0 : 2 * i + 1);
}

static void rope_lists(struct train_build *b, int64_t dim)
{
	struct operand *o = train_operand(b, "position", ROPE(position), NUMBER_I32, b->rows, 1, USE_IN);

	o->number = position;
	o->ld = 1;
	o = train_operand(b, "slot", ROPE(slot), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = slot;
	o->ld = 1;
	o = train_operand(b, "cos_sin", ROPE(cos_sin), NUMBER_F32, b->rows < 200 ? b->rows : 200, dim,
			  USE_IN);
	train_number(b, ROPE(ld_cos_sin), o->ld);
	for (int i = 0; i < 2 && b->flags & TRAIN_A; i++) {
		o = train_operand(b, i ? "k_norm" : "q_norm", i ? ROPE(k_norm) : ROPE(q_norm), NUMBER_BF16, 1,
				  dim, USE_IN);
		o->centre = 1;
		o->width = 0.5;
	}
}

static void rope_cache(struct train_build *b, const struct step_rope_args *a)
{
	const int64_t slots = 2 * b->rows, width = 2 * (int64_t)a->kv_heads * a->head_dim;
	const bool narrow = b->flags & TRAIN_B;
	struct operand *o =
		train_operand(b, "kv", ROPE(kv), narrow ? NUMBER_BYTE : NUMBER_BF16, slots, width, USE_ADDED);

	train_number(b, ROPE(ld_kv), o->ld);
	o->tolerance =
		b->flags & TRAIN_A ? (struct tolerance){0x1p-6, 0x1p-6} : (struct tolerance){0x1p-7, 1e-5};
	if (!narrow)
		return;
	o->tolerance = (struct tolerance){0, 0.02}; /* a code beside the reference's: 1 of about 80 */
	o = train_operand(b, "scale", ROPE(scale), NUMBER_F32, slots, 2 * (int64_t)a->kv_heads, USE_ADDED);
	o->ld = o->cols; /* a page's scales are another matrix */
	train_number(b, ROPE(ld_scale), o->ld);
	o->tolerance = (struct tolerance){0x1p-6, 1e-5};
}

static void rope(struct train_build *b)
{
	struct step_rope_args a = {.rows = (uint32_t)b->rows, .eps = 1e-6f};
	struct operand *o;

	a.heads = (uint32_t)b->cols % 256;
	a.kv_heads = (uint32_t)b->cols / 256 % 256;
	a.head_dim = (uint32_t)b->cols / 65536 * 16;
	a.lanes = step_head_lanes(a.head_dim);
	a.page_bits = b->rows % 16 ? 1 : 5; /* there are two slots for each row */
	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "qkv", ROPE(qkv), NUMBER_BF16, b->rows,
			  (int64_t)(a.heads + 2 * a.kv_heads) * a.head_dim, USE_ADDED);
	train_number(b, ROPE(ld_qkv), o->ld);
	o->tolerance =
		b->flags & TRAIN_A ? (struct tolerance){0x1p-6, 0x1p-6} : (struct tolerance){0x1p-7, 1e-5};
	rope_lists(b, a.head_dim);
	rope_cache(b, &a);
	b->grid[0] = step_rope_blocks((uint64_t)b->rows, a.heads, a.kv_heads, a.head_dim);
	b->threads = STEP_ROPE_THREADS;
}

static int32_t adapter(const struct train_build *b, int64_t i)
{
	(void)b;
	return (int32_t)(i % (ADAPTERS + 1)) - 1;
}

/* Columns: 2 targets of ADAPTERS adapters. */
static void mask(struct train_build *b)
{
	const struct step_mask_args a = {.rows = (uint32_t)b->rows,
					 .cols = (uint32_t)b->cols,
					 .period = (uint32_t)b->cols / 2,
					 .rank = (uint32_t)b->cols / 2 / ADAPTERS};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "adapter", MASK(adapter), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = adapter;
	o->ld = 1;
	o = train_operand(b, "u", MASK(u), NUMBER_BF16, b->rows, b->cols, USE_ADDED);
	train_number(b, MASK(ld_u), o->ld);
	b->grid[0] = step_blocks((uint64_t)b->rows, (uint64_t)b->cols);
	b->threads = STEP_THREADS;
}

static void scale(struct train_build *b)
{
	const struct step_scale_args a = {.rows = (uint32_t)b->rows, .cols = (uint32_t)b->cols};
	struct operand *o;

	b->file = "step_rows";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	if (!(b->flags & TRAIN_B)) {
		o = train_operand(b, "adapter", SCALE(adapter), NUMBER_I32, b->rows, 1, USE_IN);
		o->number = adapter;
		o->ld = 1;
	}
	o = train_operand(b, "ratio", SCALE(ratio), NUMBER_F32, ADAPTERS, b->cols, USE_IN);
	train_number(b, SCALE(ld_ratio), o->ld);
	o->centre = 1;
	o->width = 0.5;
	if (!(b->flags & TRAIN_A)) {
		o = train_operand(b, "bias", SCALE(bias), NUMBER_BF16, 1, b->cols, USE_IN);
		o = train_operand(b, "residual", SCALE(residual), NUMBER_BF16, b->rows, b->cols, USE_IN);
		train_number(b, SCALE(ld_residual), o->ld);
	}
	o = train_operand(b, "y", SCALE(y), NUMBER_BF16, b->rows, b->cols, USE_ADDED);
	train_number(b, SCALE(ld_y), o->ld);
	o->tolerance = (struct tolerance){0x1p-7, 1e-5};
	b->grid[0] = step_blocks((uint64_t)b->rows, (uint64_t)b->cols);
	b->threads = STEP_THREADS;
}

const struct train_maker makers_step[] = {
	{"step_embed", embed},	       {"step_rmsnorm", rmsnorm},
	{"step_swiglu", swiglu},       {"step_swiglu_e4m3", swiglu_e4m3},
	{"step_quantize", quantize},   {"step_swiglu_e4m3_wide", swiglu_e4m3_wide},
	{"step_rope", rope},	       {"step_adapter_mask", mask},
	{"step_adapter_scale", scale}, {NULL, NULL},
};

#define S TRAIN_SLICED
#define O TRAIN_ODD
#define A TRAIN_A
#define B TRAIN_B
#define HEADS(heads, kv_heads, dim) ((heads) + 256 * (kv_heads) + 65536 * ((dim) / 16))

#define ROTATE(why, rows, heads, kv_heads, dim, flags)                                                       \
	{                                                                                                    \
		"step_rope", why, (uint64_t)(rows) * ((heads) + 2 * (kv_heads)) * (dim), 0, 0, rows,         \
			HEADS(heads, kv_heads, dim) | (unsigned)(flags) << 24                                \
	}

/* Not with --small: there a kernel may run by emulation and the other one by its reference. */
#define LIKE_TRAINING(entry, why, rows, cols)                                                                \
	{                                                                                                    \
		entry, why, 1 << 20, 0, 0, rows, (cols) | (unsigned)TRAIN_C << 24                            \
	}

static const struct kernel_case cases[] = {
	TRAIN_CASE("step_embed", "one row", 1, 8, 0),
	TRAIN_CASE("step_embed", "odd", 13, 129, O),
	TRAIN_CASE("step_embed", "sliced", 64, 576, S),
	TRAIN_CASE("step_embed", "7B", 64, 3584, 0),
	TRAIN_CASE("step_rmsnorm", "one row", 1, 64, 0),
	TRAIN_CASE("step_rmsnorm", "odd", 17, 577, O),
	TRAIN_CASE("step_rmsnorm", "without rstd, sliced", 33, 896, A | S),
	TRAIN_CASE("step_rmsnorm", "widest", 2, 16384, 0),
	TRAIN_CASE("step_rmsnorm", "7B", 64, 3584, 0),
	LIKE_TRAINING("step_rmsnorm", "the bits of train_rmsnorm", 37, 3584),
	LIKE_TRAINING("step_rmsnorm", "the bits of train_rmsnorm, odd length", 9, 1001),
	LIKE_TRAINING("step_swiglu", "the bits of train_swiglu", 5, 18944),
	TRAIN_CASE("step_rmsnorm", "and E4M3", 3, 896, B),
	TRAIN_CASE("step_rmsnorm", "and E4M3, one warp", 2, 64, A | B),
	TRAIN_CASE("step_rmsnorm", "and E4M3, odd, sliced", 5, 577, B | O | S),
	TRAIN_CASE("step_rmsnorm", "and E4M3, 7B", 64, 3584, B),
	TRAIN_CASE("step_swiglu_e4m3", "small", 3, 48, 0),
	TRAIN_CASE("step_swiglu_e4m3", "odd, sliced", 4, 8201, O | S),
	TRAIN_CASE("step_swiglu_e4m3", "7B", 16, 18944, 0),
	TRAIN_CASE("step_swiglu_e4m3", "widest", 1, 20480, 0),
	TRAIN_CASE("step_swiglu_e4m3_wide", "odd, sliced", 4, 8201, O | S),
	TRAIN_CASE("step_swiglu_e4m3_wide", "widest", 1, 32768, 0),
	TRAIN_CASE("step_quantize", "one warp", 3, 8, 0),
	TRAIN_CASE("step_quantize", "sliced", 5, 2056, S),
	TRAIN_CASE("step_quantize", "two vectors per thread", 2, 8200, 0),
	TRAIN_CASE("step_quantize", "7B, hidden", 64, 3584, 0),
	TRAIN_CASE("step_quantize", "7B, inner", 16, 18944, 0),
	TRAIN_CASE("step_quantize", "widest", 2, 20480, 0),
	TRAIN_CASE("step_swiglu", "one", 1, 1, 0),
	TRAIN_CASE("step_swiglu", "odd", 9, 129, O),
	TRAIN_CASE("step_swiglu", "sliced", 33, 192, S),
	TRAIN_CASE("step_swiglu", "7B", 16, 18944, 0),
	TRAIN_CASE("step_adapter_mask", "one row", 1, 48, 0),
	TRAIN_CASE("step_adapter_mask", "rank 16", 33, 96, 0),
	TRAIN_CASE("step_adapter_mask", "sliced", 70, 384, S),
	TRAIN_CASE("step_adapter_scale", "one row", 1, 8, 0),
	TRAIN_CASE("step_adapter_scale", "odd", 13, 129, O),
	TRAIN_CASE("step_adapter_scale", "without bias and residual, sliced", 33, 576, A | S),
	TRAIN_CASE("step_adapter_scale", "one adapter", 5, 96, B),
	TRAIN_CASE("step_adapter_scale", "7B", 64, 3584, 0),
	ROTATE("one row", 1, 1, 1, 16, 0),
	ROTATE("heads of 64", 5, 9, 3, 64, S),
	ROTATE("heads of 48, odd", 7, 3, 1, 48, O),
	ROTATE("norm, heads of 128", 9, 4, 2, 128, A),
	ROTATE("norm, heads of 80, odd", 7, 5, 2, 80, A | O),
	ROTATE("norm, heads of 256", 5, 3, 1, 256, A | S),
	ROTATE("E4M3, heads of 64", 5, 9, 3, 64, B),
	ROTATE("E4M3, norm, heads of 128", 9, 4, 2, 128, A | B | S),
	ROTATE("E4M3, heads of 48, odd", 7, 3, 1, 48, B | O),
	ROTATE("7B", 64, 28, 4, 128, 0),
	ROTATE("7B, E4M3", 64, 28, 4, 128, B),
};

static struct operand *named(struct train_build *b, const char *name)
{
	for (int i = 0; i < b->operands; i++)
		if (!strcmp(b->operand[i].name, name))
			return &b->operand[i];
	return NULL;
}

/* The same inputs for both, and both launched. */
static enum status run_both(struct kit *k, struct train_build *few, struct train_build *many,
			    struct error *err)
{
	enum status st = train_ready(k, few, err);

	if (!st)
		st = train_ready(k, many, err);
	for (int i = 0; i < few->operands && !st; i++) {
		const struct operand *from = &few->operand[i], *to = named(many, from->name);

		if (!to || to->device.size != from->device.size)
			st = error_set(err, STATUS_BUG, "%s is not an operand of both", from->name);
		else if (from->use == USE_IN)
			st = gpu_stream_copy(k->stream, to->device.data, from->device.data, from->device.size,
					     err);
	}
	if (!st)
		st = train_launch(k, few, err);
	if (!st)
		st = train_launch(k, many, err);
	return st ? st : gpu_stream_wait(k->stream, err);
}

static enum status same_bytes(struct kit *k, const struct operand *x, const struct operand *y,
			      struct error *err)
{
	unsigned char *a = malloc(x->device.size + 16), *b = malloc(x->device.size + 16);
	enum status st = a && b ? STATUS_OK : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	if (!st)
		st = gpu_copy_from(k->device, a, x->device.data, x->device.size, err);
	if (!st)
		st = gpu_copy_from(k->device, b, y->device.data, y->device.size, err);
	if (!st)
		st = kit_compare(x->name, a, b, x->device.size, err);
	free(a);
	free(b);
	return st;
}

/* A kernel for few rows gives the bits of the one for many, so that either may run. */
static enum status one_like_training(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct kernel_case few_case = *c, many_case = *c;
	struct train_build few, many;
	enum status st;

	few_case.p1 = c->p1 & 0xffffff;
	many_case.p1 = few_case.p1;
	many_case.entry = !strcmp(c->entry, "step_rmsnorm") ? "train_rmsnorm" : "train_swiglu";
	st = train_made(k, &few_case, false, &few, err);
	if (!st)
		st = train_made(k, &many_case, false, &many, err);
	if (st)
		return st;
	st = run_both(k, &few, &many, err);
	for (int i = 0; i < few.operands && !st; i++)
		if (few.operand[i].use == USE_OUT)
			st = same_bytes(k, &few.operand[i], named(&many, few.operand[i].name), err);
	train_done(k, &few);
	train_done(k, &many);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	return c->p1 >> 24 & TRAIN_C ? one_like_training(k, c, err) : train_one(k, c, err);
}

static void test(struct kit *k)
{
	kit_cases(k, &group_step, one);
}

const struct kernel_group group_step = {
	.name = "step", .cases = cases, .count = COUNT(cases), .test = test, .time = step_time};
