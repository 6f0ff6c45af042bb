/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of a case: its engine prepared on its own device, with a meter. Used on one thread. A case
 * of one rank has one part; of several, rank 0's conducts (run/worker/ranks.h) and all obey the same
 * commands.
 */
#ifndef RUN_WORKER_RANK_CASE_H
#define RUN_WORKER_RANK_CASE_H
#include "run/worker/device.h"
#include "run/worker/measure.h"
#include "run/meter/meter.h"

struct rank_case {
	struct measure *w; /* of this rank's thread */
	const struct bench_case *c;
	struct team *team; /* NULL: one rank */
	struct bench bench;
	unsigned cpus[DEVICE_CPUS];
	void *state;
	bool prepared; /* prepare was called, well or not */
	struct meter *meter;
	/* A follower's: the window that the conductor opened, and how far it has told of it. */
	struct window window;
	struct sample *sample;
	size_t told;
	struct error failed; /* in a sample: told with the next answer */
};

/* What rank 0 says to the others, and does itself. */
enum rank_case_word {
	RANK_CASE_PREPARE,
	RANK_CASE_SELECT, /* variant */
	RANK_CASE_ONCE,
	RANK_CASE_RAMP,	 /* number: limit, ns */
	RANK_CASE_BEGIN, /* number: room for samples, variant: RANK_CASE_STAMP, RANK_CASE_CHECK */
	RANK_CASE_SAMPLE /* batch, variant: RANK_CASE_SINGLES; no answer */,
	RANK_CASE_DRAIN,
	RANK_CASE_END,
	RANK_CASE_VERIFY,
	RANK_CASE_FINISH,
	RANK_CASE_RELEASE,
	RANK_CASE_OUTCOME, /* launched ranks: how the case ended, by team_share */
	RANK_CASE_WORDS
};
enum { RANK_CASE_STAMP = 1, RANK_CASE_CHECK = 2, RANK_CASE_SINGLES = 4 };

/* A rank's answer; the samples that are new behind it, ns an iteration, with a minus where one is starved. */
struct rank_case_answer {
	uint32_t status, cause;
	char text[512];
	double ns; /* ONCE */
	bool reached;
	struct wrong wrong;
	uint64_t count;
};

/* Device, state, engine's prepare, meter. */
enum status rank_case_prepare(struct rank_case *p, struct error *err);
/* Accepts any half-built part; what it holds on the device is freed. */
void rank_case_release(struct rank_case *p);
enum status rank_case_verify(struct rank_case *p, struct wrong *wrong, struct error *err);
enum status rank_case_finish(struct rank_case *p, struct error *err);

/* On the board: at this word of the conductor's. */
void rank_case_stand(const struct rank_case *p, uint32_t word);
/* A step failed here: names the rank in *why, and ends the wait of the others. Not for a wrong result: who
 * finds one comes to every agreement, and its figures are its words. */
void rank_case_leave(struct rank_case *p, enum status st, struct error *why);
/* Does what the command says; how it went is in *a, but for the samples. An error is everybody's at once. */
enum status rank_case_obey(struct rank_case *p, const struct team_command *c, struct rank_case_answer *a);
#endif
