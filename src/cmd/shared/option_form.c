/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/shared/option_form.h"
#include <ctype.h>
#include <unistd.h>

enum { NAME = 64 };
static const char place[] = "command line";

/* A word of the form "--name=value", "-name" or "name=value", split into parts. */
struct taken {
	const char *word, *value; /* value: NULL if the word has no "=" */
	char name[NAME];
	unsigned dashes;
};

static bool take(struct taken *t, const char *word)
{
	size_t length;

	*t = (struct taken){.word = word};
	while (t->dashes < 2 && word[t->dashes] == '-')
		t->dashes++;
	word += t->dashes;
	length = strcspn(word, "=");
	if (!length || length >= NAME || (t->dashes && (isdigit((unsigned char)*word) || *word == '.')))
		return false;
	memcpy(t->name, word, length);
	if (word[length])
		t->value = word + length + 1;
	return true;
}

static const struct opt *row_of_letter(const struct opt_table *t, char letter)
{
	for (size_t i = 0; i < t->count; i++)
		if (t->rows[i].letter == letter)
			return &t->rows[i];
	return NULL;
}

/* The row that this word sets in its present form; NULL if there is none. */
static const struct opt *set_by(const struct opt_table *t, const struct taken *a)
{
	if (a->dashes == 1)
		return row_of_letter(t, *a->name);
	return opt_row(t, a->name, false);
}

static enum status as_word(const struct taken *a, const struct opt *row, const char *next, struct error *err)
{
	const char *value = a->value ? a->value : row->kind == OPT_KIND_BOOL ? "true" : "VALUE";

	if (!a->value && row->kind != OPT_KIND_BOOL && next && *next != '-' && !strchr(next, '='))
		value = next;
	return error_set(err, STATUS_BAD_INPUT,
			 "%s: \"%.64s\": this option has no dashes; did you mean %s=%.64s", place, a->word,
			 row->name, value);
}

static enum status with_dashes(const struct taken *a, const struct opt *row, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT,
			 "%s: \"%.64s\": options begin with two dashes; did you mean --%s%s%.64s", place,
			 a->word, row->name, a->value ? " " : "", a->value ? a->value : "");
}

/* File names and sentences may contain "=" too, so only a plain name before "=" counts. */
static bool is_assignment(const struct taken *a)
{
	return !a->dashes && a->value && !strpbrk(a->word, " \t\n") && access(a->word, F_OK);
}

static enum status look_at(const struct command *cmd, const struct opt_table *words, const struct taken *a,
			   const char *next, struct error *err)
{
	const struct opt *row = opt_row(&cmd->opts, a->name, true);
	const struct opt *word = words ? opt_row(words, a->name, true) : NULL;

	if (a->dashes && word)
		return as_word(a, word, next, err);
	if (a->dashes == 1 && row && a->name[1])
		return with_dashes(a, row, err);
	if (is_assignment(a) && row && !row->positional && !word)
		return with_dashes(a, row, err);
	return STATUS_OK;
}

enum status option_form_check(const struct command *cmd, int argc, char *const *argv, struct error *err)
{
	const struct opt_table *words = cmd->word_opts ? cmd->word_opts(argc, argv) : NULL;
	enum status st = STATUS_OK;
	struct taken a;

	for (int i = 0; i < argc && !st && strcmp(argv[i], "--"); i++) {
		const struct opt *row;

		if (!take(&a, argv[i]))
			continue;
		row = a.dashes ? set_by(&cmd->opts, &a) : NULL;
		if (!row)
			st = look_at(cmd, words, &a, i + 1 < argc ? argv[i + 1] : NULL, err);
		else if (row->kind != OPT_KIND_BOOL && !a.value && (a.dashes == 2 || !a.name[1]))
			i++; /* skip the option's value */
	}
	return st;
}
