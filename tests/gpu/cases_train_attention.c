/* SPDX-License-Identifier: Apache-2.0 */
/* Attention within documents. A case's columns are dim + 512 (kv_heads + 16 group); A: one document. */
#include "cases_train.h"
#include "kernel/train/plain_attention.h"
#include <math.h>

#define AT(member) offsetof(struct train_attention_args, member)

/* Documents as they come: lengths at which tiles break, cut where the rows end. */
static int32_t doc_start(const struct train_build *b, int64_t i)
{
	static const int32_t lengths[] = {1, 63, 64, 65, 127, 128, 129, 192};
	const int64_t count = sizeof(lengths) / sizeof(lengths[0]);
	int64_t start = b->flags & TRAIN_A && i ? b->rows : 0;

	for (int64_t doc = 0; doc < i && !(b->flags & TRAIN_A); doc++)
		start += lengths[doc % count];
	return (int32_t)(start < b->rows ? start : b->rows);
}

/* What backward reads is forward's, of the same numbers. */
static void forward_first(struct train_build *b)
{
	const struct ref_grid grid = {0, 0};

	ref_run(b->f32 ? "train_attention_f32" : "train_attention", grid, b->args);
	if (strcmp(b->entry, "train_attention_delta"))
		ref_run(b->f32 ? "train_attention_delta_f32" : "train_attention_delta", grid, b->args);
}

static void matrix(struct train_build *b, const char *name, size_t at, size_t ld_at, int64_t cols,
		   enum use use, struct tolerance tolerance)
{
	struct operand *o = train_operand(b, name, at, NUMBER_BF16, b->rows, cols, use);

	train_number(b, ld_at, o->ld);
	o->width = 2;
	o->tolerance = tolerance;
}

static bool is_first_of_document(const struct train_build *b, int64_t row)
{
	int64_t doc = 0;

	while (doc_start(b, doc) < row)
		doc++;
	return doc_start(b, doc) == row;
}

/* A document's first row sees one key, so p is 1 and do v' equals delta: dq = scale (do v' - delta) k is what
 * roundings leave. F32 adds do v' in pairs, so each term is rounded dim / 2 times at most. A pair's product,
 * delta and the difference add one rounding each. */
static double dq_cancels(const struct train_build *b, int64_t row, int64_t col)
{
	const struct train_attention_args *a = (const void *)b->args;
	const int64_t dim = a->head_dim, head = col / dim, kv = head / (a->heads / a->kv_heads);
	const int64_t k = (a->heads + kv) * dim, v = (a->heads + a->kv_heads + kv) * dim;
	double terms = 0;

	if (!is_first_of_document(b, row))
		return 0;
	for (int64_t d = 0; d < dim; d++)
		terms += fabs(train_before(b, "d_o", row, head * dim + d) *
			      train_before(b, "qkv", row, v + d));
	return (double)(dim / 2 + 3) * TRAIN_F32_HALF_UNIT * terms * (double)a->scale *
	       fabs(train_before(b, "qkv", row, k + col % dim));
}

static void operands(struct train_build *b, const struct train_attention_args *a)
{
	const char *e = b->entry;
	const bool backward = strcmp(e, "train_attention"), delta = !strcmp(e, "train_attention_delta");
	const int64_t q = (int64_t)a->heads * a->head_dim, kv = 2 * (int64_t)a->kv_heads * a->head_dim;
	struct operand *o;

	matrix(b, "qkv", AT(qkv), AT(ld_qkv), q + kv, USE_IN, (struct tolerance){0, 0});
	matrix(b, "o", AT(o), AT(ld_o), q, backward ? USE_IN : USE_OUT, (struct tolerance){0x1p-7, 1e-4});
	o = train_operand(b, "lse", AT(lse), NUMBER_F32, b->rows, a->heads, backward ? USE_IN : USE_OUT);
	train_number(b, AT(ld_lse), o->ld);
	o->tolerance = (struct tolerance){1e-5, 1e-5};
	o = train_operand(b, "doc_start", AT(doc_start), NUMBER_I32, (int64_t)a->docs + 1, 1, USE_IN);
	o->number = doc_start;
	o->ld = 1;
	if (!backward)
		return;
	matrix(b, "d_o", AT(d_o), AT(ld_d_o), q, USE_IN, (struct tolerance){0, 0});
	o = train_operand(b, "delta", AT(delta), NUMBER_F32, b->rows, a->heads, delta ? USE_OUT : USE_IN);
	o->ld = a->heads;
	o->tolerance = (struct tolerance){1e-5, 1e-5};
	if (delta)
		return;
	matrix(b, "dqkv", AT(dqkv), AT(ld_dqkv), q + kv, USE_OUT, (struct tolerance){0x1p-7, 1e-4});
	o = &b->operand[b->operands - 1];
	o->first = strcmp(e, "train_attention_bwd_kv") ? 0 : q; /* the others' columns stay as they are */
	o->cols = strcmp(e, "train_attention_bwd_kv") ? q : kv;
	o->cancels = strcmp(e, "train_attention_bwd_kv") ? dq_cancels : NULL;
}

static void attention(struct train_build *b)
{
	struct train_attention_args a = {.rows = (uint32_t)b->rows};
	int32_t longest = 0;

	a.head_dim = (uint32_t)b->cols % 512;
	a.kv_heads = (uint32_t)b->cols / 512 % 16;
	a.heads = (uint32_t)b->cols / 512 / 16 * a.kv_heads;
	a.scale = 1 / sqrtf((float)a.head_dim);
	while (doc_start(b, a.docs) < b->rows) {
		const int32_t length = doc_start(b, (int64_t)a.docs + 1) - doc_start(b, a.docs);

		longest = length > longest ? length : longest;
		a.docs++;
	}
	b->file = "train_attention";
	b->args_size = sizeof(a);
	memcpy(b->args, &a, sizeof(a));
	if (!strcmp(b->entry, "train_attention_delta")) {
		b->grid[0] = train_blocks(a.rows, (uint64_t)a.heads * 64);
		b->threads = TRAIN_THREADS;
	} else {
		b->grid[0] = (unsigned)(longest + TRAIN_ATTENTION_ROWS - 1) / TRAIN_ATTENTION_ROWS;
		b->grid[1] = strcmp(b->entry, "train_attention_bwd_kv") ? a.heads : a.kv_heads;
		b->grid[2] = a.docs;
		b->threads = TRAIN_ATTENTION_THREADS;
		b->shared_bytes = train_attention_shared(a.head_dim, b->f32 ? 4 : 2);
	}
	operands(b, &a);
	if (strcmp(b->entry, "train_attention"))
		b->prepare = forward_first;
}

const struct train_maker makers_train_attention[] = {
	{"train_attention", attention},
	{"train_attention_delta", attention},
	{"train_attention_bwd_kv", attention},
	{"train_attention_bwd_q", attention},
	{NULL, NULL},
};
