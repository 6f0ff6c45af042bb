/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/jinja.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"
#include "text/jinja/parse/parser.h"
#include "text/jinja/run.h"

const struct jinja_limits jinja_limits_default = {
	.steps = 20000000, .memory = (size_t)512 << 20, .output = (size_t)128 << 20, .depth = 1000};

int jinja_name(struct jinja *j, const char *bytes, size_t size)
{
	const char **grown;
	char *copy;
	int room = j->name_room ? j->name_room * 2 : 32;

	for (int i = 0; i < j->name_count; i++)
		if (!strncmp(j->names[i], bytes, size) && !j->names[i][size])
			return i;
	copy = j->name_count < JINJA_NAMES_MAX ? jinja_arena_take(&j->arena, size + 1) : NULL;
	if (!copy)
		return -1;
	memcpy(copy, bytes, size);
	if (j->name_count == j->name_room) {
		grown = jinja_arena_take(&j->arena, (size_t)room * sizeof(*grown));
		if (!grown)
			return -1;
		if (j->name_count)
			memcpy(grown, j->names, (size_t)j->name_count * sizeof(*grown));
		j->names = grown;
		j->name_room = room;
	}
	j->names[j->name_count] = copy;
	return j->name_count++;
}

static bool reserved_names(struct jinja *j)
{
	j->loop = jinja_name(j, "loop", 4);
	j->caller = jinja_name(j, "caller", 6);
	j->varargs = jinja_name(j, "varargs", 7);
	j->kwargs = jinja_name(j, "kwargs", 6);
	return j->kwargs >= 0;
}

/* The offset of the first byte that is NUL or not UTF-8, or `size`. */
static size_t bad_byte(const char *source, size_t size)
{
	struct value all = value_string(source, size, JINJA_TEMPLATE);
	size_t at = 0, taken;

	for (; at < size && source[at]; at += taken) {
		taken = 1;
		if (!(source[at] & 0x80))
			continue;
		string_code(&all, at, &taken);
		if (taken == 1)
			return at;
	}
	return at;
}

static enum status parse(struct jinja *j, const char *source, size_t size, struct error *err)
{
	struct tokens tokens = {0};
	struct parser p = {.j = j, .err = err};
	struct error why = {0};
	enum status st = tokens_read(&tokens, &j->arena, j->name, source, size, err);

	p.err = &why;
	p.at = tokens.items;
	if (!st && !(j->body = parse_template(&p)))
		st = error_set_cause(err, why.status ? why.status : STATUS_NO_RESOURCE, why.cause, "%s",
				     why.text);
	tokens_release(&tokens);
	return st;
}

enum status jinja_compile(struct jinja **out, const char *name, const char *source, size_t size,
			  struct error *err)
{
	struct jinja *j;
	size_t bad = bad_byte(source, size);
	enum status st;

	*out = NULL;
	if (size > JINJA_SOURCE_MAX)
		return error_set(err, STATUS_BAD_INPUT,
				 "%.200s: the template has %zu bytes; at most %d are allowed", name, size,
				 JINJA_SOURCE_MAX);
	if (bad < size)
		return error_set(err, STATUS_BAD_INPUT, "%.200s: byte %zu of the template is not UTF-8", name,
				 bad);
	j = calloc(1, sizeof(*j));
	if (!j || !(j->name = strdup(name))) {
		free(j);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%.200s: no memory", name);
	}
	j->arena.max = SIZE_MAX;
	st = reserved_names(j)
		     ? parse(j, source, size, err)
		     : error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%.200s: no memory", name);
	if (st)
		jinja_destroy(&j);
	*out = j;
	return st;
}

void jinja_destroy(struct jinja **j)
{
	if (!*j)
		return;
	jinja_arena_release(&(*j)->arena);
	free((*j)->name);
	free(*j);
	*j = NULL;
}

static bool fail_at(struct jinja_run *r, enum status st, const char *what)
{
	if (r->status)
		return false;
	r->status = error_set(r->err, st, "%.200s:%d:%d: %s", r->j->name, r->at ? r->at->line : 1,
			      r->at ? r->at->column : 1, what);
	return false;
}

bool run_fail(struct jinja_run *r, const char *format, ...)
{
	char what[256];
	va_list args;

	va_start(args, format);
	vsnprintf(what, sizeof(what), format, args);
	va_end(args);
	return fail_at(r, STATUS_BAD_INPUT, what);
}

bool run_fail_limit(struct jinja_run *r, const char *what)
{
	char text[128];

	snprintf(text, sizeof(text), "the template exceeds its limit of %s", what);
	return fail_at(r, STATUS_NO_RESOURCE, text);
}

