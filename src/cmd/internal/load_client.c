/* SPDX-License-Identifier: Apache-2.0 */
/* assay __load_client: the process of a load test that sends and measures. It reads one line from descriptor
 * 3 and writes lines to it. */
#include <stdlib.h>
#include <string.h>
#include "cmd/command.h"
#include "cmd/internal/child_channel.h"
#include "cmd/load/options.h"

enum { WORDS_MOST = 512 };

static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
}

static const char *member(const struct child_channel *c, const char *name)
{
	return json_string_value(json_object_get(c->first, name));
}

/* Reads the options as the command itself did; the words belong to the line. */
static enum status read_options(struct load_opts *o, const struct child_channel *c, struct error *err)
{
	const json_t *words = json_object_get(c->first, "words"), *word;
	char *argv[WORDS_MOST + 1];
	size_t i, count = 0;
	enum status st = opt_defaults(&load_opt_table, o, err);

	if (!json_is_array(words) || !member(c, "dir") || !member(c, "url"))
		return error_set(
			err, STATUS_BAD_INPUT,
			"descriptor 3 has no first line: this is an internal command, use assay load");
	json_array_foreach(words, i, word) if (count < WORDS_MOST) argv[count++] =
		(char *)json_string_value(word);
	argv[count] = NULL;
	return st ? st : opt_from_argv(&load_opt_table, o, (int)count, argv, NULL, err);
}

static enum status make_spec(struct load_run_spec *spec, const struct load_opts *o, struct child_channel *c,
			     const struct log *log, struct error *err)
{
	const char *key = member(c, "key"), *salt = member(c, "salt");
	enum status st = load_opts_spec(spec, o, err);

	spec->dir = member(c, "dir");
	spec->url = member(c, "url");
	spec->key = key && *key ? key : NULL;
	spec->content.salt = salt && *salt ? salt : NULL;
	spec->stop = &stop_requested;
	spec->log = log;
	spec->emit = child_send;
	spec->arg = c;
	return st;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct child_channel channel = CHILD_CHANNEL_NEW;
	struct log log = child_log(&channel);
	struct load_opts opts;
	struct load_run_spec spec;
	struct error err = {0};
	json_t *values = NULL;
	enum status st;

	(void)c, (void)argc, (void)argv;
	child_prepare(on_term);
	child_read(&channel, &stop_requested);
	st = read_options(&opts, &channel, &err);
	if (!st)
		st = make_spec(&spec, &opts, &channel, &log, &err);
	if (!st)
		st = load_run(&spec, &values, &err);
	child_send_end(&channel, st, &err, values);
	child_release(&channel);
	return st ? 1 : 0;
}

const struct command command_load_client = {
	.name = "__load_client",
	.summary = "send the requests of a load test as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
