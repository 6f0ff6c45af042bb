/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOAD_CHOOSE_H
#define ENGINE_LOAD_CHOOSE_H
#include "engine/load/load.h"

/* Chooses how a GPU's GEMMs run, for the numbers of rows that steps have, by timing them
 * (gpu_backend_choose). Ends early, with OK, after `seconds`. Page 0 of the cache is overwritten. */
enum status load_choose(struct loaded *l, double seconds, struct error *err);
#define LOAD_CHOOSE_S 1.5
#endif
