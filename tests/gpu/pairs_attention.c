/* SPDX-License-Identifier: Apache-2.0 */
/* Our attention kernels on PyTorch's tensors. */
#include "core/text.h"
#include "gpu/attention_own.h"
#include "pairs_internal.h"

struct pairs_attention {
	struct pairs *pairs;
	struct attention_own *own;
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

struct pairs_attention *pairs_attention_open(struct pairs *p, const struct pairs_attention_shape *s,
					     char *text, size_t size)
{
	struct pairs_attention *a = calloc(1, sizeof(*a));
	struct attention_problem problem;
	struct error err = {0};
	enum status st =
		a ? problem_of(s, &problem, &err)
		  : error_set_cause(&err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for an attention");

	if (!st)
		st = attention_own_create(&a->own, p->device, &problem, &err);
	if (pairs_told(st, &err, text, size)) {
		free(a);
		return NULL;
	}
	a->pairs = p;
	return a;
}

void pairs_attention_close(struct pairs_attention *a)
{
	if (!a)
		return;
	attention_own_destroy(&a->own);
	free(a);
}

unsigned pairs_attention_count(const struct pairs_attention *a)
{
	return attention_own_count(a->own);
}

int pairs_attention_select(struct pairs_attention *a, unsigned candidate, char *text, size_t size)
{
	struct error err = {0};
	enum status st = candidate < attention_own_count(a->own)
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

	return pairs_told(attention_own_enqueue(a->own, &o, (struct gpu_stream *)&s, &err), &err, text, size);
}
