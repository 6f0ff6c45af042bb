/* SPDX-License-Identifier: Apache-2.0 */
/* ref_train_attention.c with activations and weights in F32. */
#define TRAIN_F32
#include "ref_train_attention.c"
