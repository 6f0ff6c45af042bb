/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two arrays of a rank: driver memory, NCCL memory, NCCL memory registered with the communicator, or
 * symmetric windows of the communicator. All ranks call these functions together. Registration is a
 * collective call, so it starts after all ranks have allocated their memory.
 */
#include "probe/collective/collective.h"

enum { WINDOW_ALIGN = 4096 };

static uint64_t rounded(uint64_t bytes)
{
	return (bytes + WINDOW_ALIGN - 1) / WINDOW_ALIGN * WINDOW_ALIGN;
}

static enum status named(const struct collective_state *s, ncclResult_t r, const struct collective_way *w,
			 const char *what, struct error *err)
{
	return nccl_check(s->nccl, r, w->comm->comm, what, err);
}

/* In place, the smaller side is a part of the larger one, at this rank's share. */
static void place(struct collective_state *s, struct collective_memory *m)
{
	unsigned bytes = collective_type_bytes(s->inputs.type);
	uint64_t own = s->shape.count * bytes * s->team->rank;

	m->send = m->base[0];
	m->receive = m->base[1] ? m->base[1] : m->base[0];
	if (s->opts.place == COLLECTIVE_IN && s->opts.op == COLLECTIVE_ALL_GATHER)
		m->send = m->base[0] + own;
	if (s->opts.place == COLLECTIVE_IN && s->opts.op == COLLECTIVE_REDUCE_SCATTER)
		m->receive = m->base[0] + own;
}

static enum status allocate(struct collective_state *s, struct collective_way *w, struct error *err)
{
	struct collective_memory *m = &w->memory;
	unsigned bytes = collective_type_bytes(s->inputs.type);
	bool whole = s->opts.place == COLLECTIVE_IN || w->buffers == COLLECTIVE_LIBRARY;
	enum status st = STATUS_OK;

	*m = (struct collective_memory){.kind = w->buffers, .comm = w->comm};
	m->size[0] = rounded(whole ? s->shape.bytes : s->shape.send * bytes);
	m->size[1] = s->opts.place == COLLECTIVE_IN
			     ? 0
			     : rounded(whole ? s->shape.bytes : s->shape.receive * bytes);
	for (int i = 0; i < 2 && !st && m->size[i]; i++) {
		void *p = NULL;

		if (w->buffers == COLLECTIVE_PLAIN) {
			st = gpu_alloc(s->bench->device, &m->base[i], m->size[i], err);
			continue;
		}
		st = named(s, s->nccl->alloc(&p, m->size[i]), w, "ncclMemAlloc", err);
		m->base[i] = (uintptr_t)p;
	}
	place(s, m);
	return st;
}

static enum status enroll(struct collective_state *s, struct collective_way *w, struct error *err)
{
	struct collective_memory *m = &w->memory;
	enum status st = STATUS_OK;

	team_at(s->team->board, TEAM_OP_REGISTER);
	for (int i = 0; i < 2 && !st && m->size[i]; i++) {
		void *at = (void *)(uintptr_t)m->base[i];

		if (w->buffers == COLLECTIVE_REGISTERED) {
			st = named(s, s->nccl->reg(w->comm->comm, at, m->size[i], &m->handle[i]), w,
				   "ncclCommRegister", err);
		} else {
			ncclWindow_t window = NULL;

			st = named(s,
				   s->nccl->window(w->comm->comm, at, m->size[i], &window,
						   NCCL_WIN_COLL_SYMMETRIC),
				   w, "ncclCommWindowRegister", err);
			m->handle[i] = window;
		}
	}
	w->registered = !st && m->handle[0] && (m->handle[1] || !m->size[1]);
	return st;
}

static enum status known(const struct collective_state *s, const struct collective_way *w, struct error *err)
{
	const struct nccl *n = s->nccl;
	bool has = w->buffers == COLLECTIVE_LIBRARY  ? true
		   : w->buffers == COLLECTIVE_WINDOW ? n->window && n->unwindow
						     : n->reg && n->dereg;
	char version[24];

	if (w->buffers == COLLECTIVE_PLAIN || (has && n->alloc && n->free))
		return STATUS_OK;
	nccl_version_text(n, version, sizeof(version));
	return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_LIBRARY_MISSING,
			       "collective: NCCL %s does not support %s; use NCCL %s or newer", version,
			       w->buffers == COLLECTIVE_LIBRARY	 ? "ncclMemAlloc"
			       : w->buffers == COLLECTIVE_WINDOW ? "symmetric windows"
								 : "registered buffers",
			       w->buffers == COLLECTIVE_WINDOW ? "2.27" : "2.19");
}

enum status collective_memory_make(struct collective_state *s, struct collective_way *w, struct error *err)
{
	enum status st = known(s, w, err);

	if (!st)
		st = allocate(s, w, err);
	st = team_agree(s->team, st, err);
	if (!st && w->buffers > COLLECTIVE_LIBRARY) {
		st = enroll(s, w, err);
		st = team_agree(s->team, st, err);
	}
	return st;
}

void collective_memory_free(struct collective_state *s, struct collective_way *w)
{
	struct collective_memory *m = &w->memory;
	ncclComm_t comm = w->comm ? w->comm->comm : NULL;

	for (int i = 0; i < 2; i++) {
		if (m->handle[i] && comm && m->kind == COLLECTIVE_WINDOW)
			s->nccl->unwindow(comm, m->handle[i]);
		if (m->handle[i] && comm && m->kind == COLLECTIVE_REGISTERED)
			s->nccl->dereg(comm, m->handle[i]);
		if (m->kind == COLLECTIVE_PLAIN)
			gpu_free(s->bench->device, &m->base[i]);
		else if (m->base[i])
			s->nccl->free((void *)(uintptr_t)m->base[i]);
	}
	*m = (struct collective_memory){0};
}
