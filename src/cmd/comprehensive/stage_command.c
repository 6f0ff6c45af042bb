/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/comprehensive/stage_command.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MOST = 256 << 20, KILL_MS = 3000, WORDS_MOST = 48 };

void stage_command_add(struct stage_command *k, const char *format, ...)
{
	const size_t room = sizeof(k->text) - k->used;
	va_list args;
	int size;

	va_start(args, format);
	size = vsnprintf(k->text + k->used, room, format, args);
	va_end(args);
	if (size < 0 || (size_t)size >= room || k->count + 1 >= WORDS_MOST) {
		k->full = true;
		return;
	}
	k->word[k->count++] = k->used;
	k->used += (size_t)size + 1;
}

static bool is_plain(const char *word)
{
	return *word &&
	       strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./:,=@%") ==
		       strlen(word);
}

void stage_command_text(struct text *out, const struct stage_command *k)
{
	text_add(out, "assay");
	for (size_t i = 0; i < k->count; i++) {
		const char *word = k->text + k->word[i];

		if (is_plain(word)) {
			text_addf(out, " %s", word);
			continue;
		}
		text_add(out, " '");
		for (; *word; word++)
			text_addf(out, *word == '\'' ? "'\\''" : "%c", *word);
		text_add(out, "'");
	}
}

static int open_file(const char *dir, const char *name, struct error *err)
{
	char path[PATH_MAX + 64];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (fd < 0)
		error_errno(err, errno, "cannot write %s", path);
	return fd;
}

enum status stage_child_start(struct stage_child *child, const struct stage_command *k, const char *dir,
			      struct error *err)
{
	const char *argv[WORDS_MOST + 1] = {getenv("ASSAY_TEST_STAGES")}; /* a stand-in of assay in tests */
	const struct process_spec spec = {
		.argv = argv, .capture_output = true, .errors = &child->messages, .cpu_numa = -1};
	enum status st = STATUS_OK;

	*child = (struct stage_child){.output = -1, .messages = -1};
	for (size_t i = 0; i < k->count; i++)
		argv[i + 1] = k->text + k->word[i];
	if (k->full)
		return error_set(err, STATUS_BAD_INPUT, "its command line is too long");
	child->output = open_file(dir, "output.txt", err);
	child->messages = child->output < 0 ? -1 : open_file(dir, "messages.txt", err);
	if (child->messages < 0)
		st = err->status;
	if (!st)
		st = process_start(&child->process, &spec, err);
	if (st) {
		if (child->output >= 0)
			close(child->output);
		if (child->messages >= 0)
			close(child->messages);
		return st;
	}
	child->running = true;
	fcntl(child->process.output, F_SETFL, O_NONBLOCK);
	return STATUS_OK;
}

/* Output beyond the limit is read and dropped, so that the child does not wait. */
static void copy_output(struct stage_child *child)
{
	char piece[65536];
	ssize_t size;

	while ((size = read(child->process.output, piece, sizeof(piece))) > 0) {
		if (child->written + (size_t)size <= OUTPUT_MOST &&
		    write(child->output, piece, (size_t)size) == size)
			child->written += (size_t)size;
	}
}

bool stage_child_poll(struct stage_child *child)
{
	const bool ended = process_poll(&child->process);

	copy_output(child);
	return ended;
}

void stage_child_ask(struct stage_child *child)
{
	if (!child->process.ended)
		kill(child->process.pid, SIGTERM);
}

void stage_child_stop(struct stage_child *child, unsigned limit_ms)
{
	process_stop(&child->process, limit_ms, KILL_MS);
	copy_output(child);
}

int stage_child_release(struct stage_child *child, char *how, size_t size)
{
	const struct process *p = &child->process;
	int code = -1;

	if (!p->ended)
		snprintf(how, size, "it does not end and was left behind");
	else
		process_wait_text(p->wait_status, how, size);
	if (p->ended && WIFEXITED(p->wait_status))
		code = WEXITSTATUS(p->wait_status);
	process_release(&child->process);
	close(child->output);
	close(child->messages);
	child->running = false;
	return code;
}
