/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient clipping and AdamW on the flat vector, with the operations of a back end. */
#ifndef TRAIN_STEP_OPTIMISER_H
#define TRAIN_STEP_OPTIMISER_H
#include "model/params.h"
#include "model/backend/ops.h"
#include "train/config/config.h"

struct optimiser {
	float beta1, beta2, eps, decay;
	double max_norm; /* 0: no clipping */
	uint64_t seed;	 /* of stochastic rounding */
};

struct optimiser optimiser_of(const struct config_training *t);
/* Adds the sum of the squares of the gradient's own range to *squares, which is in device memory. */
enum status optimiser_squares(struct backend *back, const struct params *p, double *squares,
			      struct error *err);

/* Where the states are that a step changes, in memory of the device: `of` begins at element `first` of the
 * state's vector. */
struct states {
	struct mat of[PARAMS_STATE_COUNT];
	size_t first[PARAMS_STATE_COUNT];
};
/* The whole vectors of *p, or its own ranges. */
struct states states_of(const struct params *p);
/* The numbers of step `step` (from 1), but for the decay. */
struct adamw optimiser_adamw(const struct optimiser *o, double rate, uint64_t step, const double *squares);
/* Steps elements [begin, end) of the flat vector. With 8-bit moments each border is that of a tensor or a
 * multiple of ADAMW_BLOCK elements behind its begin. */
enum status optimiser_range(const struct optimiser *o, struct backend *back, const struct params *p,
			    const struct states *s, size_t begin, size_t end, const struct adamw *a,
			    struct error *err);
/*
 * Makes step number `step` (from 1) with learning rate `rate` on the own range. *squares, in device memory:
 * the sum of the whole gradient's squares. The gradient is scaled by min(1, max_norm / (norm + 1e-6)). If the
 * norm is not finite, nothing is changed and the caller decides. The moments' corrections and stochastic
 * rounding depend only on `step` and the element, so a resumed run computes the same numbers.
 */
enum status optimiser_step(const struct optimiser *o, struct backend *back, const struct params *p,
			   double rate, uint64_t step, const double *squares, struct error *err);
#endif
