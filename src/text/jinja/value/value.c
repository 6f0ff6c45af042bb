/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/value.h"

#include <stdlib.h>
#include <string.h>
#include "text/jinja/run.h"

struct arena_block {
	struct arena_block *before;
	size_t used, room;
	max_align_t data[];
};

void *jinja_arena_take(struct jinja_arena *a, size_t size)
{
	enum { BLOCK = 64 << 10 };
	struct arena_block *b = a->last;
	size_t need = (size + sizeof(max_align_t) - 1) / sizeof(max_align_t) * sizeof(max_align_t);
	size_t room = need > BLOCK ? need : BLOCK;
	void *taken;

	if (need < size || need > a->max - a->used)
		return NULL;
	if (!b || need > b->room - b->used) {
		b = calloc(1, sizeof(*b) + room);
		if (!b)
			return NULL;
		b->room = room;
		b->before = a->last;
		a->last = b;
	}
	taken = (char *)b->data + b->used;
	b->used += need;
	a->used += need;
	return taken;
}

void jinja_arena_release(struct jinja_arena *a)
{
	struct arena_block *before;

	for (struct arena_block *b = a->last; b; b = before) {
		before = b->before;
		free(b);
	}
	a->last = NULL;
	a->used = 0;
}

const char *value_type(const struct value *v)
{
	static const char *const names[] = {"undefined", "none",   "boolean",	 "integer",   "float",
					    "string",	 "list",   "dictionary", "namespace", "macro",
					    "function",	 "method", "loop"};

	if (v->kind == VALUE_LIST && v->list->form == FORM_TUPLE)
		return "tuple";
	if (v->kind == VALUE_LIST && v->list->form == FORM_GENERATOR)
		return "generator";
	return names[v->kind];
}

bool value_truth(const struct value *v)
{
	switch (v->kind) {
	case VALUE_UNDEFINED:
	case VALUE_NONE:
		return false;
	case VALUE_BOOL:
		return v->truth;
	case VALUE_INT:
		return v->integer != 0;
	case VALUE_FLOAT:
		return v->real != 0;
	case VALUE_STRING:
		return v->string.size > 0;
	case VALUE_LIST:
		return v->list->count > 0 || v->list->form == FORM_GENERATOR;
	case VALUE_DICT:
		return v->dict->count > 0;
	default:
		return true;
	}
}

bool value_of_json(struct jinja_run *r, const json_t *json, enum jinja_source source, struct value *out)
{
	switch (json_typeof(json)) {
	case JSON_OBJECT:
		if (!dict_create(r, VALUE_DICT, 0, out))
			return false;
		out->dict->json = json;
		out->dict->count = json_object_size(json);
		out->dict->source = (uint8_t)source;
		return true;
	case JSON_ARRAY:
		if (!list_create(r, FORM_LIST, 0, out))
			return false;
		out->list->json = json;
		out->list->count = json_array_size(json);
		out->list->source = (uint8_t)source;
		return true;
	case JSON_STRING:
		*out = value_string(json_string_value(json), json_string_length(json), source);
		return true;
	case JSON_INTEGER:
		*out = value_int(json_integer_value(json));
		return true;
	case JSON_REAL:
		*out = value_float(json_real_value(json));
		return true;
	case JSON_TRUE:
	case JSON_FALSE:
		*out = value_bool(json_is_true(json));
		return true;
	default:
		*out = value_none();
		return true;
	}
}

static void *take_many(struct jinja_run *r, size_t count, size_t size)
{
	return run_charge(r, count) ? run_take(r, (count + 1) * size) : NULL;
}

bool list_create(struct jinja_run *r, enum list_form form, size_t count, struct value *out)
{
	struct list *l = run_take(r, sizeof(*l));

	if (!l)
		return false;
	l->form = form;
	l->count = count;
	l->items = count ? take_many(r, count, sizeof(*l->items)) : NULL;
	*out = (struct value){.kind = VALUE_LIST, .list = l};
	return !count || l->items;
}

bool list_load(struct jinja_run *r, struct list *l)
{
	const json_t *json = l->json;

	if (!json)
		return true;
	l->items = take_many(r, l->count, sizeof(*l->items));
	if (!l->items)
		return false;
	l->json = NULL;
	for (size_t i = 0; i < l->count; i++)
		if (!value_of_json(r, json_array_get(json, i), (enum jinja_source)l->source, &l->items[i]))
			return false;
	return true;
}

bool dict_create(struct jinja_run *r, enum value_kind kind, size_t room, struct value *out)
{
	struct dict *d = run_take(r, sizeof(*d));

	if (!d)
		return false;
	d->room = room;
	d->entries = room ? take_many(r, room, sizeof(*d->entries)) : NULL;
	*out = (struct value){.kind = kind, .dict = d};
	return !room || d->entries;
}

