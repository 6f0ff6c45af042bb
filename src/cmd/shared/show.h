/* SPDX-License-Identifier: Apache-2.0 */
/* The one place where text leaves for a terminal: cleaned there, whoever wrote it. */
#ifndef CMD_SHARED_SHOW_H
#define CMD_SHARED_SHOW_H
#include <jansson.h>
#include "core/text/utf8.h"
#include "report/report.h"

#define SHOW_COLUMNS_HELP                                                                                    \
	"columns of the tables on the terminal, with commas between: figure, expected, bound, clock, power, temperature, reason"

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
/* Checks the options of a report's form before the command does any work. BAD_INPUT: --json with another
 * --format than text (the preset) or json, --columns with another format than text, or a wrong list of
 * columns. `columns`: NULL if not given. */
enum status show_one_form(uint32_t format, bool json, const char *columns, struct error *err);
/* Prints the report on stdout. `columns`: the value of --columns or NULL. */
enum status show_report(const struct report_input *in, enum report_format format, const char *columns,
			bool colour, struct error *err);
#endif
