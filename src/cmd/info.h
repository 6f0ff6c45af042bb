/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of `assay info`, from the facts tree alone, so a recording prints as the machine does. */
#ifndef CMD_INFO_H
#define CMD_INFO_H
#include <jansson.h>
#include "core/text.h"
#include "machine/machine.h"

void info_summary(struct text *t, const struct machine *m);
void info_cpu(struct text *t, const struct machine *m);
void info_memory(struct text *t, const struct machine *m);
void info_storage(struct text *t, const struct machine *m);
void info_software(struct text *t, const struct machine *m);
void info_gpu(struct text *t, const struct machine *m);
void info_links(struct text *t, const struct machine *m);
void info_fabric(struct text *t, const struct machine *m);
void info_unreadable(struct text *t, const struct machine *m);

/* "name    value\n" with the value in a column of its own; nothing where the value is NULL or empty. */
void info_row(struct text *t, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, "unreadable: why" where `why` is what stands in the way. */
void info_row_unreadable(struct text *t, const char *name, const char *why);
/* A string of the tree or "". */
const char *info_string(const json_t *map, const char *key);
/* "80.0 GiB" in binary units. Lent: the buffer. */
const char *info_bytes(char out[32], double bytes);
/* Why `what` could not be read, from the tree's list; NULL: nothing is said of it. */
const char *info_why(const struct machine *m, const char *what);
#endif
