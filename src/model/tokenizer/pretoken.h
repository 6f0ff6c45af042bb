/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How text is cut into words before merges: steps in a row, each a regular expression whose matches become
 * pieces of their own; what lies between two matches is a piece too. The next step cuts each piece.
 */
#ifndef MODEL_TOKENIZER_PRETOKEN_H
#define MODEL_TOKENIZER_PRETOKEN_H
#include <stddef.h>
#include "core/error.h"

enum { PRETOKEN_STEPS_MAX = 8 };

/* The expressions of GPT-2 and of single digits, which tokenizer.json names without writing them. */
extern const char pretoken_gpt2[], pretoken_digits[], pretoken_digit[];

struct pretoken_step; /* a compiled expression; immutable, shared by threads */
struct pretoken {
	struct pretoken_step *steps[PRETOKEN_STEPS_MAX];
	size_t count;
};

/* Adds a step. \s means Unicode's White_Space. An expression that does not compile: BAD_INPUT. */
enum status pretoken_add(struct pretoken *p, const char *pattern, struct error *err);
void pretoken_release(struct pretoken *p);

struct pretoken_match; /* scratch of one thread */
enum status pretoken_match_create(struct pretoken_match **m, struct error *err);
void pretoken_match_destroy(struct pretoken_match **m);

typedef enum status pretoken_word(void *arg, const char *word, size_t size, struct error *err);
/* Calls `word` for every word of `text` (valid UTF-8) in order; they cover it without a gap. */
enum status pretoken_split(const struct pretoken *p, struct pretoken_match *m, const char *text, size_t size,
			   pretoken_word *word, void *arg, struct error *err);
#endif
