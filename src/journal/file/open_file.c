/* SPDX-License-Identifier: Apache-2.0 */
/* A removed file keeps its contents as long as it is open, so the results can be written again. */
#include "journal/file/open_file.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/journal.h"

/* Also true if the path cannot be examined now, so that the run goes on. */
static bool stands_at(const char *path, const struct stat *ours)
{
	struct stat there;

	if (stat(path, &there))
		return errno != ENOENT && errno != ENOTDIR;
	return there.st_ino == ours->st_ino && there.st_dev == ours->st_dev;
}

enum status open_file_copy(int from, off_t at, off_t end, int to, const char *path, struct error *err)
{
	char block[1 << 16];
	off_t begin = at;

	while (at < end) {
		size_t wanted = end - at < (off_t)sizeof(block) ? (size_t)(end - at) : sizeof(block);
		ssize_t got = pread(from, block, wanted, at), put = 0;

		if (got > 0)
			put = write(to, block, (size_t)got);
		if (got < 0 || put < 0)
			return error_errno(err, errno, "cannot write %s", path);
		if (!put)
			return error_set(err, STATUS_NO_RESOURCE,
					 "cannot copy to %s: the data ends at byte %lld of %lld", path,
					 (long long)(at - begin), (long long)(end - begin));
		at += put;
	}
	if (fsync(to))
		return error_errno(err, errno, "cannot sync %s to the disk", path);
	return STATUS_OK;
}

/* Creates a complete file or none. An existing file at `path` belongs to another program and stays. */
static enum status write_at(int from, off_t size, const char *path, struct error *err)
{
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	enum status st;

	if (to < 0)
		return error_errno(err, errno, "cannot create %s again", path);
	st = open_file_copy(from, 0, size, to, path, err);
	close(to);
	if (st)
		unlink(path);
	return st;
}

/* Writes a run directory among the temporary files, so that `report` can read it. */
static enum status write_elsewhere(int from, off_t size, char place[PATH_MAX])
{
	const char *base = getenv("TMPDIR");
	char dir[PATH_MAX - 32];

	if (snprintf(dir, sizeof(dir), "%s/assay-run-XXXXXX", base && *base ? base : "/tmp") >=
		    (int)sizeof(dir) ||
	    !mkdtemp(dir))
		return STATUS_UNAVAILABLE;
	snprintf(place, PATH_MAX, "%s/" JOURNAL_FILE, dir);
	if (!write_at(from, size, place, NULL))
		return STATUS_OK;
	rmdir(dir);
	return STATUS_UNAVAILABLE;
}

/* Writes the file to its own path, else next to it, else among the temporary files. `place`: where. *err: why
 * not to its own path. */
static enum status restore(int from, off_t size, const char *path, char place[PATH_MAX], struct error *err)
{
	char dir[PATH_MAX];
	enum status st;

	text_copy(dir, sizeof(dir), path);
	*strrchr(dir, '/') = '\0';
	text_copy(place, PATH_MAX, path);
	st = file_make_dir(dir, err);
	if (!st) {
		st = write_at(from, size, path, err);
		if (st && snprintf(place, PATH_MAX, "%s.1", path) < PATH_MAX)
			st = write_at(from, size, place, NULL);
	}
	return st ? write_elsewhere(from, size, place) : STATUS_OK;
}

static enum status say_removed(int fd, off_t size, const char *path, struct error *err)
{
	struct error why = {0};
	char place[PATH_MAX];

	if (restore(fd, size, path, place, &why))
		return error_set(err, STATUS_UNAVAILABLE,
				 "%s was removed during the run, and its data is lost: %s", path, why.text);
	if (!strcmp(place, path))
		return error_set(
			err, STATUS_UNAVAILABLE,
			"%s was removed during the run, and the run ends here; the data written until then is "
			"written there again",
			path);
	return error_set(
		err, STATUS_UNAVAILABLE,
		"%s was replaced during the run, and the run ends here; the data written until then is in %.400s",
		path, place);
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
			 "%s was moved during the run, and the run ends here; the data is in %.400s", path,
			 now);
}

/* The data that another program cut off is lost; data that it added ends the reading there. */
static enum status say_changed(off_t is, off_t size, const char *path, struct error *err)
{
	return error_set(
		err, STATUS_UNAVAILABLE,
		"%s was %s by another program during the run (it has %lld bytes, %lld were written), and "
		"the run ends here",
		path, is < size ? "cut" : "written into", (long long)is, (long long)size);
}

enum status open_file_check(int fd, off_t size, const char *path, struct error *err)
{
	struct stat ours;

	if (fstat(fd, &ours))
		return STATUS_OK;
	if (!ours.st_nlink)
		return say_removed(fd, size, path, err);
	if (!stands_at(path, &ours))
		return say_moved(fd, path, err);
	return ours.st_size == size ? STATUS_OK : say_changed(ours.st_size, size, path, err);
}
