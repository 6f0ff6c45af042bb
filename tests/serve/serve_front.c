/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The front end with a supervisor and the stand-in engine, for tests. The engine is started again when it ends.
 * usage: serve_front MODEL [--NAME VALUE].. [-- ENGINE WORD..]. Prints "port N" once it listens.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/log.h"
#include "core/process/process.h"
#include "serve/link/supervisor.h"
#include "serve/serve.h"

static struct front_end *front;

static void on_term(int signum)
{
	(void)signum;
	serve_drain(front);
}

static void sink(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)arg, (void)topic, (void)level;
	fprintf(stderr, "front end: %s\n", line);
}

static _Noreturn void front_end_process(struct serve_options *o)
{
	static const struct log log = {.sink = sink};
	struct sigaction act = {.sa_handler = on_term};
	struct error err = {0};
	enum status st;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	o->log = &log;
	st = front_end_create(&front, o, &err);
	if (!st) {
		sigaction(SIGTERM, &act, NULL);
		st = front_end_run(front, &err);
		front_end_destroy(&front);
	}
	if (st)
		fprintf(stderr, "serve_front: %s\n", err.text);
	exit(st ? 2 : 0);
}

static pid_t start_engine(char **words, uint32_t epoch, int control)
{
	struct supervisor_message m = {.kind = SUPERVISOR_ENGINE, .epoch = epoch};
	struct error err = {0};
	char number[16];
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		exit(1);
	snprintf(number, sizeof(number), "%u", (unsigned)epoch);
	words[1] = number;
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		signal(SIGTERM, SIG_IGN);
		dup2(pair[1], 3);
		execv(words[0], words);
		_exit(127);
	}
	close(pair[1]);
	m.fd = pair[0];
	supervisor_send(control, &m, &err);
	close(pair[0]);
	return pid;
}

static pid_t front_pid;

static void pass_on(int signum)
{
	kill(front_pid, signum);
}

/* Reports the end of the engine, waits a moment, starts the next. */
static pid_t restart(char **words, uint32_t *epoch, int wait_status, int control)
{
	struct supervisor_message m = {.kind = SUPERVISOR_ENDED, .epoch = *epoch, .fd = -1};
	struct error err = {0};
	char how[100];

	process_wait_text(wait_status, how, sizeof(how));
	snprintf(m.cause, sizeof(m.cause), "the engine ended with %s", how);
	supervisor_send(control, &m, &err);
	usleep(200000);
	return start_engine(words, ++*epoch, control);
}

static int supervise(char **words, int control)
{
	uint32_t epoch = 1;
	pid_t engine = words ? start_engine(words, epoch, control) : -1;
	struct sigaction act = {.sa_handler = pass_on};
	int status;

	sigaction(SIGTERM, &act, NULL);
	for (;;) {
		struct pollfd p = {.fd = control, .events = POLLIN};
		struct supervisor_message m;
		struct error err = {0};
		bool got = true;

		poll(&p, 1, 20);
		while (got && !supervisor_receive(control, &m, &got, &err))
			if (got && m.kind == SUPERVISOR_READY) {
				printf("port %u\n", (unsigned)m.port);
				fflush(stdout);
			} else if (got && m.kind == SUPERVISOR_HANGS && m.epoch == epoch) {
				kill(engine, SIGKILL);
			}
		if (waitpid(front_pid, &status, WNOHANG) == front_pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
		if (engine > 0 && waitpid(engine, &status, WNOHANG) == engine)
			engine = restart(words, &epoch, status, control);
	}
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Texts by name; the rest are limits. */
static bool set(struct serve_options *o, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **at;
	} texts[] = {
		{"chat-template", &o->chat_template}, {"address", &o->address},
		{"tls-certificate", &o->tls_certificate}, {"tls-key", &o->tls_key},
		{"api-key-file", &o->api_key_file}, {"cors-origin", &o->cors_origin},
		{"request-log", &o->request_log},
	};
	const struct {
		const char *name;
		size_t *at;
	} sizes[] = {
		{"body-bytes", &o->limits.body_bytes}, {"messages", &o->limits.messages},
		{"prompt-tokens", &o->limits.prompt_tokens}, {"connections", &o->limits.connections},
		{"queue", &o->limits.queue}, {"unread-bytes", &o->limits.unread_bytes},
		{"header-bytes", &o->limits.header_bytes},
	};
	const struct {
		const char *name;
		unsigned *at;
	} seconds[] = {
		{"read-s", &o->limits.read_s}, {"idle-s", &o->limits.idle_s}, {"hang-s", &o->limits.hang_s},
		{"restart-s", &o->limits.restart_s}, {"answer-s", &o->limits.answer_s}, {"workers", &o->limits.workers},
	};

	bool found = true;
	size_t i;

	for (i = 0; i < COUNT(texts) && strcmp(name, texts[i].name); i++)
		;
	if (i < COUNT(texts)) {
		*texts[i].at = value;
		return true;
	}
	for (i = 0; i < COUNT(sizes) && strcmp(name, sizes[i].name); i++)
		;
	if (i < COUNT(sizes)) {
		*sizes[i].at = strtoul(value, NULL, 10);
		return true;
	}
	for (i = 0; i < COUNT(seconds) && strcmp(name, seconds[i].name); i++)
		;
	if (i < COUNT(seconds))
		*seconds[i].at = (unsigned)strtoul(value, NULL, 10);
	else if (!strcmp(name, "port"))
		o->port = (uint16_t)strtoul(value, NULL, 10);
	else if (!strcmp(name, "log-requests"))
		o->log_requests = true;
	else
		found = false;
	return found;
}

int main(int argc, char **argv)
{
	static const char *const models[] = {"stand-in", "other-name", NULL}, *const adapters[] = {"tuned", NULL};
	struct serve_options o = {.model = argc > 1 ? argv[1] : "", .models = models, .adapters = adapters};
	char **words = NULL;
	int pair[2], i;

	for (i = 2; i + 1 < argc && strcmp(argv[i], "--"); i += 2)
		if (strncmp(argv[i], "--", 2) || !set(&o, argv[i] + 2, argv[i + 1])) {
			fprintf(stderr, "serve_front: no option %s\n", argv[i]);
			return 64;
		}
	if (i + 1 < argc) { /* the program, room for its epoch, its words */
		argv[i] = argv[i + 1];
		words = &argv[i];
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return 1;
	front_pid = fork();
	if (!front_pid) {
		close(pair[0]);
		o.control = pair[1];
		front_end_process(&o);
	}
	close(pair[1]);
	return supervise(words, pair[0]);
}
