/* SPDX-License-Identifier: Apache-2.0 */
/* kernel/attention/sparse/args.h on the host, in double precision, pair by pair of the blocks listed. */
#include "kernel/attention/sparse/args.h"
#include <math.h>
#include <stdlib.h>
#include "gpu/attention/problem.h"
#include "ref.h"
#include "ref_number.h"

#define AT(type, address) ((type *)(uintptr_t)(address))

/* The fake driver's map: address, four sizes, three strides in bytes. */
struct tensor {
	const void *data;
	uint64_t row, head, batch; /* elements */
};

static struct tensor tensor_of(const struct tensor_map *m)
{
	return (struct tensor){(const void *)(uintptr_t)m->opaque[0], m->opaque[5] / 2, m->opaque[6] / 2,
			       m->opaque[7] / 2};
}

/* Of dense: scale_log2, lengths and starts, not the maps. */
struct sparse {
	const struct attention_sparse_args *a;
	enum attention_type type;
	struct tensor q, k, v, o;
	uint32_t head_dim;
	uint32_t b, h, q_from, k_from; /* sequence, query head, first rows where sequences are packed */
	int64_t queries, keys;
	double *share; /* (longest) */
};

static double load(const struct sparse *s, const struct tensor *t, uint32_t head, int64_t row, uint32_t d)
{
	uint64_t at =
		(s->a->dense.q_starts ? 0 : s->b * t->batch) + head * t->head + (uint64_t)row * t->row + d;

	return ref_number_load(s->type, t->data, at);
}

static bool bit(const struct sparse *s, uint32_t number, int64_t i, int64_t j)
{
	const struct attention_block_lists *l = &s->a->lists;
	uint64_t at = ((uint64_t)number * l->q_block + (uint64_t)i % l->q_block) * l->k_block +
		      (uint64_t)j % l->k_block;

	return !s->a->bits || AT(const uint32_t, s->a->bits)[at / 32] >> at % 32 & 1;
}

/* Logits of one block's keys for row i; those not kept stay -inf. */
static void block(struct sparse *s, int64_t i, uint32_t k, bool full, uint32_t number)
{
	const struct attention_sm90_args *a = &s->a->dense;
	int64_t own = i + s->keys - s->queries, from = (int64_t)k * s->a->lists.k_block;
	uint32_t g = s->h / (a->heads / a->kv_heads);

	for (int64_t j = from; j < from + s->a->lists.k_block && j < s->keys; j++) {
		double dot = 0;

		if (!full && (j < own - a->left || j > own + a->right || !bit(s, number, i, j)))
			continue;
		for (uint32_t d = 0; d < s->head_dim; d++)
			dot += load(s, &s->q, s->h, s->q_from + i, d) * load(s, &s->k, g, s->k_from + j, d);
		s->share[j] = dot * (double)a->scale_log2 * M_LN2;
	}
}

static void weigh(struct sparse *s, int64_t i, double most)
{
	const struct attention_sm90_args *a = &s->a->dense;
	uint64_t row = ((uint64_t)s->b * a->heads + s->h) * a->q_len + (uint64_t)i;
	uint64_t at = (a->q_starts ? 0 : s->b * s->o.batch) + s->h * s->o.head +
		      (s->q_from + (uint64_t)i) * s->o.row;
	double sum = 0;

	for (int64_t j = 0; j < s->keys; j++)
		sum += s->share[j] = isinf(s->share[j]) ? 0 : exp(s->share[j] - most);
	if (a->lse)
		AT(float, a->lse)[row] = sum > 0 ? (float)(most + log(sum)) : -INFINITY;
	for (uint32_t d = 0; d < s->head_dim; d++) {
		double o = 0;

		for (int64_t j = 0; j < s->keys; j++)
			if (s->share[j] > 0)
				o += s->share[j] *
				     load(s, &s->v, s->h / (a->heads / a->kv_heads), s->k_from + j, d);
		ref_number_store(s->type, AT(void, a->o), at + d, sum > 0 ? o / sum : 0);
	}
}

