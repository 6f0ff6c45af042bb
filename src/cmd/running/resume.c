/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/running/resume.h"
#include <errno.h>
#include <stdlib.h>
#include "core/text/text.h"
#include "journal/journal.h"

/* Takes the words of the first `open` event; later ones come from earlier resumptions. */
static int take_words(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct resume *a = arg;

	(void)t_ns;
	if (type == JOURNAL_OPEN) {
		a->words = json_incref(json_object_get(body, "command"));
		a->team = json_object_get(body, "team") != NULL;
	}
	return 1;
}

static enum status read_words(struct resume *a, const char *command, const char *dir, struct error *err)
{
	enum status st;
	uint64_t cut;
	json_t *word;
	size_t i;

	st = journal_read(dir, take_words, a, &cut, err);
	if (st == STATUS_UNAVAILABLE) /* a folder that the command names does not exist or cannot be read */
		st = err->status = STATUS_BAD_INPUT;
	if (st)
		return st;
	if (json_array_size(a->words) < 2)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: the journal does not hold the command that began the run", dir);
	if (a->team)
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s is a run of several ranks, which cannot be resumed: begin again in another directory",
			dir);
	a->argv = calloc(json_array_size(a->words) + 1, sizeof(*a->argv));
	if (!a->argv)
		return error_errno(err, ENOMEM, "%s: the command in its journal", dir);
	json_array_foreach(a->words, i, word)
	{
		if (!json_is_string(word))
			return error_set(err, STATUS_BAD_INPUT,
					 "%s: the command in its journal is not a list of words", dir);
		a->argv[i] = (char *)(uintptr_t)json_string_value(word);
	}
	if (strcmp(a->argv[1], command))
		return error_set(
			err, STATUS_BAD_INPUT,
			"%s was begun by assay %.20s: resume it with that command, not with assay %s", dir,
			a->argv[1], command);
	return STATUS_OK;
}

/* True for options that may differ when a run is resumed. */
static bool is_free(const struct opt *row)
{
	static const char *const names[] = {"resume", "out", "format", "json", "plan", "wait"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(row->name, names[i]))
			return true;
	return false;
}

/* The value as a user would write it; "" if there is none. */
static void value_text(const struct opt *row, const void *values, char *out, size_t size)
{
	struct opt_words words;
	size_t used = 0;

	*out = '\0';
	if (!row->many) {
		opt_value_text(row, values, out, size);
		return;
	}
	memcpy(&words, (const char *)values + row->offset, sizeof(words));
	for (size_t i = 0; i < words.count && used + 1 < size; i++) {
		text_copy(out + used, size - used, i ? " " : "");
		used += strlen(out + used);
		text_copy(out + used, size - used, words.word[i]);
		used += strlen(out + used);
	}
}

static enum status compare(const struct opt_table *t, const void *before, const void *now, const char *dir,
			   struct error *err)
{
	for (size_t i = 0; i < t->count; i++) {
		const struct opt *row = &t->rows[i];
		char was[4096], is[4096];

		if (is_free(row))
			continue;
		value_text(row, before, was, sizeof(was));
		value_text(row, now, is, sizeof(is));
		if (strcmp(was, is))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s was begun with %s%s %.80s, not %.80s: resume it with the same options, "
				"or begin again in another directory",
				dir, row->positional ? "" : "--", row->name, *was ? was : "(none)",
				*is ? is : "(none)");
	}
	return STATUS_OK;
}

static enum status check_out(const struct opt_table *t, const void *before, const void *now, const char *dir,
			     struct error *err)
{
	for (size_t i = 0; i < t->count; i++) {
		const char *was, *is;

		if (strcmp(t->rows[i].name, "out"))
			continue;
		memcpy(&was, (const char *)before + t->rows[i].offset, sizeof(was));
		memcpy(&is, (const char *)now + t->rows[i].offset, sizeof(is));
		if (is != was && strcmp(is, dir))
			return error_set(
				err, STATUS_BAD_INPUT,
				"--resume %s continues in that directory, so --out %s is not possible", dir,
				is);
	}
	return STATUS_OK;
}

static enum status parse(const struct command *command, void *values, char **argv, struct error *err)
{
	struct opt_words rest;
	int argc = 0;

	while (argv[argc])
		argc++;
	return opt_from_argv(&command->opts, values, argc, argv, command->rest ? &rest : NULL, err);
}

enum status resume_read(struct resume *a, const struct command_context *c, const struct command *command,
			const char *dir, struct error *err)
{
	const struct opt_table *t = &command->opts;
	void *before = calloc(1, t->size);
	enum status st;

	*a = (struct resume){.values = malloc(t->size)};
	if (!before || !a->values)
		st = error_errno(err, ENOMEM, "%s: the options in its journal", dir);
	else
		st = read_words(a, command->name, dir, err);
	if (!st)
		st = opt_defaults(t, before, err);
	if (!st)
		st = parse(command, before, a->argv + 2, err);
	if (!st) {
		memcpy(a->values, before, t->size);
		st = parse(command, a->values, c->argv + 2, err);
	}
	if (!st)
		st = check_out(t, before, a->values, dir, err);
	if (!st)
		st = compare(t, before, a->values, dir, err);
	free(before);
	if (st)
		resume_release(a);
	return st;
}

void resume_release(struct resume *a)
{
	json_decref(a->words);
	free(a->argv);
	free(a->values);
	*a = (struct resume){0};
}
