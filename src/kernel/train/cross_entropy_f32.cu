/* SPDX-License-Identifier: Apache-2.0 */
/* cross_entropy.cu with activations and weights in F32. */
#define TRAIN_F32
#include "kernel/train/cross_entropy.cu"
