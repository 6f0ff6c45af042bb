/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the front end and the engine of a server, watches them, and starts the engine again if it ends. The
 * supervisor never reads what comes from the network. If the front end ends, both start again, because the
 * engine's requests belong to it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>
#include "cmd/serve/serve.h"
#include "core/clock.h"
#include "core/text/text.h"
#include "serve/link/supervisor.h"

enum {
	WAIT_MS = 200,
	DIGITS = 17,
	KILL_MS = 3000,
	SILENCE_S = 10,	   /* an engine reports at least once a second, and before a longer step */
	LOAD_S = 1800,	   /* before it is ready, it may be silent for this time */
	RESTART_MS = 500,  /* before the first new start; doubled for each failure */
	FAILURES_MOST = 6, /* starts in a row without being ready, after which the server gives up */
	RESTART_MS_MOST = 30000,
	GRACE_S = 2,	    /* the front end notices a hung engine first, and tells its clients */
	PAUSE_S = 2,	    /* if the supervisor did not run for this time, the others did not either */
	FRONT_LIFE_S = 60,  /* a front end that lives longer has not failed at its start */
	FRONT_PATIENCE = 3, /* times the limit of an engine: with the front end all requests are lost */
	END_S = 120,	    /* a front end may summarize its requests for this time before it ends */
};

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

/* ASSAY_SERVE_HANG_S, for tests: seconds of silence after which an engine has hung. */
unsigned serve_hang_s(void)
{
	const char *text = getenv("ASSAY_SERVE_HANG_S");
	char *end;
	unsigned long s = text ? strtoul(text, &end, 10) : 0;

	return text && end != text && !*end && s >= 1 && s <= 3600 ? (unsigned)s : SILENCE_S;
}

static void on_log(struct serving *s, const json_t *line)
{
	serve_clear_live(s);
	child_log_take(s->c->log, line);
}

static void on_ready(struct serving *s, json_t *line)
{
	json_decref(s->ready);
	s->ready = json_incref(line);
	s->engine_ready = true;
	s->failures = 0;
	serve_record_ready(s);
}

static void on_alive(struct serving *s, const json_t *line)
{
	serve_record_reading(s, line);
	serve_show_live(s, line);
}

static void on_summary(struct serving *s, json_t *line)
{
	json_decref(s->summary);
	s->summary = json_incref(line);
}

/* A line of either process. */
static bool take_line(struct serving *s, struct serve_child *child, const char *text, size_t size)
{
	json_t *line = json_loadb(text, size, 0, NULL);
	const char *type = json_string_value(json_object_get(line, "type"));

	if (type && child == &s->engine) {
		s->alive_ns = now_ns();
		s->expected_s = json_number_value(json_object_get(line, "expected_s"));
	}
	if (type && !strcmp(type, "log"))
		on_log(s, line);
	else if (type && !strcmp(type, "end"))
		child_end_take(&child->end, line);
	else if (type && !strcmp(type, "ready"))
		on_ready(s, line);
	else if (type && !strcmp(type, "alive"))
		on_alive(s, line);
	else if (type && !strcmp(type, "summary"))
		on_summary(s, line);
	json_decref(line);
	return type;
}

static bool take_front_line(void *arg, const char *text, size_t size)
{
	struct serving *s = arg;

	return take_line(s, &s->front, text, size);
}

static bool take_engine_line(void *arg, const char *text, size_t size)
{
	struct serving *s = arg;

	return take_line(s, &s->engine, text, size);
}

/* Starts a child with the first line and a descriptor of its own. */
static enum status start_child(struct serve_child *child, const char *command, json_t *line, int shared,
			       struct error *err)
{
	const char *const argv[] = {NULL, command, NULL};
	const struct process_spec spec = {.argv = argv, .channel = true, .shared = shared, .cpu_numa = -1};
	struct error why = {0};
	enum status st;

