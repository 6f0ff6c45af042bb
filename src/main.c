/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the subcommand, handles signals and sets the exit code. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "cmd/command.h"
#include "cmd/shared/option_form.h"
#include "cmd/help/help.h"
#include "cmd/shared/show.h"
#include "core/file/mapped.h"
#include "launch/rank_exit.h"
#include "team/transport/secret.h"

enum { STACK_NEEDED = 512 << 10, STACK_WANTED = 8 << 20 };

static volatile sig_atomic_t stop_requests, preempted;

/*
 * The first request asks for an orderly end, the second for an immediate end. Programs such as timeout(1)
 * send TERM to the process and then to its group. So all signals within a second count as one request, except
 * Ctrl-C.
 */
static void on_stop(int sig)
{
	static volatile sig_atomic_t first_s, first_ms;
	struct timespec now;
	long since_ms;

	clock_gettime(CLOCK_MONOTONIC, &now);
	since_ms = 1000 * (long)(now.tv_sec - first_s) + now.tv_nsec / 1000000 - first_ms;
	if (stop_requests == 1 && sig != SIGINT && since_ms < 1000)
		return;
	if (!stop_requests) {
		first_s = (sig_atomic_t)now.tv_sec;
		first_ms = (sig_atomic_t)(now.tv_nsec / 1000000);
		preempted = sig == SIGTERM || sig == SIGUSR1;
	}
	if (stop_requests < 2)
		stop_requests++;
}

/* If a standard stream is closed, a file that is opened first would get its number, and printed text would go
 * into the journal. So closed streams are opened read-only, and printing to them still fails. */
static void hold_closed_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDONLY);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

/* The reader of the output is gone. Every failed write raises this signal again, so it counts as one request
 * to stop only once. */
static void on_pipe(int sig)
{
	(void)sig;
	if (!stop_requests)
		stop_requests = 1;
}

static void install_signals(void)
{
	struct sigaction stop = {.sa_handler = on_stop};
	struct sigaction ignore = {.sa_handler = SIG_IGN};

	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGUSR1, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGQUIT, &stop, NULL);
	sigaction(SIGPIPE, &ignore, NULL); /* a closed pipe is a failed write and does not end the program */
	sigaction(SIGXFSZ, &ignore, NULL); /* the same for a file that exceeds its size limit (ulimit -f) */
}

/* Raises a small soft limit of the stack, because libraries in child processes need far more stack than
 * assay. Fails if the hard limit is too low. */
static bool has_stack(struct error *err)
{
	struct rlimit stack;

	if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur >= STACK_WANTED)
		return true;
	stack.rlim_cur = stack.rlim_max < STACK_WANTED ? stack.rlim_max : STACK_WANTED;
	setrlimit(RLIMIT_STACK, &stack);
	if (stack.rlim_cur >= STACK_NEEDED)
		return true;
	error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_LIMIT_LOW,
			"the stack limit is %lu KiB, but %d KiB are needed; set ulimit -s %d",
			(unsigned long)(stack.rlim_cur / 1024), STACK_NEEDED / 1024, STACK_WANTED / 1024);
	return false;
}

static void log_to_stderr(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	static const char *const prefix[] = {"debug: ", "", "warning: ", "error: "};

	(void)arg, (void)topic;
	show_message(prefix[level], line);
}

static const struct command *find_command(const char *name)
{
	for (const struct command *const *c = command_list; *c; c++)
		if (!strcmp((*c)->name, name))
			return *c;
	return NULL;
}

/* Removes --debug=TOPICS and --quiet from argv, at any position before "--". */
static bool take_global_options(int *argc, char **argv, struct log *log, struct error *err)
{
	int kept = 1;
	bool open = true;

	for (int i = 1; i < *argc; i++) {
		open = open && strcmp(argv[i], "--");
		if (open && !strncmp(argv[i], "--debug=", 8)) {
			if (help_debug_topics(argv[i] + 8, &log->topics, err))
				return false;
		} else if (open && !strcmp(argv[i], "--quiet")) {
			log->quiet = true;
		} else {
			argv[kept++] = argv[i];
		}
	}
	argv[kept] = NULL;
	*argc = kept;
	return true;
}

