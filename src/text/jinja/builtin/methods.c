/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of lists, dictionaries and loops, and the list of all methods. methods_text.c has those of texts.
 */
#include <string.h>
#include "text/jinja/builtin/methods.h"

METHOD(dict_get)
{
	struct dict_entry *found;

	if (!dict_find(r, self->dict, s->at[0], &found))
		return false;
	*out = found ? found->value : s->at[1] ? *s->at[1] : value_none();
	return true;
}

static bool view(struct jinja_run *r, const struct value *self, enum list_form form, struct value *out)
{
	struct dict *d = self->dict;
	struct value pair;

	if (!dict_load(r, d) || !list_create(r, form, d->count, out))
		return false;
	for (size_t i = 0; i < d->count; i++) {
		struct value *to = &out->list->items[i];

		*to = form == FORM_KEYS ? d->entries[i].key : d->entries[i].value;
		if (form != FORM_ITEMS)
			continue;
		if (!list_create(r, FORM_TUPLE, 2, &pair))
			return false;
		pair.list->items[0] = d->entries[i].key;
		pair.list->items[1] = d->entries[i].value;
		*to = pair;
	}
	return true;
}

METHOD(dict_items)
{
	(void)s;
	return view(r, self, FORM_ITEMS, out);
}

METHOD(dict_keys)
{
	(void)s;
	return view(r, self, FORM_KEYS, out);
}

METHOD(dict_values)
{
	(void)s;
	return view(r, self, FORM_VALUES, out);
}

METHOD(copy)
{
	(void)r, (void)s;
	*out = *self; /* lists and dictionaries do not change */
	return true;
}

METHOD(list_count)
{
	int64_t count = 0;
	bool equal;

	if (!list_load(r, self->list))
		return false;
	for (size_t i = 0; i < self->list->count; i++) {
		if (!value_equal(r, &self->list->items[i], s->at[0], &equal))
			return false;
		count += equal;
	}
	*out = value_int(count);
	return true;
}

METHOD(list_index)
{
	bool equal;

	if (!list_load(r, self->list))
		return false;
	for (size_t i = 0; i < self->list->count; i++) {
		if (!value_equal(r, &self->list->items[i], s->at[0], &equal))
			return false;
		*out = value_int((int64_t)i);
		if (equal)
			return true;
	}
	return run_fail(r, "the list does not contain this value");
}

static bool loop_cycle(struct jinja_run *r, const struct value *self, const struct arguments *a,
		       struct value *out)
{
	if (!a->count)
		return run_fail(r, "cycle needs at least one argument");
	*out = a->values[self->loop->index % a->count];
	return true;
}

/* Whether the arguments differ from those of the call before. */
static bool loop_changed(struct jinja_run *r, const struct value *self, const struct arguments *a,
			 struct value *out)
{
	struct loop *l = self->loop;
	struct value now;
	bool equal = false;

	if (!list_create(r, FORM_TUPLE, a->count, &now))
		return false;
	if (a->count)
		memcpy(now.list->items, a->values, a->count * sizeof(*a->values));
	if (l->has_changed && !value_equal(r, &l->changed, &now, &equal))
		return false;
	l->changed = now;
	l->has_changed = true;
	*out = value_bool(!equal);
	return true;
}

static const struct function of_dict[] = {
	{.name = "get", .parameters = "key default", .least = 1, .call = dict_get},
	{.name = "items", .parameters = "", .call = dict_items},
	{.name = "keys", .parameters = "", .call = dict_keys},
	{.name = "values", .parameters = "", .call = dict_values},
	{.name = "copy", .parameters = "", .call = copy},
};

static const struct function of_list[] = {
	{.name = "count", .parameters = "value", .least = 1, .call = list_count},
	{.name = "index", .parameters = "value", .least = 1, .call = list_index},
	{.name = "copy", .parameters = "", .call = copy},
};

static const struct function of_loop[] = {
	{.name = "cycle", .parameters = "*", .any = loop_cycle},
	{.name = "changed", .parameters = "*", .any = loop_changed},
};

#define AMONG(table)                                                                                         \
	function_among(table, sizeof(table) / sizeof((table)[0]), name->string.bytes, name->string.size)

const struct function *method_find(const struct value *self, const struct value *name)
{
	if (name->kind != VALUE_STRING)
		return NULL;
	switch (self->kind) {
	case VALUE_STRING:
		return method_of_string(name);
	case VALUE_DICT:
		return AMONG(of_dict);
	case VALUE_LIST:
		if (self->list->form > FORM_RANGE ||
		    (self->list->form != FORM_LIST && value_is(name, "copy")))
			return NULL;
		return AMONG(of_list);
	case VALUE_LOOP:
		return AMONG(of_loop);
	default:
		return NULL;
	}
}

bool method_is_forbidden(const struct value *self, const struct value *name)
{
	static const char *const of_lists[] = {"append", "clear",  "extend",  "insert",
					       "pop",	 "remove", "reverse", "sort"};
	static const char *const of_dicts[] = {"clear", "pop", "popitem", "setdefault", "update"};

	if (self->kind == VALUE_LIST && self->list->form == FORM_LIST) {
		for (size_t i = 0; i < sizeof(of_lists) / sizeof(of_lists[0]); i++)
			if (value_is(name, of_lists[i]))
				return true;
	}
	if (self->kind == VALUE_DICT) {
		for (size_t i = 0; i < sizeof(of_dicts) / sizeof(of_dicts[0]); i++)
			if (value_is(name, of_dicts[i]))
				return true;
	}
	return false;
}
