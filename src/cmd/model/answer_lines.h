/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to rows, as files have them and people read them: what `generate --rows` writes, what `rows
 * --answers` takes from anyone. */
#ifndef CMD_MODEL_ANSWER_LINES_H
#define CMD_MODEL_ANSWER_LINES_H
#include "train/function_calls/answers.h"

/* {"row", "text", "content", "tool_calls", "valid", "names", "exact", "why"}; `row` counts from 1. Owner:
 * caller. */
json_t *answer_lines_line(size_t row, const char *text, const struct tool_calls *calls,
			  const struct answer_verdict *v);
/* `answers`: JSON Lines of {"row", "text"}, answers to rows of `path`, several to one where that is so.
 * *lines: an answer_lines_line each. BAD_INPUT with file and line. Owner: caller. */
enum status answer_lines_judge_file(json_t **lines, struct answer_totals *totals, const char *path,
				    enum rows_format format, const char *answers, const struct template *t,
				    struct error *err);
/* Totals for people, on stdout. */
void answer_lines_show(const struct answer_totals *totals);
#endif
