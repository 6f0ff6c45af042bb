/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a stepper: its plan (stepper_plan.c), its passes (stepper.c), the end of a step
 * (stepper_update.c). */
#ifndef TRAIN_STEP_STEPPER_INTERNAL_H
#define TRAIN_STEP_STEPPER_INTERNAL_H
#include "train/step/stepper.h"

/* Device address of one of the sums. */
double *stepper_sum_at(const struct stepper *s, int which);

/* A pass over the batch, which is lent. */
struct pass stepper_pass(struct stepper *s, const struct batch *b, uint64_t step, bool training);
/* Ends the use of the memory of a pass. */
void stepper_release_pass(struct stepper *s);
/* Adds the loss of a batch to SUM_LOSS, without gradients. */
enum status stepper_pass_loss(struct stepper *s, const struct batch *b, struct error *err);

/* pass.layer_done of a step's last micro-batch. `arg` is the stepper. The first begins to sum the parts of
 * the gradient that are complete. The second steps a layer whose gradient is complete. If a number of a
 * gradient so far is not finite, it changes nothing, like the layers below. */
enum status stepper_sum_layer(void *arg, int64_t layer, struct error *err);
enum status stepper_step_layer(void *arg, int64_t layer, struct error *err);
/* The gradient of all ranks. Until the wait ends, nothing else may use it. */
enum status stepper_sum_gradient(struct stepper *s, struct error *err);
/* Step number `step` (from 1) of the optimizer; SUM_SQUARES becomes the sum over the whole gradient. */
enum status stepper_step_params(struct stepper *s, double rate, uint64_t step, struct error *err);
#endif