static void row(struct sparse *s, int64_t i)
{
	const struct attention_block_lists *l = &s->a->lists;
	uint32_t at =
		((s->b % l->batches) * l->heads + s->h % l->heads) * l->q_blocks + (uint32_t)(i / l->q_block);
	const uint32_t *full_begin = AT(const uint32_t, l->full_begin);
	const uint32_t *partial_begin = AT(const uint32_t, l->partial_begin);
	double most = -(double)INFINITY;

	for (int64_t j = 0; j < s->keys; j++)
		s->share[j] = -(double)INFINITY;
	for (uint32_t n = full_begin[at]; n < full_begin[at + 1]; n++)
		block(s, i, AT(const uint32_t, l->full)[n], true, 0);
	for (uint32_t n = partial_begin[at]; n < partial_begin[at + 1]; n++)
		block(s, i, AT(const uint32_t, l->partial)[n], false, n);
	for (int64_t j = 0; j < s->keys; j++)
		most = fmax(most, s->share[j]);
	weigh(s, i, most);
}

static void run(const struct attention_sparse_args *a, const char *entry, const struct tensor (*t)[4],
		uint32_t head_dim)
{
	const uint32_t *q_starts = AT(const uint32_t, a->dense.q_starts),
		       *kv_starts = AT(const uint32_t, a->dense.kv_starts);
	struct sparse s = {.a = a,
			   .type = strstr(entry, "bf16") ? ATTENTION_BF16 : ATTENTION_F16,
			   .q = (*t)[0],
			   .k = (*t)[1],
			   .v = (*t)[2],
			   .o = (*t)[3],
			   .head_dim = head_dim,
			   .queries = a->dense.q_len,
			   .keys = a->dense.kv_len,
			   .share = calloc(a->dense.kv_len, sizeof(double))};

	if (!s.share)
		abort();
	for (s.b = 0; s.b < a->dense.batch; s.b++)
		for (s.h = 0; s.h < a->dense.heads; s.h++) {
			if (q_starts) {
				s.q_from = q_starts[s.b];
				s.k_from = kv_starts[s.b];
				s.queries = q_starts[s.b + 1] - s.q_from;
				s.keys = kv_starts[s.b + 1] - s.k_from;
			}
			for (int64_t i = 0; i < s.queries; i++)
				row(&s, i);
		}
	free(s.share);
}

static void own(const char *entry, struct ref_grid grid, const void *args)
{
	struct attention_sparse_args copy; /* aligned, as the driver's own copy is */
	const struct attention_sparse_args *a = memcpy(&copy, args, sizeof(copy));
	const struct tensor t[4] = {tensor_of(&a->dense.q_map), tensor_of(&a->dense.k_map),
				    tensor_of(&a->dense.v_map), tensor_of(&a->dense.o_map)};

	(void)grid;
	run(a, entry, &t, (uint32_t)a->dense.q_map.opaque[1]);
}

static struct tensor tensor_at(uint64_t at, struct attention_steps s)
{
	return (struct tensor){AT(const void, at), (uint64_t)s.row, (uint64_t)s.head, (uint64_t)s.batch};
}

static void portable(const char *entry, struct ref_grid grid, const void *args)
{
	const struct attention_sparse_flash_args *f = args;
	const struct attention_args *d = &f->dense;
	const struct tensor t[4] = {tensor_at(d->q, d->q_step), tensor_at(d->k, d->k_step),
				    tensor_at(d->v, d->v_step), tensor_at(d->o, d->o_step)};
	const struct attention_sparse_args a = {.dense = {.o = d->o,
							  .lse = d->lse,
							  .q_starts = d->q_starts,
							  .kv_starts = d->kv_starts,
							  .batch = d->batch,
							  .heads = d->heads,
							  .kv_heads = d->kv_heads,
							  .q_len = d->q_len,
							  .kv_len = d->kv_len,
							  .left = d->left,
							  .right = d->right,
							  .scale_log2 = d->scale * (float)M_LOG2E},
						.lists = f->lists,
						.bits = f->bits};

	(void)grid;
	run(&a, entry, &t, d->head_dim);
}

const struct ref_row ref_attention_sparse[] = {
	{"blocks_", portable, sizeof(struct attention_sparse_flash_args),
	 offsetof(struct attention_sparse_flash_args, dense.o)},
	{"sparse_", own, sizeof(struct attention_sparse_args),
	 offsetof(struct attention_sparse_args, dense.o)},
	{NULL, NULL, 0, 0},
};
