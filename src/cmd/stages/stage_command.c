/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stages/stage_command.h"
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { OUTPUT_MOST = 256 << 20, KILL_MS = 3000, WORDS_MOST = 48 };
enum { PLAN_LIMIT_MS = 60000, PLAN_MOST = 64 << 20 };
enum { ESCAPE_NONE, ESCAPE_BEGUN, ESCAPE_LONG };
enum { ORDERLY_MS = 60000, SHORT_MS = 5000, NONE_MS = 100 };

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

void stage_command_words(struct stage_command *k, const char *const *words)
{
	for (; *words; words++)
		stage_command_add(k, "%s", *words);
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

/* argv of the child. argv[0] NULL: this program. Tests name a stand-in. */
static void fill_argv(const char *argv[WORDS_MOST + 1], const struct stage_command *k)
{
	argv[0] = getenv("ASSAY_TEST_STAGES");
	for (size_t i = 0; i < k->count; i++)
		argv[i + 1] = k->text + k->word[i];
	argv[k->count + 1] = NULL;
}

double stage_command_plan_s(const struct stage_command *command, const volatile sig_atomic_t *stop)
{
	struct stage_command k = *command;
	const char *argv[WORDS_MOST + 1];
	const struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stderr_apart = true, .stop = stop};
	struct error err = {0};
	char *text = NULL;
	json_t *plan = NULL;
	size_t size = 0;
	int code = 0;
	double seconds;

	stage_command_add(&k, "--plan");
	stage_command_add(&k, "--json");
	fill_argv(argv, &k);
	if (!k.full && !process_run(&spec, PLAN_LIMIT_MS, PLAN_MOST, &text, &size, &code, &err))
		plan = json_loadb(text, size, 0, NULL);
	seconds = json_number_value(json_object_get(plan, "seconds_expected"));
	json_decref(plan);
	free(text);
	return seconds > 0 ? seconds : 0;
}

/* -- the lines of a terminal -- */

static void end_line(struct stage_lines *l)
{
	l->open[l->used] = '\0';
	l->used = 0;
	if (*l->open && l->line)
		l->line(l->arg, l->open);
}

/* Takes one byte of an escape sequence such as "ESC [ K", which may arrive in pieces. */
static void take_escape(struct stage_lines *l, char c)
{
	if (l->escape == ESCAPE_BEGUN)
		l->escape = c == '[' ? ESCAPE_LONG : ESCAPE_NONE;
	else if (c >= '@')
		l->escape = ESCAPE_NONE;
}

void stage_lines_take(struct stage_lines *l, const char *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		const char c = bytes[i];

		if (l->escape)
			take_escape(l, c);
		else if (c == '\033')
			l->escape = ESCAPE_BEGUN;
		else if (c == '\n')
			end_line(l);
		else if (c == '\r')
			l->used = 0;
		else if (l->used + 1 < sizeof(l->open))
			l->open[l->used++] = c;
	}
	memcpy(l->live, l->open, l->used);
	l->live[l->used] = '\0';
}

/* -- the child -- */

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

/* Opens a terminal whose text arrives unchanged. -1: this system has none to give. */
static int open_terminal(int *child_end)
{
	const int ours = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct termios plain;
	char name[64];

	*child_end = -1;
	if (ours < 0)
		return -1;
	if (!grantpt(ours) && !unlockpt(ours) && !ptsname_r(ours, name, sizeof(name)))
		*child_end = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*child_end < 0 || tcgetattr(*child_end, &plain)) {
		if (*child_end >= 0)
			close(*child_end);
		close(ours);
		return -1;
	}
	cfmakeraw(&plain);
	tcsetattr(*child_end, TCSANOW, &plain);
	fcntl(ours, F_SETFL, O_NONBLOCK);
	return ours;
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Whole lines of a child on a terminal go to its file and to whoever watches. */
static void take_line(void *arg, const char *line)
{
	struct stage_child *child = arg;

	dprintf(child->messages, "%s\n", line);
	if (child->watch.line)
		child->watch.line(child->watch.arg, line);
}

static enum status start(struct stage_child *child, const struct stage_command *k, const int *errors,
			 struct error *err)
{
	const char *argv[WORDS_MOST + 1];
	const int input = open("/dev/null", O_RDONLY | O_CLOEXEC);
	const struct process_spec spec = {
		.argv = argv, .capture_output = true, .input = &input, .errors = errors, .cpu_numa = -1};
	enum status st = input < 0 ? error_errno(err, errno, "cannot read /dev/null") : STATUS_OK;

	fill_argv(argv, k);
	if (!st)
		st = process_start(&child->process, &spec, err);
	if (input >= 0)
		close(input);
	return st;
}

enum status stage_child_start(struct stage_child *child, const struct stage_command *k, const char *dir,
			      const struct stage_watch *watch, struct error *err)
{
	int errors = -1;
	enum status st = STATUS_OK;

	*child = (struct stage_child){.output = -1, .messages = -1, .terminal = -1};
	if (k->full)
		return error_set(err, STATUS_BAD_INPUT, "its command line is too long");
	child->output = open_file(dir, "output.txt", err);
	child->messages = child->output < 0 ? -1 : open_file(dir, "messages.txt", err);
	if (child->messages < 0)
		st = err->status;
	if (!st && watch) {
		child->watch = *watch;
		child->terminal = open_terminal(&errors);
	}
	if (!st)
		st = start(child, k, errors >= 0 ? &errors : &child->messages, err);
	close_one(&errors);
	if (st) {
		close_one(&child->output);
		close_one(&child->messages);
		close_one(&child->terminal);
		return st;
	}
	child->running = true;
	child->began_ns = clock_now_ns(clock_monotonic());
	fcntl(child->process.output, F_SETFL, O_NONBLOCK);
	return STATUS_OK;
}

/* Reads what the child wrote to its terminal. */
static void read_terminal(struct stage_child *child)
{
	char piece[4096];
	ssize_t size;

	if (child->terminal < 0)
		return;
	child->lines.line = take_line;
	child->lines.arg = child;
	while ((size = read(child->terminal, piece, sizeof(piece))) > 0)
		stage_lines_take(&child->lines, piece, (size_t)size);
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
	read_terminal(child);
	return ended;
}

/* Asks it to end in an orderly way. */
static void ask_to_end(struct stage_child *child)
{
	if (!child->process.ended)
		kill(child->process.pid, SIGTERM);
}

void stage_child_stop(struct stage_child *child, unsigned limit_ms)
{
	process_stop(&child->process, limit_ms, KILL_MS);
	copy_output(child);
	read_terminal(child);
}

bool stage_child_over(struct stage_child *child, double limit_s, const volatile sig_atomic_t *stop)
{
	const uint64_t now_ns = clock_now_ns(clock_monotonic());

	if ((double)(now_ns - child->began_ns) * 1e-9 > limit_s)
		child->late = true;
	if (*stop && !child->asked_ns) {
		child->asked_ns = now_ns;
		ask_to_end(child);
	}
	return child->late || *stop > 1 ||
	       (child->asked_ns && now_ns - child->asked_ns > ORDERLY_MS * 1000000ull);
}

void stage_child_force(struct stage_child *child)
{
	stage_child_stop(child, child->late ? SHORT_MS : NONE_MS);
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
	if (child->lines.used)
		end_line(&child->lines);
	process_release(&child->process);
	close_one(&child->output);
	close_one(&child->messages);
	close_one(&child->terminal);
	child->running = false;
	return code;
}
