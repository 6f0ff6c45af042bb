/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to rows, as files have them and people read them: what `generate --rows` writes, what `rows
 * --answers` takes from anyone. */
#ifndef CMD_ANSWERS_H
#define CMD_ANSWERS_H
#include "train/function_calls/answers.h"

/* {"row", "text", "content", "tool_calls", "valid", "names", "exact", "why"}; `row` counts from 1. Owner:
 * caller. */
json_t *answers_line(size_t row, const char *text, const struct tool_calls *calls,
		     const struct answer_verdict *v);
/* `answers`: JSON Lines of {"row", "text"}, answers to rows of `path`, several to one where that is so.
 * *lines: an answers_line each. BAD_INPUT with file and line. Owner: caller. */
enum status answers_judge_file(json_t **lines, struct answer_totals *totals, const char *path,
			       enum rows_format format, const char *answers, const struct template *t,
			       struct error *err);
/* Totals for people, on stdout. */
void answers_show(const struct answer_totals *totals);
#endif
