/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function calls that a model made, held against those that its row accepts, by the any-of rule of the
 * Berkeley Function Calling Leaderboard (bfcl-eval's ast_checker for Python): as many calls, in any order; of
 * each the function's name, no argument that is not accepted, none missing unless "" is among its values,
 * each of a type that the function states and equal to one of its values. Texts are equal without case (of
 * ASCII), blanks and
 * ,./-_*^. Objects within objects go by the same rule, where that checker compares them with its lists.
 */
#ifndef TRAIN_FUNCTION_CALLS_ANSWERS_H
#define TRAIN_FUNCTION_CALLS_ANSWERS_H
#include <stdbool.h>
#include "model/chat/tool_call.h"
#include "train/data/rows.h"

/* What a row asks, and what answers it. */
struct answer_task {
	struct chat prompt; /* the row's conversation without what the assistant says last */
	json_t *accepted;   /* [{name: {argument: [values]}}, ..]; empty: no call is wanted */
};
/*
 * Row i. Accepted is its "ground_truth", as bfcl-eval has it; else what the calls of its last message say,
 * and nothing else. BAD_INPUT with file and line where it has neither. Owner: caller, answer_task_release.
 */
enum status answer_task_read(struct answer_task *t, const struct rows *rows, size_t i,
			     enum rows_format format, struct error *err);
void answer_task_release(struct answer_task *t);

struct answer_verdict {
	bool valid;    /* calls that can be read, and none that cannot; where none is wanted, none */
	bool names;    /* of the functions that were wanted, as often */
	bool exact;    /* by the rule above */
	char why[240]; /* not exact: the first thing that is wrong */
};
void answer_judge(struct answer_verdict *v, const struct answer_task *t, const struct tool_calls *calls);

struct answer_totals {
	uint64_t rows, valid, names, exact;
};
void answer_count(struct answer_totals *totals, const struct answer_verdict *v);
/* {"rows", "valid", "valid_share", "names", "names_share", "exact", "exact_share"}. Owner: caller. */
json_t *answer_totals_json(const struct answer_totals *totals);
#endif
