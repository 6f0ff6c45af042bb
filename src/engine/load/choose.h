/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOAD_CHOOSE_H
#define ENGINE_LOAD_CHOOSE_H
#include "engine/load/load.h"

/* Chooses how a GPU's GEMMs run, for the numbers of rows that steps have, by timing them
 * (gpu_backend_choose). It times steps with one row by the persistent kernel and operation by operation, and
 * keeps the faster way. This ends early, with OK, after `seconds`. Then steps decide among the fastest ways
 * of each GEMM (gpu_backend_refine), for at most LOAD_REFINE_S. Page 0 of the cache is overwritten. */
enum status load_choose(struct loaded *l, double seconds, struct error *err);
/* Chooses again for steps with so many rows, each of which is a sequence with some hundred keys, by the time
 * of such steps. Nothing is chosen if the host takes about as long to enqueue a step as the device to run it,
 * unless `anyway`. Otherwise as gpu_backend_refine. */
enum status load_refine(struct loaded *l, int64_t rows, double seconds, bool anyway, struct error *err);
#define LOAD_CHOOSE_S 1.2
#define LOAD_REFINE_S 0.6
/* Times both kinds of steps on a deterministic GPU, before requests run and before its first step. Page 0 of
 * the cache is overwritten. Takes less than a second, most of which chooses the ordinary GEMMs. */
enum status load_deterministic_cost(struct loaded *l, struct deterministic_cost *out, struct error *err);
#endif
