/* SPDX-License-Identifier: Apache-2.0 */
/* assay __trainer: the training process that `assay train` starts. It reads one line from descriptor 3 and
 * writes lines to it. */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include "cmd/command.h"
#include "core/text/text.h"
#include "journal/field.h"
#include "run/supervisor/lines.h"
#include "train/run/run.h"

enum { CHANNEL = 3 };

static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
}

static void settle_in(void)
{
	struct sigaction term = {.sa_handler = on_term};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit no_core = {0, 0};

	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGQUIT, &term, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
}

struct office {
	pthread_mutex_t writing; /* the checkpoint thread writes lines too */
	struct lines in;
	json_t *first;
};

static enum status send_line(void *arg, const char *type, json_t *body, struct error *err)
{
	struct office *o = arg;
	json_t *line = json_pack("{s:s}", "type", type);

	if (line && body)
		json_object_update(line, body);
	json_decref(body);
	return lines_send(CHANNEL, line, 17, &o->writing, err);
}

static void log_to_channel(void *arg, enum log_level level, enum log_topic topic, const char *text)
{
	(void)topic;
	send_line(arg, "log", json_pack("{s:i, s:o}", "level", (int)level, "text", field_string(text)), NULL);
}

static bool take_first(void *arg, const char *line, size_t size)
{
	struct office *o = arg;

	o->first = json_loadb(line, size, 0, NULL);
	return false;
}

static enum status hear_first(struct office *o, struct error *err)
{
	enum lines_state state = LINES_MORE;

	while (!o->first && state == LINES_MORE && !stop_requested) {
		struct pollfd in = {.fd = CHANNEL, .events = POLLIN};

		if (poll(&in, 1, 100) > 0)
			state = lines_read(&o->in, CHANNEL, take_first, o);
	}
	if (!json_string_value(json_object_get(o->first, "dir")) ||
	    !json_string_value(json_object_get(o->first, "config")))
		return error_set(
			err, STATUS_BAD_INPUT,
			"descriptor 3 has no first line: this is an internal command, use assay train");
	return STATUS_OK;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct office o = {.writing = PTHREAD_MUTEX_INITIALIZER};
	struct log log = {.sink = log_to_channel, .arg = &o};
	struct train_job job = {.stop = &stop_requested, .log = &log, .emit = send_line, .arg = &o};
	struct error err = {0};
	json_t *values = NULL;
	enum status st;

	(void)c, (void)argc, (void)argv;
	settle_in();
	st = hear_first(&o, &err);
	job.dir = json_string_value(json_object_get(o.first, "dir"));
	job.config_hash = json_string_value(json_object_get(o.first, "config"));
	job.gpu = json_string_value(json_object_get(o.first, "gpu"));
	job.card = json_object_get(o.first, "card");
	if (!json_is_object(job.card)) /* null: no GPU */
		job.card = NULL;
	job.started_ns = (uint64_t)json_integer_value(json_object_get(o.first, "started"));
	job.tuned_s = json_number_value(json_object_get(o.first, "tuned_s"));
	job.resume = json_is_true(json_object_get(o.first, "resume"));
	if (!st)
		st = train_run(&job, &values, &err);
	send_line(&o, "end",
		  json_pack("{s:s, s:s, s:o, s:o}", "status", status_name(st), "cause",
			    st ? cause_name(err.cause) : "", "text", field_string(st ? err.text : ""),
			    "values", values ? values : json_object()),
		  NULL);
	json_decref(o.first);
	lines_release(&o.in);
	return st ? 1 : 0;
}

const struct command command_trainer = {
	.name = "__trainer",
	.summary = "train as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
