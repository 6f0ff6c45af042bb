/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal, through the module libassay-screen.so. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cmd/shared/show.h"
#include "cmd/top/top.h"
#include "core/file/mapped.h"
#include "core/process/module.h"

bool top_terminal_can(const char **why)
{
	const char *type = getenv("TERM");

	*why = NULL;
	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		*why = "stdin and stdout are not a terminal";
	else if (!type || !*type || !strcmp(type, "dumb"))
		*why = "TERM says that the terminal cannot show a screen";
	return !*why;
}

/* stderr goes into a pipe, so that no message of a child disturbs the screen. */
static enum status keep_stderr(struct top_terminal *t, struct error *err)
{
	int ends[2];

	fflush(stderr);
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return error_errno(err, errno, "cannot make a pipe for messages");
	t->told = ends[0];
	t->stderr_before = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	if (t->stderr_before < 0 || dup2(ends[1], STDERR_FILENO) < 0) {
		enum status st = error_errno(err, errno, "cannot keep messages");

		close(ends[1]);
		return st;
	}
	close(ends[1]);
	return STATUS_OK;
}

static void take_told(struct top_terminal *t)
{
	char block[1024];
	ssize_t n;

	while (t->told > 0 && (n = read(t->told, block, sizeof(block))) > 0) {
		size_t size = (size_t)n, room = sizeof(t->last) - 1;

		if (t->last_size + size > room) { /* the newest text is kept */
			size_t drop = t->last_size + size - room;

			drop = drop < t->last_size ? drop : t->last_size;
			memmove(t->last, t->last + drop, t->last_size - drop);
			t->last_size -= drop;
		}
		memcpy(t->last + t->last_size, block, size);
		t->last_size += size;
		t->last[t->last_size] = '\0';
	}
}

static void restore_stderr(struct top_terminal *t)
{
	struct text kept = {0};

	if (t->stderr_before > 0) {
		fflush(stderr);
		dup2(t->stderr_before, STDERR_FILENO);
		close(t->stderr_before);
	}
	take_told(t);
	if (t->told > 0)
		close(t->told);
	utf8_add_clean(&kept, t->last, UTF8_KEEP_LINES);
	if (kept.size)
		fputs(text_str(&kept), stderr);
	text_release(&kept);
	t->told = t->stderr_before = 0;
	t->last_size = 0;
	t->last[0] = '\0';
}

enum status top_terminal_open(struct top_terminal *t, struct error *err)
{
	struct screen_terminal can = {0};
	char message[200] = "";
	enum status st = module_open((const void **)&t->module, SCREEN_MODULE, SCREEN_MODULE_SYMBOL, err);

	if (st)
		return st;
	if (t->module->version != SCREEN_MODULE_VERSION || t->module->size != sizeof(*t->module)) {
		st = error_set_cause(
			err, STATUS_UNAVAILABLE, CAUSE_VERSION_MISMATCH,
			"the screen module belongs to another build (version %u, expected %d); install both from one build",
			t->module->version, SCREEN_MODULE_VERSION);
		goto out;
	}
	if (t->module->open(&can, message, sizeof(message))) {
		st = error_set(err, STATUS_UNAVAILABLE, "%s", message);
		goto out;
	}
	mapped_handle_first(); /* a recording that is cut is no crash */
	t->depth = getenv("NO_COLOR") && *getenv("NO_COLOR") ? SCREEN_MONO : can.depth;
	t->screen.ascii = can.ascii;
	st = keep_stderr(t, err);
	if (st)
		top_terminal_close(t);
	return st;
out:
	t->module = NULL;
	return st;
}

void top_terminal_close(struct top_terminal *t)
{
	if (t->module)
		t->module->close();
	t->module = NULL;
	restore_stderr(t);
	screen_release(&t->screen);
}

enum status top_terminal_show(struct top_terminal *t, struct screen_view *v, const struct screen_node *nodes,
			      size_t count, struct error *err)
{
	unsigned columns, rows;
	enum status st;

	t->module->current_size(&columns, &rows);
	st = screen_resize(&t->screen, columns, rows, err);
	if (st)
		return st;
	screen_draw(&t->screen, v, nodes, count);
	t->module->show(&t->screen, v->theme, v->theme == SCREEN_THEME_mono ? SCREEN_MONO : t->depth);
	return STATUS_OK;
}

bool top_terminal_wait(struct top_terminal *t, struct pollfd *feeds, size_t count, unsigned ms)
{
	feeds[count] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
	feeds[count + 1] = (struct pollfd){.fd = t->told, .events = POLLIN};
	t->typed = true;
	if (poll(feeds, (nfds_t)count + 2, (int)ms) < 0)
		return errno == EINTR;
	t->typed = feeds[count].revents;
	take_told(t);
	return !(feeds[count].revents & (POLLERR | POLLHUP | POLLNVAL));
}
