/* SPDX-License-Identifier: Apache-2.0 */
/* The training kernels against their references: small and odd shapes, then the real ones (Qwen2-7B's 3584,
 * 18944, 152064; SmolLM2-135M's 576, 1536, 49152). Time: those marked so, beside the driver's copy. */
#include "cases_train.h"
#include "kernel/train.h"
#include <inttypes.h>
#include <math.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define S TRAIN_SLICED
#define O TRAIN_ODD
#define A TRAIN_A
#define B TRAIN_B
#define C TRAIN_C
#define T TRAIN_TIMED
#define HEADS(heads, dim) ((heads)*256 + (dim))
#define ATTEND(entry, why, rows, kv, group, dim, flags)                                                      \
	{                                                                                                    \
		entry, why, (uint64_t)(rows) * (dim), 0, 0, rows,                                            \
			((dim) + 512 * ((kv) + 16 * (group))) | (unsigned)(flags) << 24                      \
	}
#define ATTENTION_ENTRY(entry)                                                                               \
	ATTEND(entry, "one row", 1, 1, 1, 8, 0),                                                             \
		ATTEND(entry, "lengths where tiles break", 769, 2, 3, 64, S),                                \
		ATTEND(entry, "lengths, odd", 257, 1, 2, 40, O),                                             \
		ATTEND(entry, "head of 128", 257, 1, 7, 128, 0),                                             \
		ATTEND(entry, "head of 256", 129, 2, 1, 256, S),                                             \
		ATTEND(entry, "head of 136", 65, 1, 1, 136, 0),                                              \
		ATTEND(entry, "one document", 192, 3, 3, 64, A),                                             \
		ATTEND(entry, "long document", 2112, 1, 2, 128, A)

