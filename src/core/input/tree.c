/* SPDX-License-Identifier: Apache-2.0 */
/* Builds a tree from libyaml's events. JSON uses the same parser: all JSON that we accept is also YAML. */
#include "core/input/tree.h"

#include <yaml.h>

#include "core/file/file.h"
#include "core/input/opt.h"
#include "core/text/units.h"
#include "core/text/utf8.h"

enum { TREE_BYTES_MAX = 16 << 20, TREE_DEPTH_MAX = 64, TREE_NODES_MAX = 1000000 };

struct builder {
	yaml_parser_t parser;
	char *file; /* file name for messages; the root node owns it in the end */
	size_t nodes;
	struct error *err;
};

static int line_of(const yaml_event_t *event)
{
	return (int)event->start_mark.line + 1;
}

static void node_free(struct tree *t)
{
	size_t i;

	if (!t)
		return;
	for (i = 0; i < t->count; i++) {
		node_free(t->items[i]);
		if (t->keys)
			free(t->keys[i]);
	}
	free(t->items);
	free(t->keys);
	free(t->text);
	free(t);
}

void tree_free(struct tree *t)
{
	char *file;

	if (!t)
		return;
	file = (char *)(uintptr_t)t->file;
	node_free(t);
	free(file);
}

static enum status no_memory(struct builder *b)
{
	return error_set_cause(b->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: out of memory", b->file);
}

static enum status next_event(struct builder *b, yaml_event_t *event)
{
	const yaml_parser_t *p = &b->parser;

	if (yaml_parser_parse(&b->parser, event))
		return STATUS_OK;
	if (p->error == YAML_MEMORY_ERROR)
		return no_memory(b);
	return error_set(b->err, STATUS_BAD_INPUT, "%s:%zu: %s", b->file,
			 p->error == YAML_READER_ERROR ? p->mark.line + 1 : p->problem_mark.line + 1,
			 p->problem ? p->problem : "not YAML");
}

static struct tree *node_new(struct builder *b, enum tree_kind kind, int line)
{
	struct tree *t = calloc(1, sizeof(*t));

	if (!t) {
		no_memory(b);
		return NULL;
	}
	t->kind = kind;
	t->line = line;
	t->file = b->file;
	return t;
}

/* Normalizes YAML's core words for null, true and false to their JSON form. Other words stay as they are. */
static void settle_word(char *s)
{
	static const char *const words[][3] = {
		{"null", "Null", "NULL"}, {"true", "True", "TRUE"}, {"false", "False", "FALSE"}};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(s, words[i][1]) || !strcmp(s, words[i][2]))
			memcpy(s, words[i][0], strlen(s));
}

static bool is_null(const char *s)
{
	return !s[0] || !strcmp(s, "~") || !strcmp(s, "null");
}

/* Text of a scalar event. NULL with the error set if the text is not valid here. */
static char *scalar_text(struct builder *b, const yaml_event_t *event)
{
	size_t size = event->data.scalar.length;
	char *text;

	if (memchr(event->data.scalar.value, '\0', size)) {
		error_set(b->err, STATUS_BAD_INPUT, "%s:%d: text holds a NUL", b->file, line_of(event));
		return NULL;
	}
	text = malloc(size + 1);
	if (!text) {
		no_memory(b);
		return NULL;
	}
	memcpy(text, event->data.scalar.value, size);
	text[size] = '\0';
	return text;
}

static struct tree *scalar(struct builder *b, const yaml_event_t *event)
{
	struct tree *t = node_new(b, TREE_SCALAR, line_of(event));

	if (!t)
		return NULL;
	t->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	t->text = scalar_text(b, event);
	if (!t->text) {
		free(t);
		return NULL;
	}
	if (!t->quoted)
		settle_word(t->text);
	if (!t->quoted && is_null(t->text)) {
		free(t->text);
		t->text = NULL;
		t->kind = TREE_NULL;
	}
	return t;
}

/* Adds a value to a map or a list. Takes ownership of key (NULL in a list) and value, also on failure. */
static enum status add(struct builder *b, struct tree *t, char *key, struct tree *value)
{
	struct tree **items;
	char **keys;
	size_t room = t->count ? 2 * t->count : 4;

	if (!t->count || !(t->count & (t->count - 1))) { /* full: the room is always a power of two */
		room = t->count < 4 ? 4 : room;
		items = realloc(t->items, room * sizeof(struct tree *));
		if (items)
			t->items = items;
		keys = key ? realloc(t->keys, room * sizeof(char *)) : NULL;
		if (keys)
			t->keys = keys;
		if (!items || (key && !keys)) {
			free(key);
			node_free(value);
			return no_memory(b);
		}
	}
	if (key)
		t->keys[t->count] = key;
	t->items[t->count++] = value;
	return STATUS_OK;
}

