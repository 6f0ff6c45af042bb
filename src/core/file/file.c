/* SPDX-License-Identifier: Apache-2.0 */
#include "core/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* read() that repeats after EINTR. */
static ssize_t read_some(int fd, void *data, size_t size)
{
	ssize_t n;

	do
		n = read(fd, data, size);
	while (n < 0 && errno == EINTR);
	return n;
}

/* Opens regular files only: opening a FIFO would block, and reading a device might never end. */
static enum status open_regular(int *fd, const char *path, int flags, struct stat *about, struct error *err)
{
	about->st_mode = 0;
	*fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
	if (*fd < 0 && errno == ELOOP && flags & O_NOFOLLOW)
		return error_set(
			err, STATUS_BAD_INPUT,
			"cannot read %s: it is a symbolic link, and its target may belong to another user; replace it by a regular file",
			path);
	if (*fd < 0 && errno != ENXIO)
		return error_errno(err, errno, "cannot open %s", path);
	if (*fd >= 0 && !fstat(*fd, about) && S_ISREG(about->st_mode))
		return STATUS_OK;
	if (*fd >= 0)
		close(*fd);
	return error_set(err, STATUS_BAD_INPUT, "cannot read %s: it is %s", path,
			 S_ISDIR(about->st_mode) ? "a folder, not a file" : "not a regular file");
}

static enum status open_read(int *fd, const char *path, struct error *err)
{
	struct stat about;

	return open_regular(fd, path, 0, &about, err);
}

static enum status open_private(int *fd, const char *path, struct error *err)
{
	struct stat about;
	enum status st = open_regular(fd, path, O_NOFOLLOW, &about, err);

	if (st || (about.st_uid == geteuid() && !(about.st_mode & (S_IWGRP | S_IWOTH))))
		return st;
	close(*fd);
	if (about.st_uid != geteuid())
		return error_set(err, STATUS_BAD_INPUT,
				 "cannot trust %s: it belongs to user %u, not to you (%u)", path,
				 about.st_uid, geteuid());
	return error_set(err, STATUS_BAD_INPUT, "cannot trust %s: others may write to it (mode %04o)", path,
			 about.st_mode & 07777);
}

/* Reads all of fd and closes it. */
static enum status read_all(int fd, char **out, size_t *size, const char *path, size_t size_max,
			    struct error *err)
{
	size_t room = 4096, used = 0;
	char *data = NULL, *grown;
	enum status st = STATUS_OK;
	ssize_t n;

	for (;;) {
		/* Reads one byte more than the limit, to tell "full" from "too large". One more byte is for
		 * the NUL. */
		if (!data || used + 1 >= room) {
			room *= 2;
			grown = realloc(data, room);
			if (!grown) {
				st = error_errno(err, ENOMEM, "cannot read %s", path);
				goto out;
			}
			data = grown;
		}
		n = read_some(fd, data + used, room - used - 1);
		if (n < 0) {
			st = error_errno(err, errno, "cannot read %s", path);
			goto out;
		}
		if (!n)
			break;
		used += (size_t)n;
		if (used > size_max) {
			st = error_set(err, STATUS_BAD_INPUT, "%s is larger than %zu bytes", path, size_max);
			goto out;
		}
	}
	data[used] = '\0';
	*out = data;
	if (size)
		*size = used;
	data = NULL;
out:
	free(data);
	close(fd);
	return st;
}

enum status file_read(char **out, size_t *size, const char *path, size_t size_max, struct error *err)
{
	int fd;
	enum status st = open_read(&fd, path, err);

	return st ? st : read_all(fd, out, size, path, size_max, err);
}

enum status file_read_private(char **out, size_t *size, const char *path, size_t size_max, struct error *err)
{
	int fd;
	enum status st = open_private(&fd, path, err);

	return st ? st : read_all(fd, out, size, path, size_max, err);
}

static enum status write_all(int fd, const char *data, size_t size, const char *path, struct error *err)
{
	enum { PIECE = 1 << 24 }; /* bytes per write: a signal can interrupt between two writes */

	while (size) {
		ssize_t n = write(fd, data, size < PIECE ? size : PIECE);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_errno(err, n ? errno : ENOSPC, "cannot write %s", path);
		data += n;
		size -= (size_t)n;
	}
	return STATUS_OK;
}

static enum status new_begin(struct file_new *f, const char *path, mode_t mode, struct error *err)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
	struct stat about;
	int n;

	*f = (struct file_new){.fd = -1};
	if (!lstat(path, &about) && !S_ISREG(about.st_mode))
		return error_set(err, STATUS_BAD_INPUT, "cannot replace %s: it is not a regular file", path);
	n = snprintf(f->path, sizeof(f->path), "%s", path);
	if (n < 0 || (size_t)n >= sizeof(f->path) || !file_temporary_name(f->beside, sizeof(f->beside), path))
		return error_set(err, STATUS_BAD_INPUT, "path is too long: %.200s", path);
	file_sweep(path);
	f->fd = open(f->beside, flags, mode);
	if (f->fd < 0 && errno == EEXIST) { /* left by an earlier process with our process id */
		if (file_is_held(f->beside))
			return file_busy(f->path, err);
		unlink(f->beside);
		f->fd = open(f->beside, flags, mode);
	}
	if (f->fd < 0)
		return error_errno(err, errno, "cannot create %s", f->path);
	file_hold(f->fd);
	return STATUS_OK;
}

