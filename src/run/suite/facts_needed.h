/* SPDX-License-Identifier: Apache-2.0 */
/* The facts of the machine that planning a suite needs. A single probe does not have to wait for every
 * library. */
#ifndef RUN_SUITE_FACTS_NEEDED_H
#define RUN_SUITE_FACTS_NEEDED_H
#include "machine/machine.h"
#include "run/suite/suite.h"

enum { FACTS_NEEDED_LIBS = 16, FACTS_NEEDED_NAME = 24 };

struct facts_needed {
	struct machine_scope machine; /* its libs point into `lib` */
	const char *lib[FACTS_NEEDED_LIBS + 1];
	char name[FACTS_NEEDED_LIBS][FACTS_NEEDED_NAME];
	size_t count;
};

/* A suite with a reading or an unknown probe needs all facts. Timed cases need the libraries of the engines
 * that may run them. They need the vendor's layers too if one of them is not on the CPU. Pure. *s must not be
 * moved afterwards. */
void facts_needed_of(struct facts_needed *s, const struct suite *suite, const struct probe *const *registry);
#endif
