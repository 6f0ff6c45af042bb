/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command, as a program gets them or as a shell is given them. */
#ifndef LAUNCH_COMMAND_WORDS_H
#define LAUNCH_COMMAND_WORDS_H
#include "core/text/text.h"

enum { COMMAND_WORDS_MAX = 1024 };

struct command_words {
	char *word[COMMAND_WORDS_MAX + 1]; /* NULL ends */
	size_t count;
	bool failed; /* no memory, or more than COMMAND_WORDS_MAX */
};

void command_words_add(struct command_words *w, const char *word);
void command_words_addf(struct command_words *w, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void command_words_release(struct command_words *w);
/* One word for a POSIX shell: as it is where that is safe, else in single quotes. */
void command_words_quote(struct text *t, const char *word);
/* All of them with blanks between, each quoted. */
void command_words_join(struct text *t, const struct command_words *w);
#endif
