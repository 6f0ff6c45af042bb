/* SPDX-License-Identifier: Apache-2.0 */
/* What a training run would take. No number of a model is read and no library opened: headers are enough. */
#ifndef TRAIN_MEMORY_TRAIN_PLAN_H
#define TRAIN_MEMORY_TRAIN_PLAN_H
#include <jansson.h>
#include "train/config/config.h"

/* Bytes that are there to be planned into; 0: unknown. */
struct train_room {
	uint64_t available; /* on the device that the configuration names */
	uint64_t leave;	    /* of them, never taken */
	uint64_t host;	    /* beside a GPU, on the host */
};

/* For people, appended to *out; and the same as JSON (owner: caller), where they are asked for. Too
 * little memory is said, with the settings to turn, and no error. */
enum status train_plan(const struct config *c, const struct train_room *room, struct text *out, json_t **json,
		       struct error *err);
/* Before a run: its micro-batch and recompute level where they are to be found (memory_fit_settle), and how
 * many bytes it will take. NO_RESOURCE, before anything is taken, where that is more than there is. */
enum status train_settle(struct config *c, const struct train_room *room, uint64_t *bytes, struct error *err);
#endif
