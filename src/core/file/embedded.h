/* SPDX-License-Identifier: Apache-2.0 */
/* Files compiled into the program: suites/, expectations/, fonts, HTML parts, kernel fatbins. */
#ifndef CORE_FILE_EMBEDDED_H
#define CORE_FILE_EMBEDDED_H
#include <stddef.h>

struct embedded {
	const char *name; /* path relative to the project root: "suites/quick.yaml" */
	const unsigned char *data;
	size_t size;
};

/* Finds an embedded file by name. The result is static; NULL if no file has this name. */
const struct embedded *embedded_find(const char *name);
/* The file at `index` in name order; NULL after the last one. */
const struct embedded *embedded_at(size_t index);
#endif
