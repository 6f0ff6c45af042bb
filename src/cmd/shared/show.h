/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that writes text to a terminal. It removes control characters, whoever wrote the text. */
#ifndef CMD_SHARED_SHOW_H
#define CMD_SHARED_SHOW_H
#include <jansson.h>
#include "core/text/utf8.h"
#include "report/report.h"

/* Flushes stdout. False if this or an earlier write failed. */
bool show_flush(void);
/* errno of the first failed write to stdout; 0 if none failed. */
int show_lost(void);
/* Writes text to stdout; control characters other than newlines become spaces. COLOUR keeps the text's own
 * colours. */
void show_text(const struct text *t, enum utf8_keep colour);
/* Writes JSON and a newline to stdout, with control characters escaped. False if it cannot be made or
 * written. */
bool show_json(const json_t *j, size_t flags);
/* Writes one line to stderr with the prefix "assay: ", after flushing stdout. */
void show_message(const char *prefix, const char *line);
/* Columns of the terminal on stdout; without a terminal, the variable COLUMNS or 100. */
unsigned show_columns(void);
/* BAD_INPUT if --json and another --format are given. --format text counts as not given. */
enum status show_one_form(uint32_t format, bool json, struct error *err);
/* Writes the report to stdout in the requested format. */
enum status show_report(const struct report_input *in, enum report_format format, bool colour,
			struct error *err);
#endif
