/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a recording from its folder. A derived recording names the real recording that it is based on, and
 * the changes. So its file contains the difference only: {"of": "h100-sxm-1", "changes": {"/nvml/gpus/0/..":
 * value}}. */
#include <limits.h>
#include <unistd.h>
#include "core/file/file.h"
#include "core/text/text.h"
#include "machine/source/source.h"

enum { FILE_BYTES_MAX = 16 << 20 };

static enum status load_json(json_t **out, const char *dir, const char *name, bool required,
			     struct error *err)
{
	char path[PATH_MAX];
	json_error_t e;
	char *data = NULL;
	size_t size = 0;
	enum status st;

	snprintf(path, sizeof(path), "%s/%s.json", dir, name);
	if (!required && access(path, F_OK))
		return STATUS_OK;
	st = file_read(&data, &size, path, FILE_BYTES_MAX, err);
	if (st)
		return st;
	*out = json_loadb(data, size, JSON_REJECT_DUPLICATES, &e);
	free(data);
	if (!*out)
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s:%d: %s", path, e.line,
				       e.text);
	if (!json_is_object(*out))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s:1: not a JSON object",
				       path);
	return STATUS_OK;
}

/* Loads recording.json under the key "recording" of `whole`. */
static enum status load_about(json_t *whole, const char *dir, struct error *err)
{
	json_t *about = NULL;
	enum status st = load_json(&about, dir, "recording", true, err);

	if (!st && json_integer_value(json_object_get(about, "format")) != 1)
		st = error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				     "%s/recording.json: not a recording of format 1", dir);
	if (!st)
		json_object_set(whole, "recording", about);
	json_decref(about);
	return st;
}

static enum status load_layers(json_t *whole, const char *dir, struct error *err)
{
	enum status st = STATUS_OK;

	for (int i = LAYER_HOST; !st && i <= LAYER_SOFTWARE; i++) {
		const char *name = layer_name((enum layer)i);
		json_t *layer = NULL;

		st = load_json(&layer, dir, name, i == LAYER_HOST, err);
		if (layer)
			json_object_set_new(whole, name, layer);
	}
	return st;
}

/* Copies the next word of a JSON pointer (RFC 6901: ~1 is '/', ~0 is '~'). Returns the rest, NULL after the
 * last word. */
static const char *pointer_word(const char *p, char *word, size_t size)
{
	size_t n = 0;

	for (; *p && *p != '/'; p++) {
		char c = *p;

		if (c == '~' && (p[1] == '0' || p[1] == '1'))
			c = *++p == '1' ? '/' : '~';
		if (n + 1 < size)
			word[n++] = c;
	}
	word[n] = 0;
	return *p ? p + 1 : NULL;
}

static json_t *member(json_t *at, const char *word)
{
	char *end;
	unsigned long index;

	if (json_is_object(at))
		return json_object_get(at, word);
	index = strtoul(word, &end, 10);
	return *word && !*end ? json_array_get(at, index) : NULL;
}

/* Replaces the member with `value`, or appends it to a list; null removes the member. */
static bool put(json_t *at, const char *word, json_t *value)
{
	char *end;
	unsigned long index = strtoul(word, &end, 10);

	if (json_is_object(at))
		return json_is_null(value) ? !json_object_del(at, word) : !json_object_set(at, word, value);
	if (!json_is_array(at) || !*word || *end)
		return false;
	if (json_is_null(value))
		return !json_array_remove(at, index);
	return index == json_array_size(at) ? !json_array_append(at, value)
					    : !json_array_set(at, index, value);
}

static bool change(json_t *whole, const char *pointer, json_t *value)
{
	const char *rest = pointer[0] == '/' ? pointer + 1 : NULL;
	json_t *at = whole;
	char word[PATH_MAX];

	while (rest) {
		rest = pointer_word(rest, word, sizeof(word));
		if (!rest)
			return put(at, word, value);
		at = member(at, word);
	}
	return false;
}

enum status source_derive(json_t *whole, const json_t *changes, struct error *err)
{
	const char *pointer;
	json_t *value;

	json_object_foreach((json_t *)changes, pointer, value)
	{
		json_t *own = json_deep_copy(value);
		bool done = own && change(whole, pointer, own);

		json_decref(own);
		if (!done)
			return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
					       "recording: cannot change %s: it does not exist", pointer);
	}
	return STATUS_OK;
}

/* The folder of the recording that a derived one is based on, in the same parent folder. `of` must be a plain
 * name, so that no other folder can be reached. */
static enum status base_folder(char *base, size_t size, const char *dir, const char *of, struct error *err)
{
	char real[PATH_MAX], *slash;

	if (!*of || *of == '.' || strchr(of, '/'))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT,
				       "%s/recording.json: of: '%s' is not a plain folder name", dir, of);
	if (!realpath(dir, real) || !(slash = strrchr(real, '/')))
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s: no such folder", dir);
	*slash = 0;
	if ((size_t)snprintf(base, size, "%s/%s", real, of) >= size)
		return error_set_cause(err, STATUS_BAD_INPUT, CAUSE_BAD_INPUT, "%s: its path is too long",
				       dir);
	return STATUS_OK;
}

enum status source_open(struct source **out, const char *dir, struct error *err)
{
	json_t *whole = json_object();
	const json_t *about;
	const char *of;
	char base[PATH_MAX];
	enum status st;

	*out = NULL;
	st = load_about(whole, dir, err);
	about = json_object_get(whole, "recording");
	of = json_string_value(json_object_get(about, "of"));
	if (!st && of)
		st = base_folder(base, sizeof(base), dir, of, err);
	if (!st)
		st = load_layers(whole, of ? base : dir, err);
	if (!st && of)
		st = source_derive(whole, json_object_get(about, "changes"), err);
	if (!st)
		st = source_from_json(out, whole, err);
	json_decref(whole);
	return st;
}
