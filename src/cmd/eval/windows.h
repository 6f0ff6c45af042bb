/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cuts documents into windows that fit into the context. Each window begins `stride` tokens after the one
 * before. A window scores the tokens that no earlier window has scored, except its first token, which has
 * nothing before it. This is the rule of Hugging Face's page "Perplexity of fixed-length models". With
 * stride = context, windows do not overlap.
 */
#ifndef CMD_EVAL_WINDOWS_H
#define CMD_EVAL_WINDOWS_H
#include "cmd/eval/data.h"

struct eval_window {
	size_t document;
	size_t begin, count; /* the tokens that the model sees: [begin, begin + count) of the document */
	size_t from;	     /* tokens [from, begin + count) are scored; at least begin + 1 */
};

struct eval_windows {
	struct eval_window *window;
	size_t count;
	size_t longest;
	uint64_t targets; /* tokens that are scored, in all windows */
};
/* context >= 2, 1 <= stride <= context. A window without a target is left out. NO_RESOURCE: out of memory.
 * Owner: caller, eval_windows_release, also after a failure. */
enum status eval_windows_cut(struct eval_windows *w, const struct eval_data *d, size_t context, size_t stride,
			     struct error *err);
void eval_windows_release(struct eval_windows *w);
/* Whether token `i` of the window's document is scored in this window. */
bool eval_window_scores(const struct eval_window *w, const struct eval_document *doc, size_t i);
#endif