	lines_release(&child->in);
	child_end_release(&child->end);
	*child = (struct serve_child){0};
	if (!line)
		return error_set(err, STATUS_BAD_INPUT,
				 "a path or name in the options is not UTF-8, so it cannot be passed on");
	st = process_start(&child->process, &spec, err);
	child->running = !st;
	if (st)
		json_decref(line);
	else if (lines_send(child->process.channel, line, DIGITS, NULL, &why))
		process_stop(&child->process, 0, KILL_MS); /* its end is noticed as any other */
	return st;
}

static enum status pair(int type, int out[2], struct error *err)
{
	return socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, out) ? error_errno(err, errno, "socketpair")
								: STATUS_OK;
}

static enum status start_front(struct serving *s, struct error *err)
{
	int ends[2];
	enum status st = pair(SOCK_SEQPACKET, ends, err);

	if (st)
		return st;
	s->front_ns = s->front_alive_ns = now_ns();
	s->front_serves = false;
	st = start_child(&s->front, "__front", serve_front_line(s), ends[1], err);
	close(ends[1]);
	if (s->control >= 0)
		close(s->control);
	s->control = ends[0];
	return st;
}

/* Starts an engine and passes the front end its end of the engine's socket. */
static enum status start_engine(struct serving *s, struct error *err)
{
	struct supervisor_message m = {.kind = SUPERVISOR_ENGINE, .epoch = ++s->epoch};
	int ends[2];
	enum status st = pair(SOCK_STREAM, ends, err);

	if (st)
		return st;
	s->engine_ready = false;
	s->alive_ns = now_ns();
	s->restart_ns = 0;
	serve_record_start(s);
	st = start_child(&s->engine, "__engine", serve_engine_line(s->o, s->epoch), ends[1], err);
	close(ends[1]);
	m.fd = ends[0];
	if (!st)
		/* a front end that has just ended takes the engine with it (on_front_end) */
		supervisor_send(s->control, &m, NULL);
	close(ends[0]);
	return st;
}

static void release_child(struct serve_child *child)
{
	if (child->running)
		process_stop(&child->process, 0, KILL_MS);
	process_release(&child->process);
	lines_release(&child->in);
	json_decref(child->end.values);
	child->end.values = NULL;
	child->running = false;
}

/* How a child ended: the error that it reported, or what the kernel says. */
static void how_ended(const struct serve_child *child, char *out, size_t size)
{
	if (*child->end.text)
		text_copy(out, size, child->end.text);
	else
		process_wait_text(child->process.wait_status, out, size);
}

static uint64_t pause_ns(unsigned failures)
{
	uint64_t ms = RESTART_MS;

	for (unsigned i = 1; i < failures && ms < RESTART_MS_MOST; i++)
		ms *= 2;
	return (ms < RESTART_MS_MOST ? ms : RESTART_MS_MOST) * 1000000;
}

/* The engine is gone: the front end answers 503 with the cause until the next one is ready. */
static enum status on_engine_end(struct serving *s, struct error *err)
{
	struct supervisor_message m = {.kind = SUPERVISOR_ENDED, .epoch = s->epoch, .fd = -1};
	struct serve_child child;
	bool was_ready;
	char how[512];

	lines_read(&s->engine.in, s->engine.process.channel, take_engine_line, s); /* its last lines */
	was_ready = s->engine_ready;
	child = s->engine;
	how_ended(&child, how, sizeof(how));
	serve_add_xid(s, how, sizeof(how));
	text_copy(m.cause, sizeof(m.cause), how);
	supervisor_send(s->control, &m, NULL);
	serve_clear_live(s);
	serve_record_engine_end(s, s->draining ? "drained" : how);
	release_child(&s->engine);
	s->engine_ready = false;
	/* An engine that was told to stop ends with 0 once it has nothing left to do. */
	if (s->draining && (!s->ready || (!*child.end.text && child.process.wait_status == 0))) {
		s->restart_ns = UINT64_MAX;
		return STATUS_OK;
	}
	s->failures++;
	if (!s->ready || s->failures > FAILURES_MOST)
		return error_set_cause(
			err, *child.end.text ? child.end.status : STATUS_NO_RESOURCE,
			*child.end.text ? child.end.cause : CAUSE_CRASHED, "%s%s",
			*child.end.text ? "" : "the engine process ended while it loaded the model: ", how);
	s->restart_ns = now_ns() + pause_ns(s->failures);
	log_warn(s->c->log, LOG_TOPIC_RUN, "the engine ended%s: %s; it starts again in %.1f s",
		 was_ready ? "" : " while it loaded the model", how, (double)pause_ns(s->failures) * 1e-9);
	return STATUS_OK;
}

