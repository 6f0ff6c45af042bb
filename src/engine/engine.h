/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine: many requests on one device. It joins the scheduler, the step and the grammars. It knows token
 * ids only. One thread calls all functions.
 *
 * engine_step plans and enqueues a step, then waits for the results of the step before. So the host prepares
 * one step while the device computes another. A long step is enqueued in slices, one in each call.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H
#include "engine/load/load.h"
#include "engine/message.h"

struct engine_options {
	struct load_options load;
	const struct grammar_vocab
		*vocab; /* lent for the engine's life; NULL: requests with a grammar are refused */
	/* Predicted milliseconds that a step may take while some request decodes; 0: 30 on a GPU, or 150
	 * while many prompts wait, and 250 on a CPU. Other steps may take as long, or longer. */
	double step_ms;
	/* Predicted milliseconds after which a long step can be stopped; 0: 25. */
	double slice_ms;
	/* As in struct schedule_options; 0: usual values of the device. mixed_rows is at most load.rows. */
	int32_t mixed_rows, backlog_rows;
	bool no_prefix_cache; /* requests share no pages */
	int32_t queue;	      /* most waiting requests; more are refused. 0: 65536 */
};

struct engine;
/* Loads the model. Owner: caller, engine_destroy. */
enum status engine_create(struct engine **e, const struct engine_options *options, struct error *err);
void engine_destroy(struct engine **e); /* NULL-safe */

/* Every submitted request ends with exactly one ENGINE_EVENT_END, also one that is refused. NO_RESOURCE: out
 * of memory; then the request does not exist. */
enum status engine_submit(struct engine *e, const struct engine_request *r, struct error *err);
/* The request's ENGINE_EVENT_END is there on return. No effect if the request has ended or is unknown.
 * NO_RESOURCE: no memory for an event. */
enum status engine_cancel(struct engine *e, uint64_t id, struct error *err);
/* Ends a request with ENGINE_END_STOP: the caller found a stop string after its first `tokens` tokens. Events
 * of later tokens may have been made before. */
void engine_finish(struct engine *e, uint64_t id, int64_t tokens);
/* Does one step, or a slice of a long one, if there is work. A step is stopped after a slice if all of its
 * requests have ended. *idle: nothing is running or waiting. An error means that the device is lost; every
 * running request then fails. */
enum status engine_step(struct engine *e, bool *idle, struct error *err);
/* The time of the monotonic clock until which the next engine_step can wait. The device has work until later.
 * Requests that come before that time join the next step, unless the call enqueues a slice. 0: nothing runs,
 * or the host computes by itself. */
uint64_t engine_hold(const struct engine *e);
/* `planned` is called in engine_step, before the device begins to work on a step or on a slice of it, with
 * the predicted seconds of the step. NULL: nothing is called. */
void engine_tell(struct engine *e, void (*planned)(void *arg, double seconds), void *arg);
/* Events since the last call, in order; lent until the next call of engine_step, engine_submit,
 * engine_cancel or engine_events. */
size_t engine_events(struct engine *e, const struct engine_event **events);
/* Readable when an idle engine has something to do: a compiled grammar. -1: never. */
int engine_fd(const struct engine *e);
/* The time of the monotonic clock at which an idle engine has something to do again; UINT64_MAX: none. */
uint64_t engine_wake(const struct engine *e);

struct engine_facts engine_facts(const struct engine *e);
/* Most pages of the KV cache that were in use at one time. */
int64_t engine_pages_most(const struct engine *e);
struct engine_ready engine_ready(const struct engine *e);
struct loaded *engine_loaded(struct engine *e);
/* For tests: compares the scheduler's tables with each other. MISMATCH with the first difference. */
enum status engine_check(const struct engine *e, struct error *err);
#endif
