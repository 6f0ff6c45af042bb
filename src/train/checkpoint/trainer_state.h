/* SPDX-License-Identifier: Apache-2.0 */
/* How far a run is: trainer_state.json with transformers' keys, and under "assay" what going on needs beside
 * them. */
#ifndef TRAIN_CHECKPOINT_TRAINER_STATE_H
#define TRAIN_CHECKPOINT_TRAINER_STATE_H
#include <jansson.h>
#include "train/config/config.h"
#include "train/run/diagnose.h"

struct train_times { /* of the run's steady steps, however often it was cut */
	double step_s, forward_s, backward_s, optimiser_s, wait_s, gemm_s, save_s;
	double tokens, rows, flop;
	json_t *each_s;	 /* a steady step; owner; a version that kept no steady ones left none */
	double start_s;	 /* of all its processes: to the end of their first steps, tuning apart */
	double tuning_s; /* of all its processes: choosing by time */
};

struct train_state {
	uint64_t step, max_steps; /* done; in all */
	double epoch;
	uint64_t tokens, targets, rows; /* seen in training */
	double flop;
	bool has_loss, has_eval, has_best;
	double loss_first, loss, eval_first; /* of the whole run, however often it was cut */
	double best_loss;
	uint64_t best_step;
	bool best_saved; /* there is a checkpoint of that step */
	uint32_t worse;	 /* evaluations since the best one */
	struct diagnose
		diagnose; /* what was seen and told: a run that goes on tells what it would have told */
	struct train_times times;
	double memory_bytes, arena_bytes; /* the most that one of its processes took */
	json_t *inputs;			  /* train/run/inputs.h; owner; NULL: not known */
	json_t *chosen;	 /* train/tuning/tuning_choices.h, of a GPU; owner; NULL: nothing was */
	json_t *history; /* log_history; owner */
};

/* Valid where zeroed first. */
void train_state_release(struct train_state *s);
/* An entry of log_history: takes `values` over and adds epoch and step. */
void train_state_log(struct train_state *s, json_t *values);
/* Another steady step's time. */
void train_state_time(struct train_state *s, double step_s);
/* An evaluation's loss. True: it is the best one. */
bool train_state_evaluated(struct train_state *s, double loss, double threshold);
/* Owner: caller; NULL: no memory. */
json_t *train_state_json(const struct train_state *s, const struct config_training *t);
/* BAD_INPUT names `path` and what is missing. */
enum status train_state_parse(struct train_state *s, const json_t *j, const char *path, struct error *err);
#endif
