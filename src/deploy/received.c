/* SPDX-License-Identifier: Apache-2.0 */
#include "deploy/received.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Lists `name`, a file or folder below `folder`. No links are followed. */
static enum status list(struct text *out, const char *folder, const char *name, unsigned depth,
			struct error *err)
{
	char path[2 * PATH_MAX], next[ANSWER_NAME], sum[65];
	enum status st = STATUS_OK;
	struct dirent *e;
	struct stat info;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	if (lstat(path, &info))
		return STATUS_OK;
	if (S_ISREG(info.st_mode) && answer_name_is_safe(name)) {
		st = file_sha256_of(sum, path, err);
		if (!st)
			text_addf(out, "%s %s\n", sum, name);
		return st;
	}
	d = S_ISDIR(info.st_mode) && depth < ANSWER_DEPTH ? opendir(path) : NULL;
	while (d && !st && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		snprintf(next, sizeof(next), "%.700s/%.255s", name, e->d_name);
		st = list(out, folder, next, depth + 1, err);
	}
	if (d)
		closedir(d);
	return st;
}

enum status received_list(struct text *out, const char *folder, struct error *err)
{
	static const char *const tops[] = {"out", "err", "work"};
	enum status st = STATUS_OK;

	for (size_t i = 0; i < sizeof(tops) / sizeof(tops[0]) && !st; i++)
		st = list(out, folder, tops[i], 0, err);
	if (!st && out->failed)
		st = error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				     "no memory for the files of %s", folder);
	return st;
}

#define ARRIVING "arriving"

static enum status begin(struct received *r, const struct answer_event *e, struct error *err)
{
	char path[2 * PATH_MAX], beside[PATH_MAX + 16], *slash;
	struct stat info;
	enum status st;

	if (++r->files > RECEIVED_FILES_MAX)
		return error_set(err, STATUS_MISMATCH, "it has more than %d files", RECEIVED_FILES_MAX);
	if (e->number > r->most - r->bytes)
		return error_set(
			err, STATUS_MISMATCH,
			"%s and the files before it have more than the %.1f GB that --fetch-most accepts",
			e->text, (double)r->most * 1e-9);
	r->bytes += e->number;
	text_copy(r->name, sizeof(r->name), e->text);
	text_copy(r->sum, sizeof(r->sum), e->sum);
	snprintf(path, sizeof(path), "%s/%s", r->folder, r->name);
	if (strlen(path) >= PATH_MAX - 64)
		return error_set(err, STATUS_BAD_INPUT, "the path of %s is too long", r->name);
	slash = strrchr(path, '/');
	*slash = '\0';
	st = file_make_private_dir(path, err);
	*slash = '/';
	if (!st && !lstat(path, &info) && !S_ISREG(info.st_mode))
		st = error_set(err, STATUS_BAD_INPUT, "cannot replace %s: it is not a regular file", path);
	snprintf(beside, sizeof(beside), "%s/" ARRIVING, r->folder);
	if (!st)
		st = file_new_begin(&r->file, beside, err);
	r->open = !st;
	if (!st) {
		text_copy(r->file.path, sizeof(r->file.path), path);
		r->file.unsynced = true;
	}
	return st;
}

static enum status end(struct received *r, struct error *err)
{
	enum status st = STATUS_OK;
	char sum[65];

	r->open = false;
	st = file_sha256_of(sum, r->file.beside, err);
	if (!st && strcmp(sum, r->sum) != 0)
		st = error_set(err, STATUS_MISMATCH,
			       "%s arrived with another checksum than the node computed", r->name);
	st = file_new_end(&r->file, st, err);
	r->whole += !st;
	return st;
}

enum status received_take(struct received *r, const struct answer_event *e, struct error *err)
{
	switch (e->kind) {
	case ANSWER_FILE:
		return begin(r, e, err);
	case ANSWER_DATA:
		return file_new_write(&r->file, e->data, e->size, err);
	case ANSWER_DATA_END:
		return end(r, err);
	case ANSWER_SAME:
		return ++r->files > RECEIVED_FILES_MAX
			       ? error_set(err, STATUS_MISMATCH, "it has more than %d files",
					   RECEIVED_FILES_MAX)
			       : STATUS_OK;
	default:
		r->skipped++;
		return STATUS_OK;
	}
}

enum status received_sync(const struct received *r, struct error *err)
{
	return r->whole ? file_sync_all(r->folder, err) : STATUS_OK;
}

void received_abandon(struct received *r)
{
	if (r->open)
		file_new_end(&r->file, STATUS_LOST, NULL);
	r->open = false;
}