static bool wants_help(int argc, char **argv)
{
	for (int i = 2; i < argc && strcmp(argv[i], "--"); i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return true;
	return false;
}

static int usage_error(const struct error *err, const char *command)
{
	show_message("", err->text);
	if (command)
		fprintf(stderr, "see: assay %s --help\n", command);
	else
		fprintf(stderr, "see: assay --help\n");
	return EXIT_USAGE;
}

static int run_command(const struct command *cmd, struct command_context *context)
{
	const struct sigaction hears = {.sa_handler = on_pipe};
	struct error err = {0};
	void *opts;
	int code;

	if (cmd->stops_unread)
		sigaction(SIGPIPE, &hears, NULL);
	if (cmd->raw)
		return cmd->run_raw(context, context->argc - 2, context->argv + 2);
	opts = calloc(1, cmd->opts.size ? cmd->opts.size : 1);
	if (!opts)
		return usage_error(&err, cmd->name);
	if (opt_defaults(&cmd->opts, opts, &err) ||
	    option_form_check(cmd, context->argc - 2, context->argv + 2, &err) ||
	    opt_from_argv(&cmd->opts, opts, context->argc - 2, context->argv + 2,
			  cmd->rest ? &context->rest : NULL, &err))
		code = usage_error(&err, cmd->name);
	else
		code = cmd->run(context, opts);
	free(opts);
	return code;
}

/* Prints help or the version, or runs a command. */
static int answer(int argc, char **argv, struct command_context *context)
{
	const struct command *cmd;
	struct error err = {0};

	if (argc < 2) {
		help_overview(stderr);
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
		cmd = argc > 2 ? find_command(argv[2]) : NULL;
		if (argc > 2 && !cmd) {
			help_unknown_command(argv[2], &err);
			return usage_error(&err, NULL);
		}
		if (cmd)
			help_command(stdout, cmd);
		else
			help_overview(stdout);
		return EXIT_PASS;
	}
	if (!strcmp(argv[1], "--version")) {
		printf("assay %s\n", ASSAY_VERSION);
		return EXIT_PASS;
	}
	cmd = find_command(argv[1]);
	if (!cmd) {
		help_unknown_command(argv[1], &err);
		return usage_error(&err, NULL);
	}
	if (!cmd->raw && wants_help(argc, argv)) {
		if (!cmd->help_topic || *argv[2] == '-' || !cmd->help_topic(stdout, argv[2]))
			help_command(stdout, cmd);
		return EXIT_PASS;
	}
	return run_command(cmd, context);
}

/* The exit code, as the command's caller needs it. */
static int code_for_caller(int argc, char **argv, int code)
{
	const struct command *cmd = argc > 1 ? find_command(argv[1]) : NULL;

	return cmd && cmd->code_for_caller ? cmd->code_for_caller(argc - 2, argv + 2, code) : code;
}

/* A program that starts itself by /proc/self/exe is named "exe" by the kernel, also in nvidia-smi and top. */
static void name_process(void)
{
	char name[16] = "";

	if (!prctl(PR_GET_NAME, name) && !strcmp(name, "exe"))
		prctl(PR_SET_NAME, "assay");
}

int main(int argc, char **argv)
{
	struct log log = {.sink = log_to_stderr};
	struct error err = {0};
	struct command_context context = {
		.log = &log, .stop = &stop_requests, .preempted = &preempted, .tells = rank_exit_asked()};
	int code;

	name_process();
	hold_closed_streams();
	install_signals();
	secret_take_env();
	if (!has_stack(&err)) {
		show_message("error: ", err.text);
		return code_for_caller(argc, argv, EXIT_INCONCLUSIVE);
	}
	if (!take_global_options(&argc, argv, &log, &err))
		return code_for_caller(argc, argv, usage_error(&err, NULL));
	context.argc = argc;
	context.argv = argv;
	context.terminal = isatty(STDERR_FILENO) && !log.quiet;
	context.colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
	code = answer(argc, argv, &context);
	/* numbers from a mapped file are checked when they are read; this catches a read without a check */
	if (!code && mapped_check(STATUS_OK, &err)) {
		show_message("error: ", err.text);
		code = EXIT_INCONCLUSIVE;
	}
	/* output that could not be written is an error */
	if (!show_flush() || ferror(stdout)) {
		if (show_lost() != EPIPE)
			fprintf(stderr, "assay: stdout: %s\n",
				show_lost() ? strerror(show_lost()) : "the output is incomplete");
		code = code ? code : EXIT_INCONCLUSIVE;
	}
	code = code_for_caller(argc, argv, code);
	return context.tells ? rank_exit_of(code, false) : code;
}
