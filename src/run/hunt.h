/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search of follow.h bound to a run: a case of several GPUs that was slow or wrong is followed by groups
 * of them until the one is named that makes it so (docs/design/isolation.md). What follow_run.c (groups) and
 * follow_two.c (two GPUs, of which no group can be without the bad one) share.
 */
#ifndef RUN_HUNT_H
#define RUN_HUNT_H
#include "run/follow.h"
#include "run/supervisor.h"

struct hunt {
	struct run *r;
	const struct bench_case *trigger;
	enum follow_fault fault;
	double expected; /* SLOW: what the trigger's case should reach */
	uint64_t begin_ns, end_ns;
	struct follow f;
	unsigned tests; /* cases run so far */
};

/* What is found goes into the record of the trigger: its phase "isolated". */
struct hunt_finding {
	enum follow_kind found;
	char place[64], pci[64];
	double with, without; /* the trigger's figure as rates: with what was found, and without; 0: none */
	char why[256];
};

/* The search where the trigger has two GPUs: what each does by itself, and the links between them. */
void hunt_two(struct hunt *h, struct hunt_finding *out);
/* Is there time for so many more cases? */
bool hunt_has_time(const struct hunt *h, unsigned cases);
#endif
