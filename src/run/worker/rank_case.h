/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of a case: its engine prepared on its own device, with a meter. Used on one thread. A case
 * of one rank has one part. With several ranks, rank 0 leads (run/worker/ranks.h), and all ranks execute the
 * same commands.
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
	bool prepared; /* prepare was called, even if it failed */
	struct meter *meter;
	/* Follower only: the window that rank 0 opened, and the number of samples already reported. */
	struct window window;
	struct sample *sample;
	size_t told;
	struct error failed; /* error in a sample: sent with the next answer */
};

/* Commands of rank 0 to the other ranks. Rank 0 executes them too. */
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
	RANK_CASE_OUTCOME, /* launched ranks: the outcome of the case, by team_share */
	RANK_CASE_WORDS
};
enum { RANK_CASE_STAMP = 1, RANK_CASE_CHECK = 2, RANK_CASE_SINGLES = 4 };

/* Answer of a rank. The new samples follow it, in ns per iteration; a starved sample is negative. */
struct rank_case_answer {
	uint32_t status, cause;
	char text[512];
	double ns; /* ONCE */
	bool reached;
	struct wrong wrong;
	uint64_t count;
};

/* Opens the device, allocates the state, runs the engine's prepare, and makes the meter. */
enum status rank_case_prepare(struct rank_case *p, struct error *err);
/* Accepts a partly prepared part. Frees what it has on the device. */
void rank_case_release(struct rank_case *p);
enum status rank_case_verify(struct rank_case *p, struct wrong *wrong, struct error *err);
enum status rank_case_finish(struct rank_case *p, struct error *err);

/* Records on the board that this rank executes the command `word`. */
void rank_case_stand(const struct rank_case *p, uint32_t word);
/* Handles a failure of a step on this rank: names the rank in *why and ends the waiting of the other ranks.
 * Not for a wrong result: that rank continues to take part, and its figures report the result. */
void rank_case_leave(struct rank_case *p, enum status st, struct error *why);
/* Executes the command and writes the outcome to *a, without the samples. An error ends the case on all
 * ranks. */
enum status rank_case_obey(struct rank_case *p, const struct team_command *c, struct rank_case_answer *a);
#endif
