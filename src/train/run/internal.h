/* SPDX-License-Identifier: Apache-2.0 */
/* A run under way, as run.c, figures.c, load.c and save.c see it. */
#ifndef TRAIN_RUN_INTERNAL_H
#define TRAIN_RUN_INTERNAL_H
#include "journal/file/run_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/data.h"
#include "train/tensorboard/events.h"
#include "train/memory/process_memory.h"
#include "train/checkpoint/host_params.h"
#include "train/run/run.h"
#include "train/step/schedule.h"
#include "train/checkpoint/trainer_state.h"
#include "train/step/stepper.h"

struct train {
	const struct train_job *job;
	struct run_dir home;
	char dir[PATH_MAX]; /* where the run directory is now */
	struct config config;
	struct weights weights;
	struct data *data;
	struct stepper stepper;
	struct host_params host_params; /* what is trained, for files */
	struct schedule schedule;
	struct train_state state;
	struct checkpoint_found earlier; /* what the run goes on from, until its parameters are loaded */
	struct events *events;
	struct checkpoint_writer *writer;
	struct memory_plan memory;
	double gemm_rate; /* 0: not measured */
	json_t *start_s;  /* seconds of each part of the start, told with `ready` */
	double alive_s;	  /* when that was told last */
	double eval_last;
	uint64_t evaluated_step;
	size_t products_told; /* of those that were met */
	bool evaluated, graphs_told;
	uint64_t made_steps;  /* by this process */
	double tuning_seen_s; /* of gpu_backend_tuning_s: counted already */
	char *cache_key;      /* of what other runs chose; owner; NULL: there is no cache */
	bool chosen_told;
	double chosen_told_s;	/* gpu_backend_tuning_s when it was told last */
	size_t chosen_products; /* products_told then */
};

struct step_figures { /* of one step */
	struct data_step size;
	struct step_part part;
	double loss, norm, rate, step_s, optimiser_s, wait_s, save_s;
	double tuning_s; /* of it and of what came between the step before and it */
	bool steady;	 /* as the steps after it are: nothing starts up, nothing is timed */
};

/* JSON has no NaN: what is no number is left out (figures.c, as are these). */
void run_number(json_t *line, const char *name, double value);
/* The line of the step that was made last, and the run's values. Owner: caller; NULL: no memory. */
json_t *run_step_line(struct train *t, const struct step_figures *f);
json_t *run_results(struct train *t);
/* Everything up to the first step (load.c). */
enum status run_load(struct train *t, struct error *err);
/* What other runs chose on such a card, with such libraries, for such a model (train/tuning/run_cache.c);
 * NULL: nothing, or there is no cache. Owner: caller. */
json_t *run_cached(struct train *t);
/* Tells what was chosen, if there is a cache and more was chosen than was told; not while choices are held.
 */
enum status run_tell_chosen(struct train *t, struct error *err);
/* Begins a checkpoint of this moment; `wait`: it is on the disk when this returns (save.c). */
enum status run_save(struct train *t, bool wait, struct error *err);
/* UNAVAILABLE: the run directory was removed, or nothing can be written to it. One that was moved is followed
 * to its new place, once. */
enum status run_look_home(struct train *t, struct error *err);
/* Keeps the most memory that the run has taken. */
void run_memory(struct train *t);
/* The adapter, or the model, as others read it, into the run directory. */
enum status run_export(struct train *t, struct error *err);
/* An error: what was being done ("step 3 of 100"), and the card, before what its driver or a library says of
 * it. Returns `st`. */
enum status run_fails(const struct train *t, const char *doing, enum status st, const struct error *why,
		      struct error *err);
/* Tells and keeps what was found; an error where it ends the run. */
enum status run_findings(struct train *t, const struct findings *f, struct error *err);
/* A warning for each line of the note. */
void run_warn(const struct train *t, const struct text *note);
enum status run_emit(struct train *t, const char *type, json_t *body, struct error *err);
#endif
