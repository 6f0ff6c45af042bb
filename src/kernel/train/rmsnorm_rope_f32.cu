/* SPDX-License-Identifier: Apache-2.0 */
/* rmsnorm_rope.cu with activations and weights in F32. */
#define TRAIN_F32
#include "kernel/train/rmsnorm_rope.cu"
