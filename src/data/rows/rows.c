/* SPDX-License-Identifier: Apache-2.0 */
#include "data/rows/rows.h"

#include "core/text/utf8.h"
#include "core/file/mapped.h"
#include "core/json/read.h"

static enum status add_place(struct rows *r, const char *text, size_t size, size_t line, struct error *err)
{
	struct rows_place *grown;
	size_t room;

	if (r->count == r->room) {
		room = r->room ? r->room * 2 : 1024;
		grown = realloc(r->place, room * sizeof(*grown));
		if (!grown)
			return error_set(err, STATUS_NO_RESOURCE, "%s: %zu rows", r->path, room);
		r->place = grown;
		r->room = room;
	}
	r->place[r->count++] = (struct rows_place){.text = text, .size = size, .line = line};
	return STATUS_OK;
}

static enum status find_lines(struct rows *r, const char *text, size_t size, struct error *err)
{
	size_t at = 0, line = 1;
	enum status st = STATUS_OK;

	while (!st && at < size) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t length = end ? (size_t)(end - text) - at : size - at, first = 0;

		while (first < length && json_is_blank(text[at + first]))
			first++;
		if (first < length)
			st = add_place(r, text + at + first, length - first, line, err);
		at += length + 1;
		line++;
	}
	return st;
}

/* Finds the items of a JSON array. Errors within an item are found when it is read. */
static enum status find_items(struct rows *r, const char *text, size_t size, struct error *err)
{
	size_t line = 1, depth = 0, begin = 0, begin_line = 1;
	bool quoted = false, open = false;
	enum status st = STATUS_OK;

	for (size_t at = 0; !st && at < size; at++) {
		char c = text[at];

		line += c == '\n';
		if (quoted) {
			at += c == '\\';
			quoted = c != '"';
			continue;
		}
		if (depth == 1 && !open && !json_is_blank(c) && c != ',' && c != ']') {
			open = true;
			begin = at;
			begin_line = line;
		}
		if (open && depth == 1 && (c == ',' || c == ']')) {
			open = false;
			st = add_place(r, text + begin, at - begin, begin_line, err);
		}
		quoted = c == '"';
		depth += c == '[' || c == '{';
		if ((c == ']' || c == '}') && !--depth)
			return st;
	}
	return st ? st
		  : error_set(err, STATUS_BAD_INPUT, "%s:%zu: the array of rows is not closed", r->path,
			      line);
}

enum status rows_scan(struct rows *r, const char *path, const char *text, uint64_t size, struct error *err)
{
	size_t first = 0, length = size;
	enum status st;

	*r = (struct rows){.path = strdup(path)};
	if (!r->path)
		return error_set(err, STATUS_NO_RESOURCE, "rows");
	utf8_skip_bom(&text, &length);
	while (first < length && json_is_blank(text[first]))
		first++;
	st = first < length && text[first] == '[' ? find_items(r, text, length, err)
						  : find_lines(r, text, length, err);
	if (!st && !r->count)
		st = error_set(err, STATUS_BAD_INPUT, "%s: no rows", path);
	if (st)
		rows_release(r);
	return st;
}

enum status rows_open(struct rows *r, const char *path, struct error *err)
{
	void *map;
	uint64_t size;
	enum status st = mapped_open(&map, &size, path, err);

	*r = (struct rows){0};
	if (!st)
		st = rows_scan(r, path, map, size, err);
	r->map = map;
	r->map_size = size;
	st = mapped_check(st, err);
	if (st)
		rows_release(r);
	return st;
}

void rows_release(struct rows *r)
{
	mapped_close(r->map, r->map_size);
	free(r->place);
	free(r->path);
	*r = (struct rows){0};
}

static enum rows_format format_of(const json_t *row)
{
	if (json_object_get(row, "messages"))
		return ROWS_CHAT;
	if (json_object_get(row, "conversations"))
		return ROWS_SHAREGPT;
	return json_object_get(row, "chat") ? ROWS_GLAIVE : ROWS_AUTO;
}

enum status rows_parse(json_t **out, const char *text, size_t size, enum rows_format format,
		       struct error *err)
{
	struct json_wrong why;
	json_t *row = json_read(text, size, JSON_REJECT_DUPLICATES, &why);
	enum status st;

	if (!row)
		return error_set(err, STATUS_BAD_INPUT, "%s (column %d)", why.text, why.column);
	if (format == ROWS_AUTO)
		format = format_of(row);
	if (format == ROWS_CHAT) {
		*out = row;
		return STATUS_OK;
	}
	if (format == ROWS_GLAIVE)
		st = rows_of_glaive(out, row, err);
	else if (format == ROWS_SHAREGPT)
		st = rows_of_sharegpt(out, row, err);
	else
		st = error_set(err, STATUS_BAD_INPUT,
			       "the row has none of \"messages\", \"conversations\" and \"chat\"");
	json_decref(row);
	return st;
}

enum status rows_read(const struct rows *r, size_t i, enum rows_format format, struct chat *out,
		      struct error *err)
{
	const struct rows_place *p = &r->place[i];
	struct error why = {0};
	json_t *root = NULL;
	enum status st = rows_parse(&root, p->text, p->size, format, &why);

	if (!st)
		st = chat_read(out, root, &why);
	if (st)
		st = error_set(err, st, "%s:%zu: %s", r->path, p->line, why.text);
	else if (mapped_check(STATUS_OK, err))
		chat_release(out);
	return mapped_check(st, err);
}
