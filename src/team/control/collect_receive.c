/* SPDX-License-Identifier: Apache-2.0 */
#include "team/control/collect_receive.h"

#include <errno.h>
#include <jansson.h>
#include <unistd.h>
#include "core/text/text.h"
#include "journal/journal.h"

const struct collect_row collect_rows[COLLECT_FILES] = {
	{JOURNAL_FILE, 256ull << 20},
	{JOURNAL_FILE JOURNAL_CUT, 64ull << 20},
};

static bool find_row(const char *name, unsigned *row)
{
	for (*row = 0; name && *row < COLLECT_FILES; ++*row)
		if (!strcmp(name, collect_rows[*row].name))
			return true;
	return false;
}

enum status collect_head(const void *head, size_t size, unsigned *row, uint64_t *bytes, struct error *err)
{
	json_t *j = json_loadb(head, size, JSON_REJECT_DUPLICATES, NULL);
	const json_t *told = json_object_get(j, "size");
	const char *name = json_string_value(json_object_get(j, "name"));
	enum status st = STATUS_OK;

	if (!find_row(name, row))
		st = error_set(err, STATUS_BAD_INPUT, "a file has an unknown name");
	else if (!json_is_integer(told) || json_integer_value(told) < 0 ||
		 (uint64_t)json_integer_value(told) > collect_rows[*row].most)
		st = error_set(err, STATUS_BAD_INPUT, "%s has no size, or is larger than %llu bytes",
			       collect_rows[*row].name, (unsigned long long)collect_rows[*row].most);
	else
		*bytes = (uint64_t)json_integer_value(told);
	json_decref(j);
	return st;
}

static void path_of(const struct collect_in *in, unsigned row, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", in->dir, collect_rows[row].name);
}

void collect_forget(const struct collect_in *in)
{
	char path[COLLECT_PATH + 32];

	for (unsigned row = 0; row < COLLECT_FILES; row++) {
		path_of(in, row, path, sizeof(path));
		unlink(path);
	}
}

static enum status finish(struct collect_in *in, enum status st, struct error *err)
{
	in->open = false;
	st = file_new_end(&in->file, st, err);
	if (!st)
		in->taken |= 1u << in->row;
	return st;
}

enum status collect_file(struct collect_in *in, const void *head, size_t size, struct error *err)
{
	char path[COLLECT_PATH + 32];
	uint64_t bytes = 0;
	unsigned row = 0;
	enum status st = collect_head(head, size, &row, &bytes, err);

	if (st)
		return st;
	if (in->open || in->taken & 1u << row)
		return error_set(err, STATUS_BAD_INPUT, "%s was sent %s", collect_rows[row].name,
				 in->open ? "before the end of another file" : "twice");
	st = file_make_dir(in->dir, err);
	if (st)
		return st;
	path_of(in, row, path, sizeof(path));
	st = file_new_begin(&in->file, path, err);
	if (st)
		return st;
	in->open = true;
	in->row = row;
	in->left = bytes;
	return bytes ? STATUS_OK : finish(in, STATUS_OK, err);
}

enum status collect_data(struct collect_in *in, const void *bytes, size_t size, struct error *err)
{
	const char *at = bytes;
	size_t left = size;

	if (!in->open || size > in->left)
		return error_set(err, STATUS_BAD_INPUT,
				 "received %zu bytes of a file of which %llu are still expected", size,
				 in->open ? (unsigned long long)in->left : 0ull);
	while (left) {
		ssize_t n = write(in->file.fd, at, left);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_errno(err, errno, "cannot write %s", in->file.path);
		at += n;
		left -= (size_t)n;
	}
	in->bytes += size;
	in->left -= size;
	return in->left ? STATUS_OK : finish(in, STATUS_OK, err);
}

bool collect_close(struct collect_in *in)
{
	if (!in->open)
		return true;
	finish(in, STATUS_CANCELLED, NULL);
	return false;
}
