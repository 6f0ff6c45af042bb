/* SPDX-License-Identifier: Apache-2.0 */
/* Sections of `assay info`, from the facts tree alone, so a recording prints as the machine does. */
#ifndef CMD_INFO_INFO_H
#define CMD_INFO_INFO_H
#include <jansson.h>
#include "core/text/text.h"
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

/* Parts of the summary: CPU; free space where results go. */
void info_cpu_rows(struct text *t, const struct machine *m);
void info_disk_row(struct text *t, const struct machine *m);

/* "name    value\n" with the value in a column of its own; nothing where the value is NULL or empty. */
void info_row(struct text *t, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The same, "unreadable: why" where `why` is what stands in the way. */
void info_row_unreadable(struct text *t, const char *name, const char *why);
/* A table: lines of cells with tabs between, the first one its heads. A head that begins with '>' makes its
 * column flush right; a column without any value is left out. */
void info_columns(struct text *t, const char *lines);
/* A string of the tree or "". */
const char *info_string(const json_t *map, const char *key);
/* A number of the tree or 0. */
double info_number(const json_t *map, const char *key);
/* "80.0 GiB" in binary units. Lent: the buffer. */
const char *info_bytes(char out[32], double bytes);
/* Why `what` could not be read, from the tree's list; NULL: nothing is said of it. */
const char *info_why(const struct machine *m, const char *what);
/* A fact of a GPU with its unit, in words where its number stands for one; "not told" for a node of -1. */
void info_fact(struct text *t, const struct gpu *g, enum gpu_fact fact);
/* Why a GPU's fact is absent. `row` is its part of the tree. */
const char *info_fact_why(const json_t *row, const struct gpu *g, enum gpu_fact fact);
/* Whether a row of `info gpu` shows it. */
bool info_gpu_shows(enum gpu_fact fact);
#endif
