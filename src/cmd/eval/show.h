/* SPDX-License-Identifier: Apache-2.0 */
/* The results of `assay eval` for people and as JSON. */
#ifndef CMD_EVAL_SHOW_H
#define CMD_EVAL_SHOW_H
#include <jansson.h>
#include "cmd/eval/verdict.h"

/* The first side is the reference. */
struct eval_results {
	const char *model, *path; /* the data's path */
	const struct eval_data *data;
	const struct eval_windows *windows;
	size_t context, stride;
	const char *grammar; /* the word of --grammar */
	struct eval_marks marks;
	const struct eval_measured *measured; /* [count] */
	const struct eval_verdict *verdict;   /* [count] */
	size_t count;
};
void eval_show(const struct eval_results *r);
/* Owner: caller, json_decref. NULL: out of memory. */
json_t *eval_json(const struct eval_results *r);
#endif
