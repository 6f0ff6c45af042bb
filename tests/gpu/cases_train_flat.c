/* SPDX-License-Identifier: Apache-2.0 */
/* The loss (A: with gradient; B: without shared memory; C: targets that do not count), sums (A: of squares;
 * B: of BF16) and AdamW (A: the norm from the device; B: with live copies; C: a norm that is not finite). */
#include "cases_train.h"
#include "kernel/train/flat_vector.h"
#include "kernel/train/cross_entropy.h"
#include "ref_train.h"

#define LOSS(member) offsetof(struct train_loss_args, member)
#define PART(member) offsetof(struct train_loss_part_args, member)
#define REDUCE(member) offsetof(struct train_reduce_args, member)
#define STEP(member) offsetof(struct train_adamw_args, member)

static const struct tolerance f32 = {2e-6, 1e-6};

static int32_t target(const struct train_build *b, int64_t i)
{
	if (b->flags & TRAIN_C && i % 3 == 0)
		return i % 2 ? -100 : (int32_t)b->cols;
	return i % 5 ? (int32_t)(i * 7919 % b->cols) : (int32_t)b->cols - 1;
}

/* Half of the targets are another rank's. */
static int32_t target_of_part(const struct train_build *b, int64_t i)
{
	return (int32_t)(i * 7919 % (2 * b->cols));
}

static int32_t every_other(const struct train_build *b, int64_t i)
{
	(void)b;
	return (int32_t)(2 * i);
}

static void cross_entropy(struct train_build *b)
{
	struct train_loss_args a = {.rows = (uint32_t)b->rows,
				    .vocab = (uint32_t)b->cols,
				    .grad_scale = b->flags & TRAIN_A ? 1.0f / 37 : 0};
	struct operand *o;

	b->file = "train_loss";
	b->threads = TRAIN_LOSS_THREADS;
	b->grid[0] = (unsigned)(b->rows < b->sms ? b->rows : b->sms);
	if (b->c->blocks)
		b->grid[0] = b->c->blocks;
	a.shared_bytes =
		b->flags & TRAIN_B ? 0 : train_loss_shared((uint64_t)b->cols, b->f32 ? 4 : 2, b->shared_most);
	b->shared_bytes = a.shared_bytes;
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "logits", LOSS(logits), NUMBER_BF16, b->rows, b->cols,
			  a.grad_scale != 0 ? USE_ADDED : USE_IN);
	train_number(b, LOSS(ld), o->ld);
	o->width = 10;
	o->tolerance = (struct tolerance){0x1p-7, 0};
	o = train_operand(b, "target", LOSS(target), NUMBER_I32, 2 * b->rows, 1, USE_IN);
	o->number = target;
	o->ld = 1;
	o = train_operand(b, "row", LOSS(row), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = every_other;
	o->ld = 1;
	o = train_operand(b, "loss", LOSS(loss), NUMBER_F32, b->rows, 1, USE_OUT);
	train_number(b, LOSS(ld_loss), o->ld);
	o->tolerance = f32;
}

/* Ids 5 and following. For train_loss_join the numbers of two ranks, of which none is that of the logits: it
 * does not read them again. */
static void loss_part(struct train_build *b)
{
	enum { RANKS = 2 };
	const bool join = !strncmp(b->entry, "train_loss_join", strlen("train_loss_join"));
	const struct train_loss_part_args a = {.rows = (uint32_t)b->rows,
					       .vocab = (uint32_t)b->cols,
					       .ranks = join ? RANKS : 1,
					       .first = 5,
					       .grad_scale = b->flags & TRAIN_A ? 1.0f / 37 : 0};
	struct operand *o;

	b->file = "train_loss";
	b->threads = TRAIN_LOSS_THREADS;
	b->grid[0] = (unsigned)(b->rows < b->sms ? b->rows : b->sms);
	if (b->c->blocks)
		b->grid[0] = b->c->blocks;
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	o = train_operand(b, "logits", PART(logits), NUMBER_BF16, b->rows, b->cols,
			  a.grad_scale != 0 ? USE_ADDED : USE_IN);
	train_number(b, PART(ld), o->ld);
	o->width = 4;
	o->tolerance = (struct tolerance){0x1p-7, 1e-5};
	o = train_operand(b, "target", PART(target), NUMBER_I32, 2 * b->rows, 1, USE_IN);
	o->number = target_of_part;
	o->ld = 1;
	o = train_operand(b, "row", PART(row), NUMBER_I32, b->rows, 1, USE_IN);
	o->number = every_other;
	o->ld = 1;
	o = train_operand(b, "part", PART(part), NUMBER_F32, (join ? RANKS : 1) * b->rows, 3,
			  join ? USE_IN : USE_OUT);
	train_number(b, PART(ld_part), o->ld);
	o->width = join ? 1 : 0;
	o->tolerance = (struct tolerance){1e-5, 1e-5};
	if (!join)
		return;
	o->centre = 4;
	o = train_operand(b, "loss", PART(loss), NUMBER_F32, b->rows, 1, USE_OUT);
	train_number(b, PART(ld_loss), o->ld);
	o->tolerance = (struct tolerance){1e-5, 1e-5};
}

