/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/talk.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/text/text.h"

/* BLOCK: in the middle of a file. SMALL: otherwise, because a block of small files takes long to write.
 * TURN_MS: then the other hosts and a request to stop have their turn. */
enum { BLOCK = 65536, SMALL = 4096, TURN_MS = 20, ERRORS_TURN = 16, END_MS = 1000, KILL_MS = 1000 };

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static uint64_t now_ns(void)
{
	return clock_now_ns(clock_monotonic());
}

enum status talk_start(struct talk *t, const struct ssh_command *c, int input, struct error *err)
{
	struct command_words w = {0};
	int pair[2] = {-1, -1};
	struct process_spec spec = {.capture_output = true, .stderr_apart = true, .cpu_numa = -1};
	const struct answer fresh = {.take = t->answer.take, .arg = t->answer.arg};
	enum status st = STATUS_OK;

	*t = (struct talk){.answer = fresh, .input = input, .errors = -1, .heard_ns = now_ns()};
	t->process = (struct process){.channel = -1, .output = -1};
	if (t->input < 0)
		t->input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ssh_command_words(&w, c);
	if (w.failed)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for the words of ssh");
	else if (t->input < 0 || pipe2(pair, O_CLOEXEC))
		st = error_errno(err, errno, "cannot open a pipe to ssh");
	spec.argv = (const char *const *)w.word;
	spec.input = &t->input;
	spec.errors = &pair[1];
	t->errors = pair[0];
	if (!st)
		st = process_start(&t->process, &spec, err);
	close_fd(&pair[1]);
	command_words_release(&w);
	if (!st) {
		fcntl(t->process.output, F_SETFL, O_NONBLOCK);
		fcntl(t->errors, F_SETFL, O_NONBLOCK);
	}
	t->active = !st;
	if (st) {
		close_fd(&t->input);
		close_fd(&t->errors);
	}
	return st;
}

unsigned talk_poll(const struct talk *t, struct pollfd set[2])
{
	unsigned n = 0;

	if (t->process.output >= 0)
		set[n++] = (struct pollfd){.fd = t->process.output, .events = POLLIN};
	if (t->errors >= 0)
		set[n++] = (struct pollfd){.fd = t->errors, .events = POLLIN};
	return n;
}

static void whole_line(struct talk *t)
{
	t->part[t->part_size] = '\0';
	t->part_size = 0;
	if (strstr(t->part, "IDENTIFICATION HAS CHANGED"))
		t->refusal = TALK_KEY_CHANGED;
	else if (!t->refusal && (strstr(t->part, "host key is known for") ||
				 strstr(t->part, "Host key verification failed")))
		t->refusal = TALK_KEY_UNKNOWN;
	else if (!t->refusal && strstr(t->part, "Permission denied (publickey"))
		t->refusal = TALK_DENIED;
	if (*t->part)
		text_copy(t->last, sizeof(t->last), t->part);
}

static void read_errors(struct talk *t)
{
	char block[4096];
	ssize_t n;

	for (unsigned k = 0; t->errors >= 0; k++) {
		if (k == ERRORS_TURN) /* the other hosts have their turn */
			return;
		n = read(t->errors, block, sizeof(block));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n <= 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (block[i] == '\n' || t->part_size + 1 == sizeof(t->part))
				whole_line(t);
			if (block[i] != '\n' && block[i] != '\r')
				t->part[t->part_size++] = block[i];
		}
	}
	if (t->part_size)
		whole_line(t);
	close_fd(&t->errors);
}

/* False: there may be more. */
static bool read_answer(struct talk *t)
{
	const uint64_t end_ns = now_ns() + TURN_MS * 1000000ull;
	char block[BLOCK];
	ssize_t n;

	do {
		if (t->process.output < 0)
			return true;
		n = read(t->process.output, block, t->answer.left >= BLOCK ? BLOCK : SMALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n <= 0 || answer_feed(&t->answer, block, (size_t)n, &t->wrong))
			close_fd(&t->process.output); /* ssh then ends by itself, or at talk_end */
		if (t->answer.begun)
			t->heard_ns = now_ns();
	} while (now_ns() < end_ns);
	return t->process.output < 0;
}

bool talk_read(struct talk *t)
{
	off_t at = lseek(t->input, 0, SEEK_CUR);

	if (at > t->read_to)
		t->heard_ns = now_ns();
	t->read_to = at > t->read_to ? at : t->read_to;
	read_answer(t);
	read_errors(t);
	if (t->wrong.status)
		process_stop(&t->process, END_MS, KILL_MS);
	/* A child of ssh (a master of shared connections) may hold the pipes open. */
	if (!process_poll(&t->process) || !read_answer(t))
		return false;
	read_errors(t);
	return true;
}

void talk_end(struct talk *t)
{
	if (!t->active)
		return;
	if (!process_poll(&t->process))
		process_stop(&t->process, END_MS, KILL_MS);
	process_release(&t->process);
	t->process.output = -1;
	close_fd(&t->errors);
	close_fd(&t->input);
	t->active = false;
}

bool talk_is_whole(const struct talk *t)
{
	return t->answer.ended && !t->wrong.status;
}

void talk_why(const struct talk *t, char *out, size_t size)
{
	if (t->wrong.status)
		text_copy(out, size, t->wrong.text);
	else if (*t->last)
		text_copy(out, size, t->last);
	else if (t->process.ended)
		snprintf(out, size, "the connection ended before the answer was whole");
	else
		snprintf(out, size, "the connection is open, but no answer comes");
}
