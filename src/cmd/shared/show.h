/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where text leaves for a terminal: cleaned there, whoever wrote it. */
#ifndef CMD_SHARED_SHOW_H
#define CMD_SHARED_SHOW_H
#include <jansson.h>
#include "core/text/utf8.h"
#include "report/report.h"

/* What was shown leaves now. False: it, or something before it, could not be written. */
bool show_flush(void);
/* errno of the first write to stdout that failed; 0: none. */
int show_lost(void);
/* To stdout, every control character but newlines a space. COLOUR: the text's own colours stay. */
void show_text(const struct text *t, enum utf8_keep colour);
/* To stdout with a newline, control characters escaped. False: it could not be made or written. */
bool show_json(const json_t *j, size_t flags);
/* One line to stderr behind "assay: ", after what stdout holds so far. */
void show_message(const char *prefix, const char *line);
/* Columns of the terminal on stdout; COLUMNS where it is none; else 100. */
unsigned show_columns(void);
/* --json with another --format is BAD_INPUT: text is what --format says where nothing is given. */
enum status show_one_form(uint32_t format, bool json, struct error *err);
/* The report on stdout in the form asked for. */
enum status show_report(const struct report_input *in, enum report_format format, bool colour,
			struct error *err);
#endif
