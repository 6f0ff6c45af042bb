/* SPDX-License-Identifier: Apache-2.0 */
/* One case in a worker: prepare, verify, the phases, the search, verify again, finish, release. */
#ifndef RUN_WORKER_MEASURE_H
#define RUN_WORKER_MEASURE_H
#include <jansson.h>
#include <signal.h>
#include "core/clock.h"
#include "core/log.h"
#include "run/probe.h"

struct ranks;
struct team;

/*
 * Receives the events of a case as they occur. Most are journal bodies (phase, samples, result). Two are
 * never journaled. "at" {"case","phase"}: a phase begins, so that a hang has a place. "ready" {"case"}: the
 * case is prepared, verified and idle; for a case of a simultaneous step, the receiver returns when all cases
 * are ready. No event is emitted inside a timed region.
 */
struct emit {
	enum status (*event)(void *arg, const char *type, const json_t *body, struct error *err);
	void *arg;
};

/* One GPU that a worker has opened. `device` is NULL if the seat is free. */
struct seat {
	struct gpu_device *device;
	char pci[16];
	struct gpu_stream *stream[2];
};

/* State that a worker keeps from case to case. Zero it, then set the lent members. Free it with
 * measure_release(). */
struct measure {
	const struct machine *machine;
	uint64_t seed;
	const struct clock *clock;
	const struct log *log;
	const volatile sig_atomic_t *stop; /* not 0: the case ends as CANCELLED at the next sample */
	struct emit emit;
	/* Opened by the first case that needs it, and kept open because a context takes 0.3 s. */
	struct seat seat[TARGET_GPUS];
	struct team *team;	  /* this worker in a launched team of workers; NULL: no team */
	struct ranks *ranks;	  /* of cases with several ranks; NULL: none yet */
	struct team_board *board; /* for the supervisor, TEAM_BOARD_RANKS lines; NULL: no board */
};

/* Measures one case. Returns its status, with a complete error text. Figures measured before a failure are
 * already emitted. LOST: the device is lost, so this process must end. */
enum status measure_case(struct measure *w, const struct bench_case *c, struct error *err);
void measure_release(struct measure *w);
#endif
