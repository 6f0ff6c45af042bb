/* SPDX-License-Identifier: Apache-2.0 */
/* With --model: `assay serve`, as a child with a run directory of its own below ours. */
#include <fcntl.h>
#include <poll.h>
#include "cmd/load/load.h"
#include "core/clock.h"
#include "core/text/text.h"

enum { WAIT_MS = 200, WORDS_MOST = 48, TERM_MS = 30000, KILL_MS = 3000 };
static const char address[] = "API and chat page: ", loaded[] = ": loaded in ",
		  on_cpu[] = " on cpu: loaded in ";

/* Splits the text of --serve-options at blanks. */
static enum status add_words(const char **argv, size_t count, char *words, struct error *err)
{
	for (char *word = words + strspn(words, " \t"), *end; *word; word = end + strspn(end, " \t")) {
		end = word + strcspn(word, " \t");
		if (count == WORDS_MOST)
			return error_set(err, STATUS_BAD_INPUT, "--serve-options has too many words");
		argv[count++] = word;
		if (*end)
			*end++ = '\0';
	}
	return STATUS_OK;
}

static bool take_line(void *arg, const char *line, size_t size)
{
	struct loading *l = arg;

	if (size > strlen(address) && !memcmp(line, address, strlen(address)))
		snprintf(l->url, sizeof(l->url), "%.*s", (int)(size - strlen(address)),
			 line + strlen(address));
	else if (memmem(line, size, loaded, strlen(loaded))) {
		l->own_gpus = !memmem(line, size, on_cpu, strlen(on_cpu)); /* it has one engine on one GPU */
		l->own_loaded = true;
	}
	return true;
}

/* Waits until it answers: it prints its address once the weights are loaded. */
static enum status wait_ready(struct loading *l, struct error *err)
{
	enum lines_state state = LINES_MORE;

	while (!*l->url && state == LINES_MORE) {
		struct pollfd in = {.fd = l->server.process.output, .events = POLLIN};

		poll(&in, 1, WAIT_MS);
		state = lines_read(&l->server.in, l->server.process.output, take_line, l);
		job_receive(l->job);
		if (*l->c->stop)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped while the server loaded the model");
	}
	if (*l->url)
		return STATUS_OK;
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_CRASHED,
			       "assay serve ended before it answered; see its messages above");
}

enum status load_server_start(struct loading *l, struct error *err)
{
	char out[PATH_MAX + 16], words[1024];
	const char *argv[WORDS_MOST + 1] = {NULL, "serve", l->o->model, "--port",
					    "0",  "--out", out,		"--no-telemetry"};
	const struct process_spec spec = {
		.argv = argv, .capture_output = true, .stderr_apart = true, .cpu_numa = -1};
	enum status st;

	if (!l->o->model)
		return STATUS_OK;
	snprintf(out, sizeof(out), "%s/serve", l->dir);
	if (l->o->serve && strlen(l->o->serve) >= sizeof(words))
		return error_set(err, STATUS_BAD_INPUT, "--serve-options is longer than %zu bytes",
				 sizeof(words) - 1);
	text_copy(words, sizeof(words), l->o->serve ? l->o->serve : "");
	st = add_words(argv, 8, words, err);
	if (!st)
		st = process_start(&l->server.process, &spec, err);
	l->server.running = !st;
	if (!st)
		fcntl(l->server.process.output, F_SETFL, O_NONBLOCK);
	return st ? st : wait_ready(l, err);
}

void load_server_stop(struct loading *l)
{
	if (!l->server.running)
		return;
	process_stop(&l->server.process, TERM_MS, KILL_MS);
	process_release(&l->server.process);
	lines_release(&l->server.in);
	l->server.running = false;
}
