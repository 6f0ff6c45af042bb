/* SPDX-License-Identifier: Apache-2.0 */
/* File format, one item per line: "assay cache 1", the SHA-256 of everything after it as 64 hex digits,
 * the key, the body. The sum detects truncated or damaged files. It is not a signature, so readers must
 * still validate the body. */
#include "core/file/user_cache.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"

#define HEAD "assay cache 1\n"
#define TAIL ".kept"
enum { HEAD_SIZE = sizeof(HEAD) - 1, TAIL_SIZE = sizeof(TAIL) - 1, SUM_SIZE = 64 };

enum status user_cache_open(struct user_cache *c, const char *name, struct error *err)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const bool own = base && *base == '/'; /* the XDG specification says to ignore a relative path */
	int n;

	if (!own && !(home && *home == '/'))
		return error_set(
			err, STATUS_UNAVAILABLE,
			"no folder for the cache: neither XDG_CACHE_HOME nor HOME is an absolute path");
	n = snprintf(c->dir, sizeof(c->dir), "%s%s/assay/%s", own ? base : home, own ? "" : "/.cache", name);
	return n > 0 && (size_t)n < sizeof(c->dir)
		       ? STATUS_OK
		       : error_set(err, STATUS_UNAVAILABLE, "no folder for the cache: its path is too long");
}

void user_cache_id(char id[USER_CACHE_ID], const char *key)
{
	char sum[65];

	file_sha256(sum, key, strlen(key));
	text_copy(id, USER_CACHE_ID, sum);
}

static bool path_of(char path[PATH_MAX], const struct user_cache *c, const char *key)
{
	char id[USER_CACHE_ID];
	int n;

	user_cache_id(id, key);
	n = snprintf(path, PATH_MAX, "%s/%s" TAIL, c->dir, id);
	return n > 0 && n < PATH_MAX;
}

/* UNAVAILABLE if the folder does not exist. BAD_INPUT if other users can put files into it. */
static enum status check_folder(const char *dir, struct error *err)
{
	struct stat about;

	if (lstat(dir, &about))
		return error_errno(err, errno, "cannot open %s", dir);
	if (!S_ISDIR(about.st_mode))
		return error_set(err, STATUS_BAD_INPUT, "cannot trust %s: it is not a folder", dir);
	if (about.st_uid != geteuid())
		return error_set(err, STATUS_BAD_INPUT,
				 "cannot trust %s: it belongs to user %u, not to you (%u)", dir, about.st_uid,
				 geteuid());
	if (about.st_mode & (S_IWGRP | S_IWOTH))
		return error_set(err, STATUS_BAD_INPUT, "cannot trust %s: others may write to it (mode %04o)",
				 dir, about.st_mode & 07777);
	return STATUS_OK;
}

enum status user_cache_parse(const char **body, const char *data, size_t size, const char *key,
			     struct error *err)
{
	const size_t key_size = strlen(key), least = HEAD_SIZE + SUM_SIZE + 1 + key_size + 2;
	const char *rest = data + HEAD_SIZE + SUM_SIZE + 1, *text = rest + key_size + 1;
	char sum[65];

	if (size < HEAD_SIZE || memcmp(data, HEAD, HEAD_SIZE) != 0)
		return error_set(err, STATUS_BAD_INPUT, "it has another version of the cache format");
	if (size < least || data[size - 1] != '\n' || memchr(data, '\0', size))
		return error_set(err, STATUS_BAD_INPUT, "it is truncated or damaged");
	file_sha256(sum, rest, size - (size_t)(rest - data));
	if (memcmp(sum, data + HEAD_SIZE, SUM_SIZE) != 0 || rest[-1] != '\n')
		return error_set(err, STATUS_BAD_INPUT, "it is truncated or damaged");
	if (memcmp(rest, key, key_size) != 0 || rest[key_size] != '\n')
		return error_set(err, STATUS_BAD_INPUT, "it belongs to another key");
	if (memchr(text, '\n', (size_t)(data + size - 1 - text)))
		return error_set(err, STATUS_BAD_INPUT, "it is truncated or damaged");
	*body = text;
	return STATUS_OK;
}

