/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of processes: {"pid": N, "labels": {..}}, and the jobs of GPUs that a prolog of Slurm wrote into
 * files, and the pods of GPUs. The first answer cannot block. A user database in the network, or a process
 * that is stuck, may block the others. Then the node ends this process and starts another one.
 */
#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "watch/pods/pods.h"
#include "watch/read/out.h"
#include "watch/read/reader.h"
#include "watch/state.h"

enum { CONTAINER_DIGITS = 64, CONTAINER_SHOWN = 12, FILE_MAX = 65536, JOBS_MAX = 256 };

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

/* The digits at the beginning. False: there are none. */
static bool add_job(struct text *t, const char *text)
{
	char number[24];

	if (!text || !isdigit((unsigned char)*text))
		return false;
	text_copy(number, sizeof(number), text);
	number[strspn(number, "0123456789")] = '\0';
	add_label(t, "hpc_job", number);
	return true;
}

/* Slurm: "/system.slice/slurmstepd.scope/job_1234/step_0" or "/slurm/uid_1000/job_1234". */
static const char *job_of_cgroup(const char *cgroup)
{
	const char *job = strstr(cgroup, "/job_");

	return job ? job + strlen("/job_") : NULL;
}

/* A file of /proc/PID with texts that each end in a NUL. */
static size_t read_texts(char *text, size_t size, const char *proc, const char *pid, const char *name)
{
	char path[PATH_MAX];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s/%s", proc, pid, name);
	f = fopen(path, "re");
	n = f ? fread(text, 1, size - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = '\0';
	return n;
}

/* SLURM_JOB_ID of the process, where this user may read its environment and Slurm makes no cgroups. */
static const char *job_of_environment(char *text, size_t size, const char *proc, const char *pid)
{
	static const char name[] = "SLURM_JOB_ID=";
	size_t n = read_texts(text, size, proc, pid, "environ");

	for (size_t at = 0; at < n; at += strlen(text + at) + 1)
		if (!strncmp(text + at, name, strlen(name)))
			return text + at + strlen(name);
	return NULL;
}

static void add_command(struct text *t, char *text, const char *proc, const char *pid)
{
	size_t n = read_texts(text, WATCH_TEXT_MAX + 1, proc, pid, "cmdline");

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
	if (reader_text(text, sizeof(text), "%s/%s/cgroup", proc, pid))
		add_container(&t, text);
	if (!add_job(&t, job_of_cgroup(text)))
		add_job(&t, job_of_environment(text, sizeof(text), proc, pid));
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

const char *reader_job_files(void)
{
	const char *dir = getenv("DCGM_HPC_JOB_MAPPING_DIR");

	return dir && *dir ? dir : NULL;
}

/* The jobs of a GPU: a line each, joined by commas. */
static void add_jobs_of(struct text *t, const char *dir, const char *number)
{
	char text[JOBS_MAX], *save = NULL;
	struct text jobs = {0};

	if (!reader_text(text, sizeof(text), "%s/%s", dir, number))
		return;
	for (char *job = strtok_r(text, " \t\r\n", &save); job; job = strtok_r(NULL, " \t\r\n", &save))
		text_addf(&jobs, "%s%s", jobs.size ? "," : "", job);
	add_label(t, number, text_str(&jobs));
	text_release(&jobs);
}

/* {"jobs": {"0": "17", ..}}: the files of the folder whose names are numbers of GPUs. */
static void answer_jobs(const char *dir)
{
	struct text t = {0};
	struct dirent *entry;
	DIR *folder = dir ? opendir(dir) : NULL;

	text_add(&t, "{\"jobs\":{");
	while (folder && (entry = readdir(folder)))
		if (*entry->d_name && strspn(entry->d_name, "0123456789") == strlen(entry->d_name))
			add_jobs_of(&t, dir, entry->d_name);
	if (folder)
		closedir(folder);
	send(&t);
	text_release(&t);
}

/* {"pods": {ID: [pod, namespace, container], ..}}, or {"pods": {}, "why": text}. */
static void answer_pods(const char *socket)
{
	struct error err = {0};
	struct text t = {0};
	json_t *pods = NULL;
	char *list;

	if (socket)
		pods_ask(&pods, socket, &err);
	list = pods ? json_dumps(pods, JSON_COMPACT) : NULL;
	text_addf(&t, "{\"pods\":%s", list ? list : "{}");
	if (!pods) {
		text_add(&t, ",\"why\":");
		out_add_string(&t, socket ? err.text : "the socket is gone");
	}
	text_add(&t, "}\n");
	if (!t.failed)
		fputs(text_str(&t), stdout);
	fflush(stdout);
	free(list);
	json_decref(pods);
	text_release(&t);
}

int reader_names(const struct reader_spec *spec)
{
	char pid[16];

	while (!*spec->stop && fgets(pid, sizeof(pid), stdin)) {
		pid[strcspn(pid, "\n")] = '\0';
		if (!strcmp(pid, "jobs"))
			answer_jobs(reader_job_files());
		else if (!strcmp(pid, "pods"))
			answer_pods(pods_socket());
		else if (*pid && strspn(pid, "0123456789") == strlen(pid))
			answer(spec->proc, pid);
	}
	return 0;
}
