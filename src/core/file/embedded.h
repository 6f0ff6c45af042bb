/* SPDX-License-Identifier: Apache-2.0 */
/* Files compiled into the program: suites/, expectations/, fonts, HTML parts, kernel fatbins. */
#ifndef CORE_FILE_EMBEDDED_H
#define CORE_FILE_EMBEDDED_H
#include <stddef.h>

struct embedded {
	const char *name; /* path below the project: "suites/quick.yaml" */
	const unsigned char *data;
	size_t size;
};

/* Lent, static. NULL where there is none of that name. */
const struct embedded *embedded_find(const char *name);
/* In name order; NULL past the last. */
const struct embedded *embedded_at(size_t index);
#endif
