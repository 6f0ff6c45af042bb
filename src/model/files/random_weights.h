/* SPDX-License-Identifier: Apache-2.0 */
/* Random weights, for tests and timing. A seed gives the same weights everywhere. */
#ifndef MODEL_FILES_RANDOM_WEIGHTS_H
#define MODEL_FILES_RANDOM_WEIGHTS_H
#include "model/shape/tensor_names.h"
#include "model/backend/ops.h"

/*
 * The numbers of a tensor from names_at: uniform with standard deviation 0.02, with which transformers
 * initializes matrices. Biases have the same, norms the same around 1, so that no term disappears by being 0
 * or 1. Each number depends only on seed, name and position.
 */
struct random_fill random_weights_fill(const struct named *n, uint64_t seed);
void random_weights(const struct named *n, uint64_t seed, int64_t row, int64_t rows, float *out);
#endif
