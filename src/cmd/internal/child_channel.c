/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/internal/child_channel.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include "journal/field.h"

enum { DIGITS = 17, WAIT_MS = 100 };

void child_prepare(void (*on_term)(int sig))
{
	struct sigaction term = {.sa_handler = on_term};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct rlimit no_core = {0, 0};

	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	setrlimit(RLIMIT_CORE, &no_core);
	fcntl(CHILD_CHANNEL, F_SETFD, FD_CLOEXEC);
	fcntl(CHILD_SHARED, F_SETFD, FD_CLOEXEC); /* no effect if there is none */
}

static bool take_first(void *arg, const char *line, size_t size)
{
	struct child_channel *c = arg;

	c->first = json_loadb(line, size, 0, NULL);
	return false;
}

bool child_read(struct child_channel *c, const volatile sig_atomic_t *stop)
{
	enum lines_state state = LINES_MORE;

	while (!c->first && state == LINES_MORE && !*stop) {
		struct pollfd in = {.fd = CHILD_CHANNEL, .events = POLLIN};

		if (poll(&in, 1, WAIT_MS) > 0)
			state = lines_read(&c->in, CHILD_CHANNEL, take_first, c);
	}
	return c->first;
}

void child_release(struct child_channel *c)
{
	json_decref(c->first);
	c->first = NULL;
	lines_release(&c->in);
}

enum status child_send(void *channel, const char *type, json_t *body, struct error *err)
{
	struct child_channel *c = channel;
	json_t *line = json_pack("{s:s}", "type", type);

	if (line && body)
		json_object_update(line, body);
	json_decref(body);
	return lines_send(CHILD_CHANNEL, line, DIGITS, &c->writing, err);
}

void child_send_end(struct child_channel *c, enum status st, const struct error *err, json_t *values)
{
	child_send(c, "end",
		   json_pack("{s:s, s:s, s:o, s:o}", "status", status_name(st), "cause",
			     st ? cause_name(err->cause) : "", "text", field_string(st ? err->text : ""),
			     "values", values ? values : json_object()),
		   NULL);
}

static void log_to_channel(void *arg, enum log_level level, enum log_topic topic, const char *text)
{
	(void)topic;
	child_send(arg, "log", json_pack("{s:i, s:o}", "level", (int)level, "text", field_string(text)),
		   NULL);
}

struct log child_log(struct child_channel *c)
{
	return (struct log){.sink = log_to_channel, .arg = c};
}
