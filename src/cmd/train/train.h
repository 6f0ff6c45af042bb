/* SPDX-License-Identifier: Apache-2.0 */
/* What `assay train` is made of: the supervisor's side of a training run. */
#ifndef CMD_TRAIN_TRAIN_H
#define CMD_TRAIN_TRAIN_H
#include <limits.h>
#include "cmd/command.h"
#include "core/process/process.h"
#include "journal/file/run_dir.h"
#include "machine/machine.h"
#include "model/shape/shape.h"
#include "run/supervisor/job.h"
#include "run/supervisor/lines.h"
#include "train/config/config.h"
#include "train/memory/train_plan.h"

#define TRAIN_CONFIG "config.yaml" /* in the run directory */

struct train_opts {
	const char *config, *out, *resume;
	bool plan, json, sample, real_names, no_cache;
	double silence;
};

struct training {
	const struct command_context *c;
	const struct train_opts *o;
	struct config config;
	char dir[PATH_MAX];
	struct run_dir home;
	int claim;    /* on the folder, of who begins a run there: a descriptor with a lock; -1: none */
	bool goes_on; /* a run is there and is gone on with */
	struct train_room room; /* memory that is there to be planned into */
	char gpu[16];		/* PCI address of the one that works; "": the CPU does */
	struct gpu before;	/* as it was before the worker began */
	json_t *card;		/* what a cache's key has of it; NULL: no cache is read or written */
	size_t cached_told;	/* choices from the cache that the journal names */
	double tuned_s;		/* spent on the CPU's kernels */
	struct shape shape;	/* the model's */
	double load_s;		/* what reading model and rows may take */
	struct text written;	/* the configuration as the run directory keeps it */
	char hash[65];		/* of that */
	char kernels[32];	/* OpenBLAS' that the run in the directory used; "": none is told */
	struct job *job;
	struct process worker;
	struct lines in;
	uint64_t start_ns, phase_ns;
	uint64_t chosen_steps;	       /* told, of those in which the worker chooses */
	uint64_t first_ns, stepped_ns; /* ends of the last of those and of its last step so far; 0: none */
	char phase[16];
	bool garbled, ended, asked;    /* by the worker: nonsense, its `end`; by us: to end */
	uint64_t looked_ns;	       /* when we looked for lines last */
	double silent_s, silent_max_s; /* since its last line; the longest of this phase */
	bool hung, saved;	       /* a checkpoint, by this worker */
	bool lost;		       /* the run directory or its journal is not what it was */
	uint64_t step;		       /* the last one that was told */
	enum status status;
	enum cause cause;
	char text[512];
	json_t *values; /* results, as `end` has them */
	json_t *ready;	/* what was known before the first step */
};

/* The configuration as the run directory keeps it, and the sum by which the worker knows it. */
void train_write_config(struct training *t);
/* Writes it there, as the run directory keeps it. */
enum status train_keep_config(const struct training *t, const char *path, struct error *err);
/* Which device, and what it has left. `auto` becomes the first GPU that is usable, with its library, and the
 * CPU where none is, with a warning where one is there. UNAVAILABLE: a GPU that was asked for is not. */
enum status train_settle_device(struct training *t, struct error *err);
/* Whether what runs on this card may use the cache of choices, and what its key has of the card. */
void train_cache_settle(struct training *t, const struct machine *m, const struct gpu *g);
/* From the worker's line `chosen`: the journal names what came from the cache, and what was chosen now is
 * kept where nobody else is at work on the card. */
void train_cache_hear(struct training *t, const json_t *line);
/* False, with a reason: others were on the card before we began, or came since, or that cannot be known.
 * `now`: with a worker of ours, which takes planned_bytes. */
bool train_cache_alone(const struct gpu *before, const struct gpu *now, double planned_bytes, char *why,
		       size_t size);
/* t->dir and t->goes_on: the folder is made, with its configuration in it, or is there. One that holds a run
 * is not begun over, but where that came to nothing; one that holds anything else is not ours. t->claim keeps
 * others from beginning there until it is closed: when the journal, with a lock of its own, is there. */
enum status train_folder(struct training *t, struct error *err);
/* Sets t->lost where the run directory was removed, moved or closed to us, or its journal takes no more
 * lines. (end.c) */
void train_look_home(struct training *t);
/* Reports of the run directory, and on stdout. */
enum status train_report(const struct training *t, struct error *err);
/* The worker has ended, somehow: the journal says how, the report is made of it, and one message says what
 * happened and how to go on, or that nothing can. Its exit code. */
int train_conclude(struct training *t, struct error *err);
/* Starts the worker and follows it to its end; its lines go to the journal, to stdout with --json, to the
 * terminal. */
enum status train_follow(struct training *t, struct error *err);

/* Into a `step` line, and into the results: what the sampler saw of the GPU (gpu_telemetry.c); nothing where
 * it saw nothing. */
void train_watch_step(struct training *t, json_t *line);
void train_watch_run(struct training *t);
/* Appended: " | tensor 62 % 690 W 1755 MHz", of what the line has. */
void train_watch_text(struct text *out, const json_t *line);

/* A line of progress over itself on the terminal, from a `step` line; and a note to the log, from the other
 * lines. */
void train_show_step(const struct training *t, const json_t *line);
void train_show_line(const struct training *t, const char *type, const json_t *line);
#endif
