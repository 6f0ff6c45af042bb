/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of a command, as an argument vector or as text for a shell. */
#ifndef LAUNCH_COMMAND_WORDS_H
#define LAUNCH_COMMAND_WORDS_H
#include "core/text/text.h"

enum { COMMAND_WORDS_MAX = 1024 };

struct command_words {
	char *word[COMMAND_WORDS_MAX + 1]; /* ends with NULL */
	size_t count;
	bool failed; /* no memory, or more than COMMAND_WORDS_MAX */
};

void command_words_add(struct command_words *w, const char *word);
void command_words_addf(struct command_words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void command_words_release(struct command_words *w);
/* Appends one word for a POSIX shell: unchanged if that is safe, else in single quotes. */
void command_words_quote(struct text *t, const char *word);
/* Appends all words, each quoted, with spaces between them. */
void command_words_join(struct text *t, const struct command_words *w);
#endif
