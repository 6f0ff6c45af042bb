/* SPDX-License-Identifier: Apache-2.0 */
/* Clipping and AdamW over the flat vector, by the operations of a back end. */
#ifndef TRAIN_STEP_OPTIMISER_H
#define TRAIN_STEP_OPTIMISER_H
#include "model/params.h"
#include "model/backend/ops.h"
#include "train/config/config.h"

struct optimiser {
	float beta1, beta2, eps, decay;
	double max_norm; /* 0: gradients are taken as they are */
};

struct optimiser optimiser_of(const struct config_training *t);
/*
 * The step number `step` (1 first) at rate `rate`. *squares, device memory: the sum of the gradient's squares
 * is added to it, which the caller set to 0. The gradient is scaled down to max_norm by min(1, max_norm /
 * (norm + 1e-6)); where its norm is not finite nothing is changed, and the caller decides. The moments'
 * corrections follow from `step`, so a resumed run's are those of one that was never cut.
 */
enum status optimiser_step(const struct optimiser *o, struct backend *back, struct params *p, double rate,
			   uint64_t step, double *squares, struct error *err);
#endif
