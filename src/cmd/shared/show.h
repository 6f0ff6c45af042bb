/* SPDX-License-Identifier: Apache-2.0 */
/* The only place that writes text to a terminal. It removes control characters, whoever wrote the text. */
#ifndef CMD_SHARED_SHOW_H
#define CMD_SHARED_SHOW_H
#include <jansson.h>
#include "core/text/utf8.h"
#include "report/report.h"

#define SHOW_COLUMNS_HELP                                                                                    \
	"columns of the tables on the terminal, with commas between: figure, expected, bound, clock, power, temperature, reason"

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
/* Checks the options of a report's form before the command does any work. BAD_INPUT: --json with another
 * --format than text (the preset) or json, --columns with another format than text, or a wrong list of
 * columns. `columns`: NULL if not given. */
enum status show_one_form(uint32_t format, bool json, const char *columns, struct error *err);
/* Prints the report on stdout. `columns`: the value of --columns or NULL. */
enum status show_report(const struct report_input *in, enum report_format format, const char *columns,
			bool colour, struct error *err);
#endif
