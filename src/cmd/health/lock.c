/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/health/lock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>
#include "core/file/file.h"
#include "machine/watch/watch.h"

enum { STEP_MS = 50, STUCK_LOOKS = 10, STUCK_MAX = 64 };

/* Opens the folder, or a file in it where folders cannot be locked (NFS). Returns a locked descriptor, or -1
 * with errno. EWOULDBLOCK: another run has the lock. */
static int try_lock(const char *folder)
{
	char path[PATH_MAX];
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), why;

	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	why = errno;
	close(fd);
	if (why != EWOULDBLOCK) {
		snprintf(path, sizeof(path), "%s/.assay-health.lock", folder);
		fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
			return fd;
		why = errno;
		close(fd);
	}
	errno = why;
	return -1;
}

enum status health_lock(int *fd, const char *folder, const volatile sig_atomic_t *stop, struct error *err)
{
	for (int waited = 0; (*fd = try_lock(folder)) < 0; waited += STEP_MS) {
		if (errno != EWOULDBLOCK)
			return error_errno(err, errno, "cannot lock %s", folder);
		if (waited >= HEALTH_LOCK_MS || *stop)
			return error_set_cause(err, STATUS_UNAVAILABLE, CAUSE_BUSY,
					       "another assay health holds the lock of %s for %d s", folder,
					       HEALTH_LOCK_MS / 1000);
		clock_sleep_ns(clock_monotonic(), STEP_MS * 1000000u);
	}
	return STATUS_OK;
}

/* Reads name and state of a process or thread from its file `stat`: "17 (assay-facts) D ..". */
static bool is_helper(const char *path, bool *waits)
{
	static const char name[] = "(" WATCH_HELPER_NAME ") ";
	struct error err = {0};
	char *text = NULL, *at;
	size_t size = 0;

	if (file_read(&text, &size, path, 65536, &err))
		return false;
	at = strchr(text, '(');
	*waits = at && !strncmp(at, name, strlen(name)) && at[strlen(name)] == 'D';
	at = at && !strncmp(at, name, strlen(name)) ? at : NULL;
	free(text);
	return at != NULL;
}

/* True if a thread of this helper is in state D. A killed helper is a zombie, but its other threads may
 * remain. */
static bool hangs(const char *proc, pid_t pid)
{
	char path[PATH_MAX], folder[PATH_MAX - 300];
	struct dirent *entry;
	bool waits = false;
	DIR *tasks;

	snprintf(folder, sizeof(folder), "%s/%d", proc, (int)pid);
	snprintf(path, sizeof(path), "%s/stat", folder);
	if (!is_helper(path, &waits) || waits)
		return waits;
	snprintf(path, sizeof(path), "%s/task", folder);
	tasks = opendir(path);
	while (tasks && !waits && (entry = readdir(tasks))) {
		snprintf(path, sizeof(path), "%s/task/%s/stat", folder, entry->d_name);
		if (*entry->d_name != '.')
			is_helper(path, &waits);
	}
	if (tasks)
		closedir(tasks);
	return waits;
}

static size_t list(pid_t *out, const char *proc)
{
	DIR *folder = opendir(proc);
	struct dirent *entry;
	size_t count = 0;

	while (folder && count < STUCK_MAX && (entry = readdir(folder))) {
		char *end;
		long pid = strtol(entry->d_name, &end, 10);

		if (pid > 0 && pid < INT_MAX && !*end && hangs(proc, (pid_t)pid))
			out[count++] = (pid_t)pid;
	}
	if (folder)
		closedir(folder);
	return count;
}

pid_t health_stuck_helper(const char *proc, const struct clock *clock)
{
	pid_t pid[STUCK_MAX];
	size_t count = list(pid, proc);

	/* A helper that works is in state D for moments only. */
	for (int look = 0; count && look < STUCK_LOOKS; look++) {
		size_t left = 0;

		clock_sleep_ns(clock, (uint64_t)HEALTH_STUCK_MS * 1000000u / STUCK_LOOKS);
		for (size_t i = 0; i < count; i++)
			if (hangs(proc, pid[i]))
				pid[left++] = pid[i];
		count = left;
	}
	return count ? pid[0] : 0;
}
