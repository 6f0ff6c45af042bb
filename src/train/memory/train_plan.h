/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the memory and work of a training run. It reads only file headers and opens no library. */
#ifndef TRAIN_MEMORY_TRAIN_PLAN_H
#define TRAIN_MEMORY_TRAIN_PLAN_H
#include <jansson.h>
#include "train/config/config.h"
#include "train/mesh/comm_open.h"

/* Available bytes to plan for; 0: unknown. */
struct train_memory_available {
	uint64_t available; /* on the configuration's device */
	uint64_t leave;	    /* part of `available` that stays free */
	uint64_t host;	    /* on the host, for a GPU run */
};

/* Plans a run; `links`: of its ranks, whose number is c->place.ranks; NULL: one rank. Appends the plan as
 * text to *out and returns it as JSON in *json (owner: caller); either may be NULL. If the memory is too
 * small, the plan says so and lists the settings to change; this is not an error. */
enum status train_plan(const struct config *c, const struct train_memory_available *room,
		       const struct comm_links *links, struct text *out, json_t **json, struct error *err);
/* Before a run: decides micro-batch and recompute level (memory_fit_settle) and returns the planned bytes.
 * NO_RESOURCE, before anything is allocated, if the plan does not fit. */
enum status train_settle(struct config *c, const struct train_memory_available *room, uint64_t *bytes,
			 struct error *err);
#endif
