/* SPDX-License-Identifier: Apache-2.0 */
/* assay __front: the HTTP front end that `assay serve` starts. It reads one line with its options from
 * descriptor 3 and writes lines to it. Descriptor 4 is the control socket of the supervisor. */
#include "cmd/command.h"
#include "cmd/internal/child_channel.h"
#include "engine/load/adapters.h"
#include "serve/http/request_summary.h"
#include "serve/serve.h"

static struct front_end *front_end; /* for the signal handler */
static volatile sig_atomic_t stop_requested;

static void on_term(int sig)
{
	(void)sig;
	stop_requested = 1;
	if (front_end)
		serve_drain(front_end);
}

static enum status read_options(struct child_channel *c, struct error *err)
{
	child_read(c, &stop_requested);
	return json_is_string(json_object_get(c->first, "model"))
		       ? STATUS_OK
		       : error_set(
				 err, STATUS_BAD_INPUT,
				 "descriptor 3 has no options: this is an internal command, use assay serve");
}

static const char *word(const struct child_channel *p, const char *name)
{
	return json_string_value(json_object_get(p->first, name));
}

static uint64_t number(const struct child_channel *p, const char *name)
{
	return (uint64_t)json_integer_value(json_object_get(p->first, name));
}

/* Sends the supervisor what the request log says. A log that cannot be read gives no summary. */
static void send_summary(struct child_channel *p, const struct log *log)
{
	struct error err = {0};
	json_t *summary;

	if (!request_summary_read(&summary, word(p, "request_log"), number(p, "request_log_begin"), &err))
		child_send(p, "summary", summary, NULL);
	else
		log_warn(log, LOG_TOPIC_RUN, "%s", err.text);
}

static enum status serve(struct child_channel *p, struct error *err)
{
	const struct log log = child_log(p);
	const char *const models[] = {word(p, "name"), NULL};
	const json_t *list = json_object_get(p->first, "adapters");
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
		.log_requests = json_is_true(json_object_get(p->first, "log_requests")),
		.control = CHILD_SHARED,
		.limits = {.queue = number(p, "queue"),
			   .connections = number(p, "connections"),
			   .body_bytes = number(p, "body"),
			   .answer_s = (unsigned)number(p, "answer_s"),
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
		send_summary(p, &log);
	return st;
}

static int run(const struct command_context *c, int argc, char **argv)
{
	struct child_channel p = CHILD_CHANNEL_NEW;
	struct error err = {0};
	enum status st;

	(void)c, (void)argc, (void)argv;
	child_prepare(on_term);
	st = read_options(&p, &err);
	if (!st)
		st = serve(&p, &err);
	child_send_end(&p, st, &err, NULL);
	front_end_destroy(&front_end);
	child_release(&p);
	return st ? 1 : 0;
}

const struct command command_front = {
	.name = "__front",
	.summary = "serve HTTP as requested on descriptor 3",
	.hidden = true,
	.raw = true,
	.run_raw = run,
};
