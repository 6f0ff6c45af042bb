/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "core/file/file.h"
#include "launch/process_group.h"
#include "launch/start.h"

enum {
	ANSWER_MS = 60000,
	ANSWER_MAX = 1 << 20,
	LOOK_FIRST_MS = 200,
	LOOK_MOST_MS = 5000,
	SLICE_MS = 100,
	SILENT_MAX = 12
};

/* A job, as scontrol shows it. */
struct job {
	unsigned long id;
	char state[32], nodes[128], reason[64], output[1024];
	int code, signal;
	int fd; /* its output file; -1: not open yet */
	bool cancelled;
};

/* Runs a command of Slurm and returns its stdout; it inherits stderr. */
static enum status ask(char **out, const char *const *argv, const volatile sig_atomic_t *stop,
		       struct error *err)
{
	const struct process_spec spec = {.argv = argv, .cpu_numa = -1, .stop = stop};
	int code = 0;
	enum status st = process_run(&spec, ANSWER_MS, ANSWER_MAX, out, NULL, &code, err);

	if (st || !code)
		return st;
	free(*out);
	*out = NULL;
	return error_set(err, STATUS_VENDOR, "%s failed (exit code %d); see its message above", argv[0],
			 code);
}

bool slurm_is_here(void)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (const char *at = path, *end; at && *at; at = *end ? end + 1 : end) {
		end = at + strcspn(at, ":");
		snprintf(file, sizeof(file), "%.*s/sbatch", (int)(end - at), at);
		if (!access(file, X_OK))
			return true;
	}
	return false;
}

void slurm_plugin(struct launch_plan *p, const volatile sig_atomic_t *stop)
{
	/* Old versions print the list on stderr. */
	static const char *const argv[] = {"sh", "-c", "exec srun --mpi=list 2>&1", NULL};
	char *out = NULL;

	p->plugin = "none";
	p->plugin_reason = "assay's ranks connect over TCP without MPI";
	if (!p->mpi)
		return;
	p->plugin_reason =
		"--mpi was given, but srun --mpi=list shows no pmix here: cases of engine mpi will be "
		"unavailable";
	if (!ask(&out, argv, stop, NULL) && strstr(out, "pmix")) {
		p->plugin = "pmix";
		p->plugin_reason = "--mpi was given, and srun lists pmix";
	}
	free(out);
}

static enum status write_script(char path[4096], const struct launch_plan *p, const char *keep,
				struct error *err)
{
	const char *folder = getenv("TMPDIR");
	struct text script = {0};
	enum status st = STATUS_OK;
	int fd;

	if (keep && strlen(keep) >= 4096)
		return error_set(err, STATUS_BAD_INPUT, "--script: the path is too long");
	script_write(&script, p);
	if (script.failed)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory for the script");
	if (!st && keep) {
		text_copy(path, 4096, keep);
		st = file_write(keep, text_str(&script), script.size, err);
	} else if (!st) {
		snprintf(path, 4096, "%.4000s/assay-launch-XXXXXX", folder && *folder ? folder : "/tmp");
		fd = mkostemp(path, O_CLOEXEC);
		if (fd < 0 || write(fd, text_str(&script), script.size) != (ssize_t)script.size)
			st = error_errno(err, errno, "cannot write the script %s", path);
		if (fd >= 0)
			close(fd);
	}
	text_release(&script);
	return st;
}

enum status slurm_submit(unsigned long *job, const struct launch_plan *p, const char *keep,
			 const struct starting *s, struct error *err)
{
	char path[4096], *out = NULL, *end;
	const char *const argv[] = {"sbatch", "--parsable", path, NULL};
	enum status st = write_script(path, p, keep, err);

	if (!st)
		st = ask(&out, argv, s->stop, err);
	if (!st) {
		*job = strtoul(out, &end, 10);
		if (!*job || end == out)
			st = error_set(err, STATUS_VENDOR,
				       "sbatch printed \"%.80s\", which is not a job number", out);
	}
	free(out);
	if (!keep)
		unlink(path);
	return st;
}

/* The value of " Key=" in scontrol's line, up to the next space. */
static void take_field(char *out, size_t size, const char *line, const char *key)
{
	const char *at = strstr(line, key);

	*out = '\0';
	if (!at)
		return;
	at += strlen(key);
	snprintf(out, size, "%.*s", (int)strcspn(at, " \n"), at);
}

static enum status look(struct job *j, struct error *err)
{
	char id[32], code[32], *out = NULL;
	const char *const argv[] = {"scontrol", "show", "job", "-o", id, NULL};
	enum status st;

