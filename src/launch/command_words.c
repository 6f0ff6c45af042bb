/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/command_words.h"

#include <ctype.h>
#include <stdlib.h>

void command_words_add(struct command_words *w, const char *word)
{
	if (w->count < COMMAND_WORDS_MAX)
		w->word[w->count] = strdup(word);
	if (w->count < COMMAND_WORDS_MAX && w->word[w->count])
		w->count++;
	else
		w->failed = true;
}

void command_words_addf(struct command_words *w, const char *format, ...)
{
	struct text text = {0};
	va_list args;

	va_start(args, format);
	text_addv(&text, format, args);
	va_end(args);
	command_words_add(w, text_str(&text));
	w->failed = w->failed || text.failed;
	text_release(&text);
}

void command_words_release(struct command_words *w)
{
	for (size_t i = 0; i < w->count; i++)
		free(w->word[i]);
	*w = (struct command_words){0};
}

void command_words_quote(struct text *t, const char *word)
{
	bool plain = *word;

	for (const char *c = word; *c; c++)
		plain = plain && isascii((unsigned char)*c) &&
			(isalnum((unsigned char)*c) || strchr("_./:=@%+,-", *c));
	if (plain) {
		text_add(t, word);
		return;
	}
	text_add(t, "'");
	for (const char *c = word; *c; c++) {
		if (*c == '\'')
			text_add(t, "'\\''");
		else
			text_add_bytes(t, c, 1);
	}
	text_add(t, "'");
}

void command_words_join(struct text *t, const struct command_words *w)
{
	for (size_t i = 0; i < w->count; i++) {
		if (i)
			text_add(t, " ");
		command_words_quote(t, w->word[i]);
	}
}
