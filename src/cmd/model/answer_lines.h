/* SPDX-License-Identifier: Apache-2.0 */
/* Judged answers to rows, as files hold them and as people read them. `generate --rows` writes them, and
 * `rows --answers` reads answers from any source. */
#ifndef CMD_MODEL_ANSWER_LINES_H
#define CMD_MODEL_ANSWER_LINES_H
#include "data/function_calls/answers.h"

/* One answer as {"row", "text", "content", "tool_calls", "valid", "names", "exact", "why"}; `row` counts
 * from 1. The caller owns the result. */
json_t *answer_lines_line(size_t row, const char *text, const struct tool_calls *calls,
			  const struct answer_verdict *v);
/* Judges a file of answers. `answers` is a JSON Lines file of {"row", "text"} with answers to the rows of
 * `path`; a row may have several. *lines gets one answer_lines_line per answer. BAD_INPUT with file and
 * line. The caller owns *lines. */
enum status answer_lines_judge_file(json_t **lines, struct answer_totals *totals, const char *path,
				    enum rows_format format, const char *answers, const struct template *t,
				    struct error *err);
/* Prints the totals for people on stdout. */
void answer_lines_show(const struct answer_totals *totals);
/* The same for answers that ended by themselves. */
void answer_lines_show_ended(const struct answer_totals *totals);
#endif
