/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENGINE_LOAD_CHOOSE_H
#define ENGINE_LOAD_CHOOSE_H
#include "engine/load/load.h"

/* Chooses how a GPU's GEMMs run, for the numbers of rows that steps have, by timing them
 * (gpu_backend_choose). Page 0 of the cache is overwritten. */
enum status load_choose(struct loaded *l, struct error *err);
#endif
