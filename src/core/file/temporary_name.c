/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files being written: NAME.PID.BOOT-SPACE.new. A process id is valid only within one PID namespace
 * of one boot of one machine, but other nodes and containers may write to the same folder. So the name holds
 * the process id, the boot and the namespace, and a name is compared with the processes of this machine only
 * if its boot and namespace are ours.
 * Machines restored from one snapshot have the same boot and namespace. So a writer also holds a lock on its
 * file or folder, and file_sweep keeps locked ones. Files from an earlier boot or another node stay: only a
 * person can know that their writer has ended.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/math/random.h"

enum { BOOT_DIGITS = 13 }; /* digits of the boot id: "5f3a9c21-1b2c" */
static const char end_mark[] = ".new";

/* Used if the boot or the namespace cannot be read: a word unique to this process, so that no process
 * deletes its files. */
static void own_word(char *out, size_t size)
{
	static char word[17];

	if (!*word && !random_hex(word, sizeof(word)))
		snprintf(word, sizeof(word), "%ld", (long)getpid());
	snprintf(out, size, "alone-%s", word);
}

void file_here(char out[FILE_HERE])
{
	char *boot = NULL, space[64] = "";
	ssize_t n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
	size_t size = 0;

	if (n > 5 && !strncmp(space, "pid:[", 5) &&
	    !file_read(&boot, &size, "/proc/sys/kernel/random/boot_id", 256, NULL) && size > BOOT_DIGITS)
		snprintf(out, FILE_HERE, "%.*s-%.*s", BOOT_DIGITS, boot, (int)strspn(space + 5, "0123456789"),
			 space + 5);
	else
		own_word(out, FILE_HERE);
	free(boot);
}

bool file_temporary_name(char *out, size_t size, const char *path)
{
	char here[FILE_HERE];
	int n;

	file_here(here);
	n = snprintf(out, size, "%s.%ld.%s%s", path, (long)getpid(), here, end_mark);
	return n >= 0 && (size_t)n < size;
}

/* True for "NAME.12.HERE.new" if no process 12 exists here. */
static bool left_behind(const char *entry, const char *name, const char *here)
{
	size_t size = strlen(name);
	char *end;
	long pid;

	if (strncmp(entry, name, size) || entry[size] != '.' || entry[size + 1] < '1' ||
	    entry[size + 1] > '9')
		return false;
	errno = 0;
	pid = strtol(entry + size + 1, &end, 10);
	if (errno || pid > INT_MAX || *end != '.' || strncmp(end + 1, here, strlen(here)) ||
	    strcmp(end + 1 + strlen(here), end_mark) != 0)
		return false;
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

/* True if this user owns the file or folder. Another user with write access to the folder may have put it
 * there. */
static bool is_ours(const char *path)
{
	struct stat about;

	return !lstat(path, &about) && about.st_uid == geteuid() &&
	       (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode));
}

/* Waits for the lock, because another process may be testing it for a moment. On a file system without
 * locks only the name protects the file. */
void file_hold(int fd)
{
	while (flock(fd, LOCK_EX) && errno == EINTR)
		;
}

bool file_is_held(const char *path)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	bool held;

	if (fd < 0) /* cannot be tested: leave it alone */
		return errno != ENOENT;
	held = flock(fd, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;
	close(fd);
	return held;
}

enum status file_busy(const char *path, struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_BUSY, "%s: another process is writing it now",
			       path);
}

void file_sweep(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	char folder[PATH_MAX], left[PATH_MAX + 300], here[FILE_HERE];
	DIR *d;

	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(name - path) : 2, slash ? path : "./");
	d = opendir(folder);
	if (!d)
		return;
	file_here(here);
	for (const struct dirent *e; (e = readdir(d));)
		if (left_behind(e->d_name, name, here)) {
			snprintf(left, sizeof(left), "%s%s", folder, e->d_name);
			if (is_ours(left) && !file_is_held(left))
				file_remove_tree(left);
		}
	closedir(d);
}
