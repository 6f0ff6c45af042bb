/* SPDX-License-Identifier: Apache-2.0 */
/* State of planning, shared by plan.c (lines and steps) and expand_line.c (one case per engine). */
#ifndef RUN_PLAN_BUILDER_H
#define RUN_PLAN_BUILDER_H
#include "run/probe.h"
#include "run/suite/suite.h"
#include "run/plan/duplicates.h"
#include "run/suite/target.h"

struct plan_builder {
	struct plan *plan;
	const struct suite *suite;
	const struct machine *machine;
	const struct probe *const *registry;
	const struct plan_options *wishes;
	unsigned round; /* round being planned, 1 first; 0: the plan has one round */
	unsigned line;	/* line of the suite, 1 first */
	unsigned teams; /* number of team cases so far */
	bool new_step;	/* the next case opens a new step */
	struct plan_duplicates seen;
	struct error *err;
};

/* One line of the suite on one target, with one choice of option values. */
struct plan_choice {
	const struct suite_case *line;
	const struct probe *probe;
	const struct target_found *found;
	const struct assignment *assignment;
	size_t count;
	enum step_order order;
	bool lockstep; /* the suite's lockstep; with one GPU `order` differs from it */
	bool one_node; /* the suite asks for each NUMA node, but the machine has one */
	bool any;      /* the line names no engine */
};

/* Appends the case to the last step, or opens a new step. Takes *c. */
enum status plan_case_add(struct plan_builder *b, struct bench_case *c);
/* Marks the case as skipped, with the reason. */
void plan_case_skip(struct bench_case *c, enum status status, enum cause cause, const char *reason);
/* Plans the choice on each engine that the line names. If the line names none, on the first engine that can
 * run it. */
enum status plan_engines(struct plan_builder *b, const struct plan_choice *k);
#endif
