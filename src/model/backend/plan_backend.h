/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end that plans: no data, the same places in the arena, the same workspace, and every operation's
 * work in back->cost. Model code cannot tell it from a device.
 */
#ifndef MODEL_BACKEND_PLAN_BACKEND_H
#define MODEL_BACKEND_PLAN_BACKEND_H
#include "model/backend/ops.h"

/* Plans for a CPU of so many threads; arena->base is NULL. Nothing to release. */
void plan_backend_cpu(struct backend *back, unsigned threads, struct arena *arena);
/* The same for a GPU: its types and workspace. */
void plan_backend_gpu(struct backend *back, struct arena *arena);
#endif
