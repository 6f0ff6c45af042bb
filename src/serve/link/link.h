/* SPDX-License-Identifier: Apache-2.0 */
/* The front end's side of the engine: which choices run there, and what happens when it is lost. Nothing
 * blocks. */
#ifndef SERVE_LINK_LINK_H
#define SERVE_LINK_LINK_H
#include "engine/message.h"
#include "serve/protocol/answer.h"

enum link_state {
	LINK_ABSENT,  /* no engine; the cause says why */
	LINK_LOADING, /* a process, but no weights yet */
	LINK_READY,
};

struct link_hooks {
	void *arg;
	void (*event)(void *arg, struct choice *c, const struct engine_event *e);
	void (*step)(void *arg, const struct engine_facts *facts); /* after the events of a step */
	void (*ready)(void *arg, const struct engine_ready *ready);
	/* The engine is gone, and the choices that it had are not known to the link any more. */
	void (*lost)(void *arg);
};

struct link_limits {
	size_t choices;	    /* most that run at a time */
	uint64_t hang_ns;   /* an engine that says nothing for this time and the predicted one is lost */
	uint64_t answer_ns; /* from the receipt of a request to its deadline; 0: none */
};

struct link;
enum status link_create(struct link **out, const struct link_limits *limits, const struct link_hooks *hooks,
			struct error *err);
void link_destroy(struct link **l); /* NULL-safe */

/* A new engine process: takes ownership of `fd`. One that was attached is lost. */
void link_attach(struct link *l, int fd, uint32_t epoch, uint64_t now_ns);
/* The engine process `epoch` has ended, with a cause for people; ignored if another one is attached. */
void link_lose(struct link *l, uint32_t epoch, const char *cause);
enum link_state link_state(const struct link *l);
uint32_t link_epoch(const struct link *l);
/* Why there is no engine; "" if there is one. */
const char *link_cause(const struct link *l);
const struct engine_ready *link_ready(const struct link *l); /* zeroed until LINK_READY */
size_t link_running(const struct link *l); /* choices, also those whose end is awaited only */

int link_fd(const struct link *l); /* -1: none */
bool link_wants_write(const struct link *l);
void link_flush(struct link *l);
/* Receives all that has come and calls the hooks. */
void link_receive(struct link *l, uint64_t now_ns);
/* To be called every 100 ms or so. True if the engine has just been given up because it hangs. If it was
 * not called for more than half of hang_ns, the silence begins anew: all processes may have been stopped. */
bool link_tick(struct link *l, uint64_t now_ns);

/* False: *err says why. The choice stays known until its last event, link_forget or the engine's loss. */
bool link_submit(struct link *l, struct choice *c, uint64_t client, struct api_error *err);
/* The engine is to stop; its last event comes. */
void link_cancel(struct link *l, struct choice *c);
/* Cancels, and no event will come: the choice may be freed. */
void link_forget(struct link *l, struct choice *c);
/* The engine is to end once it has nothing left to do. False: its queue is full, so this is to be called
 * again. */
bool link_drain(struct link *l);
#endif
