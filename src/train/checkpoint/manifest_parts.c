/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/manifest_parts.h"
#include <string.h>

enum { MOST_BITS = 53 };

/* -- writing -- */

static json_t *tensors_json(const struct checkpoint_parts *p, unsigned part)
{
	json_t *list = json_array();

	for (int i = 0; i < p->local.count; i++) {
		const struct split_part *at = checkpoint_parts_place(p, part, i);

		json_array_append_new(list, json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "name",
						      p->whole.table[i].name, "row", (json_int_t)at->row,
						      "rows", (json_int_t)at->rows, "col",
						      (json_int_t)at->col, "cols", (json_int_t)at->cols,
						      "offset", (json_int_t)p->local.table[i].offset));
	}
	return list;
}

json_t *manifest_parts_json(const struct checkpoint_parts *p)
{
	json_t *list = json_array();

	for (unsigned r = 0; r < p->ranks; r++)
		json_array_append_new(list, json_pack("{s:I, s:o}", "length", (json_int_t)p->local.length,
						      "parameters", tensors_json(p, r)));
	return list;
}

/* -- reading -- */

static json_int_t number(const json_t *map, const char *key)
{
	return json_integer_value(json_object_get(map, key));
}

static bool is_whole(const json_t *map, const char *key)
{
	const json_t *v = json_object_get(map, key);

	return json_is_integer(v) && json_integer_value(v) >= 0 && json_integer_value(v) >> MOST_BITS == 0;
}

static const json_t *parts_of(const json_t *manifest)
{
	return json_object_get(manifest, "parts");
}

size_t manifest_parts_count(const json_t *manifest)
{
	return parts_of(manifest) ? json_array_size(parts_of(manifest)) : 1;
}

uint64_t manifest_part_length(const json_t *manifest, size_t part)
{
	const json_t *one = parts_of(manifest) ? json_array_get(parts_of(manifest), part) : manifest;

	return (uint64_t)number(one, "length");
}

struct manifest_tensor manifest_tensor(const json_t *manifest, size_t index, size_t part)
{
	const json_t *from = parts_of(manifest) ? json_array_get(parts_of(manifest), part) : manifest;
	const json_t *one = json_array_get(json_object_get(from, "parameters"), index);

	return (struct manifest_tensor){.row = number(one, "row"),
					.rows = number(one, "rows"),
					.col = number(one, "col"),
					.cols = number(one, "cols"),
					.offset = (uint64_t)number(one, "offset")};
}

static enum status bad(const char *path, const char *what, struct error *err)
{
	return error_set(err, STATUS_BAD_INPUT, "%s: %s", path, what);
}

/* One tensor of a part beside the whole one. */
static bool is_valid(const json_t *one, const json_t *all, json_int_t length)
{
	static const char *const keys[] = {"row", "rows", "col", "cols", "offset"};
	const char *name = json_string_value(json_object_get(one, "name"));
	json_int_t rows, cols;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!is_whole(one, keys[i]))
			return false;
	rows = number(one, "rows");
	cols = number(one, "cols");
	return name && !strcmp(name, json_string_value(json_object_get(all, "name"))) && rows && cols &&
	       number(one, "row") + rows <= number(all, "rows") &&
	       number(one, "col") + cols <= number(all, "cols") && cols <= length && rows <= length / cols &&
	       number(one, "offset") <= length - rows * cols;
}

static enum status check_part(const json_t *part, const json_t *all, const char *path, struct error *err)
{
	const json_t *list = json_object_get(part, "parameters");

	if (!is_whole(part, "length") || json_array_size(list) != json_array_size(all))
		return bad(path, "a part lacks its length or has other parameters", err);
	for (size_t i = 0; i < json_array_size(all); i++)
		if (!is_valid(json_array_get(list, i), json_array_get(all, i), number(part, "length")))
			return bad(path,
				   "a parameter of a part lies outside of the whole one or of its vector",
				   err);
	return STATUS_OK;
}

/* Whether the parts have every element of a tensor: they divide its rows or its columns, and may repeat. */
static bool is_covered(const json_t *manifest, size_t index, bool by_rows)
{
	const json_t *all = json_array_get(json_object_get(manifest, "parameters"), index);
	const int64_t end = number(all, by_rows ? "rows" : "cols"),
		      across = number(all, by_rows ? "cols" : "rows");
	int64_t next = 0, before = -1;

	while (next < end && before != next) {
		before = next;
		for (size_t part = 0; part < manifest_parts_count(manifest); part++) {
			const struct manifest_tensor t = manifest_tensor(manifest, index, part);
			const int64_t from = by_rows ? t.row : t.col, to = from + (by_rows ? t.rows : t.cols);

			if ((by_rows ? t.cols : t.rows) == across && from <= next && to > next)
				next = to;
		}
	}
	return next >= end;
}

enum status manifest_parts_check(const json_t *manifest, const char *path, struct error *err)
{
	const json_t *all = json_object_get(manifest, "parameters");
	const json_t *list = parts_of(manifest);
	enum status st = STATUS_OK;

	if (!json_is_array(list) || !json_array_size(list))
		return bad(path, "it lists no parts of tensors", err);
	for (size_t part = 0; part < json_array_size(list) && !st; part++)
		st = check_part(json_array_get(list, part), all, path, err);
	for (size_t i = 0; i < json_array_size(all) && !st; i++)
		if (!is_covered(manifest, i, true) && !is_covered(manifest, i, false))
			st = bad(path, "its parts do not cover a parameter", err);
	return st;
}
