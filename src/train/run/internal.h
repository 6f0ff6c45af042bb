/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a running training, shared by the files of this folder. */
#ifndef TRAIN_RUN_INTERNAL_H
#define TRAIN_RUN_INTERNAL_H
#include "core/clock.h"
#include "journal/file/run_dir.h"
#include "train/checkpoint/checkpoint.h"
#include "train/data/data.h"
#include "train/tensorboard/events.h"
#include "train/memory/process_memory.h"
#include "train/checkpoint/host_params.h"
#include "train/run/rank_account.h"
#include "train/run/run.h"
#include "train/mesh/mesh.h"
#include "train/step/schedule.h"
#include "train/checkpoint/trainer_state.h"
#include "train/step/stepper.h"

struct train_saving {		    /* several ranks; equal on all but for `attempt` */
	bool shared;		    /* all ranks write checkpoints together; false: rank 0 alone */
	bool pending;		    /* the ranks write the shards of a checkpoint */
	uint64_t done;		    /* the ranks that had written theirs at the end of the last step */
	char attempt[17];	    /* rank 0: number of this process, for the names of temporary folders */
	char folder[PATH_MAX + 64]; /* of the pending checkpoint */
};

struct train {
	const struct train_job *job;
	struct run_dir home;
	char dir[PATH_MAX]; /* current path of the run directory */
	struct config config;
	struct weights weights;
	struct comm *comm; /* of all ranks; NULL: one rank */
	/* With tensor parallel: the ranks that share this copy of the model, and those that hold the same
	 * part of other copies. NULL: no others; without tensor parallel, all ranks divide the rows. */
	struct comm *tensor_comm, *data_comm;
	struct mesh mesh;
	struct rank_figures
		own; /* figures of the last step, which the others learn with the next one; 0: none */
	struct rank_window window;
	struct rank_account account; /* account of the steps in the window */
	struct rank_late late;	     /* the last late rank; late.rank -1: none so far */
	uint64_t cpu_wait_ns;	     /* GPU: time without a CPU of the main thread, until this step */
	bool stopping;		     /* several ranks: all have agreed to stop */
	struct train_saving saving;
	struct data *data;
	struct stepper stepper;
	struct host_params host_params; /* host copy of the trained parameters, for writing files */
	struct checkpoint_parts
		parts; /* with tensor parallel, if all ranks write checkpoints; else ranks is 0 */
	struct schedule schedule;
	struct train_state state;
	struct checkpoint_found earlier; /* the checkpoint to resume from, until its parameters are loaded */
	struct events *events;
	struct checkpoint_writer *writer;
	struct memory_plan memory;
	double gemm_rate; /* 0: not measured */
	json_t *start_s;  /* seconds of each part of the start; emitted with `ready` */
	double alive_s;	  /* time of the last `alive` line */
	double eval_last;
	uint64_t evaluated_step;
	size_t products_emitted; /* GEMM choices emitted so far */
	bool evaluated, graphs_warned;
	uint64_t made_steps;  /* steps of this process */
	int64_t overflows;    /* FP8: in the steps of this process */
	double tuning_seen_s; /* part of gpu_backend_tuning_s that is already counted */
	char *cache_key;      /* key of the tuning cache; owned; NULL: there is no cache */
	bool chosen_emitted;
	double chosen_emitted_s; /* gpu_backend_tuning_s at the last `chosen` line */
	size_t chosen_products;	 /* products_emitted at the last `chosen` line */
};

struct step_figures { /* figures of one step */
	struct data_step size;
	struct step_part part;
	double loss, norm, rate, step_s, optimiser_s, wait_s, save_s;
	uint64_t own_tokens; /* of this rank */
	double comm_s;	     /* waiting for collectives: communication that nothing hides, and slower ranks */
	double tuned_s;	 /* tuning time in this step, of all ranks: the others wait for a rank that tunes */
	double tuning_s; /* tuning time in this step and since the step before */
	bool steady;	 /* like the steps after it: no start-up, no tuning */
};

/* Reports of a run (report.c). Adds a number to a line. NaN and infinity are left out, because JSON has none.
 */
void run_number(json_t *line, const char *name, double value);
/* Takes ownership of `body`; NULL means that memory ran out. */
enum status run_emit(struct train *t, const char *type, json_t *body, struct error *err);
/* Emits `alive` at most once a second, because lines of steps can be far apart. */
enum status run_emit_alive(struct train *t, struct error *err);
/* Emits the choices for GEMMs that are new in this step. The first step makes no choices, so its GEMMs are
 * emitted with the next step. */
