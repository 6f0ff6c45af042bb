/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a run: trainer_state.json with transformers' keys, and under "assay" everything else that
 * resuming needs. */
#ifndef TRAIN_CHECKPOINT_TRAINER_STATE_H
#define TRAIN_CHECKPOINT_TRAINER_STATE_H
#include <jansson.h>
#include "train/config/config.h"
#include "train/run/diagnose.h"

struct train_times { /* sums over the steady steps of all processes of the run */
	double step_s, forward_s, backward_s, optimiser_s, wait_s, comm_s, gemm_s, save_s;
	double tokens, rows, flop;
	json_t *each_s;	 /* one entry per steady step; owned; empty after a state of an old version */
	double start_s;	 /* sum over all processes: time to the end of their first step, without tuning */
	double tuning_s; /* sum over all processes */
};

struct train_state {
	uint64_t step, max_steps; /* completed; total */
	double epoch;
	uint64_t tokens, targets, rows; /* trained so far */
	uint64_t step_packs;		/* packs of all ranks in a step; 0: unknown, from an old state */
	double flop;
	bool has_loss, has_eval, has_best;
	double loss_first, loss, eval_first; /* of the whole run, including its earlier processes */
	double best_loss;
	uint64_t best_step;
	bool best_saved;	  /* there is a checkpoint of best_step */
	uint32_t worse;		  /* evaluations since the best one */
	struct diagnose diagnose; /* History of the findings, so that a resumed run reports the same ones. */
	struct train_times times;
	double memory_bytes, arena_bytes; /* peaks over all processes of the run */
	json_t *inputs;			  /* see train/run/inputs.h; owned; NULL: unknown */
	json_t *chosen;			  /* see train/tuning/tuning_choices.h; GPU only; owned; NULL: none */
	json_t *history;		  /* log_history; owned */
};

/* *s must be zeroed before its first use. */
void train_state_release(struct train_state *s);
/* Adds an entry to log_history. Takes ownership of `values` and adds epoch and step. */
void train_state_log(struct train_state *s, json_t *values);
/* Records the time of a steady step. */
void train_state_time(struct train_state *s, double step_s);
/* Records an evaluation. Returns true if its loss is the best so far. */
bool train_state_evaluated(struct train_state *s, double loss, double threshold);
/* The state as JSON. Owner: caller; NULL: no memory. */
json_t *train_state_json(const struct train_state *s, const struct config_training *t);
/* BAD_INPUT names `path` and the missing member. */
enum status train_state_parse(struct train_state *s, const json_t *j, const char *path, struct error *err);
#endif
