/* SPDX-License-Identifier: Apache-2.0 */
/* Starts the client process of a load test, reads its lines, and ends it. */
#include "cmd/load/load.h"
#include <poll.h>
#include <signal.h>
#include "core/clock.h"
#include "core/math/random.h"

enum { WAIT_MS = 200, KILL_MS = 2000, LEAVE_MS = 5000, DIGITS = 17, READINGS = 48, SALT = 17 };
/* The client tells something once a second. */
static const uint64_t silence_ns = 30000000000u;

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* Numbers of a line as readings of the run, on the axis of the telemetry. */
static void take_readings(struct loading *l, const char *source, const json_t *line)
{
	struct job_reading readings[READINGS];
	const char *name;
	const json_t *value;
	size_t count = 0;

	json_object_foreach((json_t *)line, name, value) if (json_is_number(value) && count < READINGS)
		readings[count++] = (struct job_reading){name, json_number_value(value)};
	job_report(l->job, source, now_ns(), readings, count);
}

/* A stage of a sweep has ended: its figures become a phase of their own. */
static void take_stage(struct loading *l, const json_t *line)
{
	json_t *values = json_deep_copy(json_object_get(line, "values"));
	char name[16];

	snprintf(name, sizeof(name), "stage %u", ++l->stages);
	load_record_window(l, name, values, true);
	json_decref(values);
}

static bool take_line(void *arg, const char *text, size_t size)
{
	struct loading *l = arg;
	json_t *line = json_loadb(text, size, 0, NULL);
	const char *type = json_string_value(json_object_get(line, "type"));

	l->garbled = !type;
	l->heard_ns = now_ns();
	if (!type) {
		json_decref(line);
		return false;
	}
	if (!strcmp(type, "alive")) {
		take_readings(l, "load", line);
		load_show_live(l, line);
	} else if (!strcmp(type, "server")) {
		take_readings(l, "server", line);
	} else if (!strcmp(type, "planned")) {
		l->planned = true;
		load_show_planned(l, line);
	} else if (!strcmp(type, "stage")) {
		take_stage(l, line);
	} else if (!strcmp(type, "log")) {
		load_clear_live(l);
		child_log_take(l->c->log, line);
	} else if (!strcmp(type, "end")) {
		child_end_take(&l->end, line);
	}
	json_decref(line);
	return true;
}

/* The client reads the same options as this process. */
static json_t *first_line(const struct loading *l)
{
	json_t *words = json_array();
	char salt[SALT] = "";

	for (int i = 2; i < l->c->argc; i++)
		json_array_append_new(words, json_string(l->c->argv[i]));
	if (!l->o->warm && !random_hex(salt, sizeof(salt)))
		snprintf(salt, sizeof(salt), "%016llx", (unsigned long long)l->began_ns);
	return json_pack("{s:o, s:s, s:s, s:s, s:s}", "words", words, "dir", l->dir, "url", l->url, "key",
			 l->key, "salt", salt);
}

static enum status start(struct loading *l, struct error *err)
{
	static const char *const argv[] = {NULL, "__load_client", NULL};
	const struct process_spec spec = {.argv = argv, .channel = true, .cpu_numa = -1};
	json_t *first = first_line(l);
	enum status st;

	if (!first)
		return error_set(err, STATUS_BAD_INPUT,
				 "a path or name in the options is not UTF-8, so it cannot be passed on");
	st = process_start(&l->client.process, &spec, err);
	l->client.running = !st;
	l->heard_ns = now_ns();
	if (!st)
		return lines_send(l->client.process.channel, first, DIGITS, NULL, err);
	json_decref(first);
	return st;
}

/* The first stop request ends the sending and keeps what was measured; the second one ends everything. */
static void pass_on_stop(struct loading *l)
{
	if (*l->c->stop && !l->asked) {
		l->asked = true;
		load_clear_live(l);
		log_info(l->c->log, LOG_TOPIC_RUN,
			 "stopping: what was measured is reported; press Ctrl-C again to stop at once");
		kill(l->client.process.pid, SIGTERM);
	}
	if (*l->c->stop > 1)
		process_stop(&l->client.process, 0, KILL_MS);
}

/* How the client ended if it said nothing. */
static void on_leave(struct loading *l)
{
	char how[96];

	for (unsigned ms = 0; ms < LEAVE_MS && !process_poll(&l->client.process); ms += 5)
		clock_sleep_ns(clock_monotonic(), 5000000);
	if (l->end.said)
		return;
	if (process_stop(&l->client.process, 0, KILL_MS))
		process_wait_text(l->client.process.wait_status, how, sizeof(how));
	else
		snprintf(how, sizeof(how), "KILL did not end it");
	l->end.status = *l->c->stop ? STATUS_CANCELLED : STATUS_NO_RESOURCE;
	l->end.cause = *l->c->stop ? CAUSE_NONE : CAUSE_CRASHED;
	l->end.values = load_recover(l);
	if (!*l->end.text)
		snprintf(l->end.text, sizeof(l->end.text), "the client process ended: %s", how);
}

static void poll_all(struct loading *l)
{
	struct pollfd in[3] = {
		{.fd = l->client.process.channel, .events = POLLIN},
		{.fd = job_channel(l->job), .events = POLLIN},
		{.fd = l->node.child.running ? l->node.child.process.output : -1, .events = POLLIN},
	};

	poll(in, 3, WAIT_MS);
	job_receive(l->job);
	load_node_read(l);
}

/* Before the load, the client reads the tokenizer, waits until the server is ready, and waits for the answer
 * to its first request. */
static uint64_t patience_ns(const struct loading *l)
{
	return l->planned ? silence_ns : 2 * silence_ns + (uint64_t)((l->o->timeout + l->o->ready) * 1e9);
}

enum status load_follow(struct loading *l, struct error *err)
{
	enum lines_state state = LINES_MORE;
	enum status st = start(l, err);

	while (!st && state == LINES_MORE && !l->garbled) {
		poll_all(l);
		state = lines_read(&l->client.in, l->client.process.channel, take_line, l);
		pass_on_stop(l);
		if (now_ns() - l->heard_ns > patience_ns(l)) {
			snprintf(l->end.text, sizeof(l->end.text),
				 "the client process sent no message for %.0f s and was ended as hung",
				 (double)patience_ns(l) * 1e-9);
			break;
		}
	}
	load_clear_live(l);
	if (!st)
		on_leave(l);
	if (l->client.running) /* without a process, its group would be ours */
		process_stop(&l->client.process, 0, KILL_MS);
	process_release(&l->client.process);
	lines_release(&l->client.in);
	l->client.running = false;
	return st;
}