static enum status refuse_extras(struct builder *b, const yaml_event_t *event)
{
	const yaml_char_t *anchor = NULL, *tag = NULL;

	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return error_set(b->err, STATUS_BAD_INPUT,
				 "%s:%d: YAML aliases are not supported: write the value itself", b->file,
				 line_of(event));
	case YAML_SCALAR_EVENT:
		anchor = event->data.scalar.anchor;
		tag = event->data.scalar.tag;
		break;
	case YAML_SEQUENCE_START_EVENT:
		anchor = event->data.sequence_start.anchor;
		tag = event->data.sequence_start.tag;
		break;
	case YAML_MAPPING_START_EVENT:
		anchor = event->data.mapping_start.anchor;
		tag = event->data.mapping_start.tag;
		break;
	default:
		break;
	}
	if (anchor || tag)
		return error_set(b->err, STATUS_BAD_INPUT, "%s:%d: YAML %s are not supported", b->file,
				 line_of(event), anchor ? "anchors" : "tags");
	return STATUS_OK;
}

static enum status node_of(struct builder *b, const yaml_event_t *event, int depth, struct tree **out);

static enum status list(struct builder *b, int depth, struct tree *t)
{
	enum status st = STATUS_OK;
	yaml_event_t event;
	bool end = false;

	while (!st && !end) {
		struct tree *item = NULL;

		st = next_event(b, &event);
		if (st)
			return st;
		end = event.type == YAML_SEQUENCE_END_EVENT;
		if (!end)
			st = node_of(b, &event, depth + 1, &item);
		yaml_event_delete(&event);
		if (!st && !end)
			st = add(b, t, NULL, item);
	}
	return st;
}

static int compare_keys(const void *a, const void *b, void *keys_)
{
	size_t i = *(const size_t *)a, j = *(const size_t *)b;
	char *const *keys = keys_;
	int order = strcmp(keys[i], keys[j]);

	return order ? order : i < j ? -1 : 1;
}

static enum status refuse_twins(struct builder *b, const struct tree *map)
{
	enum status st = STATUS_OK;
	size_t *order, i;

	if (map->count < 2)
		return STATUS_OK;
	order = malloc(map->count * sizeof(*order));
	if (!order)
		return no_memory(b);
	for (i = 0; i < map->count; i++)
		order[i] = i;
	qsort_r(order, map->count, sizeof(*order), compare_keys, map->keys);
	for (i = 1; i < map->count && !st; i++)
		if (!strcmp(map->keys[order[i]], map->keys[order[i - 1]]))
			st = error_set(b->err, STATUS_BAD_INPUT, "%s:%d: key \"%.64s\" is given twice",
				       b->file, map->items[order[i]]->line, map->keys[order[i]]);
	free(order);
	return st;
}

/* Reads one "key: value". The caller has read the key's event. */
static enum status map_entry(struct builder *b, const yaml_event_t *key_event, int depth, struct tree *t)
{
	enum status st;
	yaml_event_t event;
	struct tree *value;
	char *key;

	st = refuse_extras(b, key_event);
	if (st)
		return st;
	if (key_event->type != YAML_SCALAR_EVENT)
		return error_set(b->err, STATUS_BAD_INPUT, "%s:%d: a key must be text, not a map or a list",
				 b->file, line_of(key_event));
	key = scalar_text(b, key_event);
	if (!key)
		return b->err->status;
	st = next_event(b, &event);
	if (!st) {
		st = node_of(b, &event, depth + 1, &value);
		yaml_event_delete(&event);
	}
	if (st) {
		free(key);
		return st;
	}
	value->line = line_of(key_event);
	return add(b, t, key, value);
}

static enum status map(struct builder *b, int depth, struct tree *t)
{
	enum status st = STATUS_OK;
	yaml_event_t event;
	bool end = false;

	while (!st && !end) {
		st = next_event(b, &event);
		if (st)
			return st;
		end = event.type == YAML_MAPPING_END_EVENT;
		if (!end)
			st = map_entry(b, &event, depth, t);
		yaml_event_delete(&event);
	}
	return st ? st : refuse_twins(b, t);
}

static enum status node_of(struct builder *b, const yaml_event_t *event, int depth, struct tree **out)
{
	enum status st = refuse_extras(b, event);
	struct tree *t;

	if (st)
		return st;
	if (depth > TREE_DEPTH_MAX || ++b->nodes > TREE_NODES_MAX)
		return error_set(b->err, STATUS_BAD_INPUT, "%s:%d: %s", b->file, line_of(event),
				 depth > TREE_DEPTH_MAX ? "nested too deeply" : "too many values");
	if (event->type == YAML_SCALAR_EVENT)
		t = scalar(b, event);
	else
		t = node_new(b, event->type == YAML_MAPPING_START_EVENT ? TREE_MAP : TREE_LIST,
			     line_of(event));
	if (!t)
		return b->err->status;
	if (t->kind == TREE_MAP)
		st = map(b, depth, t);
	else if (t->kind == TREE_LIST)
		st = list(b, depth, t);
	if (st)
		node_free(t);
	else
		*out = t;
	return st;
}

