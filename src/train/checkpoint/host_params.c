/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/host_params.h"
#include <stdlib.h>
#include <sys/mman.h>
#include "model/gpu/backend.h"

enum { PARTS = 3, PAGE_BYTES = 2 << 20 };

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

enum status host_params_create(struct host_params *m, const struct params *p, const struct backend *back,
			       struct error *err)
{
	struct mat *part[PARTS] = {&m->params.master, &m->params.m, &m->params.v};

	*m = (struct host_params){.params = *p};
	if (back->kind == BACKEND_CPU || !p->length)
		return STATUS_OK;
	m->memory = large_pages(PARTS * p->length * sizeof(float));
	if (!m->memory)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "%.3g GB of host memory, for checkpoints of the trained parameters",
				       PARTS * (double)p->length * sizeof(float) * 1e-9);
	for (int i = 0; i < PARTS; i++)
		part[i]->data = (float *)m->memory + (size_t)i * p->length;
	return STATUS_OK;
}

void host_params_release(struct host_params *m)
{
	free(m->memory);
	*m = (struct host_params){0};
}

enum status host_params_get(struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	const struct mat *from[PARTS] = {&p->master, &p->m, &p->v};
	struct mat *to[PARTS] = {&m->params.master, &m->params.m, &m->params.v};
	enum status st = STATUS_OK;

	for (int i = 0; !st && m->memory && i < PARTS; i++)
		st = back->ops->get(back, *from[i], to[i]->data, err);
	return st;
}

enum status host_params_mark(const struct host_params *m, struct backend *back, struct error *err)
{
	return m->memory ? gpu_backend_mark(back, err) : STATUS_OK;
}

enum status host_params_get_marked(struct host_params *m, const struct params *p, struct backend *back,
				   struct error *err)
{
	const struct mat *from[PARTS] = {&p->master, &p->m, &p->v};
	struct mat *to[PARTS] = {&m->params.master, &m->params.m, &m->params.v};
	enum status st = STATUS_OK;

	for (int i = 0; !st && m->memory && i < PARTS; i++)
		st = gpu_backend_get_marked(back, *from[i], to[i]->data, err);
	return st;
}

enum status host_params_put(const struct host_params *m, const struct params *p, struct backend *back,
			    struct error *err)
{
	const struct mat *to[PARTS] = {&p->master, &p->m, &p->v};
	const struct mat *from[PARTS] = {&m->params.master, &m->params.m, &m->params.v};
	enum status st = STATUS_OK;

	for (int i = 0; !st && m->memory && i < PARTS; i++)
		st = back->ops->put(back, *to[i], from[i]->data, err);
	return st;
}
