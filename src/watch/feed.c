/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/feed.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/process/process.h"
#include "core/text/utf8.h"
#include "launch/command_words.h"
#include "launch/ssh_command.h"

enum {
	TERM_MS = 300,
	KILL_MS = 300,
	BLOCK = 16384,
	BLOCKS_A_POLL = 64,
	LOGIN_TEXT_MAX = 65536, /* what a login prints before the stream */
	ERROR_LINE = 200,
	WHY = 900
};
#define LIFELINE_NS 5000000000ull

struct watch_feed {
	struct process process;
	bool running;
	int input, errors; /* our ends of its stdin and stderr; -1: closed */
	struct text line;
	size_t login_text;
	uint64_t lifeline_ns; /* when the next byte is due */
	char name[300], error[ERROR_LINE], host_key[ERROR_LINE], why[WHY];
	size_t error_size;
	struct watch_state state;
	struct watch_recorder *recorder;
	unsigned node;
	bool completed;
};

static void add_option(struct command_words *w, const char *name, const char *value)
{
	if (!value)
		return;
	command_words_add(w, name);
	command_words_add(w, value);
}

/* assay __watch node .., with `program` before it. */
static void add_reader(struct command_words *w, const struct watch_feed_spec *spec, const char *program)
{
	char text[32];

	command_words_add(w, program);
	command_words_add(w, "__watch");
	command_words_add(w, "node");
	snprintf(text, sizeof(text), "%.9g", spec->interval);
	add_option(w, "--interval", text);
	snprintf(text, sizeof(text), "%.9g", spec->slow);
	add_option(w, "--slow", spec->slow > 0 ? text : NULL);
	add_option(w, "--sys", spec->sys);
	add_option(w, "--proc", spec->proc);
	add_option(w, "--runs", spec->runs);
	if (spec->gpus_only)
		command_words_add(w, "--gpus-only");
	command_words_add(w, "--lifeline");
}

static void add_words(struct command_words *w, const struct watch_feed_spec *spec, const char *program)
{
	struct command_words reader = {0};
	struct text remote = {0};

	if (!spec->host) {
		add_reader(w, spec, program);
		return;
	}
	add_reader(&reader, spec, spec->program ? spec->program : program);
	command_words_join(&remote, &reader);
	ssh_command_words(w, &(struct ssh_command){.config = spec->ssh_config,
						   .compress = true,
						   .host = spec->host,
						   .remote = text_str(&remote)});
	w->failed |= reader.failed || remote.failed;
	command_words_release(&reader);
	text_release(&remote);
}

static bool set_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static enum status start(struct watch_feed *f, const struct command_words *w, struct error *err)
{
	int in[2] = {-1, -1}, errors[2] = {-1, -1};
	struct process_spec spec = {.argv = (const char *const *)w->word,
				    .capture_output = true,
				    .stderr_apart = true,
				    .input = &in[0],
				    .errors = &errors[1],
				    .cpu_numa = -1};
	enum status st = STATUS_OK;

	if (pipe2(in, O_CLOEXEC) || pipe2(errors, O_CLOEXEC))
		st = error_errno(err, errno, "cannot start the reader of %s", f->name);
	if (!st)
		st = process_start(&f->process, &spec, err);
	f->running = !st;
	if (in[0] >= 0)
		close(in[0]);
	if (errors[1] >= 0)
		close(errors[1]);
	f->input = in[1];
	f->errors = errors[0];
	if (!st && (!set_nonblocking(f->process.output) || !set_nonblocking(f->input) ||
		    !set_nonblocking(f->errors)))
		st = error_errno(err, errno, "cannot read from the reader of %s", f->name);
	return st;
}

enum status watch_feed_start(struct watch_feed **out, const struct watch_feed_spec *spec, struct error *err)
{
	struct watch_feed *f = calloc(1, sizeof(*f));
	struct command_words w = {0};
	char program[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 1);
	enum status st = STATUS_OK;

