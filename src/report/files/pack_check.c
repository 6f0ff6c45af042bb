/* SPDX-License-Identifier: Apache-2.0 */
#include "report/files/pack_check.h"
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "journal/file/compressed.h"
#include "journal/file/rank_dir.h"
#include "report/files/pack.h"

enum { SUM_DIGITS = 64, SUMS_MAX = PACK_FILES_MAX * 600 };
/* Journals shrink to a tenth; an archive that shrank to less than a thousandth is refused. */
enum { UNPACKED_TIMES = 1000, UNPACKED_LEAST = 64 << 20 };

struct pack_check {
	json_t *found;	  /* checksums of members, by name below the folder */
	struct text sums; /* SHA256SUMS */
	char folder[256]; /* the folder of the first member */
	size_t files;
	uint64_t bytes, bytes_max;
	bool journal, has_sums;
	const char *why; /* the error of the member `which`; NULL: none */
	char which[160];
};

bool pack_plain(const char *name, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (name[i] <= ' ' || name[i] >= 0x7f || name[i] == '/' || name[i] == '\\')
			return false;
	return size && name[0] != '.';
}

bool pack_is_nodes(const char *name, unsigned depth)
{
	unsigned rank;
	int used = 0;

	switch (depth) {
	case 0:
		return !strcmp(name, NODES_DIR);
	case 1:
		return pack_plain(name, strlen(name));
	case 2:
		return sscanf(name, "rank-%9u%n", &rank, &used) == 1 && !name[used];
	default:
		return false;
	}
}

bool pack_is_part(const char *name)
{
	return !strcmp(name, "serve") || (!strncmp(name, "stage-", 6) && pack_plain(name, strlen(name)));
}

/* Skips the folders of runs inside the run. */
static const char *skip_parts(const char *file)
{
	for (unsigned depth = 0; depth < PACK_PARTS_DEPTH && strchr(file, '/'); depth++) {
		const size_t n = strcspn(file, "/");
		char name[256];

		if (n >= sizeof(name))
			return file;
		snprintf(name, sizeof(name), "%.*s", (int)n, file);
		if (!pack_is_part(name))
			return file;
		file += n + 1;
	}
	return file;
}

/* True for a file in the folder of a run, or for another rank's file below its nodes/. */
static bool is_member(const char *file)
{
	char name[256];
	size_t n;

	file = skip_parts(file);
	for (unsigned depth = 0; depth < PACK_NODES_DEPTH && strchr(file, '/'); depth++) {
		n = strcspn(file, "/");
		if (n >= sizeof(name))
			return false;
		snprintf(name, sizeof(name), "%.*s", (int)n, file);
		if (!pack_is_nodes(name, depth))
			return false;
		file += n + 1;
		if (!strchr(file, '/') && depth + 1 < PACK_NODES_DEPTH)
			return false;
	}
	return pack_plain(file, strlen(file));
}

struct pack_check *pack_check_begin(uint64_t packed)
{
	struct pack_check *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->found = json_object();
	c->bytes_max = packed < UINT64_MAX / UNPACKED_TIMES ? packed * UNPACKED_TIMES : UINT64_MAX;
	if (c->bytes_max < UNPACKED_LEAST)
		c->bytes_max = UNPACKED_LEAST;
	if (c->found)
		return c;
	free(c);
	return NULL;
}

void pack_check_free(struct pack_check *c)
{
	json_decref(c->found);
	text_release(&c->sums);
	free(c);
}

/* The reason to refuse a member; NULL: it is accepted. */
static const char *refuse(struct pack_check *c, const char *name, const void *data, size_t size,
			  size_t folder)
{
	const char *file = name + folder + (name[folder] == '/');

	if (!data)
		return "is not a regular file";
	if (size > c->bytes_max - c->bytes)
		return "makes the contents more than a thousand times larger than the archive";
	c->bytes += size;
	if (!name[folder] || !pack_plain(name, folder) || folder >= sizeof(c->folder) || !is_member(file))
		return "does not have a plain name in one folder";
	if (!c->folder[0])
		snprintf(c->folder, sizeof(c->folder), "%.*s", (int)folder, name);
	if (strlen(c->folder) != folder || strncmp(c->folder, name, folder) != 0)
		return "is in a second folder";
	if (json_object_get(c->found, file) || (c->has_sums && !strcmp(file, PACK_SUMS)))
		return "occurs twice";
	if (c->files == PACK_FILES_MAX && strcmp(file, PACK_SUMS) != 0)
		return "exceeds the limit of 16384 files";
	if (!strcmp(file, PACK_SUMS) && size > SUMS_MAX)
		return "is larger than the checksums of 16384 files";
	return NULL;
}

