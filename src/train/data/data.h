/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a configuration names, as micro-batches: a step's, in order, and those of an evaluation. */
#ifndef TRAIN_DATA_DATA_H
#define TRAIN_DATA_DATA_H
#include "core/log.h"
#include "model/batch.h"
#include "model/shape/shape.h"
#include "train/config/config.h"

struct data;
struct data_counts {
	uint64_t rows, tokens, targets;
	uint64_t dropped, truncated, bad; /* longer than max_seq_length; wrong */
};

/* Whether tokenizer and chat template are there and fit the model. */
enum status data_check(const struct config *c, const struct shape *shape, struct error *err);
/* Reads, tokenises and packs. Owner: caller, data_close. */
enum status data_open(struct data **d, const struct config *c, const struct shape *shape,
		      const struct log *log, struct error *err);
void data_close(struct data **d); /* NULL-safe */
struct data_counts data_train_counts(const struct data *d);
struct data_counts data_eval_counts(const struct data *d);
/* Optimiser steps of one time over all rows. */
uint64_t data_steps(const struct data *d);

struct data_step {
	uint64_t micro_batches, targets, tokens, rows;
};
/* Of step `step`, 0 first: a pure function of seed and step. */
struct data_step data_step(const struct data *d, uint64_t step);
/* Its micro-batches one after the other, lent until the next call; *wait_s: how long it was waited for. */
enum status data_next(struct data *d, uint64_t step, uint64_t micro, const struct batch **b, double *wait_s,
		      struct error *err);
/* The token that ends a turn in this template, and its text; -1: none. */
int32_t data_end_token(const struct data *d, const char **text);
uint64_t data_eval_micros(const struct data *d);
enum status data_eval(struct data *d, uint64_t micro, const struct batch **b, struct error *err);
#endif
