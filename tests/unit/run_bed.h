/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run of null probes with real processes: the test program is its own worker and its own sampler (main calls
 * run_bed_child first). The machine is a recorded one that is said to be live: null opens no device.
 */
#ifndef TESTS_RUN_BED_H
#define TESTS_RUN_BED_H
#include <signal.h>
#include <sys/wait.h>
#include "core/text/text.h"
#include "journal/journal.h"
#include "journal/record/record.h"
#include "machine/machine.h"
#include "probe/registry.h"
#include "run/run.h"
#include "scratch.h"

struct run_bed {
	struct machine *machine;
	struct plan plan;
	struct run_options o;
	struct run_summary summary;
	struct record record;
	struct error err;
	char warnings[2048];
	struct log log;
};

extern volatile sig_atomic_t run_bed_stop;

/* In main: true when this process was started as a worker or a sampler; *code is its exit code then. */
bool run_bed_child(int argc, char **argv, int *code);
/* Plans the lines of a suite's `cases`; `gpus`: of the recorded machine with eight, else the CPU's. */
void run_bed_plan(struct run_bed *b, const char *dir, bool gpus, const char *cases);
/* Runs and, when that goes well, reads the record. */
enum status run_bed_run(struct run_bed *b);
void run_bed_release(struct run_bed *b);
/* Sets the stop flag when a case begins this phase. */
void run_bed_stop_in(struct run_bed *b, const char *phase);
/* The case's ending, status and cause, all at once. */
void run_bed_expect(const struct run_bed *b, size_t id, enum ending ending, enum status status, enum cause cause);
/* The pid that the journal names in `begin` of case id, last attempt; *attempts: how many. */
int run_bed_pid(const char *dir, unsigned id, unsigned *attempts);

/* Quick points of a curve, one option string each; %s goes into `options`. */
#define POINT(target, options)                                                                               \
	"  - {probe: 'null', target: " target ", phases: burst, seconds: 2ms, options: {time: 1ms, " options \
	"}}\n"
#endif