int pack_check_member(void *arg, const char *name, const void *data, size_t size)
{
	struct pack_check *c = arg;
	size_t folder = strcspn(name, "/");
	char hex[SUM_DIGITS + 1];

	c->why = refuse(c, name, data, size, folder);
	if (!c->why && strcmp(name + folder + 1, PACK_SUMS) != 0) {
		name += folder + 1;
		file_sha256(hex, data, size);
		if (json_object_set_new(c->found, name, json_string(hex)))
			c->why = "does not fit into memory";
		c->journal = c->journal || !strcmp(name, JOURNAL_FILE) || !strcmp(name, JOURNAL_COMPRESSED) ||
			     !strcmp(name, PACK_COLLECTION);
		c->files++;
	} else if (!c->why) {
		text_add_bytes(&c->sums, data, size);
		c->has_sums = true;
	}
	if (c->why)
		text_copy(c->which, sizeof(c->which), name);
	return c->why ? -1 : 0;
}

bool pack_check_refusal(const struct pack_check *c, const char *path, struct error *err)
{
	if (!c->why)
		return false;
	error_set(err, STATUS_MISMATCH, "%s is not an archive of a run: its member \"%s\" %s", path, c->which,
		  c->why);
	return true;
}

static enum status bad_sum(const char *path, const char *name, struct error *err)
{
	return error_set(err, STATUS_MISMATCH,
			 "%s: the member %.200s is missing or does not match its checksum", path, name);
}

/* True if a member has the name and checksum of the line "HEX  NAME" of `size` bytes. Adds its name to
 * `seen`. */
static bool holds(const struct pack_check *c, const char *line, size_t size, json_t *seen, const char **name)
{
	const char *sum;

	*name = PACK_SUMS;
	if (size < SUM_DIGITS + 3 || memcmp(line + SUM_DIGITS, "  ", 2) != 0 || memchr(line, 0, size))
		return false;
	*name = line + SUM_DIGITS + 2;
	sum = json_string_value(json_object_get(c->found, *name));
	return sum && !strncmp(sum, line, SUM_DIGITS) && !json_object_set_new(seen, *name, json_true());
}

/* Checks that every line belongs to a member and every member has a line. */
static enum status check_sums(const struct pack_check *c, const char *path, struct error *err)
{
	char *lines = strdup(text_str(&c->sums));
	json_t *seen = json_object(), *value;
	enum status st = lines && seen ? STATUS_OK : error_errno(err, ENOMEM, "%s: its checksums", path);
	const char *name;

	for (char *at = lines, *end; !st && *at; at = end + 1) {
		end = strchr(at, '\n');
		if (end)
			*end = '\0';
		if (!end || !holds(c, at, (size_t)(end - at), seen, &name))
			st = bad_sum(path, end ? name : PACK_SUMS, err);
		if (!end)
			break;
	}
	json_object_foreach(c->found, name, value)
	{
		if (!st && !json_object_get(seen, name))
			st = bad_sum(path, name, err);
	}
	json_decref(seen);
	free(lines);
	return st;
}

enum status pack_check_end(const struct pack_check *c, const char *path, size_t *files, struct error *err)
{
	enum status st;

	*files = c->files;
	if (!c->sums.size || c->sums.failed || strlen(text_str(&c->sums)) != c->sums.size)
		return bad_sum(path, PACK_SUMS, err);
	st = check_sums(c, path, err);
	if (!st && !c->journal)
		st = error_set(err, STATUS_MISMATCH, "%s is not an archive of a run: it has no " JOURNAL_FILE,
			       path);
	return st;
}
