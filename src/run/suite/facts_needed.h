/* SPDX-License-Identifier: Apache-2.0 */
/* What must be known of the machine before a suite can be planned on it: one probe need not wait for every
 * library. */
#ifndef RUN_SCOPE_H
#define RUN_SCOPE_H
#include "machine/machine.h"
#include "run/suite/suite.h"

enum { SCOPE_LIBS = 16, SCOPE_NAME = 24 };

struct scope {
	struct machine_scope machine; /* its libs point into `lib` */
	const char *lib[SCOPE_LIBS + 1];
	char name[SCOPE_LIBS][SCOPE_NAME];
	size_t count;
};

/* A suite with a reading, or with a probe that is not known, wants everything; timed cases the libraries of
 * the engines that may do them, and the vendor's layers where one of them is not on the CPU. Pure; *s must
 * not be moved afterwards. */
void scope_of(struct scope *s, const struct suite *suite, const struct probe *const *registry);
#endif