bool dict_load(struct jinja_run *r, struct dict *d)
{
	const json_t *json = d->json;
	const char *key;
	json_t *item;
	size_t at = 0;

	if (!json)
		return true;
	d->entries = take_many(r, d->count, sizeof(*d->entries));
	if (!d->entries)
		return false;
	d->json = NULL;
	d->room = d->count;
	json_object_foreach((json_t *)json, key, item)
	{
		d->entries[at].key = value_string(key, strlen(key), (enum jinja_source)d->source);
		if (!value_of_json(r, item, (enum jinja_source)d->source, &d->entries[at++].value))
			return false;
	}
	return true;
}

bool dict_find(struct jinja_run *r, struct dict *d, const struct value *key, struct dict_entry **out)
{
	bool equal = false;

	*out = NULL;
	if (!dict_load(r, d) || !run_charge(r, d->count / 8))
		return false;
	for (size_t i = 0; i < d->count; i++) {
		const struct value *k = &d->entries[i].key;

		if (k->kind == VALUE_STRING && key->kind == VALUE_STRING)
			equal = k->string.size == key->string.size &&
				!memcmp(k->string.bytes, key->string.bytes, k->string.size);
		else if (!value_equal(r, k, key, &equal))
			return false;
		if (equal) {
			*out = &d->entries[i];
			return true;
		}
	}
	return true;
}

/* An error for a list or dictionary, which cannot be keys. */
static bool is_key(struct jinja_run *r, const struct value *key)
{
	if (key->kind == VALUE_DICT || (key->kind == VALUE_LIST && key->list->form == FORM_LIST))
		return run_fail(r, "a %s cannot be a key", value_type(key));
	return true;
}

bool dict_set(struct jinja_run *r, struct dict *d, const struct value *key, const struct value *value)
{
	struct dict_entry *entry, *grown;
	size_t room;

	if (!is_key(r, key) || !dict_find(r, d, key, &entry))
		return false;
	if (entry) {
		entry->value = *value;
		return true;
	}
	if (d->count == d->room) {
		room = d->room ? d->room * 2 : 4;
		grown = take_many(r, room, sizeof(*grown));
		if (!grown)
			return false;
		if (d->count)
			memcpy(grown, d->entries, d->count * sizeof(*grown));
		d->entries = grown;
		d->room = room;
	}
	d->entries[d->count++] = (struct dict_entry){*key, *value};
	return true;
}

static bool characters(struct jinja_run *r, const struct value *s, struct value **items, size_t *count)
{
	struct value *out = take_many(r, string_length(s), sizeof(*out));
	size_t at = 0, taken;

	*count = 0;
	for (; out && at < s->string.size; at += taken) {
		string_code(s, at, &taken);
		out[(*count)++] = string_part(s, at, at + taken);
	}
	*items = out;
	return out != NULL;
}

bool value_items(struct jinja_run *r, const struct value *v, struct value **items, size_t *count)
{
	*items = NULL;
	*count = 0;
	switch (v->kind) {
	case VALUE_UNDEFINED:
		return true;
	case VALUE_STRING:
		return characters(r, v, items, count);
	case VALUE_DICT:
		if (!dict_load(r, v->dict))
			return false;
		*items = take_many(r, v->dict->count, sizeof(**items));
		for (; *items && *count < v->dict->count; (*count)++)
			(*items)[*count] = v->dict->entries[*count].key;
		return *items != NULL;
	case VALUE_LIST:
		if (!list_load(r, v->list))
			return false;
		if (!v->list->used) {
			*items = v->list->items;
			*count = v->list->count;
		}
		v->list->used = v->list->form == FORM_GENERATOR;
		return true;
	default:
		return run_fail(r, "cannot iterate over a value of type %s", value_type(v));
	}
}

static bool is_number(const struct value *v)
{
	return v->kind == VALUE_INT || v->kind == VALUE_BOOL || v->kind == VALUE_FLOAT;
}

static double number(const struct value *v)
{
	return v->kind == VALUE_FLOAT  ? v->real
	       : v->kind == VALUE_BOOL ? (double)v->truth
				       : (double)v->integer;
}

static int64_t whole(const struct value *v)
{
	return v->kind == VALUE_BOOL ? v->truth : v->integer;
}

static bool lists_equal(struct jinja_run *r, struct list *a, struct list *b, bool *out)
{
	bool comparable = a->form == b->form && a->form != FORM_GENERATOR && a->form != FORM_VALUES;

	*out = a == b || (comparable && a->count == b->count);
	if (a == b || !*out)
		return true;
	if (!list_load(r, a) || !list_load(r, b))
		return false;
	for (size_t i = 0; i < a->count && *out; i++)
		if (!value_equal(r, &a->items[i], &b->items[i], out))
			return false;
	return true;
}

static bool dicts_equal(struct jinja_run *r, struct dict *a, struct dict *b, bool *out)
{
	struct dict_entry *found;

	*out = a == b || a->count == b->count;
	if (a == b || !*out)
		return true;
	if (!dict_load(r, a) || !dict_load(r, b))
		return false;
	for (size_t i = 0; i < a->count && *out; i++) {
		if (!dict_find(r, b, &a->entries[i].key, &found))
			return false;
		*out = found != NULL;
		if (found && !value_equal(r, &a->entries[i].value, &found->value, out))
			return false;
	}
	return true;
}