/* Reads a stream of one document. An empty stream is a null. */
static enum status document(struct builder *b, struct tree **root)
{
	enum status st = STATUS_OK;
	yaml_event_t event;
	yaml_event_type_t type = YAML_NO_EVENT;

	while (!st && type != YAML_STREAM_END_EVENT) {
		st = next_event(b, &event);
		if (st)
			break;
		type = event.type;
		if (type == YAML_DOCUMENT_START_EVENT && *root)
			st = error_set(b->err, STATUS_BAD_INPUT,
				       "%s:%d: a second document starts here, but only one is supported",
				       b->file, line_of(&event));
		else if (type != YAML_STREAM_START_EVENT && type != YAML_STREAM_END_EVENT &&
			 type != YAML_DOCUMENT_START_EVENT && type != YAML_DOCUMENT_END_EVENT)
			st = node_of(b, &event, 1, root);
		yaml_event_delete(&event);
	}
	if (!st && !*root) {
		*root = node_new(b, TREE_NULL, 1);
		if (!*root)
			st = b->err->status;
	}
	return st;
}

enum status tree_parse(struct tree **out, const char *name, const char *text, size_t size, struct error *err)
{
	struct error own = {0};
	struct builder b = {.err = err && !err->status ? err : &own};
	struct tree *root = NULL;
	enum status st;

	if (size > TREE_BYTES_MAX)
		return error_set(err, STATUS_BAD_INPUT, "%s is larger than %d bytes", name, TREE_BYTES_MAX);
	b.file = strdup(name);
	if (!b.file || !yaml_parser_initialize(&b.parser)) {
		free(b.file);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%s: out of memory", name);
	}
	utf8_skip_bom(&text, &size);
	yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, size);
	st = document(&b, &root);
	yaml_parser_delete(&b.parser);
	if (st) {
		node_free(root);
		free(b.file);
		return st;
	}
	*out = root;
	return STATUS_OK;
}

enum status tree_read(struct tree **out, const char *path, struct error *err)
{
	enum status st;
	size_t size;
	char *text;

	st = file_read(&text, &size, path, TREE_BYTES_MAX, err);
	if (st)
		return st;
	st = tree_parse(out, path, text, size, err);
	free(text);
	return st;
}

const struct tree *tree_get(const struct tree *map, const char *key)
{
	size_t i;

	if (!map || map->kind != TREE_MAP)
		return NULL;
	for (i = 0; i < map->count; i++)
		if (!strcmp(map->keys[i], key))
			return map->items[i];
	return NULL;
}

const char *tree_text(const struct tree *map, const char *key, const char *fallback)
{
	const struct tree *t = tree_get(map, key);

	return t && t->kind == TREE_SCALAR ? t->text : fallback;
}

enum status tree_f64_unit(const struct tree *map, const char *key, const char *unit, double *out,
			  struct error *err)
{
	const struct tree *t = tree_get(map, key);
	struct error why = {0};

	if (!t)
		return STATUS_OK;
	if (t->kind != TREE_SCALAR || t->quoted)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected a number", t->file, t->line,
				 key);
	if (units_parse(out, t->text, unit, &why))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: %s", t->file, t->line, key, why.text);
	return STATUS_OK;
}

enum status tree_bool(const struct tree *map, const char *key, bool *out, struct error *err)
{
	const struct tree *t = tree_get(map, key);

	if (!t)
		return STATUS_OK;
	if (t->kind != TREE_SCALAR || t->quoted || (strcmp(t->text, "true") && strcmp(t->text, "false")))
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: %s: expected true or false", t->file, t->line,
				 key);
	*out = t->text[0] == 't';
	return STATUS_OK;
}

enum status tree_check_keys(const struct tree *map, const char *const *names, struct error *err)
{
	size_t count = 0, i, j;

	if (map->kind == TREE_NULL)
		return STATUS_OK;
	if (map->kind != TREE_MAP)
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: expected a map of keys and values", map->file,
				 map->line);
	while (names[count])
		count++;
	for (i = 0; i < map->count; i++) {
		const char *near;

		for (j = 0; j < count && strcmp(map->keys[i], names[j]); j++)
			;
		if (j < count)
			continue;
		near = opt_nearest(map->keys[i], names, count);
		if (near)
			return error_set(err, STATUS_BAD_INPUT,
					 "%s:%d: unknown key \"%.64s\", did you mean \"%s\"", map->file,
					 map->items[i]->line, map->keys[i], near);
		return error_set(err, STATUS_BAD_INPUT, "%s:%d: unknown key \"%.64s\"", map->file,
				 map->items[i]->line, map->keys[i]);
	}
	return STATUS_OK;
}
