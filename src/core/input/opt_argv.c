/* SPDX-License-Identifier: Apache-2.0 */
/* Reads options from a command line. */
#include "core/input/opt.h"

#include <ctype.h>

static const char place[] = "command line";

enum { ROWS_MAX = 128 };

struct reader {
	const struct opt_table *t;
	void *values;
	int argc, i;
	char **argv;
	int words;	 /* positional words, moved to argv[0..words) in their order */
	bool words_only; /* after "--" */
	bool takes_rest; /* the words after "--" go to the caller */
	bool given[ROWS_MAX];
};

static const struct opt *row_of_letter(const struct opt_table *t, char letter)
{
	size_t i;

	for (i = 0; i < t->count; i++)
		if (t->rows[i].letter == letter)
			return &t->rows[i];
	return NULL;
}

/* Sets a row that is not set yet. A second value is an error, because only the user knows which one was
 * meant. */
static enum status set_once(struct reader *r, const struct opt *row, const char *text, struct error *err)
{
	size_t at = (size_t)(row - r->t->rows);

	if (at >= ROWS_MAX)
		return error_set(err, STATUS_BUG, "option %s is row %zu of at most %d", row->name, at,
				 ROWS_MAX);
	if (r->given[at])
		return error_set(err, STATUS_BAD_INPUT, "%s: --%s is given twice", place, row->name);
	r->given[at] = true;
	return opt_set(r->t, r->values, row->name, text, place, err);
}

/* Sets the row from `attached`; without it, a bool becomes true, and other types take the next word. */
static enum status set_from(struct reader *r, const struct opt *row, const char *attached, struct error *err)
{
	if (!attached && row->kind == OPT_KIND_BOOL)
		attached = "true";
	if (!attached) {
		if (r->i + 1 >= r->argc)
			return error_set(err, STATUS_BAD_INPUT, "%s: --%s needs a value", place, row->name);
		attached = r->argv[++r->i];
	}
	return set_once(r, row, attached, err);
}

/* True if the command takes no positional words, so that the only words can be a program to run, after
 * "--". */
static bool wants_program(const struct reader *r)
{
	for (size_t i = 0; i < r->t->count; i++)
		if (r->t->rows[i].positional)
			return false;
	return r->takes_rest;
}

/* Error for an option that follows a program's name without "--", as in "profile python3 -c ..". */
static enum status behind_program(const struct reader *r, const char *option, struct error *err)
{
	return error_set(
		err, STATUS_BAD_INPUT,
		"%s: \"%.64s\" is not an option of this command; write -- before the program to run: "
		"-- %.64s %.64s",
		place, option, r->argv[0], option);
}

static enum status read_long(struct reader *r, const char *word, struct error *err)
{
	const char *equals = strchr(word, '=');
	const struct opt *row;
	char name[64];

	if (snprintf(name, sizeof(name), "%.*s", equals ? (int)(equals - word) : (int)strlen(word), word) >=
	    (int)sizeof(name))
		return error_set(err, STATUS_BAD_INPUT, "%s: unknown option \"%.64s\"", place, word);
	row = opt_row(r->t, name, false);
	if (row)
		return set_from(r, row, equals ? equals + 1 : NULL, err);
	if (!strncmp(name, "no-", 3) && !equals) {
		row = opt_row(r->t, name + 3, false);
		if (row && row->kind == OPT_KIND_BOOL)
			return set_once(r, row, "false", err);
	}
	if (r->words && wants_program(r))
		return behind_program(r, word - 2, err);
	return opt_refuse(r->t, name, "--", place, err);
}

static enum status read_short(struct reader *r, const char *word, struct error *err)
{
	const struct opt *row = row_of_letter(r->t, word[0]);

	if (!row && r->words && wants_program(r))
		return behind_program(r, word - 1, err);
	if (!row)
		return error_set(err, STATUS_BAD_INPUT, "%s: unknown option \"-%c\"%s", place, word[0],
				 r->takes_rest ? "" : "; write -- before a word that begins with \"-\"");
	return set_from(r, row, word[1] ? word + 1 : NULL, err);
}

/* A single dash and negative numbers are words, not options. */
static bool is_option(const struct opt_table *t, const char *word)
{
	if (word[0] != '-' || !word[1])
		return false;
	return !(isdigit((unsigned char)word[1]) || word[1] == '.') || row_of_letter(t, word[1]);
}

static void keep_word(struct reader *r)
{
	char *word = r->argv[r->i];

	memmove(r->argv + r->words + 1, r->argv + r->words, sizeof(*r->argv) * (size_t)(r->i - r->words));
	r->argv[r->words++] = word;
}

/* Assigns the positional words to the positional rows, in row order. */
static enum status place_words(struct reader *r, struct error *err)
{
	enum status st;
	int used = 0;
	size_t i;

	for (i = 0; i < r->t->count; i++) {
		const struct opt *row = &r->t->rows[i];
		struct opt_words rest = {(const char *const *)(r->argv + used), (size_t)(r->words - used)};

		if (!row->positional)
			continue;
		if (row->many) {
			memcpy((char *)r->values + row->offset, &rest, sizeof(rest));
			return STATUS_OK;
		}
		if (used == r->words)
			return STATUS_OK;
		st = set_once(r, row, r->argv[used++], err);
		if (st)
			return st;
	}
	if (used < r->words)
		return error_set(err, STATUS_BAD_INPUT, "%s: unexpected word \"%.64s\"%s", place,
				 r->argv[used], r->takes_rest ? "; write -- before the program to run" : "");
	return STATUS_OK;
}

/* Reads the current word: an option with its value, or a positional word. */
static enum status read_word(struct reader *r, struct error *err)
{
	const char *word = r->argv[r->i];

	if (r->words_only || !is_option(r->t, word))
		keep_word(r);
	else if (!strcmp(word, "--"))
		r->words_only = true;
	else if (word[1] == '-')
		return read_long(r, word + 2, err);
	else
		return read_short(r, word + 1, err);
	return STATUS_OK;
}

enum status opt_from_argv(const struct opt_table *t, void *values, int argc, char **argv,
			  struct opt_words *rest, struct error *err)
{
	struct reader r = {.t = t, .values = values, .argc = argc, .argv = argv, .takes_rest = rest};
	enum status st = STATUS_OK;

	if (rest)
		*rest = (struct opt_words){0};
	for (; r.i < argc && !st; r.i++) {
		st = read_word(&r, err);
		if (!r.words_only || !rest)
			continue;
		rest->word = (const char *const *)(argv + r.i + 1);
		rest->count = (size_t)(argc - r.i - 1);
		break;
	}
	return st ? st : place_words(&r, err);
}
