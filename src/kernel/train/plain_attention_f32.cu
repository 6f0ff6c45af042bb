/* SPDX-License-Identifier: Apache-2.0 */
/* plain_attention.cu with activations and weights in F32. */
#define TRAIN_F32
#include "kernel/train/plain_attention.cu"