	snprintf(id, sizeof(id), "%lu", j->id);
	st = ask(&out, argv, NULL, err);
	if (st)
		return st;
	take_field(j->state, sizeof(j->state), out, " JobState=");
	take_field(j->reason, sizeof(j->reason), out, " Reason=");
	take_field(j->nodes, sizeof(j->nodes), out, " NodeList=");
	take_field(j->output, sizeof(j->output), out, " StdOut=");
	take_field(code, sizeof(code), out, " ExitCode=");
	free(out);
	if (!*j->state || sscanf(code, "%d:%d", &j->code, &j->signal) != 2)
		return error_set(err, STATUS_VENDOR, "cannot read scontrol's output about job %lu", j->id);
	return STATUS_OK;
}

static bool is_over(const struct job *j)
{
	static const char *const under_way[] = {"PENDING",	"RUNNING",	"CONFIGURING",	"COMPLETING",
						"SUSPENDED",	"REQUEUED",	"REQUEUE_HOLD", "REQUEUE_FED",
						"RESIZING",	"SIGNALING",	"STAGE_OUT",	"STOPPED",
						"SPECIAL_EXIT", "RESV_DEL_HOLD"};

	for (size_t i = 0; i < sizeof(under_way) / sizeof(under_way[0]); i++)
		if (!strcmp(j->state, under_way[i]))
			return false;
	return true;
}

/* Passes on new output of the job. The file may appear late, or never on this host. */
static void pass_output(struct job *j, const struct starting *s)
{
	char block[4096];
	ssize_t n;

	if (j->fd < 0)
		j->fd = open(j->output, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	while (j->fd >= 0 && (n = read(j->fd, block, sizeof(block))) > 0)
		s->out(block, (size_t)n);
}

static void cancel(struct job *j, const struct starting *s)
{
	char id[32], *out = NULL;
	const char *const argv[] = {"scancel", id, NULL};
	struct error err = {0};

	snprintf(id, sizeof(id), "%lu", j->id);
	if (ask(&out, argv, NULL, &err))
		log_warn(s->log, LOG_TOPIC_RUN, "cannot cancel job %lu: %s", j->id, err.text);
	else
		log_info(s->log, LOG_TOPIC_RUN, "job %lu is cancelled; a second request stops waiting for it",
			 j->id);
	free(out);
	j->cancelled = true;
}

static void tell_state(const struct job *j, const char *before, const struct starting *s)
{
	bool waits = !strcmp(j->state, "PENDING");

	if (strcmp(j->state, before))
		log_info(s->log, LOG_TOPIC_RUN, "job %lu: %s%s%s", j->id, j->state, waits ? ", " : " on ",
			 waits ? j->reason : j->nodes);
}

/* Sleeps for `ms`, or until a request to stop. */
static void pause_ms(unsigned ms, const struct job *j, const struct starting *s)
{
	for (unsigned past = 0; past < ms && *s->stop <= (j->cancelled ? 1 : 0); past += SLICE_MS)
		clock_sleep_ns(clock_monotonic(), SLICE_MS * 1000000ull);
}

static enum status until_over(struct job *j, const struct starting *s, struct error *err)
{
	unsigned silent = 0, ms = LOOK_FIRST_MS;
	struct error own = {0};
	char before[32] = "";

	for (;;) {
		if (look(j, &own)) {
			if (++silent == SILENT_MAX)
				return error_set(err, STATUS_LOST,
						 "the state of job %lu cannot be read any more: %s", j->id,
						 own.text);
		} else {
			silent = 0;
			tell_state(j, before, s);
			text_copy(before, sizeof(before), j->state);
			pass_output(j, s);
			if (is_over(j))
				return STATUS_OK;
		}
		error_clear(&own);
		if (*s->stop && !j->cancelled)
			cancel(j, s);
		if (*s->stop > 1)
			return error_set_cause(err, STATUS_CANCELLED, CAUSE_INTERRUPTED,
					       "stopped waiting for job %lu, which may still run", j->id);
		pause_ms(ms, j, s);
		ms = 2 * ms < LOOK_MOST_MS ? 2 * ms : LOOK_MOST_MS;
	}
}

enum status slurm_follow(unsigned long job, const struct starting *s, int *exit_code, struct error *err)
{
	struct job j = {.id = job, .fd = -1};
	enum status st = until_over(&j, s, err);

	*exit_code = 2;
	if (!st && (!strcmp(j.state, "COMPLETED") || !strcmp(j.state, "FAILED")) && !j.signal &&
	    (j.code == 0 || j.code == 1 || j.code == 2 || j.code == 64 || j.code == 75))
		*exit_code = j.code;
	else if (!st)
		log_warn(s->log, LOG_TOPIC_RUN, "job %lu ended as %s (exit code %d, signal %d)", job, j.state,
			 j.code, j.signal);
	if (!st && j.fd < 0)
		log_info(s->log, LOG_TOPIC_RUN, "its output is in %s, which this host cannot read", j.output);
	if (j.fd >= 0)
		close(j.fd);
	return st;
}