	*out = NULL;
	if (!f)
		return error_errno(err, ENOMEM, "no memory for a feed");
	program[n > 0 ? n : 0] = '\0';
	f->input = f->errors = -1;
	snprintf(f->name, sizeof(f->name), "%s", spec->host ? spec->host : "this machine");
	add_words(&w, spec, program);
	if (n <= 0)
		st = error_errno(err, errno, "cannot find the path of this program");
	else if (w.failed)
		st = error_errno(err, ENOMEM, "no memory for the arguments of the reader");
	if (!st)
		st = start(f, &w, err);
	command_words_release(&w);
	if (st)
		watch_feed_close(f);
	else
		*out = f;
	return st;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Ends the process and keeps the first reason. */
static void end(struct watch_feed *f, const char *why)
{
	if (!*f->why)
		text_copy(f->why, sizeof(f->why), why);
	if (!f->running)
		return;
	close_end(&f->input);
	if (!process_stop(&f->process, TERM_MS, KILL_MS) && strlen(f->why) + 40 < sizeof(f->why))
		snprintf(f->why + strlen(f->why), sizeof(f->why) - strlen(f->why),
			 " (process %d cannot be ended)", (int)f->process.pid);
	process_release(&f->process);
	f->running = false;
}

void watch_feed_close(struct watch_feed *f)
{
	if (!f)
		return;
	if (f->recorder)
		watch_recorder_node(f->recorder, f->node, NULL);
	end(f, "");
	close_end(&f->input);
	close_end(&f->errors);
	text_release(&f->line);
	watch_state_release(&f->state);
	free(f);
}

/* The last line of ssh does not say whether a host key is unknown or has changed; the one before does. */
static void keep_host_key_line(struct watch_feed *f)
{
	if (strstr(f->error, "host key is known for") ||
	    strstr(f->error, "has changed and you have requested"))
		text_copy(f->host_key, sizeof(f->host_key), f->error);
}

/* Keeps the last line of stderr, for the reason of an end. */
static void read_errors(struct watch_feed *f)
{
	char block[512];
	ssize_t n;

	for (int i = 0;
	     i < BLOCKS_A_POLL && f->errors >= 0 && (n = read(f->errors, block, sizeof(block))) > 0; i++)
		for (ssize_t k = 0; k < n; k++) {
			if (block[k] == '\n' || block[k] == '\r') {
				keep_host_key_line(f);
				f->error_size = SIZE_MAX; /* the next byte begins a new line */
				continue;
			}
			if (f->error_size == SIZE_MAX)
				f->error_size = 0;
			if (f->error_size + 1 < sizeof(f->error)) {
				f->error[f->error_size++] = block[k];
				f->error[f->error_size] = '\0';
			}
		}
}

static void ended_by_itself(struct watch_feed *f)
{
	char how[64], why[WHY];
	struct text said = {0};

	read_errors(f);
	process_wait_text(f->process.wait_status, how, sizeof(how));
	utf8_add_clean(&said, *f->host_key ? f->host_key : f->error, UTF8_KEEP_NOTHING);
	snprintf(why, sizeof(why), "the reader of %s ended with %s%s%s", f->name, how, said.size ? ": " : "",
		 text_str(&said));
	text_release(&said);
	end(f, why);
}

static void take_line(struct watch_feed *f, const char *line, size_t size, uint64_t now_ns)
{
	struct error err = {0};
	uint64_t before = f->state.readings;
	char why[WHY];

	if (!*f->state.node && strncmp(line, "{\"watch\"", 8)) {
		f->login_text += size + 1;
		if (f->login_text > LOGIN_TEXT_MAX) {
			snprintf(why, sizeof(why), "%s does not answer with a stream of assay", f->name);
			end(f, why);
		}
		return;
	}
	if (f->recorder)
		watch_recorder_line(f->recorder, f->node, line, size);
	if (watch_state_line(&f->state, line, size, &err)) {
		snprintf(why, sizeof(why), "the stream of %s is wrong: %.300s", f->name, err.text);
		end(f, why);
		return;
	}
	f->state.arrival_ns = now_ns;
	f->completed |= f->state.readings != before;
}

/* Takes the complete lines and keeps the rest. */
static void take_lines(struct watch_feed *f, uint64_t now_ns)
{
	size_t at = 0;
	char *end_of_line;

	while (f->running && at < f->line.size &&
	       (end_of_line = memchr(f->line.data + at, '\n', f->line.size - at))) {
		size_t size = (size_t)(end_of_line - (f->line.data + at));

		take_line(f, f->line.data + at, size, now_ns);
		at += size + 1;
	}
	if (!at)
		return;
	memmove(f->line.data, f->line.data + at, f->line.size - at + 1);
	f->line.size -= at;
}

static void read_output(struct watch_feed *f, uint64_t now_ns)
{
	char block[BLOCK], why[WHY];
	ssize_t n;

	for (int i = 0; i < BLOCKS_A_POLL && f->running; i++) {
		n = read(f->process.output, block, sizeof(block));
		if (n <= 0)
			return;
		text_add_bytes(&f->line, block, (size_t)n);
		if (f->line.failed) {
			end(f, "no memory for a line of the stream");
			return;
		}
		take_lines(f, now_ns);
		if (f->line.size > (*f->state.node ? WATCH_LINE_MAX : LOGIN_TEXT_MAX)) {
			snprintf(why, sizeof(why), "the stream of %s has a line of more than %d bytes",
				 f->name, WATCH_LINE_MAX);
			end(f, why);
		}
	}
}

/* The node ends itself when these bytes stop. */
static void send_lifeline(struct watch_feed *f, uint64_t now_ns)
{
	if (f->input < 0 || now_ns < f->lifeline_ns)
		return;
	f->lifeline_ns = now_ns + LIFELINE_NS;
	if (write(f->input, "\n", 1) < 0 && errno != EAGAIN && errno != EINTR)
		close_end(&f->input);
}

bool watch_feed_poll(struct watch_feed *f)
{
	uint64_t now_ns = clock_now_ns(clock_monotonic());

	f->completed = false;
	if (!f->running)
		return false;
	send_lifeline(f, now_ns);
	read_errors(f);
	read_output(f, now_ns);
	if (f->running && process_poll(&f->process)) {
		read_output(f, now_ns); /* its last lines */
		if (f->running)
			ended_by_itself(f);
	}
	return f->completed;
}

int watch_feed_fd(const struct watch_feed *f)
{
	return f->running ? f->process.output : -1;
}

const struct watch_state *watch_feed_state(const struct watch_feed *f)
{
	return &f->state;
}

void watch_feed_keep(struct watch_feed *f, enum catalogue row)
{
	watch_state_keep(&f->state, row);
}

const char *watch_feed_why(const struct watch_feed *f)
{
	return *f->why ? f->why : NULL;
}

void watch_feed_record(struct watch_feed *f, struct watch_recorder *r, unsigned node)
{
	if (f->recorder)
		watch_recorder_node(f->recorder, f->node, NULL);
	f->recorder = r;
	f->node = node;
	if (r)
		watch_recorder_node(r, node, &f->state);
}
