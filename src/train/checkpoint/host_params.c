/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/host_params.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "model/gpu/backend.h"
#include "model/tensor/dtype.h"

enum { PAGE_BYTES = 2 << 20 };

/* Bytes that a state takes in the copies, so that the next one is aligned. */
static uint64_t state_room(uint64_t bytes)
{
	return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

/* Uses large pages if available. The first checkpoint touches all pages while the optimizer waits, so page
 * faults would cost time. */
static void *large_pages(size_t bytes)
{
	const size_t whole = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	void *memory;

	if (bytes < PAGE_BYTES)
		return aligned_alloc(ARENA_ALIGN, state_room(bytes));
	if (posix_memalign(&memory, PAGE_BYTES, whole))
		return NULL;
	madvise(memory, whole, MADV_HUGEPAGE);
	return memory;
}

/* Bytes of the copy of a state; 0: it is absent, or in host memory itself. */
static uint64_t copied_bytes(const struct params *p, enum params_state which)
{
	return params_state_offloaded(p, which) ? 0 : params_state_bytes(p, which);
}

/* Gives every state of *p that is copied a place in the copies. */
static void point(struct params *p, uint8_t *memory)
{
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = copied_bytes(p, (enum params_state)i);

		if (bytes)
			params_state(p, (enum params_state)i)->data = memory;
		memory += state_room(bytes);
	}
}

static uint64_t complete_bytes(const struct params *p)
{
	uint64_t bytes = 0;

	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		bytes += state_room(copied_bytes(p, (enum params_state)i));
	return bytes;
}

/* Complete states, all of which rank 0 has room for. */
static struct params collected_states(const struct params *p)
{
	struct params whole = params_whole(p);

	whole.offloaded = false;
	return whole;
}

static uint64_t collected_bytes(const struct params *p)
{
	const struct params whole = collected_states(p);

	return p->shards.rank ? 0 : complete_bytes(&whole);
}

/* Rank 0 writes the adapter to each checkpoint. All ranks have its master weights. */
static uint64_t adapter_bytes(const struct params *p, const struct host_part *part)
{
	return part->first && part->adapter ? params_state_bytes(p, PARAMS_STATE_master) : 0;
}

/* Whether the copies are complete states. */
static bool is_complete(bool gpu, const struct host_part *part)
{
	return part ? part->first && (gpu || part->adapter) : gpu;
}

/* Whether no rank has complete states. */
static bool is_divided(const struct params *p, const struct host_part *part)
{
	return p->border || (part && part->tensors);
}

uint64_t host_params_bytes(const struct params *p, bool gpu, const struct host_part *part)
{
	if (is_divided(p, part))
		return part ? shard_bytes(p, part->begin, part->end) + adapter_bytes(p, part)
			    : collected_bytes(p);
	if (is_complete(gpu, part))
		return complete_bytes(p);
	return part ? shard_bytes(p, part->begin, part->end) : 0;
}

/* Takes away the memory of a GPU from the complete states. */
static void forget(struct params *p)
{
	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		if (!params_state_offloaded(p, (enum params_state)i))
			params_state(p, (enum params_state)i)->data = NULL;
}

static void place(struct host_params *m, const struct params *p, bool gpu, const struct host_part *part)
{
	const size_t begin = part ? part->begin : 0, end = part ? part->end : p->length;

	if (gpu || part)
		forget(&m->taken);
	if (is_complete(gpu, part))
		point(&m->taken, m->memory);
	if (gpu)
		m->params = m->taken;
	if (part && !is_complete(gpu, part))
		shard_place(&m->shard, p, begin, end, m->memory);
	else
		shard_view(&m->shard, &m->taken, begin, end);
}

static void place_divided(struct host_params *m, const struct params *p, const struct host_part *part)
{
	m->params = params_whole(p);
	if (adapter_bytes(p, part))
		m->params.master.data = (uint8_t *)m->memory + shard_bytes(p, part->begin, part->end);
	m->taken = m->params;
	shard_place(&m->shard, p, part->begin, part->end, m->memory);
}

static void place_collected(struct host_params *m, const struct params *p)
{
	m->params = collected_states(p);
	if (m->memory)
		point(&m->params, m->memory);
	m->taken = m->params;
}

enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       const struct host_part *part, struct error *err)
{
	const bool gpu = back->kind == BACKEND_GPU;
	const uint64_t bytes = host_params_bytes(p, gpu, part);

	*m = (struct host_params){.params = *p,
				  .taken = *p,
				  .divided = is_divided(p, part) && part,
				  .collected = p->border && !part};
	m->copies = (gpu && p->length) || part || m->collected;
	m->lent = !m->copies || p->offloaded;
	m->takes_all = !m->divided && (!part || (part->first && part->adapter));
	if (bytes) {
		m->memory = large_pages(bytes);
		if (!m->memory)
			return error_set_cause(
				err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				"%.3g GB of host memory, for checkpoints of the trained parameters",
				(double)bytes * 1e-9);
	}
	if (m->divided)
		place_divided(m, p, part);
	else if (m->collected)
		place_collected(m, p);
	else
		place(m, p, gpu, part);
	return STATUS_OK;
}

