/* SPDX-License-Identifier: Apache-2.0 */
/* assay __trainer: the training process that `assay train` starts. It reads one line from descriptor 3 and
 * writes lines to it. */
#include "cmd/command.h"
#include "cmd/internal/child_channel.h"
#include "train/run/run.h"

static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
}

static enum status read_first(struct child_channel *c, struct error *err)
{
	child_read(c, &stop_requested);
	if (!json_string_value(json_object_get(c->first, "dir")) ||
	    !json_string_value(json_object_get(c->first, "config")))
		return error_set(
			err, STATUS_BAD_INPUT,
			"descriptor 3 has no first line: this is an internal command, use assay train");
	return STATUS_OK;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct child_channel channel = CHILD_CHANNEL_NEW;
	const struct sigaction quit = {.sa_handler = on_term};
	struct log log = child_log(&channel);
	struct train_job job = {.stop = &stop_requested, .log = &log, .emit = child_send, .arg = &channel};
	struct error err = {0};
	json_t *values = NULL;
	enum status st;

	(void)c, (void)argc, (void)argv;
	child_prepare(on_term);
	sigaction(SIGQUIT, &quit, NULL);
	st = read_first(&channel, &err);
	job.dir = json_string_value(json_object_get(channel.first, "dir"));
	job.config_hash = json_string_value(json_object_get(channel.first, "config"));
	job.gpu = json_string_value(json_object_get(channel.first, "gpu"));
	job.card = json_object_get(channel.first, "card");
	if (!json_is_object(job.card)) /* null: no GPU */
		job.card = NULL;
	job.started_ns = (uint64_t)json_integer_value(json_object_get(channel.first, "started"));
	job.tuned_s = json_number_value(json_object_get(channel.first, "tuned_s"));
	job.resume = json_is_true(json_object_get(channel.first, "resume"));
	if (!st)
		st = train_run(&job, &values, &err);
	child_send_end(&channel, st, &err, values);
	child_release(&channel);
	return st ? 1 : 0;
}

const struct command command_trainer = {
	.name = "__trainer",
	.summary = "train as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
