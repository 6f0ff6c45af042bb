/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a configuration trains: in full or by adapters, in which formats, and what its ranks divide.
 */
#ifndef TRAIN_STEP_TRAINED_MODEL_H
#define TRAIN_STEP_TRAINED_MODEL_H
#include "model/model.h"
#include "train/config/config.h"

enum recompute trained_model_recompute(const struct config_training *t);
/* Its parameters are neither placed nor loaded. BAD_INPUT if fp8_layers names a layer that the model does not
 * have. Owner: caller, model_release. */
enum status trained_model_create(struct model **out, const struct shape *shape, const struct config *c,
				 struct error *err);
#endif