uint64_t host_params_whole_bytes(const struct params *whole)
{
	return complete_bytes(whole);
}

enum status host_params_create_whole(struct host_params *m, const struct params *whole, bool first,
				     struct error *err)
{
	*m = (struct host_params){.params = *whole, .copies = true, .takes_all = true, .collected = true};
	if (first)
		m->memory = large_pages(complete_bytes(whole));
	if (first && !m->memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%.3g GB of host memory, for checkpoints of the trained parameters",
				       (double)complete_bytes(whole) * 1e-9);
	if (first)
		point(&m->params, m->memory);
	m->taken = m->params;
	return STATUS_OK;
}

void host_params_release(struct host_params *m)
{
	free(m->memory);
	*m = (struct host_params){0};
}

typedef enum status copy_state(struct backend *back, const struct mat *device, void *host, struct error *err);

static enum status get_state(struct backend *back, const struct mat *device, void *host, struct error *err)
{
	return back->ops->get(back, *device, host, err);
}

static enum status get_marked_state(struct backend *back, const struct mat *device, void *host,
				    struct error *err)
{
	return gpu_backend_get_marked(back, *device, host, err);
}

static enum status put_state(struct backend *back, const struct mat *device, void *host, struct error *err)
{
	return back->ops->put(back, *device, host, err);
}

/* Between the states of *p on a GPU and complete copies. */
static enum status copy_states(const struct params *copies, const struct params *p, struct backend *back,
			       copy_state *copy, struct error *err)
{
	struct params device = *p, host = *copies;
	enum status st = STATUS_OK;

	for (int i = 0; !st && i < PARAMS_STATE_COUNT; i++)
		if (copied_bytes(p, (enum params_state)i))
			st = copy(back, params_state(&device, (enum params_state)i),
				  params_state(&host, (enum params_state)i)->data, err);
	return st;
}

/* The states in host memory have the last step's numbers after this. */
static enum status wait_for_copies(const struct params *p, struct backend *back, struct error *err)
{
	return p->offloaded ? back->ops->lane_wait(back, LANE_STATES, err) : STATUS_OK;
}

enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	enum status st = wait_for_copies(p, back, err);

	if (st || !m->memory || m->collected)
		return st;
	if (m->divided)
		return m->params.master.data ? get_state(back, &p->master, m->params.master.data, err)
					     : STATUS_OK;
	return back->kind == BACKEND_GPU ? copy_states(&m->params, p, back, get_state, err) : STATUS_OK;
}

enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err)
{
	enum status st = wait_for_copies(&m->params, back, err);

	return !st && m->copies && !m->collected && back->kind == BACKEND_GPU ? gpu_backend_mark(back, err)
									      : st;
}

static enum status take_state(struct backend *back, const struct mat *from, void *to, struct error *err)
{
	if (back->kind == BACKEND_GPU)
		return get_marked_state(back, from, to, err);
	memcpy(to, from->data, dtype_bytes(from->dtype, (uint64_t)(from->rows * from->cols)));
	return STATUS_OK;
}

enum status host_params_take(struct host_params *m, const struct params *p, struct backend *back,
			     struct error *err)
{
	struct shard from;
	enum status st = STATUS_OK;

	if (!m->copies || m->collected)
		return STATUS_OK;
	if (m->takes_all)
		return copy_states(&m->taken, p, back, take_state, err);
	if (m->divided && m->taken.master.data)
		st = take_state(back, &p->master, m->taken.master.data, err);
	shard_view(&from, p, m->shard.begin, m->shard.end);
	for (int i = 0; !st && i < PARAMS_STATE_COUNT; i++)
		if (from.state[i].rows && !params_state_offloaded(p, (enum params_state)i))
			st = take_state(back, &from.state[i], m->shard.state[i].data, err);
	return st;
}

enum status host_params_put_live(const struct params *p, struct backend *back, struct error *err)
{
	const size_t begin = params_begin(p), count = params_end(p) - begin;
	const struct mat room = params_cut(p, &p->grad, begin, count);
	enum status st;

	if (!params_state_offloaded(p, PARAMS_STATE_master))
		return STATUS_OK;
	st = back->ops->put(back, room, p->master.data, err);
	return st ? st : back->ops->convert(back, room, params_cut(p, &p->live, begin, count), err);
}

enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	enum status st = back->kind == BACKEND_GPU && m->memory && !m->divided && !m->collected
				 ? copy_states(&m->params, p, back, put_state, err)
				 : STATUS_OK;

	return st ? st : host_params_put_live(p, back, err);
}

enum status host_params_put_shard(const struct shard *s, const struct params *p, struct backend *back,
				  struct error *err)
{
	struct shard to;
	enum status st = STATUS_OK;

	shard_view(&to, p, s->begin, s->end);
	for (int i = 0; !st && i < PARAMS_STATE_COUNT; i++)
		if (to.state[i].rows && !params_state_offloaded(p, (enum params_state)i))
			st = put_state(back, &to.state[i], s->state[i].data, err);
	return st ? st : host_params_put_live(p, back, err);
}
