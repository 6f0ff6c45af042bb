/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words of which each is one token, alone, at the beginning of a text and after other words. They are found
 * in a tokenizer's vocabulary. A text of n words has n tokens. Immutable, shared by threads.
 */
#ifndef LOAD_CONTENT_WORDS_H
#define LOAD_CONTENT_WORDS_H
#include "core/text/text.h"
#include "text/tokenizer/tokenizer.h"

enum { WORDS_MOST = 4096, WORD_BYTES = 15 };

struct load_word {
	char bytes[WORD_BYTES]; /* with the blank before it, if words are separated */
	uint8_t size;
};

struct load_words {
	struct load_word word[WORDS_MOST];
	size_t count; /* a power of two from 2 on */
	unsigned bits;
	bool blanks; /* words are separated by blanks; otherwise they are single letters */
	bool proven; /* long texts of all words had as many tokens as words */
};

/* Texts with different uses share no words. */
enum load_words_use { WORDS_TEXT, WORDS_SALT, WORDS_PREFIX, WORDS_BLOCK, WORDS_PROOF };

/* Which text: the same place gives the same words. */
struct load_words_place {
	uint64_t key, id;
	enum load_words_use use;
};

/* Finds the words of a tokenizer. UNSUPPORTED: it has none. */
enum status load_words_find(struct load_words *w, const struct tokenizer *t, struct tokenizer_worker *worker,
			    struct error *err);
/* Common English words, for a model whose tokenizer is not known. */
void load_words_common(struct load_words *w);
/* Appends the first `count` words of a place. `begin`: the first of them begins a text. Without blanks
 * between words nothing separates it from what is before. */
void load_words_add(const struct load_words *w, struct text *out, const struct load_words_place *place,
		    size_t count, bool begin);
/* The number of words that hold 64 random bits. */
size_t load_words_for_salt(const struct load_words *w);
#endif