enum status file_new_begin(struct file_new *f, const char *path, struct error *err)
{
	return new_begin(f, path, 0666, err);
}

enum status file_new_write(struct file_new *f, const void *data, size_t size, struct error *err)
{
	return write_all(f->fd, data, size, f->path, err);
}

enum status file_new_end(struct file_new *f, enum status st, struct error *err)
{
	if (f->fd < 0)
		return st;
	if (!st && !f->unsynced && fsync(f->fd))
		st = error_errno(err, errno, "cannot write %s", f->path);
	if (close(f->fd) && !st)
		st = error_errno(err, errno, "cannot write %s", f->path);
	f->fd = -1;
	if (!st && rename(f->beside, f->path))
		st = error_errno(err, errno, "cannot replace %s", f->path);
	if (st)
		unlink(f->beside);
	return st;
}

enum status file_sync_folder(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum status st = STATUS_OK;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	if (fsync(fd) && errno != EINVAL)
		st = error_errno(err, errno, "cannot flush %s to the disk", path);
	close(fd);
	return st;
}

enum status file_sync_all(const char *folder, struct error *err)
{
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	enum status st = STATUS_OK;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", folder);
	if (syncfs(fd))
		st = error_errno(err, errno, "cannot flush %s to the disk", folder);
	close(fd);
	return st;
}

enum status file_write(const char *path, const void *data, size_t size, struct error *err)
{
	struct file_new f;
	enum status st = file_new_begin(&f, path, err);

	if (!st)
		st = file_new_write(&f, data, size, err);
	return file_new_end(&f, st, err);
}

enum status file_write_private(const char *path, const void *data, size_t size, struct error *err)
{
	struct file_new f;
	enum status st = new_begin(&f, path, 0600, err);

	if (!st)
		st = file_new_write(&f, data, size, err);
	return file_new_end(&f, st, err);
}

enum status file_make_dir(const char *path, struct error *err)
{
	char part[PATH_MAX];
	size_t size = strlen(path), i;
	struct stat about;

	if (!size || size >= sizeof(part))
		return error_set(err, STATUS_BAD_INPUT, "cannot create directory \"%.200s\": the name is %s",
				 path, size ? "too long" : "empty");
	memcpy(part, path, size + 1);
	for (i = 1; i <= size; i++) {
		if (part[i] != '/' && part[i])
			continue;
		part[i] = '\0';
		if (mkdir(part, 0777) && errno != EEXIST)
			return error_errno(err, errno, "cannot create directory %s", part);
		if (i < size)
			part[i] = '/';
	}
	if (stat(path, &about))
		return error_errno(err, errno, "cannot create directory %s", path);
	if (!S_ISDIR(about.st_mode))
		return error_set(err, STATUS_BAD_INPUT, "%s exists and is not a directory", path);
	return STATUS_OK;
}

enum status file_make_private_dir(const char *path, struct error *err)
{
	char parent[PATH_MAX];
	size_t size = strlen(path);
	struct stat about;
	enum status st = STATUS_OK;

	while (size > 1 && path[size - 1] == '/')
		size--;
	while (size && path[size - 1] != '/')
		size--;
	if (size < sizeof(parent) && lstat(path, &about)) {
		memcpy(parent, path, size);
		parent[size] = '\0';
		if (size)
			st = file_make_dir(parent, err);
		if (!st && mkdir(path, 0700) && errno != EEXIST)
			return error_errno(err, errno, "cannot create directory %s", path);
	}
	return st ? st : file_make_dir(path, err);
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *at)
{
	(void)info;
	(void)kind;
	(void)at;
	remove(path);
	return 0;
}

void file_remove_tree(const char *path)
{
	enum { DESCRIPTORS = 16 };

	nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS);
}

static void digest_hex(char hex[65], struct sha256_ctx *sha)
{
	uint8_t digest[SHA256_DIGEST_SIZE];
	int i;

	sha256_digest(sha, sizeof(digest), digest);
	for (i = 0; i < SHA256_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}

void file_sha256(char hex[65], const void *data, size_t size)
{
	struct sha256_ctx sha;

	sha256_init(&sha);
	sha256_update(&sha, size, data);
	digest_hex(hex, &sha);
}

enum status file_sha256_pieces(char hex[65], file_pieces *next, void *arg, struct error *err)
{
	struct sha256_ctx sha;
	uint8_t block[16384];
	size_t got = 1;
	enum status st = STATUS_OK;

	sha256_init(&sha);
	while (!st && got) {
		st = next(arg, block, sizeof(block), &got, err);
		if (!st)
			sha256_update(&sha, got, block);
	}
	if (!st)
		digest_hex(hex, &sha);
	return st;
}

enum status file_sha256_of(char hex[65], const char *path, struct error *err)
{
	struct sha256_ctx sha;
	uint8_t block[16384];
	enum status st;
	ssize_t n;
	int fd;

	st = open_read(&fd, path, err);
	if (st)
		return st;
	sha256_init(&sha);
	while ((n = read_some(fd, block, sizeof(block))) > 0)
		sha256_update(&sha, (size_t)n, block);
	if (n < 0)
		st = error_errno(err, errno, "cannot read %s", path);
	else
		digest_hex(hex, &sha);
	close(fd);
	return st;
}
