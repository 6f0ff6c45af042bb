/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `assay train`: the supervisor's side of a training run. */
#ifndef CMD_TRAIN_TRAIN_H
#define CMD_TRAIN_TRAIN_H
#include <limits.h>
#include "cmd/command.h"
#include "cmd/shared/child_lines.h"
#include "cmd/train/ranks.h"
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
	bool resume_if_exists, plan, json, sample, real_names, no_cache;
	double silence, link_rate, network_rate;
	uint32_t gpus, nodes;	     /* of a plan; 0: this machine */
	struct running_opts running; /* how launched ranks join */
};

struct training {
	const struct command_context *c;
	const struct train_opts *o;
	struct train_opts continues; /* *o, with --resume in place of --resume-if-exists */
	char continued[PATH_MAX];    /* its directory */
	struct config config;
	struct train_ranks ranks;
	char dir[PATH_MAX];
	struct run_dir home;
	int claim;    /* descriptor with a lock on the folder while a run begins there; -1: none */
	bool goes_on; /* an existing run is resumed; equal on all ranks */
	struct train_memory_available room; /* available memory for the plan */
	char gpu[16];			    /* PCI address of the training GPU; "": training on the CPU */
	struct gpu before;		    /* the GPU's facts before the worker began */
	json_t *card;	     /* the card's part of the cache key; NULL: the cache is not used */
	size_t cached_told;  /* tuning choices from the cache that the journal lists already */
	double tuned_s;	     /* seconds spent on tuning the CPU's kernels */
	struct shape shape;  /* of the model */
	double load_s;	     /* time that reading model and rows may take */
	struct text written; /* the configuration as saved in the run directory */
	char hash[65];	     /* SHA-256 of that text */
	char run_hash[65];   /* SHA-256 of the settings that a resumed run may not change */
	char kernels[32];    /* OpenBLAS kernels of the resumed run; "": unknown */
	struct job *job;
	struct process worker;
	struct lines in;
	uint64_t start_ns, phase_ns;
	uint64_t facts_ns;	       /* the worker was last told about its GPU */
	uint64_t chosen_steps;	       /* reported steps in which the worker tunes */
	uint64_t first_ns, stepped_ns; /* end of the last tuning step and of the last step so far; 0: none */
	char phase[16];
	bool garbled, asked;	       /* the worker sent invalid lines; we asked it to stop */
	uint64_t looked_ns;	       /* last time we looked for lines */
	double silent_s, silent_max_s; /* seconds since its last line; maximum in this phase */
	bool hung, saved;	       /* saved: this worker wrote a checkpoint */
	bool lost;	      /* the run directory or its journal was removed, moved or made unwritable */
	uint64_t step;	      /* last reported step */
	struct child_end end; /* how the worker said that it ended */
	json_t *ready;	      /* facts known before the first step, from the `ready` line */
};

/* Makes the configuration text for the run directory, and the checksum by which the worker recognises it. */
void train_write_config(struct training *t);
/* Writes that text to `path`. */
enum status train_save_config(const struct training *t, const char *path, struct error *err);
/* Chooses the device and finds its free memory. `auto` becomes the first usable GPU with its library,
 * otherwise the CPU, with a warning if there is a GPU. UNAVAILABLE if a requested GPU is not usable. */
enum status train_settle_device(struct training *t, struct error *err);
/* Decides whether this run may use the cache of tuning choices, and makes the card's part of the key. */
void train_cache_settle(struct training *t, const struct machine *m, const struct gpu *g);
/* Handles the worker's line `chosen`: adds choices from the cache to the journal, and saves new choices if
 * no other process uses the card. */
void train_cache_receive(struct training *t, const json_t *line);
/* True if no other process used or uses the card; otherwise false with a reason, also if that cannot be
 * known. `now`: the card with our worker, which needs planned_bytes. */
bool train_cache_alone(const struct gpu *before, const struct gpu *now, double planned_bytes, char *why,
		       size_t size);
/* Prepares t->dir and sets t->goes_on: the folder is created with its configuration, or exists. A folder
 * with a run is not overwritten unless that run had no result; a folder with anything else is an error.
 * t->claim keeps other runs from beginning there until it is closed, once the journal with its own lock
 * exists. */
enum status train_folder(struct training *t, struct error *err);
/* With --resume-if-exists: if the run directory holds a run, *t->o becomes that of --resume, on all ranks. */
enum status train_continue(struct training *t, struct error *err);
/* struct command's again. */
const char *train_again(const void *opts);
/* On ranks other than 0: makes t->dir, with the configuration for the worker. */
enum status train_folder_beside(struct training *t, struct error *err);
/* Sets t->lost if the run directory was removed, moved or made unwritable, or if its journal cannot be
 * written any more. (end.c) */
void train_check_run_dir(struct training *t);
/* Writes the reports in the run directory and prints one on stdout. */
enum status train_report(const struct training *t, struct error *err);
/* After the worker has ended: completes the journal, writes the report, and logs one message that says
 * what happened and how to continue, if possible. Returns the exit code. */
int train_conclude(struct training *t, struct error *err);
/* Starts the worker and follows it to its end. Its lines go to the journal, to stdout with --json, and to
 * the terminal. */
enum status train_follow(struct training *t, struct error *err);

/* Adds the telemetry of the GPU to a `step` line, and to the results (gpu_telemetry.c); nothing if there
 * is none. */
void train_watch_step(struct training *t, json_t *line);
/* Once a second: tells the worker about its GPU, which all ranks compare. */
void train_watch_facts(struct training *t);
void train_watch_run(struct training *t);
/* Appends " | tensor 62 % 690 W 1755 MHz", as far as the line has these values. */
void train_watch_text(struct text *out, const json_t *line);

/* Shows progress from a `step` line on one line of the terminal, and logs a note from the other lines. */
void train_show_step(const struct training *t, const json_t *line);
void train_show_line(const struct training *t, const char *type, const json_t *line);
#endif