/* The front end is gone. With an error that it reported before it was ready, nothing can be served. */
static enum status on_front_end(struct serving *s, struct error *err)
{
	struct serve_child child;
	char how[512];

	lines_read(&s->front.in, s->front.process.channel, take_front_line, s); /* its last lines */
	child = s->front;
	how_ended(&child, how, sizeof(how));
	release_child(&s->front);
	if (s->draining) {
		if (*child.end.text)
			log_warn(s->c->log, LOG_TOPIC_RUN, "the front end ended: %s", how);
		return STATUS_OK;
	}
	s->front_failures = now_ns() - s->front_ns > FRONT_LIFE_S * 1000000000ull ? 1 : s->front_failures + 1;
	if (!s->port || s->front_failures > FAILURES_MOST)
		return error_set_cause(err, *child.end.text ? child.end.status : STATUS_NO_RESOURCE,
				       *child.end.text ? child.end.cause : CAUSE_CRASHED, "%s%s",
				       *child.end.text ? "" : "the front end's process ended: ", how);
	serve_clear_live(s);
	log_warn(s->c->log, LOG_TOPIC_RUN, "the front end ended: %s; both processes start again", how);
	if (s->engine.running)
		serve_record_engine_end(s, "the front end ended");
	release_child(&s->engine);
	s->shown = false;
	if (start_front(s, err))
		return err->status;
	return start_engine(s, err);
}

/* Ends a child that hangs. Its end is then noticed as any other. */
static enum status end_hung(struct serve_child *child, const char *name, const char *how, struct error *err)
{
	snprintf(child->end.text, sizeof(child->end.text), "%.200s; it was ended as hung", how);
	child->end.status = STATUS_NO_RESOURCE;
	child->end.cause = CAUSE_STUCK;
	if (process_stop(&child->process, 0, KILL_MS))
		return STATUS_OK;
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_STUCK,
			       "%s hangs and does not end, even after KILL: a call of the kernel or the "
			       "driver does not return; reset the device or restart the machine",
			       name);
}

/* Takes a message of the front end. Any message is a sign of life. */
static enum status take_message(struct serving *s, const struct supervisor_message *m, struct error *err)
{
	s->front_alive_ns = now_ns();
	s->front_serves = m->kind != SUPERVISOR_DONE;
	if (m->kind == SUPERVISOR_READY)
		s->port = m->port;
	if (m->kind == SUPERVISOR_HANGS && m->epoch == s->epoch && s->engine.running)
		return end_hung(&s->engine, "the engine", *m->cause ? m->cause : "it did not answer", err);
	return STATUS_OK;
}

static enum status on_control(struct serving *s, struct error *err)
{
	struct supervisor_message m;
	enum status st = STATUS_OK;
	bool got = true;

	while (!st && got && !supervisor_receive(s->control, &m, &got, NULL) && got)
		st = take_message(s, &m, err);
	return st;
}

/* Ends a child that has been silent for longer than it may. */
static enum status end_silent(struct serve_child *child, const char *name, uint64_t alive_ns,
			      double allowed_s, struct error *err)
{
	const double silent_s = (double)(now_ns() - alive_ns) * 1e-9;
	char how[64];

	if (!child->running || silent_s < allowed_s)
		return STATUS_OK;
	snprintf(how, sizeof(how), "it sent no message for %.0f s", silent_s);
	return end_hung(child, name, how, err);
}

