/* SPDX-License-Identifier: Apache-2.0 */
/* The private state of the engine, shared by its files. */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H
#include "core/clock.h"
#include "engine/compile_queue.h"
#include "engine/engine.h"
#include "engine/event_list.h"
#include "engine/request.h"
#include "engine/schedule/schedule.h"
#include "engine/step/row_lists.h"
#include "engine/step/sampling_lists.h"
#include "engine/step/step_cost.h"

/* A step whose results are not fetched. A long one is enqueued in slices of its layers: `left` layers are not
 * enqueued yet. The last slice has the sampling too. */
struct flight {
	const struct schedule_plan *plan;
	struct step_prediction predicted;
	uint64_t begun_ns;
	int64_t slice, left;
	int turn;
};

/* An entry whose plan is done, as its events need it. */
struct settled {
	uint32_t number;
	int32_t scored; /* rows that gave the log probability of a token of the prompt */
	const struct sample_result *result;
};

struct engine {
	struct loaded loaded;
	struct engine_options options;
	struct schedule *schedule;
	struct running *running; /* by the scheduler's number */
	int32_t requests_most;
	struct row_lists *rows;
	struct sampling_lists *sampling;
	struct flight flight;
	bool flying;			 /* there is such a step */
	struct schedule_result *results; /* [sequences] */
	struct settled *settled;	 /* [sequences] */
	struct compile_queue *compiling; /* NULL: no grammars */
	struct event_list events;
	bool events_read;
	struct step_cost cost;
	double slice_ns; /* predicted time of a slice of a step */
	bool overlaps;	 /* a step is enqueued before the results of the step before are fetched */
	uint64_t salts;	 /* given to requests that are to share no pages */
	double step_s, busy_s, load_s;
	uint64_t fetched_ns; /* when the last results came */
	int64_t pages_most;  /* most pages in use after a plan */
	void (*planned)(void *arg, double seconds);
	void *planned_arg;
};

static inline uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* outbox.c: events until the caller has read them. */
/* Forgets the events that the caller has read. */
void outbox_forget_read(struct engine *e);
enum status outbox_add(struct engine *e, const struct engine_event *event, struct error *err);
/* Passes the scheduler's events on. */
enum status outbox_pass(struct engine *e, struct error *err);

/* dispatch.c: steps on the device. */
/* Enqueues a step, or its first slice. Settles the results of the step before. A device that does not work
 * beside the host has computed the step on return, and its results are settled, unless it has slices. */
enum status dispatch_begin(struct engine *e, const struct schedule_plan *plan, struct error *err);
/* Whether the step lacks layers. Then nothing else may be enqueued. */
bool dispatch_is_open(const struct engine *e);
/* Enqueues the next slice of the open step, or stops the step if all of its requests have ended. */
enum status dispatch_continue(struct engine *e, struct error *err);
/* Waits for the results of the step, and settles them. */
enum status dispatch_fetch(struct engine *e, struct error *err);

/* results.c */
/* Hands the results of the oldest step to the scheduler, and makes events. */
enum status results_settle(struct engine *e, const struct schedule_plan *plan, const struct sample_result *r,
			   struct error *err);
/* Ends a step that was stopped. None of its requests is alive. */
enum status results_drop(struct engine *e, const struct schedule_plan *plan, struct error *err);
#endif
