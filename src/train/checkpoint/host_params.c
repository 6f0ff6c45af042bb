/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/host_params.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "model/gpu/backend.h"

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

	if (posix_memalign(&memory, PAGE_BYTES, whole))
		return NULL;
	madvise(memory, whole, MADV_HUGEPAGE);
	return memory;
}

/* Gives every state of *p a place in the copies. */
static void point(struct params *p, uint8_t *memory)
{
	for (int i = 0; i < PARAMS_STATE_COUNT; i++) {
		const uint64_t bytes = params_state_bytes(p, (enum params_state)i);

		if (bytes)
			params_state(p, (enum params_state)i)->data = memory;
		memory += state_room(bytes);
	}
}

uint64_t host_params_bytes(const struct params *p, bool gpu)
{
	const struct params whole = p->border ? params_whole(p) : *p;
	uint64_t bytes = 0;

	if (p->border ? p->shards.rank : !gpu)
		return 0;
	for (int i = 0; i < PARAMS_STATE_COUNT; i++)
		bytes += state_room(params_state_bytes(&whole, (enum params_state)i));
	return bytes;
}

enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       struct error *err)
{
	const uint64_t bytes = host_params_bytes(p, back->kind == BACKEND_GPU);

	*m = (struct host_params){.params = p->border ? params_whole(p) : *p, .divided = p->border};
	if (!bytes)
		return STATUS_OK;
	m->memory = large_pages(bytes);
	if (!m->memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%.3g GB of host memory, for checkpoints of the trained parameters",
				       (double)bytes * 1e-9);
	point(&m->params, m->memory);
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

static enum status copy_states(const struct host_params *m, const struct params *p, struct backend *back,
			       copy_state *copy, struct error *err)
{
	struct params device = *p, host = m->params;
	enum status st = STATUS_OK;

	for (int i = 0; !st && m->memory && !m->divided && i < PARAMS_STATE_COUNT; i++)
		if (params_state_bytes(p, (enum params_state)i))
			st = copy(back, params_state(&device, (enum params_state)i),
				  params_state(&host, (enum params_state)i)->data, err);
	return st;
}

enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	return copy_states(m, p, back, get_state, err);
}

enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err)
{
	return m->memory && !m->divided ? gpu_backend_mark(back, err) : STATUS_OK;
}

enum status host_params_get_marked(struct host_params *m, const struct params *p, struct backend *back,
				   struct error *err)
{
	return copy_states(m, p, back, get_marked_state, err);
}

enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	return copy_states(m, p, back, put_state, err);
}
