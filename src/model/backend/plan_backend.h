/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end that plans. It has no data, but allocates the same places and workspace in the arena as a
 * device, and adds every operation's work to back->cost. Model code cannot tell it from a device.
 */
#ifndef MODEL_BACKEND_PLAN_BACKEND_H
#define MODEL_BACKEND_PLAN_BACKEND_H
#include "model/backend/ops.h"

/* Plans for a CPU with `threads` threads; arena->base is NULL. Nothing to release. */
void plan_backend_cpu(struct backend *back, unsigned threads, struct arena *arena);
/* The same for a GPU, with its workspace. dtype: of activations and weights, BF16 or F32. */
void plan_backend_gpu(struct backend *back, enum dtype dtype, struct arena *arena);
#endif