static double engine_allowed_s(const struct serving *s)
{
	return s->engine_ready ? serve_hang_s() + GRACE_S + s->expected_s : LOAD_S;
}

static double front_allowed_s(const struct serving *s)
{
	if (s->front_serves)
		return FRONT_PATIENCE * serve_hang_s();
	return s->draining ? END_S : LOAD_S;
}

/* If all processes were stopped for a while, the others could not report. */
static void forgive_pause(struct serving *s)
{
	const uint64_t now = now_ns();

	if (s->looked_ns && now - s->looked_ns > PAUSE_S * 1000000000ull)
		s->alive_ns = s->front_alive_ns = now;
	s->looked_ns = now;
}

static enum status end_silent_children(struct serving *s, struct error *err)
{
	enum status st;

	forgive_pause(s);
	st = end_silent(&s->engine, "the engine", s->alive_ns, engine_allowed_s(s), err);
	return st ? st : end_silent(&s->front, "the front end", s->front_alive_ns, front_allowed_s(s), err);
}

/* The first stop request drains, the second one ends everything. */
static bool heed_stop(struct serving *s)
{
	if (*s->c->stop > 1)
		return true;
	if (*s->c->stop && !s->draining) {
		s->draining = true;
		s->record.drain_ns = now_ns();
		serve_clear_live(s);
		log_info(s->c->log, LOG_TOPIC_RUN,
			 "stopping: finishing the running requests; press Ctrl-C again to stop at once");
		if (s->front.running)
			kill(s->front.process.pid, SIGTERM);
	}
	return s->draining && !s->front.running;
}

static enum status read_children(struct serving *s, struct error *err)
{
	struct pollfd in[4] = {{.fd = s->control, .events = POLLIN},
			       {.fd = s->front.running ? s->front.process.channel : -1, .events = POLLIN},
			       {.fd = s->engine.running ? s->engine.process.channel : -1, .events = POLLIN},
			       {.fd = job_channel(s->record.job), .events = POLLIN}};

	poll(in, 4, WAIT_MS);
	job_receive(s->record.job);
	serve_note_xids(s);
	if (s->front.running)
		lines_read(&s->front.in, s->front.process.channel, take_front_line, s);
	if (s->engine.running)
		lines_read(&s->engine.in, s->engine.process.channel, take_engine_line, s);
	return on_control(s, err);
}

static enum status look(struct serving *s, struct error *err)
{
	enum status st = end_silent_children(s, err);

	if (!st && s->engine.running && process_poll(&s->engine.process))
		st = on_engine_end(s, err);
	if (!st && s->front.running && process_poll(&s->front.process))
		st = on_front_end(s, err);
	if (!st && !s->engine.running && s->front.running && now_ns() >= s->restart_ns)
		st = start_engine(s, err);
	if (!st && !s->shown && s->engine_ready && s->port) {
		s->shown = true;
		serve_show_ready(s);
	}
	return st;
}

enum status serve_supervise(struct serving *s, struct error *err)
{
	enum status st = start_front(s, err);
	bool cut;

	if (!st)
		st = start_engine(s, err);
	while (!st && !heed_stop(s)) {
		st = read_children(s, err);
		if (!st)
			st = look(s, err);
	}
	cut = !st && *s->c->stop > 1 && s->front.running;
	release_child(&s->front);
	if (s->engine.running)
		serve_record_engine_end(s, st ? err->text : cut ? "stopped at once" : "drained");
	serve_clear_live(s);
	if (cut)
		log_warn(s->c->log, LOG_TOPIC_RUN, "stopped at once: requests that still ran got no answer");
	release_child(&s->engine);
	if (s->control >= 0)
		close(s->control);
	return st;
}
