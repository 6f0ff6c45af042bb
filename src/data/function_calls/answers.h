/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the function calls of a model with those that a row accepts, by the any-of rule of the Berkeley
 * Function Calling Leaderboard (bfcl-eval's ast_checker for Python). The number of calls must be equal; their
 * order is free. Each call needs the right function name, no unknown argument, and every argument unless ""
 * is among its accepted values. Each argument must have the type in the function's description and equal one
 * of its accepted values. Texts are compared without ASCII case, blanks and the characters ,./-_*^. Objects
 * within objects follow the same rule, whereas ast_checker compares them with its lists.
 */
#ifndef DATA_FUNCTION_CALLS_ANSWERS_H
#define DATA_FUNCTION_CALLS_ANSWERS_H
#include <stdbool.h>
#include "text/chat/tool_call.h"
#include "data/rows/rows.h"

/* The question of a row, and its accepted answers. */
struct answer_task {
	struct chat prompt; /* the row's conversation without the assistant's last message */
	json_t *accepted;   /* [{name: {argument: [values]}}, ..]; empty: the right answer has no call */
};
/*
 * Reads row i. The accepted answers are its "ground_truth" in bfcl-eval's form, or else exactly the calls of
 * its last message. BAD_INPUT with file and line if it has neither. Owner: caller, answer_task_release.
 */
enum status answer_task_read(struct answer_task *t, const struct rows *rows, size_t i,
			     enum rows_format format, struct error *err);
void answer_task_release(struct answer_task *t);

struct answer_verdict {
	bool valid;    /* every call can be parsed, and there is none if none is expected */
	bool names;    /* the right functions, each called the right number of times */
	bool exact;    /* correct by the rule above */
	char why[240]; /* the first error, if not exact */
};
void answer_judge(struct answer_verdict *v, const struct answer_task *t, const struct tool_calls *calls);

enum answer_end {
	ANSWER_ENDED,
	ANSWER_CUT,	/* it reached its limit of tokens */
	ANSWER_REFUSED, /* there is none, because the schemas of the row's functions cannot be satisfied */
};

struct answer_totals {
	uint64_t rows, valid, names, exact;
	uint64_t cut, refused;
	uint64_t ended_valid; /* valid ones among the answers that ended */
};
void answer_count(struct answer_totals *totals, const struct answer_verdict *v, enum answer_end end);
uint64_t answer_totals_ended(const struct answer_totals *totals);
/* {"rows", "valid", "valid_share", "names", "names_share", "exact", "exact_share"}. Owner: caller. */
json_t *answer_totals_json(const struct answer_totals *totals);
/* Adds "cut", "refused", "ended", "ended_valid" and "ended_valid_share". */
void answer_totals_ended_json(const struct answer_totals *totals, json_t *out);
#endif
