/* SPDX-License-Identifier: Apache-2.0 */
/* How a plan is made, what plan.c (lines, steps) and expand_line.c (a case on its engines) share. */
#ifndef RUN_PLAN_BUILDER_H
#define RUN_PLAN_BUILDER_H
#include "run/plan/case_build.h"
#include "run/suite/suite.h"
#include "run/plan/duplicates.h"
#include "run/suite/target.h"

struct plan_builder {
	struct plan *plan;
	const struct suite *suite;
	const struct machine *machine;
	const struct probe *const *registry;
	const struct plan_wishes *wishes;
	unsigned round; /* 0: the only one */
	unsigned line;	/* of the suite, 1 first */
	unsigned teams; /* cases of the whole team so far */
	bool new_step;	/* the next case opens a step */
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
	bool lockstep; /* as the suite has it; with one GPU the order is another */
	bool one_node; /* asked for each NUMA node, and there is one */
	bool any;      /* no engine was named */
};

/* Appends it to the last step or opens one. Takes *c. */
enum status plan_case_add(struct plan_builder *b, struct bench_case *c);
/* The reason why it does not run. */
void plan_case_skip(struct bench_case *c, enum status status, enum cause cause, const char *reason);
/* The choice on the engines that the line names, else on the first that can: one case or several. */
enum status plan_engines(struct plan_builder *b, const struct plan_choice *k);
#endif
