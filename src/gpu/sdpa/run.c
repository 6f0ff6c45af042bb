/* SPDX-License-Identifier: Apache-2.0 */
/* Runs an attention plan: workspace, addresses and the library call. */
#include "gpu/sdpa/sdpa.h"
#include "gpu/sdpa/internal.h"

void sdpa_packs_clear(struct sdpa_plan *p)
{
	for (unsigned i = 0; i < SDPA_PACKS; i++)
		sdpa_desc_destroy(p->s, &p->packs[i].desc);
	p->packs_made = 0;
}

/* The graph's tensors come first in the workspace, then the library's own part. */
uint64_t sdpa_candidate_bytes(const struct sdpa_candidate *c)
{
	return c->graph->work_bytes + c->workspace_bytes;
}

enum status sdpa_plan_select(struct sdpa_plan *p, unsigned candidate, struct error *err)
{
	uint64_t bytes;
	enum status st = STATUS_OK;

	if (candidate >= p->count)
		return error_set(err, STATUS_BUG, "attention plan: candidate %u of %u", candidate, p->count);
	sdpa_packs_clear(p);
	p->selected = candidate;
	bytes = sdpa_candidate_bytes(&p->candidates[candidate]);
	if (bytes <= p->workspace_bytes)
		return STATUS_OK;
	gpu_free(p->s->device, &p->workspace);
	p->workspace_bytes = 0;
	st = gpu_alloc(p->s->device, &p->workspace, bytes, err);
	if (!st)
		p->workspace_bytes = bytes;
	return st;
}

/* The library takes device addresses as pointers. */
static void *address(gpu_ptr p)
{
	return (void *)(uintptr_t)p;
}

static gpu_ptr or_one(const struct sdpa_plan *p, gpu_ptr given)
{
	return given ? given : p->own + p->numbers.one;
}

static void *slot_address(const struct sdpa_plan *p, struct sdpa_slot *slot,
			  const struct attention_operands *o, const struct sdpa_gradients *g)
{
	switch (slot->role) {
	case SDPA_Q:
		return address(o->q);
	case SDPA_K:
		return address(o->k);
	case SDPA_V:
		return address(o->v);
	case SDPA_O:
		return address(o->o);
	case SDPA_LSE:
		return address(o->lse);
	case SDPA_D_O:
		return address(g->d_o);
	case SDPA_D_Q:
		return address(g->d_q);
	case SDPA_D_K:
		return address(g->d_k);
	case SDPA_D_V:
		return address(g->d_v);
	case SDPA_DESCALE_Q:
		return address(or_one(p, o->descale_q));
	case SDPA_DESCALE_K:
		return address(or_one(p, o->descale_k));
	case SDPA_DESCALE_V:
		return address(or_one(p, o->descale_v));
	case SDPA_SCALE_O:
		return address(or_one(p, o->scale_o));
	case SDPA_OWN:
		return address(p->own + slot->offset);
	case SDPA_WORK:
		return address(p->workspace + slot->offset);
	case SDPA_F32:
	case SDPA_I32:
		return &slot->value;
	}
	return NULL;
}

/* Makes a variant pack of the library for the given addresses. */
static enum status make_pack(struct sdpa_plan *p, struct sdpa_pack *pack, struct error *err)
{
	struct sdpa *s = p->s;
	struct sdpa_graph *g = p->candidates[p->selected].graph;
	void *pointers[SDPA_SLOTS_MAX], *workspace = address(p->workspace + g->work_bytes);
	int64_t uids[SDPA_SLOTS_MAX];
	enum status st;

	for (unsigned i = 0; i < g->slot_count; i++) {
		uids[i] = g->slots[i].uid;
		pointers[i] = slot_address(p, &g->slots[i], &pack->operands, &pack->gradients);
		if (!pointers[i])
			return error_set(err, STATUS_BUG,
					 "an attention plan is run without one of its operands");
	}
	st = sdpa_desc_create(s, &pack->desc, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, err);
	if (!st)
		st = DNN_CALL(s, err, desc_set, pack->desc, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
			      CUDNN_TYPE_INT64, g->slot_count, uids);
	if (!st)
		st = DNN_CALL(s, err, desc_set, pack->desc, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
			      CUDNN_TYPE_VOID_PTR, g->slot_count, pointers);
	if (!st)
		st = DNN_CALL(s, err, desc_set, pack->desc, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
			      CUDNN_TYPE_VOID_PTR, 1, &workspace);
	if (!st)
		st = DNN_CALL(s, err, desc_finalize, pack->desc);
	if (st)
		sdpa_desc_destroy(s, &pack->desc);
	return st;
}

/* Finds the pack for these addresses, or makes one in place of the oldest. */
static enum status bind(struct sdpa_plan *p, const struct attention_operands *o,
			const struct sdpa_gradients *gradients, struct sdpa_pack **out, struct error *err)
{
	struct sdpa_pack wanted = {.operands = *o};
	struct sdpa_pack *oldest = &p->packs[p->packs_made % SDPA_PACKS];
	enum status st;

	if (gradients)
		wanted.gradients = *gradients;
	for (unsigned i = 0; i < SDPA_PACKS; i++) {
		struct sdpa_pack *pack = &p->packs[i];

		*out = pack;
		if (pack->desc && !memcmp(&pack->operands, o, sizeof(*o)) &&
		    !memcmp(&pack->gradients, &wanted.gradients, sizeof(wanted.gradients)))
			return STATUS_OK;
	}
	sdpa_desc_destroy(p->s, &oldest->desc);
	st = make_pack(p, &wanted, err);
	*oldest = wanted;
	*out = oldest;
	p->packs_made += !st;
	return st;
}

enum status sdpa_plan_enqueue(struct sdpa_plan *p, const struct attention_operands *o,
			      const struct sdpa_gradients *gradients, struct gpu_stream *stream,
			      struct error *err)
{
	struct sdpa *s = p->s;
	void *raw = gpu_stream_raw(stream);
	struct sdpa_pack *pack;
	enum status st;

	if (p->selected >= p->count)
		return error_set(err, STATUS_BUG, "an attention plan is run before a candidate is selected");
	st = bind(p, o, gradients, &pack, err);
	if (!st && s->stream != raw) {
		st = DNN_CALL(s, err, set_stream, s->handle, raw);
		s->stream = st ? s->stream : raw;
	}
	if (st)
		return st;
	return DNN_CALL(s, err, execute, s->handle, p->candidates[p->selected].plan, pack->desc);
}
