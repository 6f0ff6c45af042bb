/* SPDX-License-Identifier: Apache-2.0 */
/* assay __front: the HTTP front end that `assay serve` starts. It reads one line with its options from
 * descriptor 3 and writes lines to it. Descriptor 4 is the control socket of the supervisor. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include "cmd/command.h"
#include "engine/load/adapters.h"
#include "journal/field.h"
#include "run/supervisor/lines.h"
#include "serve/http/request_summary.h"
#include "serve/serve.h"

enum { CHANNEL = 3, CONTROL = 4, DIGITS = 17 };

static struct front_end *front_end; /* for the signal handler */
static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
	if (front_end)
		serve_drain(front_end);
}

static void set_signals(void)
{
	struct sigaction term = {.sa_handler = on_term};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit no_core = {0, 0};

	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	fcntl(CHANNEL, F_SETFD, FD_CLOEXEC);
	fcntl(CONTROL, F_SETFD, FD_CLOEXEC);
}

struct front_process {
	struct lines in;
	json_t *options;
};

static void send_line(const char *type, json_t *body)
{
	json_t *line = json_pack("{s:s}", "type", type);

	if (line && body)
		json_object_update(line, body);
	json_decref(body);
	lines_send(CHANNEL, line, DIGITS, NULL, NULL);
}

static void log_to_channel(void *arg, enum log_level level, enum log_topic topic, const char *text)
{
	(void)arg, (void)topic;
	send_line("log", json_pack("{s:i, s:o}", "level", (int)level, "text", field_string(text)));
}

static bool take_options(void *arg, const char *line, size_t size)
{
	struct front_process *p = arg;

	p->options = json_loadb(line, size, 0, NULL);
	return false;
}

static enum status read_options(struct front_process *p, struct error *err)
{
	enum lines_state state = LINES_MORE;

	while (!p->options && state == LINES_MORE && !stop_requested) {
		struct pollfd in = {.fd = CHANNEL, .events = POLLIN};

		if (poll(&in, 1, 100) > 0)
			state = lines_read(&p->in, CHANNEL, take_options, p);
	}
	return json_is_string(json_object_get(p->options, "model"))
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "descriptor 3 has no options: this is an internal command, use assay serve");
}

static const char *word(const struct front_process *p, const char *name)
{
	return json_string_value(json_object_get(p->options, name));
}

static uint64_t number(const struct front_process *p, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(p->options, name));
}

/* Sends the supervisor what the request log says. A log that cannot be read gives no summary. */
static void send_summary(const struct front_process *p)
{
	struct error err = {0};
	json_t *summary;

	if (!request_summary_read(&summary, word(p, "request_log"), number(p, "request_log_begin"), &err))
		send_line("summary", summary);
	else
		log_to_channel(NULL, LOG_WARN, LOG_TOPIC_RUN, err.text);
}

static enum status serve(struct front_process *p, struct error *err)
{
	const struct log log = {.sink = log_to_channel};
	const char *const models[] = {word(p, "name"), NULL};
	const json_t *list = json_object_get(p->options, "adapters");
	const char *adapters[ADAPTERS_MOST + 1] = {0};
	const struct serve_options options = {
		.model = word(p, "model"),
		.chat_template = word(p, "chat_template"),
		.models = models,
		.adapters = adapters,
		.address = word(p, "host"),
		.port = (uint16_t)number(p, "port"),
		.tls_certificate = word(p, "certificate"),
		.tls_key = word(p, "key"),
		.api_key_file = word(p, "api_keys"),
		.cors_origin = word(p, "cors"),
		.request_log = word(p, "request_log"),
		.log_requests = json_is_true(json_object_get(p->options, "log_requests")),
		.control = CONTROL,
		.limits = {.queue = number(p, "queue"),
			   .connections = number(p, "connections"),
			   .body_bytes = number(p, "body"),
			   .hang_s = (unsigned)number(p, "hang_s")},
		.log = &log,
	};
	enum status st;

	for (size_t i = 0; i < json_array_size(list) && i < ADAPTERS_MOST; i++)
		adapters[i] = json_string_value(json_array_get(list, i));
	st = front_end_create(&front_end, &options, err);

	if (!st && stop_requested)
		serve_drain(front_end);
	if (!st)
		st = front_end_run(front_end, err);
	if (!st && word(p, "request_log"))
		send_summary(p);
	return st;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct front_process p = {0};
	struct error err = {0};
	enum status st;

	(void)c, (void)argc, (void)argv;
	set_signals();
	st = read_options(&p, &err);
	if (!st)
		st = serve(&p, &err);
	send_line("end",
		  json_pack("{s:s, s:s, s:o}", "status", status_name(st), "cause",
			    st ? cause_name(err.cause) : "", "text", field_string(st ? err.text : "")));
	front_end_destroy(&front_end);
	json_decref(p.options);
	lines_release(&p.in);
	return st ? 1 : 0;
}

const struct command command_front = {
	.name = "__front",
	.summary = "serve HTTP as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
