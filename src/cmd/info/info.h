/* SPDX-License-Identifier: Apache-2.0 */
/* The sections of `assay info`. They use only the facts tree, so a recording prints the same text as the
 * machine. */
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

/* Parts of the summary: the CPU, and the free disk space where results are written. */
void info_cpu_rows(struct text *t, const struct machine *m);
void info_disk_row(struct text *t, const struct machine *m);

/* Appends "name    value\n" in columns; appends nothing if the value is NULL or empty. */
void info_row(struct text *t, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* Like info_row, with the value "unreadable: WHY". */
void info_row_unreadable(struct text *t, const char *name, const char *why);
/* Appends a table. `lines` holds rows of tab-separated cells; the first row holds the headings. A heading
 * that begins with '>' makes its column right-aligned. A column without any value is left out. */
void info_columns(struct text *t, const char *lines);
/* A number of the tree, or 0. */
double info_number(const json_t *map, const char *key);
/* Formats bytes in binary units: "80.0 GiB". Returns `out`. */
const char *info_bytes(char out[32], double bytes);
/* Why `what` could not be read, from the tree's list; NULL if the list does not say. */
const char *info_why(const struct machine *m, const char *what);
/* Appends a GPU's fact with its unit, or in words if the number is a code. A NUMA node of -1 is "not
 * reported". */
void info_fact(struct text *t, const struct gpu *g, enum gpu_fact fact);
/* Why a fact of a GPU is absent. `row` is the GPU's part of the tree. */
const char *info_fact_why(const json_t *row, const struct gpu *g, enum gpu_fact fact);
/* True if a row of `info gpu` shows the fact. */
bool info_gpu_shows(enum gpu_fact fact);
#endif
