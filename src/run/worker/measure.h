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
 * Events of a case, as they come: journal bodies (phase, samples, result), and two that are never journaled:
 * "at" {"case","phase"}: a phase begins (so that a hang can be named); "ready" {"case"}: prepared, verified
 * and idle; the receiver of a case that runs together returns from it when all are ready. Nothing is emitted
 * inside a timed region.
 */
struct emit {
	enum status (*event)(void *arg, const char *type, const json_t *body, struct error *err);
	void *arg;
};

/* One GPU that a worker has opened; `device` NULL: free. */
struct seat {
	struct gpu_device *device;
	char pci[16];
	struct gpu_stream *stream[2];
};

/* What a worker keeps from case to case. Zeroed but for the lent members; measure_release afterwards. */
struct measure {
	const struct machine *machine;
	uint64_t seed;
	const struct clock *clock;
	const struct log *log;
	const volatile sig_atomic_t *stop; /* not 0: CANCELLED at the next sample */
	struct emit emit;
	/* Opened by the first case that needs it, kept for the next: a context takes 0.3 s. */
	struct seat seat[TARGET_GPUS];
	struct team *team;	  /* launched: this worker among the others of its generation; NULL: none */
	struct ranks *ranks;	  /* of cases of several ranks; NULL: none yet */
	struct team_board *board; /* for the supervisor, TEAM_BOARD_RANKS lines; NULL: nobody looks */
};

/* The case's status; its text is complete. Whatever was measured before a failure has been emitted. LOST says
 * that the device is gone and this process with it. */
enum status measure_case(struct measure *w, const struct bench_case *c, struct error *err);
void measure_release(struct measure *w);
#endif
