/* SPDX-License-Identifier: Apache-2.0 */
/* rows.cu with activations and weights in F32. */
#define TRAIN_F32
#include "kernel/train/rows.cu"
