/* SPDX-License-Identifier: Apache-2.0 */
/* The text form of a set: for each file, a line "NAME SIZE" and then SIZE bytes. The set's hash covers
 * exactly these bytes, so it equals the SHA-256 of the file. */
#include "judge/expect/expect.h"
#include <errno.h>
#include "core/text/text.h"

enum { NAME_MAX_BYTES = 512 };

void expect_saved_add(struct text *all, const char *name, const void *data, size_t size)
{
	text_addf(all, "%s %zu\n", name, size);
	text_add_bytes(all, data, size);
}

/* Reads the header line at *at and moves *at behind it. False: there is no valid header. */
static bool header(const char **at, const char *end, char name[NAME_MAX_BYTES], size_t *size)
{
	const char *line = memchr(*at, '\n', (size_t)(end - *at)), *space = line, *c;
	char *stop;

	while (space && space > *at && *space != ' ')
		space--;
	if (!line || space == *at || space - *at >= NAME_MAX_BYTES || space[1] < '0' || space[1] > '9')
		return false;
	for (c = *at; c < space; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			return false;
	errno = 0;
	*size = strtoul(space + 1, &stop, 10);
	if (errno || stop != line || *size > (size_t)(end - line - 1))
		return false;
	snprintf(name, NAME_MAX_BYTES, "%.*s", (int)(space - *at), *at);
	*at = line + 1;
	return true;
}

enum status expect_read_saved(struct expectations *e, const char *path, const char *text, size_t size,
			      struct error *err)
{
	const char *at = text, *end = text + size;
	char name[NAME_MAX_BYTES], shown[NAME_MAX_BYTES + 16];
	enum status status = STATUS_OK;
	unsigned count = 0;
	size_t bytes;

	while (!status && at < end) {
		if (count++ == EXPECT_FILES_MAX || !header(&at, end, name, &bytes))
			return error_set(
				err, STATUS_BAD_INPUT,
				"%s does not hold saved expectations: at byte %zu there is no line with a "
				"file's name and size",
				path, (size_t)(at - text));
		snprintf(shown, sizeof(shown), "expectations/%s", name);
		status = expect_add(e, shown, at, bytes, err);
		at += bytes;
	}
	if (!status && !count)
		status = error_set(err, STATUS_BAD_INPUT, "%s holds no expectations", path);
	return status;
}
