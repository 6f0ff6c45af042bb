/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a configuration as micro-batches: those of each step, in order, and those of an evaluation. */
#ifndef TRAIN_DATA_DATA_H
#define TRAIN_DATA_DATA_H
#include "core/log.h"
#include "model/backend/comm.h"
#include "model/batch.h"
#include "model/shape/shape.h"
#include "train/config/config.h"
#include "train/mesh/mesh.h"

struct data;
struct data_counts {
	uint64_t rows, tokens, targets;
	uint64_t dropped, truncated, bad; /* longer than max_seq_length: dropped, truncated; invalid */
};

/* Checks that tokenizer and chat template exist and fit the model. */
enum status data_check(const struct config *c, const struct shape *shape, struct error *err);
/* Reads, tokenizes and packs the rows, and takes the part of this rank. Of several ranks, which all call it,
 * the first one reads and tokenizes (comm; NULL: one rank). Owner: caller, data_close. */
enum status data_open(struct data **d, const struct config *c, const struct shape *shape,
		      const struct mesh *mesh, struct comm *comm, const struct log *log, struct error *err);
void data_close(struct data **d); /* NULL-safe */
struct data_counts data_train_counts(const struct data *d);
struct data_counts data_eval_counts(const struct data *d);
/* Optimizer steps per epoch. */
uint64_t data_steps(const struct data *d);

struct data_step {
	uint64_t micro_batches;		/* of this rank */
	uint64_t micro_most;		/* of the rank that has most */
	uint64_t targets, tokens, rows; /* of all ranks */
	uint64_t packs;			/* of all ranks */
	uint64_t first_pack, own_packs; /* this rank's part of them */
};
/* Sizes of step `step`, from 0: a pure function of seed, step and rank. */
struct data_step data_step(const struct data *d, uint64_t step);
/* Returns the micro-batches of a step one after the other, each lent until the next call. *wait_s: time
 * spent waiting for it. */
enum status data_next(struct data *d, uint64_t step, uint64_t micro, const struct batch **b, double *wait_s,
		      struct error *err);
/* The token that ends a turn in this template, and its text; -1: there is none. */
int32_t data_end_token(const struct data *d, const char **text);
/* Micro-batches of an evaluation of all ranks together; any rank may take any of them. */
uint64_t data_eval_micros(const struct data *d);
enum status data_eval(struct data *d, uint64_t micro, const struct batch **b, struct error *err);
#endif
