/* SPDX-License-Identifier: Apache-2.0 */
/* One plan, from its making to its figures. */
#ifndef LOAD_RUN_STAGE_H
#define LOAD_RUN_STAGE_H
#include <stdio.h>
#include "load/client/client.h"
#include "load/run/live.h"
#include "load/run/run.h"

/* What stays the same over the stages of a run. */
struct load_stages {
	const struct load_run_spec *spec;
	struct http *http;
	struct load_content *content;
	const char *path; /* of the endpoint */
	FILE *requests;	  /* requests.jsonl */
	uint64_t epoch_ns;
	uint32_t count;	     /* stages so far */
	struct live live;    /* of the present stage */
	uint64_t planned;    /* requests of the present stage */
	enum status written; /* of requests.jsonl; the first error is kept */
	struct error error;
};
/* Runs a stage with this plan and summarizes it. Owner of *values: caller, json_decref. */
enum status load_stage_run(struct load_stages *s, const struct load_plan_spec *plan, json_t **values,
			   struct error *err);
/* Whether requests can be made as planned. Tells what of the options the first stage's plan does not follow.
 */
enum status load_stage_check(const struct load_stages *s, struct load_plan *plan, struct error *err);
#endif
