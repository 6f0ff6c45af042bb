/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of no model: for tests and timings. The same seed gives the same ones everywhere. */
#ifndef MODEL_FILES_RANDOM_WEIGHTS_H
#define MODEL_FILES_RANDOM_WEIGHTS_H
#include "model/shape/tensor_names.h"
#include "model/backend/ops.h"

/*
 * Rows of a tensor of names_at: uniform with the deviation 0.02, in which transformers start matrices; biases
 * likewise, norms around 1, so that nothing is left out by being 0 or 1. Each number is a function of seed,
 * name and place alone.
 */
struct random_fill random_weights_fill(const struct named *n, uint64_t seed);
void random_weights(const struct named *n, uint64_t seed, int64_t row, int64_t rows, float *out);
#endif
