/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/launch_command.h"
#include <errno.h>
#include <stdlib.h>
#include "cmd/command.h"
#include "cmd/shared/option_form.h"

static const struct command *find(const char *word)
{
	for (const struct command *const *c = command_list; *c; c++)
		if (!strcmp((*c)->name, word) && (!(*c)->hidden || !strcmp(word, "__team")))
			return strcmp(word, "launch") ? *c : NULL;
	return NULL;
}

static bool asks_for_help(const char *word)
{
	return !strcmp(word, "--help") || !strcmp(word, "-h");
}

/* Options that every command accepts and that main removes. */
static bool is_global(const char *word)
{
	return !strcmp(word, "--quiet") || !strncmp(word, "--debug=", 8);
}

/* Removes the global options from a command's words, as main does. False if the words ask for help. */
static bool own_words(char **argv, int *argc, const struct opt_words *words)
{
	bool open = true;

	*argc = 0;
	for (size_t i = 1; i < words->count; i++) {
		const char *word = words->word[i];

		open = open && strcmp(word, "--");
		if (open && asks_for_help(word))
			return false;
		if (!open || !is_global(word))
			argv[(*argc)++] = (char *)word;
	}
	return true;
}

static enum status check_options(const struct command *cmd, char **argv, int argc, struct error *err)
{
	void *values = calloc(1, cmd->opts.size ? cmd->opts.size : 1);
	struct opt_words rest;
	enum status st;

	if (!values)
		return error_errno(err, ENOMEM, "the arguments of %s", cmd->name);
	st = opt_defaults(&cmd->opts, values, err);
	if (!st)
		st = option_form_check(cmd, argc, argv, err);
	if (!st)
		st = opt_from_argv(&cmd->opts, values, argc, argv, cmd->rest ? &rest : NULL, err);
	if (!st && cmd->check)
		st = cmd->check(values, err);
	free(values);
	return st == STATUS_UNAVAILABLE ? STATUS_OK : st; /* the file may exist only on the nodes */
}

enum status launch_command_check(const struct opt_words *words, const char *who, struct error *err)
{
	const struct command *cmd = find(words->word[0]);
	char **argv;
	enum status st = STATUS_OK;
	int argc;

	if (!cmd)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: \"%.40s\" after -- is not an assay command that can run there", who,
				 words->word[0]);
	if (cmd->alone)
		return error_set(err, STATUS_BAD_INPUT,
				 "%s: %s after -- would do the same on every rank: run assay %s without %s",
				 who, cmd->name, cmd->name, who);
	if (cmd->raw)
		return STATUS_OK;
	argv = calloc(words->count + 1, sizeof(*argv));
	if (!argv)
		return error_errno(err, ENOMEM, "%zu arguments", words->count);
	if (own_words(argv, &argc, words))
		st = check_options(cmd, argv, argc, err);
	free(argv);
	return st;
}

enum status launch_words_single(const struct opt_words *words, unsigned ranks, struct error *err)
{
	const struct command *cmd = find(words->word[0]);

	if (!cmd || !cmd->single || ranks < 2)
		return STATUS_OK;
	return error_set(err, STATUS_BAD_INPUT,
			 "launch: %s after -- does not work on several ranks yet, and %u are requested: "
			 "use one (--ranks-per-node 1), or run assay %s without launch",
			 cmd->name, ranks, cmd->name);
}

bool launch_words_mpi(const struct opt_words *words)
{
	const struct command *cmd = find(words->word[0]);

	return cmd && cmd->mpi_on_cpus;
}

bool launch_words_saves(const struct opt_words *words)
{
	const struct command *cmd = find(words->word[0]);

	return cmd && cmd->saves;
}

const char *launch_words_again(const struct opt_words *words)
{
	const struct command *cmd = find(words->word[0]);
	const bool asked = cmd && cmd->again;
	void *values = asked ? calloc(1, cmd->opts.size) : NULL;
	char **argv = asked ? calloc(words->count + 1, sizeof(*argv)) : NULL;
	const char *again = NULL;
	int argc;

	if (values && argv && own_words(argv, &argc, words) && !opt_defaults(&cmd->opts, values, NULL) &&
	    !opt_from_argv(&cmd->opts, values, argc, argv, NULL, NULL))
		again = cmd->again(values);
	free(argv);
	free(values);
	return again;
}
