/* SPDX-License-Identifier: Apache-2.0 */
/* The vocabulary as a tree of bytes, in preorder. A walk over it visits each distinct beginning of a token
 * once and jumps over a subtree whose beginning is refused. */
#ifndef ENGINE_GRAMMAR_VOCAB_H
#define ENGINE_GRAMMAR_VOCAB_H
#include "engine/grammar/grammar.h"

/* A plain character may stand in a JSON string as itself: any character but ", \ and U+0000 to U+001F. Slice
 * k holds the tokens that consist of at most vocab_slice_chars[k] complete plain characters. */
enum { VOCAB_SLICES = 8 };
extern const uint32_t vocab_slice_chars[VOCAB_SLICES];

struct vocab_node {
	uint32_t next;	/* index of the first node behind this subtree */
	int32_t token;	/* a token that ends here; -1: none */
	uint16_t depth; /* bytes from the root; the root itself is not stored, so at least 1 */
	uint8_t byte;
	uint8_t inside; /* bit k: all tokens of the subtree belong to slice k */
};

struct grammar_vocab {
	size_t count, words;
	struct vocab_node *nodes;
	size_t node_count;
	int32_t *same;	   /* per id: another token with equal bytes; -1: none */
	uint32_t *text_at; /* count + 1 offsets into text: the bytes of each TEXT token */
	char *text;
	uint32_t *slices; /* VOCAB_SLICES rows of `words` */
	uint32_t *end;	  /* row of the END tokens */
	size_t longest;	  /* bytes of the longest token */
};

static inline bool vocab_is_end(const struct grammar_vocab *v, int32_t id)
{
	return v->end[id / 32] >> id % 32 & 1;
}
#endif
