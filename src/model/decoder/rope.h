/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_DECODER_ROPE_H
#define MODEL_DECODER_ROPE_H
#include "model/shape/shape.h"

/* cos_sin [positions, head_dim], F32 or F64 in host memory. Row p has the cosines of the angles of position
 * p, then their sines. Frequencies and angles are rounded to float as in transformers. */
void rope_table(const struct shape *s, struct mat cos_sin);
#endif
