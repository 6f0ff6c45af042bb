/* SPDX-License-Identifier: Apache-2.0 */
/* The learning rate of each step. The schedules are those of transformers and PyTorch; a test compares them
 * with tables from these programs. */
#ifndef TRAIN_STEP_SCHEDULE_H
#define TRAIN_STEP_SCHEDULE_H
#include "train/config/config.h"

struct schedule {
	enum config_schedule type;
	enum config_decay decay;
	double peak, min_ratio, pct_start, div_factor, final_div_factor;
	uint64_t steps, warmup, decay_steps;
};

/* Converts shares to steps. BAD_INPUT if warm-up and decay together exceed `steps`. */
enum status schedule_of(struct schedule *s, const struct config_training *t, uint64_t steps,
			struct error *err);
/* The rate of step 0 .. steps - 1. With a warm-up, step 0 has rate 0. */
double schedule_rate(const struct schedule *s, uint64_t step);
#endif
