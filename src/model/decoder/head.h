/* SPDX-License-Identifier: Apache-2.0 */
/* The last norm, the head and the loss, on listed rows alone and in chunks. */
#ifndef MODEL_DECODER_HEAD_H
#define MODEL_DECODER_HEAD_H
#include "model/model.h"

/* Loss of the trained rows; with its gradient added to rows of dx and to what is trained here. */
enum status head_backward(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
			  struct error *err);
#endif
