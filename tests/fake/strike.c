/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A planted fault: kills a process at a call that changes a file. Preloaded (LD_PRELOAD) into the ranks of a run. With
 * STRIKE_RANK=2 STRIKE_CALL=fsync STRIKE_PATH='*checkpoint-6.new*' STRIKE_SKIP=1 the process of rank 2 is killed before its
 * second fsync of a path that matches this pattern. Calls: open (for writing), fsync, rename (either path), renameat2. The
 * rank is Open MPI's, or that of assay launch. With STRIKE_ONCE=DIR only the first process that can make this folder is killed.
 * With STRIKE_RUN=FILE this shell script runs instead, and the process goes on.
 */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void fall(void)
{
	const char *script = getenv("STRIKE_RUN");
	pid_t child = script ? fork() : -1;

	if (!script)
		kill(getpid(), SIGKILL);
	if (!child) {
		setsid(); /* who ends this process's group does not end the script */
		execl("/bin/sh", "sh", script, (char *)NULL);
		_exit(127);
	}
	while (child > 0 && waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
}

static void strike(const char *call, const char *path)
{
	const char *rank = getenv("STRIKE_RANK"), *mpi = getenv("OMPI_COMM_WORLD_RANK"),
		   *own = mpi ? mpi : getenv("ASSAY_RANK"), *at = getenv("STRIKE_CALL"), *words = getenv("STRIKE_PATH"), *skip = getenv("STRIKE_SKIP");
	static atomic_int seen;

	if (rank && own && at && words && !strcmp(rank, own) && !strcmp(at, call) && !fnmatch(words, path, 0) &&
	    seen++ == strtol(skip ? skip : "0", NULL, 10) && (!getenv("STRIKE_ONCE") || !mkdir(getenv("STRIKE_ONCE"), 0777)))
		fall();
}

int fsync(int fd)
{
	char link[64], path[4096] = "";
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	strike("fsync", path);
	return (int)syscall(SYS_fsync, fd);
}

static int open_it(const char *path, int flags, va_list more)
{
	const mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(more, mode_t) : 0;

	if (flags & O_CREAT)
		strike("open", path);
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode);
}

/* open64, with files of any size */
int open(const char *path, int flags, ...)
{
	va_list more;
	int fd;

	va_start(more, flags);
	fd = open_it(path, flags, more);
	va_end(more);
	return fd;
}

int rename(const char *from, const char *to)
{
	strike("rename", from);
	strike("rename", to);
	return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	strike("renameat2", from);
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