static void reduce(struct train_build *b)
{
	const struct train_reduce_args a = {.count = (uint64_t)(b->rows * b->cols),
					    .squares = b->flags & TRAIN_A ? 1 : 0,
					    .bf16 = b->flags & TRAIN_B ? 1 : 0};
	const bool end = !strcmp(b->entry, "train_reduce_end");
	struct operand *o;

	b->file = "train_flat";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	b->threads = TRAIN_THREADS;
	b->grid[0] = end ? 1 : TRAIN_REDUCE_BLOCKS;
	if (!end)
		train_operand(b, "x", REDUCE(x), a.bf16 ? NUMBER_BF16 : NUMBER_F32, 1, b->rows * b->cols,
			      USE_IN);
	o = train_operand(b, "sums", REDUCE(sums), NUMBER_F64, 1, TRAIN_REDUCE_BLOCKS,
			  end ? USE_IN : USE_OUT);
	o->shift = 0;
	o->tolerance = (struct tolerance){1e-12, 1e-12};
	if (end) {
		o = train_operand(b, "sum", REDUCE(sum), NUMBER_F64, 1, 1, USE_ADDED);
		o->shift = 0;
		o->tolerance = (struct tolerance){1e-12, 1e-12};
	}
}

/* Three tensors in the flat vector, the second without a copy, then elements in none. */
enum { LIVE_TENSORS = 3 };
struct live_shape {
	int64_t begin, rows, cols, ld;
};

static void live_shapes(const struct train_build *b, struct live_shape out[LIVE_TENSORS])
{
	const int64_t third = b->rows / 3 * b->cols;

	out[0] = (struct live_shape){0, b->rows / 3, b->cols, b->cols + 8};
	out[1] = (struct live_shape){third, b->rows / 3, b->cols, 0};
	out[2] = (struct live_shape){2 * third, b->rows / 3 * 2, b->cols / 2, b->cols / 2};
}

/* The table names the copies, which are the operands behind it, by their addresses. */
static void live_table(const struct train_build *b, const struct operand *o, bool host, void *out)
{
	struct live_shape shape[LIVE_TENSORS];
	struct train_live *live = out;

	live_shapes(b, shape);
	for (int i = 0; i < LIVE_TENSORS; i++) {
		live[i] = (struct train_live){
			.begin = (uint64_t)shape[i].begin,
			.count = (uint64_t)(shape[i].rows * shape[i].cols),
			.ld = shape[i].ld,
			.cols = (uint32_t)shape[i].cols,
			.scale = i ? 1 : 2.5f,
			.decay = i == 1 ? 0 : 1,
		};
		if (i != 1)
			live[i].to = host ? (uintptr_t)o[1 + i / 2].host : o[1 + i / 2].device.data;
	}
}

static void adamw_live(struct train_build *b)
{
	struct live_shape shape[LIVE_TENSORS];
	struct operand *o;

	live_shapes(b, shape);
	o = train_operand(b, "table", STEP(live), NUMBER_BYTE, 1,
			  LIVE_TENSORS * (int64_t)sizeof(struct train_live), USE_IN);
	o->ld = o->cols;
	o->shift = 0;
	o->table = live_table;
	for (int i = 0; i < LIVE_TENSORS; i += 2) {
		o = train_operand(b, i ? "copy of the third" : "copy of the first", SIZE_MAX, NUMBER_BF16,
				  shape[i].rows, shape[i].cols, USE_OUT);
		o->ld = shape[i].ld;
		o->shift = 0;
		o->tolerance = (struct tolerance){0x1p-7, 1e-6};
	}
}

static void adamw(struct train_build *b)
{
	const bool refresh = !strcmp(b->entry, "train_live_refresh");
	const struct train_adamw_args a = {
		.count = (uint64_t)(b->rows * b->cols),
		.tensors = b->flags & TRAIN_B ? LIVE_TENSORS : 0,
		.zero_gradient = b->flags & TRAIN_A ? 1 : 0,
		.max_norm = 0.5,
		.lr = 1e-2f,
		.beta1 = 0.9f,
		.beta2 = 0.95f,
		.eps = 1e-8f,
		.decay = 0.1f,
		.clip_scale = 0.75f,
		.correction1 = 1 - 0.9f * 0.9f,
		.correction2 = 1 - 0.95f * 0.95f,
	};
	static const char *const names[] = {"gradient", "first moment", "second moment", "master"};
	const size_t at[] = {STEP(g), STEP(m), STEP(v), STEP(master)};
	struct operand *o;

	b->file = "train_flat";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	b->threads = TRAIN_THREADS;
	b->grid[0] = train_blocks(1, a.count);
	for (int i = refresh ? 3 : 0; i < 4; i++) {
		o = train_operand(b, names[i], at[i], NUMBER_F32, 1, (int64_t)a.count,
				  refresh || (i == 0 && !a.zero_gradient) ? USE_IN : USE_ADDED);
		o->centre = i == 2 ? 1.5 : 0; /* a second moment is no less than 0 */
		o->tolerance = f32;
	}
	if (b->flags & TRAIN_A) {
		o = train_operand(b, "norm", STEP(norm_squares), NUMBER_F64, 1, 1, USE_IN);
		o->shift = 0;
		o->centre = b->flags & TRAIN_C ? (double)INFINITY : 9;
		o->width = 0;
	}
	if (b->flags & TRAIN_B)
		adamw_live(b);
}

const struct train_maker makers_train_flat[] = {
	{"train_cross_entropy", cross_entropy}, {"train_loss_part", loss_part}, {"train_loss_join", loss_part}, {"train_reduce", reduce},
	{"train_reduce_end", reduce},		{"train_adamw", adamw},
	{"train_live_refresh", adamw},		{NULL, NULL},
};
