/* SPDX-License-Identifier: Apache-2.0 */
/* Deterministic parts of an automaton that are built from texts: a choice of texts, and free text around a
 * mark. */
#ifndef ENGINE_GRAMMAR_AUTOMATON_MARKS_H
#define ENGINE_GRAMMAR_AUTOMATON_MARKS_H
#include "engine/grammar/automaton/automaton.h"

enum { MARK_MOST = 64 }; /* longest mark, in bytes */

struct bytes {
	const char *data;
	size_t size;
};

/* One of the texts. Common beginnings share their nodes. Sorts the texts. */
void build_choice(struct builder *b, uint32_t from, struct bytes *texts, size_t count, uint32_t to);
/* Any bytes that end with the first place where `mark` ends. If `stop` is not 0, the text may also end
 * anywhere before: then it goes to `stop`. */
void build_until(struct builder *b, uint32_t from, const char *mark, uint32_t to, uint32_t stop);
/* If the text begins with `mark`, behind optional blanks and newlines, it goes to `to`. Any other text, also
 * an empty one, may end anywhere: it goes to `stop`. */
void build_beginning(struct builder *b, uint32_t from, const char *mark, uint32_t to, uint32_t stop);
/* A JSON string with its quotes that equals none of the texts, without escapes. `texts` are the bytes between
 * the quotes. Sorts the texts. */
void build_other_string(struct builder *b, uint32_t from, struct bytes *texts, size_t count, uint32_t to);
#endif
