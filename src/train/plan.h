/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run would take. No number of a model is read and no library opened: headers are enough. */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H
#include <jansson.h>
#include "train/config.h"

/* For people, appended to *out; and the same as JSON (owner: caller), where they are asked for. */
enum status train_plan(const struct config *c, struct text *out, json_t **json, struct error *err);
#endif