bool run_fail_undefined(struct jinja_run *r, const struct value *v)
{
	int size = (int)(v->undefined.size < 80 ? v->undefined.size : 80);

	if (v->undefined.of)
		return run_fail(r, "a value of type %s has no attribute \"%.*s\"", v->undefined.of, size,
				v->undefined.name);
	return run_fail(r, "\"%.*s\" is undefined", size, v->undefined.name ? v->undefined.name : "");
}

bool run_charge(struct jinja_run *r, uint64_t steps)
{
	r->steps += steps;
	return r->steps <= r->limits.steps || run_fail_limit(r, "steps");
}

bool run_charge_bytes(struct jinja_run *r, size_t bytes)
{
	return run_charge(r, bytes / 64);
}

void *run_take(struct jinja_run *r, size_t size)
{
	void *taken = jinja_arena_take(&r->arena, size);

	if (!taken)
		run_fail_limit(r, "memory");
	return taken;
}

bool run_enter(struct jinja_run *r)
{
	if (r->depth >= r->limits.depth)
		return run_fail_limit(r, "nesting");
	r->depth++;
	return true;
}

enum status jinja_run_create(struct jinja_run **out, const struct jinja *j, const struct jinja_limits *limits,
			     int64_t now, struct error *err)
{
	struct jinja_run *r = calloc(1, sizeof(*r));

	*out = NULL;
	if (!r)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "%.200s: no memory",
				       j->name);
	r->j = j;
	r->limits = limits ? *limits : jinja_limits_default;
	r->arena.max = r->limits.memory;
	r->now = now;
	r->err = err;
	r->root = run_take(r, (size_t)j->name_count * sizeof(*r->root));
	if (!r->root) {
		enum status st = r->status;

		jinja_run_destroy(&r);
		return st;
	}
	for (int i = 0; i < j->name_count; i++) {
		const struct function *f = global_find(j->names[i]);

		r->root[i] = (struct value){.kind = VALUE_UNDEFINED,
					    .undefined = {j->names[i], strlen(j->names[i]), NULL}};
		if (f)
			r->root[i] = (struct value){.kind = VALUE_FUNCTION, .function = f};
	}
	*out = r;
	return STATUS_OK;
}

void jinja_run_destroy(struct jinja_run **r)
{
	if (!*r)
		return;
	jinja_arena_release(&(*r)->arena);
	free(*r);
	*r = NULL;
}

/* The place of a variable, NULL: the template does not use it. */
static struct value *variable(struct jinja_run *r, const char *name)
{
	for (int i = 0; i < r->j->name_count; i++)
		if (!strcmp(r->j->names[i], name))
			return &r->root[i];
	return NULL;
}

enum status jinja_run_set(struct jinja_run *r, const char *name, const json_t *value,
			  enum jinja_source source, struct error *err)
{
	struct value *to = variable(r, name);

	r->err = err;
	return !to || value_of_json(r, value, source, to) ? STATUS_OK : r->status;
}

static bool is_word(const json_t *value, const char *const *words)
{
	const char *text = json_string_value(value);

	for (; text && *words; words++)
		if (!strcmp(text, *words))
			return true;
	return false;
}

static bool set_object(struct jinja_run *r, struct value *to, const json_t *object, enum jinja_source source,
		       const char *trusted, const char *const *words)
{
	const char *key;
	json_t *item;
	size_t at = 0;

	if (!json_is_object(object))
		return value_of_json(r, object, source, to);
	if (!dict_create(r, VALUE_DICT, json_object_size(object), to))
		return false;
	json_object_foreach((json_t *)object, key, item)
	{
		struct dict_entry *e = &to->dict->entries[at++];
		bool own = !strcmp(key, trusted) && is_word(item, words);

		e->key = value_string(key, strlen(key), source);
		if (!value_of_json(r, item, own ? JINJA_TEMPLATE : source, &e->value))
			return false;
	}
	to->dict->count = at;
	return true;
}

enum status jinja_run_set_list(struct jinja_run *r, const char *name, const json_t *list,
			       const enum jinja_source *sources, const char *trusted,
			       const char *const *words, struct error *err)
{
	struct value *to = variable(r, name);
	const json_t *entry;
	size_t i;

	r->err = err;
	if (!to)
		return STATUS_OK;
	if (!list_create(r, FORM_LIST, json_array_size(list), to))
		return r->status;
	json_array_foreach(list, i, entry)
	{
		if (!set_object(r, &to->list->items[i], entry, sources[i], trusted, words))
			return r->status;
	}
	return STATUS_OK;
}

enum status jinja_run_render(struct jinja_run *r, struct jinja_output *out, struct error *err)
{
	struct frame root = {0};

	r->err = err;
	r->out = out;
	r->frame = &root;
	if (!r->status && execute(r, r->j->body) && (out->failed || out->text.failed))
		run_fail_limit(r, "memory");
	r->frame = NULL;
	return r->status;
}
