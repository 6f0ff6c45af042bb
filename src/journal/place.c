/* SPDX-License-Identifier: Apache-2.0 */
/* A file without a name lives as long as it is open: what was measured is still in it. */
#include "journal/place.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file.h"
#include "core/text.h"

/* True where it is not known: a name that cannot be looked at just now costs nobody his run. */
static bool stands_at(const char *path, const struct stat *ours)
{
	struct stat there;

	if (stat(path, &there))
		return errno != ENOENT && errno != ENOTDIR;
	return there.st_ino == ours->st_ino && there.st_dev == ours->st_dev;
}

/* One read and one write at a time, both whole or the end of it. */
static enum status copy(int from, int to, off_t size, const char *path, struct error *err)
{
	char block[1 << 16];

	for (off_t at = 0; at < size;) {
		size_t wanted = size - at < (off_t)sizeof(block) ? (size_t)(size - at) : sizeof(block);
		ssize_t got = pread(from, block, wanted, at), put = 0;

		if (got > 0)
			put = write(to, block, (size_t)got);
		if (got < 0 || put < 0)
			return error_errno(err, errno, "%s: cannot be written again", path);
		if (!put)
			return error_set(err, STATUS_NO_RESOURCE, "%s: ends at byte %lld of %lld", path,
					 (long long)at, (long long)size);
		at += put;
	}
	if (fsync(to))
		return error_errno(err, errno, "%s: cannot be brought to the disk", path);
	return STATUS_OK;
}

/* Whatever stands at `path` now is not ours and stays. */
static enum status restore(int from, off_t size, const char *path, struct error *err)
{
	char dir[PATH_MAX];
	enum status st;
	int to;

	text_copy(dir, sizeof(dir), path);
	*strrchr(dir, '/') = '\0';
	st = file_make_dir(dir, err);
	if (st)
		return st;
	to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (to < 0)
		return error_errno(err, errno, "%s: cannot be created again", path);
	st = copy(from, to, size, path, err);
	close(to);
	return st;
}

static enum status say_moved(int fd, const char *path, struct error *err)
{
	char name[32], now[PATH_MAX] = "another place";
	ssize_t size;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	size = readlink(name, now, sizeof(now) - 1);
	if (size > 0)
		now[size] = '\0';
	return error_set(err, STATUS_UNAVAILABLE,
			 "%s was moved while the run was going, and the run ends here; what was measured is "
			 "in %.400s",
			 path, now);
}

enum status place_check(int fd, off_t size, const char *path, struct error *err)
{
	struct error why = {0};
	struct stat ours;

	if (fstat(fd, &ours) || (ours.st_nlink && stands_at(path, &ours)))
		return STATUS_OK;
	if (ours.st_nlink)
		return say_moved(fd, path, err);
	if (restore(fd, size, path, &why))
		return error_set(err, STATUS_UNAVAILABLE,
				 "%s was removed while the run was going, and what was measured is lost: %s",
				 path, why.text);
	return error_set(err, STATUS_UNAVAILABLE,
			 "%s was removed while the run was going, and the run ends here; what was measured "
			 "until then is written there again",
			 path);
}
