/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a plan: run directory, journal, sampler, limits and signals. The supervisor process never opens a
 * vendor library.
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H
#include <signal.h>
#include "core/clock.h"
#include "journal/figure/expected.h"
#include "run/probe.h"

struct control;

/* for the command's progress bar; called when a case begins a phase ("gemm on cpu: burst") and when it ends
 */
struct run_progress {
	void (*update)(void *arg, size_t done, size_t total, const char *what, double seconds_left);
	void *arg;
};

struct run_options {
	const char *dir;	    /* run directory; must not contain a journal unless resume */
	const char *const *command; /* command line, NULL ends it; for the journal and for --resume */
	bool resume;
	bool sample;	     /* telemetry is on */
	bool real_names;     /* serial numbers, addresses and host names are in the journal as they are */
	uint64_t started_ns; /* start of the program, on `clock`; 0: unknown */
	uint64_t seed;
	bool beside, wait;
	double price_per_hour; /* 0: not given */
	/* set by main's signal handler: 1 = end after TERM, 2 = end at once */
	const volatile sig_atomic_t *stop;
	struct run_progress progress;
	const struct log *log;
	const struct clock *clock;
	const char *expectations; /* for the journal only: "builtin" or the directory */
	/* Expected figures of each case of the plan, by its number; NULL: none. */
	const struct expected_before_run *expected;
	bool isolate; /* search for the GPU, rank or node that makes cases of several GPUs slow or wrong */
	struct control *control; /* connection to the other ranks of a launched team; NULL: no team */
	unsigned rank;		 /* this rank's number in the team */
	const json_t *kept;	 /* the open line's "kept", for the journal only; NULL: none */
};

struct run_summary {
	size_t cases, done, failed, skipped, not_run;
	bool cancelled;
	struct error team_over; /* why the team ended before the run; OK: it did not */
	char dir[4096];
};

/* Runs or resumes the plan. A failed case is not an error. Errors: the directory, the journal, a full disk.
 */
enum status run_plan(const struct plan *p, const struct machine *m, const struct probe *const *registry,
		     const struct run_options *o, struct run_summary *out, struct error *err);

/* Command `assay __worker`. Reads {"machine":..,"seed":..} and then CASE objects as lines from fd 3, runs
 * each case and answers with lines (docs/explanation/design/processes.md). */
int worker_main(const struct probe *const *registry);
#endif
