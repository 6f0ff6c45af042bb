/* SPDX-License-Identifier: Apache-2.0 */
/* The last norm, the head and the loss, computed in chunks and only for the listed rows. */
#ifndef MODEL_DECODER_HEAD_H
#define MODEL_DECODER_HEAD_H
#include "model/model.h"

/* Adds the loss of the trained rows to *loss_sum, and its gradient to rows of dx and to the trained
 * parameters. */
enum status head_backward(const struct pass *p, float grad_scale, struct mat dx, double *loss_sum,
			  struct error *err);
#endif