static const struct kernel_case cases[] = {
	TRAIN_CASE("train_rmsnorm", "one row", 1, 64, 0),
	TRAIN_CASE("train_rmsnorm", "odd", 63, 577, O),
	TRAIN_CASE("train_rmsnorm", "residual, sliced", 65, 576, A | S),
	TRAIN_CASE("train_rmsnorm", "residual, odd", 7, 1001, A | O),
	TRAIN_GRID("train_rmsnorm", "rows shared by few blocks", 129, 896, A, 5),
	TRAIN_CASE("train_rmsnorm", "widest", 3, 16384, 0),
	TRAIN_CASE("train_rmsnorm", "7B", 16384, 3584, T),
	TRAIN_CASE("train_rmsnorm", "7B, residual", 16384, 3584, A | T),
	TRAIN_CASE("train_rmsnorm", "135M", 16384, 576, T),
	TRAIN_CASE("train_rmsnorm_bwd", "one row", 1, 64, 0),
	TRAIN_CASE("train_rmsnorm_bwd", "odd", 63, 577, O),
	TRAIN_CASE("train_rmsnorm_bwd", "dw, sliced", 65, 576, A | S),
	TRAIN_GRID("train_rmsnorm_bwd", "dw of few blocks, odd", 129, 1001, A | O, 5),
	TRAIN_CASE("train_rmsnorm_bwd", "widest", 3, 16384, A),
	TRAIN_CASE("train_rmsnorm_bwd", "7B", 16384, 3584, T),
	TRAIN_CASE("train_rmsnorm_bwd", "7B, dw", 8192, 3584, A | T),
	TRAIN_CASE("train_head_rope", "one row", 1, HEADS(1, 8), 0),
	TRAIN_CASE("train_head_rope", "norm, one row", 1, HEADS(3, 64), A),
	TRAIN_CASE("train_head_rope", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope", "norm, odd", 127, HEADS(5, 40), A | O),
	TRAIN_CASE("train_head_rope", "norm, sliced", 129, HEADS(2, 128), A | S),
	TRAIN_CASE("train_head_rope", "norm, heads of 256", 17, HEADS(3, 256), A),
	TRAIN_GRID("train_head_rope", "few blocks", 64, HEADS(3, 80), 0, 2),
	TRAIN_CASE("train_head_rope", "7B", 16384, HEADS(28, 128), T),
	TRAIN_CASE("train_head_rope", "Qwen3-8B, norm", 8192, HEADS(32, 128), A | T),
	TRAIN_CASE("train_head_rope_bwd", "one row", 1, HEADS(1, 8), 0),
	TRAIN_CASE("train_head_rope_bwd", "norm, dw, one row", 1, HEADS(3, 64), A | B),
	TRAIN_CASE("train_head_rope_bwd", "sliced", 65, HEADS(9, 64), S),
	TRAIN_CASE("train_head_rope_bwd", "norm, dw, odd", 127, HEADS(5, 40), A | B | O),
	TRAIN_CASE("train_head_rope_bwd", "norm, sliced", 129, HEADS(2, 128), A | S),
	TRAIN_GRID("train_head_rope_bwd", "norm, dw, heads of 256, few blocks", 17, HEADS(3, 256), A | B, 3),
	TRAIN_CASE("train_head_rope_bwd", "7B", 16384, HEADS(28, 128), T),
	TRAIN_CASE("train_head_rope_bwd", "Qwen3-8B, norm, dw", 8192, HEADS(32, 128), A | B | T),
	TRAIN_CASE("train_swiglu", "one", 1, 1, 0),
	TRAIN_CASE("train_swiglu", "odd", 63, 129, O),
	TRAIN_CASE("train_swiglu", "sliced", 65, 192, S),
	TRAIN_CASE("train_swiglu", "7B", 4096, 18944, T),
	TRAIN_CASE("train_swiglu", "135M", 16384, 1536, T),
	TRAIN_CASE("train_swiglu_bwd", "one", 1, 1, 0),
	TRAIN_CASE("train_swiglu_bwd", "h again, odd", 63, 129, A | O),
	TRAIN_CASE("train_swiglu_bwd", "h again, sliced", 65, 192, A | S),
	TRAIN_CASE("train_swiglu_bwd", "7B", 4096, 18944, T),
	TRAIN_CASE("train_swiglu_bwd", "7B, h again", 4096, 18944, A | T),
	TRAIN_CASE("train_gather", "odd", 63, 129, O),
	TRAIN_CASE("train_gather", "sliced", 65, 576, S),
	TRAIN_CASE("train_gather", "7B", 8192, 3584, T),
	TRAIN_CASE("train_scatter_add", "odd", 63, 129, O),
	TRAIN_CASE("train_scatter_add", "sliced", 65, 576, S),
	TRAIN_CASE("train_scatter_add", "7B", 8192, 3584, T),
	TRAIN_CASE("train_embed_bwd", "one row", 1, 64, 0),
	TRAIN_CASE("train_embed_bwd", "odd", 129, 67, O),
	TRAIN_CASE("train_embed_bwd", "more rows of a token than a turn finds", 1300, 72, S),
	TRAIN_CASE("train_dropout", "odd", 63, 129, O),
	TRAIN_CASE("train_dropout", "added, sliced", 65, 576, A | S),
	TRAIN_CASE("train_dropout", "added, odd", 9, 1003, A | O),
	TRAIN_CASE("train_dropout", "7B", 8192, 3584, T),
	TRAIN_CASE("train_dropout", "7B, added", 8192, 3584, A | T),
	TRAIN_CASE("train_to_bf16", "odd", 63, 129, O),
	TRAIN_CASE("train_to_bf16", "sliced", 65, 192, S),
	TRAIN_CASE("train_to_bf16", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_to_f32", "odd", 63, 129, O),
	TRAIN_CASE("train_to_f32", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_add_bf16", "odd", 63, 129, O),
	TRAIN_CASE("train_add_bf16", "7B", 16384, 3584, T),
	TRAIN_CASE("train_copy", "bytes", 5, 37, O),
	TRAIN_CASE("train_copy", "sliced", 65, 1152, S),
	TRAIN_CASE("train_copy", "7B to K-extension", 16384, 7168, S | T),
	TRAIN_CASE("train_zero", "bytes", 5, 37, O),
	TRAIN_CASE("train_zero", "sliced", 65, 1152, S),
	TRAIN_CASE("train_column_sums", "one row", 1, 8, 0),
	TRAIN_CASE("train_column_sums", "odd", 129, 259, O),
	TRAIN_CASE("train_column_sums", "sliced", 65, 960, S),
	TRAIN_CASE("train_column_sums", "7B's qkv", 16384, 4608, T),
	TRAIN_CASE("train_sums_add", "one", 1, 5, 0),
	TRAIN_CASE("train_sums_add", "many", 259, 577, 0),
	TRAIN_CASE("train_random_bf16", "odd, within a block", 9, 129, B | O),
	TRAIN_CASE("train_random_bf16", "norm's", 1, 577, A | B),
	TRAIN_CASE("train_random_bf16", "sliced", 65, 576, S),
	TRAIN_CASE("train_random_bf16", "7B's gate", 18944, 3584, T),
	TRAIN_CASE("train_random_f32", "odd, within a block", 9, 129, A | B | O),
	TRAIN_CASE("train_random_f32", "plain", 65, 576, 0),
	TRAIN_CASE("train_cross_entropy", "loss alone", 5, 1000, 0),
	TRAIN_CASE("train_cross_entropy", "gradient, odd", 7, 1003, A | O),
	TRAIN_CASE("train_cross_entropy", "gradient, no shared memory", 9, 1000, A | B | S),
	TRAIN_CASE("train_cross_entropy", "targets that do not count", 7, 513, A | C),
	TRAIN_GRID("train_cross_entropy", "few blocks", 65, 777, A | S, 4),
	TRAIN_CASE("train_cross_entropy", "more than shared memory", 2, 49159, A | O),
	TRAIN_CASE("train_cross_entropy", "7B", 1024, 152064, A | T),
	TRAIN_CASE("train_cross_entropy", "135M", 2048, 49152, A | T),
	TRAIN_CASE("train_reduce", "seven", 1, 7, 0),
	TRAIN_CASE("train_reduce", "squares, odd", 41, 1001, A | O),
	TRAIN_CASE("train_reduce", "squares of BF16", 33, 1000, A | B),
	TRAIN_CASE("train_reduce", "squares, 161 M", 39424, 4096, A | T),
	TRAIN_CASE("train_reduce_end", "sums", 1, 1, 0),
	TRAIN_CASE("train_adamw", "seven", 1, 7, 0),
	TRAIN_CASE("train_adamw", "norm from the device, odd", 41, 1001, A | O),
	TRAIN_CASE("train_adamw", "a norm that is not finite", 3, 100, A | C),
	TRAIN_CASE("train_adamw", "live copies", 33, 64, A | B),
	TRAIN_CASE("train_adamw", "live copies, borders within vectors", 33, 70, B),
	TRAIN_CASE("train_adamw", "161 M", 39424, 4096, A | T),
	TRAIN_CASE("train_adamw", "161 M, live copies", 39424, 4096, A | B | T),
	TRAIN_CASE("train_live_refresh", "borders within vectors", 33, 70, B),
	ATTENTION_ENTRY("train_attention"),
	ATTENTION_ENTRY("train_attention_delta"),
	ATTENTION_ENTRY("train_attention_bwd_kv"),
	ATTENTION_ENTRY("train_attention_bwd_q"),
	ATTEND("train_attention", "7B", 4096, 1, 7, 128, A | T),
};

static const size_t sizes[] = {2, 4, 8, 4, 1};

static uint64_t elements_of(const struct operand *o)
{
	return (uint64_t)(o->shift + o->rows * o->ld);
}

struct operand *train_operand(struct train_build *b, const char *name, size_t at, enum number type,
			      int64_t rows, int64_t cols, enum use use)
{
	struct operand *o = &b->operand[b->operands++];
	const int64_t vector = 16 / (int64_t)sizes[type];

	*o = (struct operand){
		.name = name, .at = at, .type = type, .rows = rows, .cols = cols, .use = use, .width = 1};
	o->ld = cols;
	if (b->flags & TRAIN_SLICED)
		o->ld = (cols + vector - 1) / vector * vector + 2 * vector;
	if (b->flags & TRAIN_ODD) {
		o->ld = cols + 3;
		o->shift = 1;
	}
	return o;
}

void train_number(struct train_build *b, size_t at, int64_t value)
{
	memcpy(b->args + at, &value, sizeof(value));
}

/* Where its columns begin at `first`, the address is still that of column 0. */
static void point(struct train_build *b, bool host)
{
	for (int i = 0; i < b->operands; i++) {
		const struct operand *o = &b->operand[i];
		uint64_t address =
			(host ? (uintptr_t)o->host : o->device.data) + (uint64_t)o->shift * sizes[o->type];

		if (o->at != SIZE_MAX)
			memcpy(b->args + o->at, &address, sizeof(address));
	}
}

/* splitmix64: uniform in [-1, 1). */
static double uniform(uint64_t *state)
{
	uint64_t x = *state += 0x9E3779B97F4A7C15u;

	x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
	x = (x ^ x >> 27) * 0x94D049BB133111EBu;
	return (double)(int64_t)(x ^ x >> 31) * 0x1p-63;
}

static void put(enum number type, void *to, uint64_t i, double v)
{
	switch (type) {
	case NUMBER_BF16: {
		float f = (float)v;
		uint32_t bits;

		memcpy(&bits, &f, sizeof(bits));
		((uint16_t *)to)[i] = (uint16_t)(bits >> 16);
		return;
	}
	case NUMBER_F32:
		((float *)to)[i] = (float)v;
		return;
	case NUMBER_F64:
		((double *)to)[i] = v;
		return;
	case NUMBER_I32:
		((int32_t *)to)[i] = (int32_t)v;
		return;
	default:
		((unsigned char *)to)[i] = (unsigned char)(v * 127);
	}
}

static double get(enum number type, const void *from, uint64_t i)
{
	switch (type) {
	case NUMBER_BF16: {
		const uint32_t bits = (uint32_t)((const uint16_t *)from)[i] << 16;
		float f;

		memcpy(&f, &bits, sizeof(f));
		return (double)f;
	}
	case NUMBER_F32:
		return (double)((const float *)from)[i];
	case NUMBER_F64:
		return ((const double *)from)[i];
	case NUMBER_I32:
		return ((const int32_t *)from)[i];
	default:
		return ((const unsigned char *)from)[i];
	}
}

/* Inputs are random, or what the case says; outputs, and what lies between rows, are NaN. */
static void fill(struct train_build *b, struct operand *o, uint64_t seed)
{
	memset(o->host, 0xff, elements_of(o) * sizes[o->type]);
	if (o->use == USE_OUT || o->table)
		return;
	for (int64_t row = 0; row < o->rows; row++)
		for (int64_t col = 0; col < o->cols; col++) {
			const uint64_t at = (uint64_t)(o->shift + row * o->ld + o->first + col);

			if (o->number)
				put(o->type, o->host, at, o->number(b, row * o->cols + col));
			else
				put(o->type, o->host, at,
				    o->centre + (o->width > 0 ? o->width * uniform(&seed) : 0));
		}
}

/* For timings: a stretch of random numbers, again and again. */
static void fill_fast(struct operand *o, uint64_t seed)
{
	const uint64_t all = elements_of(o), stretch = all < 1 << 20 ? all : 1 << 20;
	const size_t size = sizes[o->type];

	for (uint64_t i = 0; i < stretch; i++)
		put(o->type, o->host, i, o->centre + (o->width > 0 ? o->width * uniform(&seed) : 0));
	for (uint64_t i = stretch; i < all; i += stretch)
		memcpy(o->host + i * size, o->host, (all - i < stretch ? all - i : stretch) * size);
}

static enum status operand_ready(struct kit *k, struct train_build *b, struct operand *o, struct error *err)
{
	const uint64_t size = elements_of(o) * sizes[o->type];

	o->host = malloc(size + 16);
	if (!o->host)
		return error_set(err, STATUS_NO_RESOURCE, "no memory for %s", o->name);
	if (b->timing && !o->number && !o->table)
		fill_fast(o, k->seed);
	else
		fill(b, o, k->seed + (uint64_t)(o - b->operand));
	return kit_alloc(k, &o->device, size, err);
}

static enum status train_ready(struct kit *k, struct train_build *b, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = 0; i < b->operands && !st; i++)
		st = operand_ready(k, b, &b->operand[i], err);
	if (!st && b->prepare) {
		point(b, true);
		b->prepare(b);
	}
	for (int i = 0; i < b->operands && !st; i++) {
		struct operand *o = &b->operand[i];

		if (o->table)
			o->table(b, o, false, o->host);
		st = gpu_copy_to(k->device, o->device.data, o->host, o->device.size, err);
		if (o->table)
			o->table(b, o, true, o->host);
	}
	point(b, false);
	return st;
}

static enum status train_launch(struct kit *k, struct train_build *b, struct error *err)
{
	const unsigned block[3] = {b->threads, 1, 1};
	struct gpu_kernel *kernel;
	enum status st = gpu_kernel(k->device, &kernel, b->file, b->c->entry, err);

	return st ? st : gpu_launch(kernel, k->stream, b->grid, block, b->shared_bytes, b->args, err);
}

static void train_done(struct kit *k, struct train_build *b)
{
	for (int i = 0; i < b->operands; i++) {
		kit_free(k, &b->operand[i].device);
		free(b->operand[i].host);
	}
}

/* Real shapes are tested with an eighth of their rows: the references are slow, and columns are what differs.
 */
static int64_t rows_of(const struct kernel_case *c, bool timing)
{
	return !timing && c->p1 >> 24 & TRAIN_TIMED && c->p0 >= 64 ? c->p0 / 8 : c->p0;
}

static enum status train_made(struct kit *k, const struct kernel_case *c, bool timing, struct train_build *b,
			      struct error *err)
{
	const struct train_maker *const files[] = {makers_train_norm, makers_train_rows, makers_train_flat,
						   makers_train_attention};

	*b = (struct train_build){
		.c = c,
		.rows = rows_of(c, timing),
		.timing = timing,
		.cols = c->p1 & 0xffffff,
		.flags = c->p1 >> 24,
		.grid = {c->blocks, 1, 1},
		.sms = gpu_sm_count(k->device),
		.shared_most = (unsigned)gpu_attribute(k->device, 97),
	};
	for (size_t f = 0; f < COUNT(files); f++)
		for (const struct train_maker *m = files[f]; m->entry; m++)
			if (!strcmp(m->entry, c->entry)) {
				m->make(b);
				if (c->blocks)
					b->grid[0] = c->blocks;
				return STATUS_OK;
			}
	return error_set(err, STATUS_BUG, "no case is made for %s", c->entry);
}

/* What one operand was, should be and is. */
struct outcome {
	const struct operand *o;
	const unsigned char *before, *found;
	double rms;
	uint64_t differ, all;
};

/* A walk over a buffer's elements, in the order of addresses. */
struct walk {
	uint64_t i;  /* element of the buffer */
	int64_t col; /* of the matrix; below 0 before its begin */
};

static bool walk_written(const struct operand *o, const struct walk *w)
{
	return o->use != USE_IN && w->col >= o->first && w->col < o->first + o->cols;
}

static void walk_on(const struct operand *o, struct walk *w)
{
	w->i++;
	if (++w->col == o->ld)
		w->col = 0;
}

static double rms_of(const struct operand *o)
{
	double sum = 0;
	uint64_t count = 0;

	for (struct walk w = {0, -o->shift}; w.i < elements_of(o); walk_on(o, &w))
		if (walk_written(o, &w)) {
			double v = get(o->type, o->host, w.i);

			sum += v * v;
			count++;
		}
	return count ? sqrt(sum / (double)count) : 0;
}

static enum status wrong(const struct outcome *r, uint64_t i, const char *what, double expected,
			 struct error *err)
{
	const int64_t at = (int64_t)i - r->o->shift;

	return error_set(err, STATUS_MISMATCH, "%s (%" PRId64 ", %" PRId64 ") is %.9g, %s %.9g", r->o->name,
			 at >= 0 ? at / r->o->ld : -1, at >= 0 ? at % r->o->ld : at,
			 get(r->o->type, r->found, i), what, expected);
}

static enum status check_element(struct outcome *r, const struct walk *w, struct error *err)
{
	const struct operand *o = r->o;
	const size_t size = sizes[o->type];
	const uint64_t i = w->i;
	const bool same = !memcmp(r->found + i * size, o->host + i * size, size);
	double expected, found;

	if (!walk_written(o, w))
		return memcmp(r->found + i * size, r->before + i * size, size)
			       ? wrong(r, i, "and was not to be touched:", get(o->type, r->before, i), err)
			       : STATUS_OK;
	expected = get(o->type, o->host, i);
	found = get(o->type, r->found, i);
	r->all++;
	r->differ += !same && !(fabs(found - expected) <= 1e-4 * r->rms);
	if (same ||
	    fabs(found - expected) <= o->tolerance.relative * fabs(expected) + o->tolerance.of_rms * r->rms)
		return STATUS_OK;
	return wrong(r, i, "the reference has", expected, err);
}

/* o->host holds the reference's result, `before` what both began with. */
static enum status check_operand(struct kit *k, const struct operand *o, const unsigned char *before,
				 struct error *err)
{
	unsigned char *found = malloc(o->device.size + 16);
	struct outcome r = {.o = o, .before = before, .found = found, .rms = rms_of(o)};
	enum status st = found ? gpu_copy_from(k->device, found, o->device.data, o->device.size, err)
			       : error_set(err, STATUS_NO_RESOURCE, "no memory to compare");

	for (struct walk w = {0, -o->shift}; w.i < elements_of(o) && !st; walk_on(o, &w))
		st = check_element(&r, &w, err);
	if (!st && o->type == NUMBER_BF16 && r.differ > r.all / 100 + 2)
		st = error_set(err, STATUS_MISMATCH,
			       "%s: %" PRIu64 " of %" PRIu64 " elements are rounded otherwise", o->name,
			       r.differ, r.all);
	if (!st)
		st = kit_guards(k, &o->device, o->name, err);
	free(found);
	return st;
}

static enum status compared(struct kit *k, struct train_build *b, struct error *err)
{
	unsigned char *before[TRAIN_OPERANDS] = {NULL};
	enum status st = STATUS_OK;

	for (int i = 0; i < b->operands && !st; i++) {
		before[i] = malloc(b->operand[i].device.size + 16);
		if (before[i])
			memcpy(before[i], b->operand[i].host, b->operand[i].device.size);
		else
			st = error_set(err, STATUS_NO_RESOURCE, "no memory to compare");
	}
	point(b, true);
	if (!st && !ref_run(b->c->entry, (struct ref_grid){b->grid[0] * b->grid[1] * b->grid[2], b->threads},
			    b->args))
		st = error_set(err, STATUS_BUG, "%s has no reference", b->c->entry);
	for (int i = 0; i < b->operands && !st; i++)
		if (!b->operand[i].table)
			st = check_operand(k, &b->operand[i], before[i], err);
	for (int i = 0; i < b->operands; i++)
		free(before[i]);
	return st;
}

static enum status one(struct kit *k, const struct kernel_case *c, struct error *err)
{
	struct train_build b;
	enum status st = train_made(k, c, false, &b, err);

	if (!st)
		st = train_ready(k, &b, err);
	if (!st)
		st = train_launch(k, &b, err);
	if (!st)
		st = gpu_stream_wait(k->stream, err);
	if (!st)
		st = compared(k, &b, err);
	train_done(k, &b);
	return st;
}

static void test(struct kit *k)
{
	kit_cases(k, &group_train, one);
}

/* -- time -- */

struct timed {
	struct kit *k;
	struct train_build b;
	gpu_ptr from, to; /* of the driver's copy */
	uint64_t size;
};

static enum status call_kernel(void *arg, struct error *err)
{
	struct timed *t = arg;

	return train_launch(t->k, &t->b, err);
}

static enum status call_copy(void *arg, struct error *err)
{
	struct timed *t = arg;

	return gpu_stream_copy(t->k->stream, t->to, t->from, t->size, err);
}

/* Bytes a second, read and written, of the driver's copy: what a kernel that reads and writes once is held
 * to. */
static enum status copy_rate(struct kit *k, double *rate, struct error *err)
{
	struct timed t = {.k = k, .size = (uint64_t)1 << 30};
	double ns = 0;
	enum status st = gpu_alloc(k->device, &t.from, t.size, err);

	if (!st)
		st = gpu_alloc(k->device, &t.to, t.size, err);
	if (!st)
		st = kit_time(k, call_copy, &t, 10, &ns, err);
	*rate = !st && ns > 0 ? 2 * (double)t.size / ns * 1e9 : 0;
	gpu_free(k->device, &t.from);
	gpu_free(k->device, &t.to);
	return st;
}

static double bytes_of(const struct train_build *b)
{
	double bytes = 0;

	for (int i = 0; i < b->operands; i++) {
		const struct operand *o = &b->operand[i];

		bytes += (o->use == USE_ADDED ? 2.0 : 1.0) * (double)o->rows * (double)o->cols *
			 (double)sizes[o->type];
	}
	return b->bytes > 0 ? b->bytes : bytes;
}

static enum status time_case(struct kit *k, const struct kernel_case *c, double rate, struct error *err)
{
	struct timed t = {.k = k};
	double ns = 0, bytes;
	enum status st = train_made(k, c, true, &t.b, err);

	if (!st)
		st = train_ready(k, &t.b, err);
	if (!st)
		st = kit_time(k, call_kernel, &t, 20, &ns, err);
	bytes = bytes_of(&t.b);
	if (!st && ns > 0)
		printf("%-22s %-22s %9.1f us %7.0f GB/s %5.1f %% of the driver's copy %5.1f %% of peak\n",
		       c->entry, c->why, ns / 1e3, bytes / ns, 100 * bytes / ns * 1e9 / rate,
		       100 * bytes / ns * 1e9 / gpu_dram_rate(k->device));
	train_done(k, &t.b);
	return st;
}

static enum status time(struct kit *k, struct error *err)
{
	double rate = 0;
	enum status st = copy_rate(k, &rate, err);

	if (!st)
		printf("the driver's copy: %.0f GB/s\n", rate / 1e9);
	for (size_t i = 0; i < COUNT(cases) && !st; i++)
		if (cases[i].p1 >> 24 & TRAIN_TIMED && kit_wants(k, cases[i].entry, &cases[i]))
			st = time_case(k, &cases[i], rate, err);
	return st;
}

const struct kernel_group group_train = {
	.name = "train", .cases = cases, .count = COUNT(cases), .test = test, .time = time};
