/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits text into words before merges, in steps. Each step is a regular expression; each match becomes a
 * piece, and so does the text between two matches. The next step splits each piece.
 */
#ifndef TEXT_TOKENIZER_PRETOKEN_H
#define TEXT_TOKENIZER_PRETOKEN_H
#include <stddef.h>
#include "core/error.h"

enum { PRETOKEN_STEPS_MAX = 8 };

/* The expressions of GPT-2 and for digits, which tokenizer.json refers to by name. */
extern const char pretoken_gpt2[], pretoken_digits[], pretoken_digit[];

struct pretoken_step; /* a compiled expression; immutable, shared by threads */
struct pretoken {
	struct pretoken_step *steps[PRETOKEN_STEPS_MAX];
	size_t count;
};

/* Adds a step. \s means Unicode's White_Space. BAD_INPUT: the expression does not compile. */
enum status pretoken_add(struct pretoken *p, const char *pattern, struct error *err);
void pretoken_release(struct pretoken *p);

struct pretoken_match; /* workspace of one thread */
enum status pretoken_match_create(struct pretoken_match **m, struct error *err);
void pretoken_match_destroy(struct pretoken_match **m);

typedef enum status pretoken_word(void *arg, const char *word, size_t size, struct error *err);
/* Calls `word` for every word of `text` (valid UTF-8) in order. The words cover the text without gaps. */
enum status pretoken_split(const struct pretoken *p, struct pretoken_match *m, const char *text, size_t size,
			   pretoken_word *word, void *arg, struct error *err);
#endif