static bool same_kind_equal(struct jinja_run *r, const struct value *a, const struct value *b, bool *out)
{
	switch (a->kind) {
	case VALUE_STRING:
		*out = a->string.size == b->string.size &&
		       !memcmp(a->string.bytes, b->string.bytes, a->string.size);
		return run_charge_bytes(r, a->string.size);
	case VALUE_LIST:
		return lists_equal(r, a->list, b->list, out);
	case VALUE_DICT:
		return dicts_equal(r, a->dict, b->dict, out);
	case VALUE_NAMESPACE:
		*out = a->dict == b->dict;
		return true;
	case VALUE_FUNCTION:
		*out = a->function == b->function;
		return true;
	case VALUE_MACRO:
		*out = a->macro == b->macro;
		return true;
	case VALUE_METHOD:
		*out = a->method == b->method;
		return true;
	case VALUE_LOOP:
		*out = a->loop == b->loop;
		return true;
	default: /* undefined equals undefined, none equals none */
		*out = true;
		return true;
	}
}

bool value_equal(struct jinja_run *r, const struct value *a, const struct value *b, bool *out)
{
	bool good;

	*out = false;
	if (!run_charge(r, 1) || !run_enter(r))
		return false;
	if (is_number(a) && is_number(b)) {
		*out = a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT ? number(a) == number(b)
									: whole(a) == whole(b);
		good = true;
	} else {
		good = a->kind != b->kind || same_kind_equal(r, a, b, out);
	}
	run_leave(r);
	return good;
}

static int order_of(double a, double b)
{
	return (a > b) - (a < b);
}

static bool order_lists(struct jinja_run *r, struct list *a, struct list *b, int *out)
{
	bool equal = true;

	if (!list_load(r, a) || !list_load(r, b))
		return false;
	for (size_t i = 0; i < a->count && i < b->count; i++) {
		if (!value_equal(r, &a->items[i], &b->items[i], &equal))
			return false;
		if (!equal)
			return value_order(r, &a->items[i], &b->items[i], out);
	}
	*out = order_of((double)a->count, (double)b->count);
	return true;
}

bool value_order(struct jinja_run *r, const struct value *a, const struct value *b, int *out)
{
	bool good;

	*out = 0;
	if (a->kind == VALUE_UNDEFINED || b->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, a->kind == VALUE_UNDEFINED ? a : b);
	if (is_number(a) && is_number(b)) {
		if (a->kind == VALUE_FLOAT || b->kind == VALUE_FLOAT)
			*out = order_of(number(a), number(b));
		else
			*out = (whole(a) > whole(b)) - (whole(a) < whole(b));
		return true;
	}
	if (a->kind == VALUE_STRING && b->kind == VALUE_STRING) {
		size_t least = a->string.size < b->string.size ? a->string.size : b->string.size;

		*out = least ? memcmp(a->string.bytes, b->string.bytes, least) : 0;
		if (!*out)
			*out = order_of((double)a->string.size, (double)b->string.size);
		return run_charge_bytes(r, least);
	}
	if (a->kind == VALUE_LIST && b->kind == VALUE_LIST && a->list->form == b->list->form) {
		if (!run_enter(r))
			return false;
		good = order_lists(r, a->list, b->list, out);
		run_leave(r);
		return good;
	}
	return run_fail(r, "values of type %s and %s have no order", value_type(a), value_type(b));
}

bool value_contains(struct jinja_run *r, const struct value *container, const struct value *item, bool *out)
{
	struct dict_entry *found;
	struct value *items;
	size_t count;

	*out = false;
	switch (container->kind) {
	case VALUE_STRING:
		if (item->kind != VALUE_STRING)
			return run_fail(r, "a string can contain only strings, not a value of type %s",
					value_type(item));
		*out = string_find(container, item, 0) != SIZE_MAX;
		return run_charge_bytes(r, container->string.size);
	case VALUE_DICT:
		if (!is_key(r, item) || !dict_find(r, container->dict, item, &found))
			return false;
		*out = found != NULL;
		return true;
	default:
		if (!value_items(r, container, &items, &count))
			return false;
		for (size_t i = 0; i < count && !*out; i++)
			if (!value_equal(r, &items[i], item, out))
				return false;
		return true;
	}
}

bool value_length(struct jinja_run *r, const struct value *v, size_t *out)
{
	*out = 0;
	if (v->kind == VALUE_STRING)
		*out = string_length(v);
	else if (v->kind == VALUE_DICT)
		*out = v->dict->count;
	else if (v->kind == VALUE_LIST && v->list->form != FORM_GENERATOR)
		*out = v->list->count;
	else if (v->kind != VALUE_UNDEFINED)
		return run_fail(r, "a value of type %s has no length", value_type(v));
	return v->kind != VALUE_STRING || run_charge_bytes(r, v->string.size);
}
