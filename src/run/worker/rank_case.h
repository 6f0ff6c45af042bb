/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One rank's part of a case: its engine prepared on its own device, with a meter. Used on one thread. A case
 * of one rank has one part; of several, rank 0's conducts (run/worker/ranks.h) and all obey the same commands.
 */
#ifndef RUN_PART_H
#define RUN_PART_H
#include "run/worker/device.h"
#include "run/worker/measure.h"
#include "run/meter/meter.h"

struct part {
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
enum part_word {
	PART_PREPARE,
	PART_SELECT, /* variant */
	PART_ONCE,
	PART_RAMP,  /* number: limit, ns */
	PART_BEGIN, /* number: room for samples, variant: PART_STAMP, PART_CHECK */
	PART_SAMPLE /* batch, variant: PART_SINGLES; no answer */,
	PART_DRAIN,
	PART_END,
	PART_VERIFY,
	PART_FINISH,
	PART_RELEASE,
	PART_OUTCOME, /* launched ranks: how the case ended, by team_share */
	PART_WORDS
};
enum { PART_STAMP = 1, PART_CHECK = 2, PART_SINGLES = 4 };

/* A rank's answer; the samples that are new behind it, ns an iteration, with a minus where one is starved. */
struct part_answer {
	uint32_t status, cause;
	char text[512];
	double ns; /* ONCE */
	bool reached;
	struct wrong wrong;
	uint64_t count;
};

/* Device, state, engine's prepare, meter. */
enum status part_prepare(struct part *p, struct error *err);
/* Accepts any half-built part; what it holds on the device is freed. */
void part_release(struct part *p);
enum status part_verify(struct part *p, struct wrong *wrong, struct error *err);
enum status part_finish(struct part *p, struct error *err);

/* On the board: at this word of the conductor's. */
void part_stand(const struct part *p, uint32_t word);
/* A step failed here: names the rank in *why, and ends the wait of the others. Not for a wrong result: who
 * finds one comes to every agreement, and its figures are its words. */
void part_leave(struct part *p, enum status st, struct error *why);
/* Does what the command says; how it went is in *a, but for the samples. An error is everybody's at once. */
enum status part_obey(struct part *p, const struct team_command *c, struct part_answer *a);
#endif
