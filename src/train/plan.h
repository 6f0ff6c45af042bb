/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run would take. No number of a model is read and no library opened: headers are enough. */
#ifndef TRAIN_PLAN_H
#define TRAIN_PLAN_H
#include <jansson.h>
#include "train/config.h"

/* For people, appended to *out; and the same as JSON (owner: caller), where they are asked for. `available`:
 * bytes of memory, 0: unknown; too little of it is said, with the settings to turn, and no error. */
enum status train_plan(const struct config *c, uint64_t available, struct text *out, json_t **json,
		       struct error *err);
/* Before a run: its micro-batch and recompute level where they are to be found (fit_settle), and how many
 * bytes it will take. NO_RESOURCE, before anything is taken, where that is more than there is. */
enum status train_settle(struct config *c, uint64_t available, uint64_t *bytes, struct error *err);
#endif
