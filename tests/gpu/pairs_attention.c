/* SPDX-License-Identifier: Apache-2.0 */
/* Our attention kernels on PyTorch's tensors. */
#include "core/text/text.h"
#include "gpu/attention/own_forward.h"
#include "gpu/attention/own_block_sparse.h"
#include "kernel/attention/sparse/make_lists.h"
#include "pairs_internal.h"

struct pairs_attention { /* one of both */
	struct pairs *pairs;
	struct attention_own *own;
	struct attention_sparse *sparse;
	struct attention_problem problem; /* sparse borrows it */
};

static enum status named(const char *name, const char *const *names, int count, int *out, struct error *err)
{
	for (int i = 0; i < count; i++)
		if (!strcmp(name, names[i])) {
			*out = i;
			return STATUS_OK;
		}
	return error_set(err, STATUS_BAD_INPUT, "no attention of %s", name);
}

static enum status problem_of(const struct pairs_attention_shape *s, struct attention_problem *p,
			      struct error *err)
{
	const char *types[ATTENTION_TYPE_COUNT], *masks[ATTENTION_MASK_COUNT];
	int type = 0, out = 0, mask = 0;
	enum status st;

	for (int i = 0; i < ATTENTION_TYPE_COUNT; i++)
		types[i] = attention_type_name((enum attention_type)i);
	for (int i = 0; i < ATTENTION_MASK_COUNT; i++)
		masks[i] = attention_mask_name((enum attention_mask)i);
	st = named(s->type, types, ATTENTION_TYPE_COUNT, &type, err);
	if (!st)
		st = named(s->out_type, types, ATTENTION_TYPE_COUNT, &out, err);
	if (!st)
		st = named(s->mask, masks, ATTENTION_MASK_COUNT, &mask, err);
	*p = (struct attention_problem){.type = (enum attention_type)type,
					.out_type = (enum attention_type)out,
					.batch = s->batch,
					.heads = s->heads,
					.kv_heads = s->kv_heads,
					.q_len = s->q_len,
					.kv_len = s->kv_len,
					.head_dim = s->head_dim,
					.mask = (enum attention_mask)mask,
					.want_lse = true};
	return st;
}

static enum status new_of(struct pairs *p, const struct pairs_attention_shape *s, struct pairs_attention **a,
			  struct error *err)
{
	*a = calloc(1, sizeof(**a));
	if (!*a)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for an attention");
	(*a)->pairs = p;
	return problem_of(s, &(*a)->problem, err);
}

struct pairs_attention *pairs_attention_open(struct pairs *p, const struct pairs_attention_shape *s,
					     char *text, size_t size)
{
	struct pairs_attention *a;
	struct error err = {0};
	enum status st = new_of(p, s, &a, &err);

	if (!st)
		st = attention_own_create(&a->own, p->device, &a->problem, &err);
	if (!pairs_told(st, &err, text, size))
		return a;
	pairs_attention_close(a);
	return NULL;
}

struct pairs_attention *pairs_attention_open_map(struct pairs *p, const struct pairs_attention_shape *s,
						 uint64_t map, uint32_t k_block, char *text, size_t size)
{
	const struct attention_sparse_how how = {
		.source = LISTS_MAP, .k_block = k_block, .batches = s->batch, .heads = s->heads, .map = map};
	struct pairs_attention *a;
	struct error err = {0};
	enum status st = new_of(p, s, &a, &err);

	if (!st)
		st = attention_sparse_create(&a->sparse, p->device, &a->problem, &how, &err);
	if (!st)
		text_copy(text, size, attention_sparse_kernel(a->sparse));
	if (!pairs_told(st, &err, text, size))
		return a;
	pairs_attention_close(a);
	return NULL;
}

void pairs_attention_close(struct pairs_attention *a)
{
	if (!a)
		return;
	attention_own_destroy(&a->own);
	attention_sparse_destroy(&a->sparse);
	free(a);
}

unsigned pairs_attention_count(const struct pairs_attention *a)
{
	return a->own ? attention_own_count(a->own) : 0;
}

int pairs_attention_select(struct pairs_attention *a, unsigned candidate, char *text, size_t size)
{
	struct error err = {0};
	enum status st = candidate < pairs_attention_count(a)
				 ? attention_own_select(a->own, candidate, &err)
				 : error_set(&err, STATUS_BAD_INPUT, "no candidate %u", candidate);

	if (!st)
		text_copy(text, size, attention_own_name(a->own, candidate));
	return pairs_told(st, &err, text, size);
}

int pairs_attention_run(struct pairs_attention *a, const struct pairs_attention_arrays *x, void *stream,
			char *text, size_t size)
{
	const struct gpu_stream s = pairs_stream(a->pairs, stream);
	const struct attention_operands o = {.q = x->q,
					     .k = x->k,
					     .v = x->v,
					     .o = x->o,
					     .lse = x->lse,
					     .descale_q = x->descale_q,
					     .descale_k = x->descale_k,
					     .descale_v = x->descale_v,
					     .scale_o = x->scale_o};
	struct error err = {0};
	enum status st =
		a->own ? attention_own_enqueue(a->own, &o, (struct gpu_stream *)&s, &err)
		       : attention_sparse_enqueue(a->sparse, &o, (struct gpu_stream *)&s, &err);

	return pairs_told(st, &err, text, size);
}

int pairs_attention_lists(struct pairs_attention *a, void *stream, char *text, size_t size)
{
	const struct gpu_stream s = pairs_stream(a->pairs, stream);
	const struct attention_operands nothing = {0};
	struct error err = {0};
	enum status st =
		a->sparse ? attention_sparse_build(a->sparse, &nothing, (struct gpu_stream *)&s, &err)
			  : error_set(&err, STATUS_BAD_INPUT, "a dense attention has no block lists");

	return pairs_told(st, &err, text, size);
}
