/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every command that runs something: run directory, journal, sampler, limits, signals. The supervisor opens
 * no vendor library, ever.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H
#include <signal.h>
#include "core/clock.h"
#include "journal/figure/expected.h"
#include "run/probe.h"

struct control;

struct run_progress { /* for the command's bar; called when a case begins a phase ("gemm on cpu: burst") and
			 when it ends */
	void (*update)(void *arg, size_t done, size_t total, const char *what, double seconds_left);
	void *arg;
};

struct run_options {
	const char *dir;	    /* run directory; must not hold a journal unless resume */
	const char *const *command; /* its words, NULL ends; for the record and for --resume */
	bool resume;
	bool sample;	     /* telemetry on */
	bool real_names;     /* serials, addresses and host names stand in the journal as they are */
	uint64_t started_ns; /* when the program was started, on `clock`; 0: not known */
	uint64_t seed;
	bool beside, wait;
	double price_per_hour;		   /* 0: not given */
	const volatile sig_atomic_t *stop; /* set by main's handler: 1 = end after TERM, 2 = at once */
	struct run_progress progress;
	const struct log *log;
	const struct clock *clock;
	const char *expectations; /* for the record only: "builtin" or the directory */
	/* What is known of each case of the plan, by its number; NULL: of none. */
	const struct expected_before_run *expected;
	bool isolate; /* what is slow or wrong with several GPUs is followed until the bad one is named */
	struct control *control; /* the other ranks of a launched team; NULL: alone */
	unsigned rank;		 /* among them */
	const json_t *kept;	 /* for the record only: the open line's "kept"; NULL: none */
};

struct run_summary {
	size_t cases, done, failed, skipped, not_run;
	bool cancelled;
	struct error team_over; /* why the team ended before the run did; OK: it did not */
	char dir[4096];
};

/* Runs (or resumes) the plan; a case's failure is not an error here. Errors: the directory, the journal, a
 * full disk. */
enum status run_plan(const struct plan *p, const struct machine *m, const struct probe *const *registry,
		     const struct run_options *o, struct run_summary *out, struct error *err);

/* `assay __worker`: reads {"machine":..,"seed":..} then CASE objects as lines on fd 3, runs each, answers
 * with lines (docs/explanation/design/processes.md). */
int worker_main(const struct probe *const *registry);
#endif
