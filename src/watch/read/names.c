/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of processes: {"pid": N, "labels": {..}}. The first answer cannot block. A user database in the
 * network, or a process that is stuck, may block the others. Then the node ends this process and starts
 * another one.
 */
#include <ctype.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "watch/read/out.h"
#include "watch/read/reader.h"
#include "watch/state.h"

enum { CONTAINER_DIGITS = 64, CONTAINER_SHOWN = 12, FILE_MAX = 65536 };

static void add_label(struct text *t, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	text_addf(t, "%s\"%s\":", t->size && t->data[t->size - 1] != '{' ? "," : "", name);
	out_add_string(t, value);
}

static void begin(struct text *t, const char *pid)
{
	text_release(t);
	text_addf(t, "{\"pid\":%s,\"labels\":{", pid);
}

static void send(struct text *t)
{
	text_add(t, "}}\n");
	if (!t->failed)
		fputs(text_str(t), stdout);
	fflush(stdout);
}

/* Docker, containerd, CRI-O and Podman name a container by 64 hexadecimal digits in the path of its cgroup.
 */
static void add_container(struct text *t, const char *cgroup)
{
	char shown[CONTAINER_SHOWN + 1];
	size_t digits = 0;

	for (const char *at = cgroup; *at; at++) {
		digits = isxdigit((unsigned char)*at) ? digits + 1 : 0;
		if (digits == CONTAINER_DIGITS && !isxdigit((unsigned char)at[1])) {
			text_copy(shown, sizeof(shown), at + 1 - CONTAINER_DIGITS);
			add_label(t, "container", shown);
			return;
		}
	}
}

/* Slurm: "/system.slice/slurmstepd.scope/job_1234/step_0" or "/slurm/uid_1000/job_1234". */
static void add_job(struct text *t, const char *cgroup)
{
	const char *job = strstr(cgroup, "/job_");
	char number[24];

	if (!job || !isdigit((unsigned char)job[5]))
		return;
	text_copy(number, sizeof(number), job + 5);
	number[strspn(number, "0123456789")] = '\0';
	add_label(t, "hpc_job", number);
}

static void add_command(struct text *t, char *text, const char *proc, const char *pid)
{
	char path[PATH_MAX];
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s/cmdline", proc, pid);
	f = fopen(path, "re");
	n = f ? fread(text, 1, WATCH_TEXT_MAX, f) : 0;
	if (f)
		fclose(f);
	while (n && !text[n - 1])
		n--;
	for (size_t i = 0; i < n; i++)
		if (!text[i])
			text[i] = ' ';
	text[n] = '\0';
	add_label(t, "command", text);
}

static void answer(const char *proc, const char *pid)
{
	static char text[FILE_MAX];
	struct text t = {0};
	struct passwd *user;
	struct stat info;
	char path[PATH_MAX];

	begin(&t, pid);
	if (reader_text(text, sizeof(text), "%s/%s/comm", proc, pid)) {
		text[strcspn(text, "\n")] = '\0';
		add_label(&t, "comm", text);
	}
	if (reader_text(text, sizeof(text), "%s/%s/cgroup", proc, pid)) {
		add_container(&t, text);
		add_job(&t, text);
	}
	send(&t);
	snprintf(path, sizeof(path), "%s/%s", proc, pid);
	begin(&t, pid);
	if (!stat(path, &info)) {
		user = getpwuid(info.st_uid);
		snprintf(path, sizeof(path), "%u", (unsigned)info.st_uid);
		add_label(&t, "user", user ? user->pw_name : path);
	}
	send(&t);
	begin(&t, pid);
	add_command(&t, text, proc, pid);
	send(&t);
	printf("{\"pid\":%s}\n", pid); /* all is said */
	fflush(stdout);
	text_release(&t);
}

int reader_names(const struct reader_spec *spec)
{
	char pid[16];

	while (!*spec->stop && fgets(pid, sizeof(pid), stdin)) {
		pid[strcspn(pid, "\n")] = '\0';
		if (*pid && strspn(pid, "0123456789") == strlen(pid))
			answer(spec->proc, pid);
	}
	return 0;
}