enum status run_emit_products(struct train *t, struct error *err);
/* Emits the line of the last step, and writes it to log_history and to the TensorBoard file. */
enum status run_emit_step(struct train *t, const struct step_figures *f, struct error *err);
/* Writes scalars to the TensorBoard file, if there is one. */
enum status run_write_events(struct train *t, const struct scalar *scalars, size_t count, struct error *err);
/* Emits and logs the findings; returns an error if one of them ends the run. */
enum status run_findings(struct train *t, const struct findings *f, struct error *err);
/* Looks for findings in a step. Also emits those of a step that ends the run. */
enum status run_check_step(struct train *t, const struct step_figures *f, struct error *err);
/* Logs a warning for each line of the note. */
void run_warn(const struct train *t, const struct text *note);
/* Warns once if CUDA graphs cannot be used. The run continues, but slower. */
void run_warn_of_graphs(struct train *t);
/* Records the peak memory of the run. */
void run_memory(struct train *t);
/* The results so far. Owner: caller; NULL: no memory. */
json_t *run_results(struct train *t);
/* Does everything before the first step (load.c). */
enum status run_load(struct train *t, struct error *err);
/* The tuning choices that other runs made on the same kind of GPU, with the same libraries and model
 * (train/tuning/run_cache.c). NULL: none, or there is no cache. Owner: caller. */
json_t *run_cached(struct train *t);
/* Emits the tuning choices, if there is a cache and new choices were made since the last time. Emits nothing
 * while gpu_backend_holds. */
enum status run_emit_chosen(struct train *t, struct error *err);
/* Starts to write a checkpoint of the current state. `wait`: returns only when it is on the disk (save.c). */
enum status run_save(struct train *t, bool wait, struct error *err);
/* Waits until the checkpoint that is being written no longer reads what the optimizer changes. */
enum status run_free_states(struct train *t, struct error *err);
/* UNAVAILABLE: the run directory was removed or is not writable. If the directory was moved, t->dir becomes
 * its new path. */
enum status run_check_directory(struct train *t, struct error *err);
bool run_has_moved(const struct train *t);
/* Rank 0: the state of the run as JSON (owner: caller), and what a checkpoint is written from. */
enum status run_state_now(struct train *t, json_t **state, struct error *err);
struct checkpoint_source run_source(struct train *t, const json_t *state);
/* Writes the adapter or the model, in the format that other programs read, to the run directory. */
enum status run_export(struct train *t, struct error *err);
/* -- several ranks (together.c); on one rank these do nothing, or what one rank needs -- */
/* True on the rank that writes checkpoints, results and TensorBoard events. */
bool run_writes(const struct train *t);
/* Whether the run should stop: the request of this process, or with several ranks what all have agreed on. */
bool run_stops(const struct train *t);
/* Opens the communication, before anything is read. For GPU ranks, run_comm_device then adds NCCL. */
enum status run_comm_open(struct train *t, struct error *err);
enum status run_comm_device(struct train *t, struct error *err);
void run_comm_close(struct train *t);
/* Compares the checksums of all ranks' model, tokenizer and rows. BAD_INPUT names file and rank. */
enum status run_compare_inputs(struct train *t, const json_t *inputs, struct error *err);
/* Gives rank 0's state of the run to all ranks. */
enum status run_share_state(struct train *t, struct error *err);
/* Gives rank 0's parameters and moments to all ranks. */
enum status run_share_params(struct train *t, struct error *err);
/* Ranks divide the states (ZeRO) and share the run directory: each reads its range of the checkpoint that
 * rank 0 has found (divided.c). */
enum status run_load_own(struct train *t, struct error *err);
/* If ranks divide the states and do not share the run directory: brings them to rank 0's t->host_params,
 * after its last checkpoint was written. Otherwise no effect. */
enum status run_collect(struct train *t, struct error *err);
/* The reverse: rank 0's t->host_params to all, each its range. */
enum status run_divide(struct train *t, struct error *err);
/* The same two with tensor parallel, for the parts of tensors (split_states.c). */
enum status run_split_collect(struct train *t, struct error *err);
enum status run_split_divide(struct train *t, struct error *err);
/* Adds up the step over all ranks, and agrees on requests to stop. `loss`: in, of this rank. */
enum status run_sum_step(struct train *t, struct step_figures *f, double *loss, struct error *err);
/* Before a step. */
void run_begin_figures(struct train *t);
/* After a step: keeps this rank's figures for the next step's sums. */
void run_keep_figures(struct train *t, const struct step_figures *f);
/* Adds up the evaluation's losses, one per micro-batch, and agrees on requests to stop. */
enum status run_sum_losses(struct train *t, double *losses, uint64_t count, struct error *err);

/* Sets the error. For faults of a device it first names the operation ("step 3 of 100") and the GPU. Returns
 * `st`. */
enum status run_fails(const struct train *t, const char *doing, enum status st, const struct error *why,
		      struct error *err);
#endif
