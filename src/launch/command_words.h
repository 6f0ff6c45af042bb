/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a command, as a program gets them or as a shell is given them. */
#ifndef LAUNCH_WORDS_H
#define LAUNCH_WORDS_H
#include "core/text/text.h"

enum { WORDS_MAX = 1024 };

struct words {
	char *word[WORDS_MAX + 1]; /* NULL ends */
	size_t count;
	bool failed; /* no memory, or more than WORDS_MAX */
};

void words_add(struct words *w, const char *word);
void words_addf(struct words *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void words_release(struct words *w);
/* One word for a POSIX shell: as it is where that is safe, else in single quotes. */
void words_quote(struct text *t, const char *word);
/* All of them with blanks between, each quoted. */
void words_join(struct text *t, const struct words *w);
#endif
