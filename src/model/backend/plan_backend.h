/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The back end that plans: no data, the same places in the arena, the same workspace, and every operation's
 * work in back->cost. Model code cannot tell it from a device.
 */
#ifndef MODEL_PLAN_H
#define MODEL_PLAN_H
#include "model/backend/ops.h"

/* Plans for a CPU of so many threads; arena->base is NULL. Nothing to release. */
void plan_back_cpu(struct back *back, unsigned threads, struct arena *arena);
/* The same for a GPU: its types and workspace. */
void plan_back_gpu(struct back *back, struct arena *arena);
#endif
