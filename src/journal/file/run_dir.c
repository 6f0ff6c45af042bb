/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/file/run_dir.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/text/text.h"

void run_dir_open(struct run_dir *h, const char *path)
{
	text_copy(h->path, sizeof(h->path), path);
	h->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Asks the kernel for the present path of the open directory. */
static enum run_dir_state look_elsewhere(const struct run_dir *h, char now[PATH_MAX])
{
	char name[32];
	ssize_t size;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", h->fd);
	size = readlink(name, now, PATH_MAX - 1);
	if (size <= 0)
		text_copy(now, PATH_MAX, h->path);
	else
		now[size] = '\0';
	return size > 0 && !access(now, W_OK | X_OK) ? RUN_DIR_MOVED : RUN_DIR_REMOVED;
}

enum run_dir_state run_dir_look(const struct run_dir *h, char now[PATH_MAX], int *why)
{
	struct stat ours, there;

	text_copy(now, PATH_MAX, h->path);
	*why = 0;
	if (h->fd < 0)
		return RUN_DIR_HERE;
	if (fstat(h->fd, &ours)) /* an NFS server may no longer know it */
		return errno == ESTALE ? RUN_DIR_REMOVED : RUN_DIR_HERE;
	if (!ours.st_nlink)
		return RUN_DIR_REMOVED;
	if (stat(h->path, &there)) {
		*why = errno;
		if (errno == ENOENT || errno == ENOTDIR)
			return look_elsewhere(h, now);
		return errno == EACCES ? RUN_DIR_SHUT : RUN_DIR_HERE;
	}
	if (there.st_ino != ours.st_ino || there.st_dev != ours.st_dev)
		return look_elsewhere(h, now);
	if (!access(h->path, W_OK | X_OK))
		return RUN_DIR_HERE;
	*why = errno;
	return errno == EACCES || errno == EROFS ? RUN_DIR_SHUT : RUN_DIR_HERE;
}

void run_dir_close(struct run_dir *h)
{
	if (h->fd >= 0)
		close(h->fd);
	h->fd = -1;
}
