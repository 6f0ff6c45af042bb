/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of each step: transformers' and PyTorch's courses, held against their tables in a test.
 */
#ifndef TRAIN_STEP_SCHEDULE_H
#define TRAIN_STEP_SCHEDULE_H
#include "train/config/config.h"

struct schedule {
	enum config_schedule type;
	enum config_decay decay;
	double peak, min_ratio, pct_start, div_factor, final_div_factor;
	uint64_t steps, warmup, decay_steps;
};

/* Resolves shares to steps. BAD_INPUT where warm-up and decay are longer than the whole. */
enum status schedule_of(struct schedule *s, const struct config_training *t, uint64_t steps,
			struct error *err);
/* Of step 0 .. steps - 1: the step after so many optimiser steps. With a warm-up that of step 0 is 0. */
double schedule_rate(const struct schedule *s, uint64_t step);
#endif