/* Returns the body only. The caller frees it with free(). */
static enum status take_body(char **out, const char *data, size_t size, const char *key, const char *path,
			     struct error *err)
{
	struct error why = {0};
	const char *body;

	if (user_cache_parse(&body, data, size, key, &why))
		return error_set(err, STATUS_BAD_INPUT, "%s: %s", path, why.text);
	*out = strndup(body, (size_t)(data + size - 1 - body));
	return *out ? STATUS_OK : error_errno(err, ENOMEM, "cannot read %s", path);
}

enum status user_cache_read(const struct user_cache *c, const char *key, char **body, struct error *err)
{
	char path[PATH_MAX], *data = NULL;
	struct error why = {0};
	struct stat about;
	size_t size;
	enum status st;

	*body = NULL;
	if (!path_of(path, c, key) || lstat(path, &about))
		return STATUS_OK;
	st = check_folder(c->dir, err);
	if (!st)
		st = file_read_private(&data, &size, path, USER_CACHE_MOST, &why);
	if (st == STATUS_UNAVAILABLE &&
	    why.status) /* the file was deleted since, for example as an old one */
		return STATUS_OK;
	if (st)
		return why.status ? error_set_cause(err, st, why.cause, "%s", why.text) : st;
	st = take_body(body, data, size, key, path, err);
	free(data);
	if (!st) /* marks the file as used; if that fails, it is only deleted earlier */
		utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
	return st;
}

static enum status make_folder(const char *dir, struct error *err)
{
	char parent[PATH_MAX];
	char *last;
	enum status st;

	text_copy(parent, sizeof(parent), dir);
	last = strrchr(parent, '/');
	*last = '\0';
	st = file_make_private_dir(parent, err);
	if (!st)
		st = file_make_private_dir(dir, err);
	return st ? st : check_folder(dir, err);
}

static bool is_kept(const char *name)
{
	const size_t size = strlen(name);

	return size == USER_CACHE_ID - 1 + TAIL_SIZE && !strcmp(name + size - TAIL_SIZE, TAIL);
}

/* Counts the saved files and finds the least recently used one. */
static size_t oldest_of(DIR *dir, char oldest[NAME_MAX + 1])
{
	struct timespec least = {0};
	struct dirent *entry;
	size_t count = 0;

	rewinddir(dir);
	while ((entry = readdir(dir))) {
		struct stat about;
		const struct timespec *t = &about.st_mtim;

		if (!is_kept(entry->d_name) ||
		    fstatat(dirfd(dir), entry->d_name, &about, AT_SYMLINK_NOFOLLOW))
			continue;
		if (!count++ || t->tv_sec < least.tv_sec ||
		    (t->tv_sec == least.tv_sec && t->tv_nsec < least.tv_nsec)) {
			least = *t;
			text_copy(oldest, NAME_MAX + 1, entry->d_name);
		}
	}
	return count;
}

/* Another process may do the same at the same time: a file that is already gone is not an error. */
static void drop_old(const char *path)
{
	char oldest[NAME_MAX + 1];
	DIR *dir = opendir(path);

	for (unsigned i = 0; dir && i < USER_CACHE_FILES && oldest_of(dir, oldest) > USER_CACHE_FILES; i++)
		unlinkat(dirfd(dir), oldest, 0);
	if (dir)
		closedir(dir);
}

enum status user_cache_write(const struct user_cache *c, const char *key, const char *body, struct error *err)
{
	struct text rest = {0}, all = {0};
	char path[PATH_MAX], sum[65];
	enum status st = make_folder(c->dir, err);

	text_addf(&rest, "%s\n%s\n", key, body);
	file_sha256(sum, text_str(&rest), rest.size);
	text_addf(&all, HEAD "%s\n", sum);
	text_add(&all, text_str(&rest));
	if (!st && (rest.failed || all.failed))
		st = error_errno(err, ENOMEM, "cannot write to %s", c->dir);
	if (!st && (all.size > USER_CACHE_MOST || !path_of(path, c, key)))
		st = error_set(err, STATUS_BAD_INPUT, "%s: %zu bytes are too many for a cache file", c->dir,
			       all.size);
	if (!st)
		st = file_write_private(path, all.data, all.size, err);
	if (!st)
		drop_old(c->dir);
	text_release(&rest);
	text_release(&all);
	return st;
}
