/* SPDX-License-Identifier: Apache-2.0 */
/* The readings and the short load of `assay health`. */
#ifndef CMD_HEALTH_LOOK_H
#define CMD_HEALTH_LOOK_H
#include "cmd/command.h"
#include "cmd/health/state.h"
#include "judge/judge.h"

enum { LOOK_FACTS_MS = 10000, LOOK_NVML_MS = 6000, LOOK_ACTIVE_MS = 30000 };

/* What one run needs. All is lent. */
struct look {
	const struct command_context *c;
	const volatile sig_atomic_t *stop; /* ends reading and measuring */
	const char *machine;		   /* a recording instead of this machine; NULL: this machine */
	const char *expectations;	   /* NULL: the built-in ones */
	struct judge_site site;		   /* the stated machine; NULL members: nothing stated */
	const char *suite;		   /* load of look_active: a built-in name, or a file */
	const char *out;		   /* run directory of the load; NULL: a temporary one */
};

/* Reads and judges the machine without load, and adds what it finds. An error is what kept it from reading at
 * all: BAD_INPUT for wrong options. */
enum status look_read(const struct look *l, struct health_finding *f, struct error *err);
/* Loads all GPUs together, and adds what it finds. Figures go to the baselines of `state`. If another process
 * uses a GPU, or there is none, the finding is `unknown` and nothing runs. */
enum status look_active(const struct look *l, struct health_state *state, struct health_finding *f,
			struct error *err);
/* Compares the figures of a finished run with the baselines, and adds them. BAD_INPUT: it is no run of one
 * node. */
enum status look_run(const char *dir, struct health_state *state, struct health_finding *f,
		     struct error *err);
#endif
