/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of lists, dictionaries and numbers. filters_text.c has those of texts. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "text/jinja/run.h"

#define FILTER(name)                                                                                         \
	static bool name(struct jinja_run *r, const struct value *in, const struct slots *s,                 \
			 struct value *out)
#define FILTER_ANY(name)                                                                                     \
	static bool name(struct jinja_run *r, const struct value *in, const struct arguments *a,             \
			 struct value *out)

FILTER(filter_length)
{
	size_t length;

	(void)s;
	if (!value_length(r, in, &length))
		return false;
	*out = value_int((int64_t)length);
	return true;
}

FILTER(filter_default)
{
	static const char nothing[] = "";

	*out = *in;
	if (in->kind == VALUE_UNDEFINED || (slot_truth(s, 1) && !value_truth(in)))
		*out = s->at[0] ? *s->at[0] : value_string(nothing, 0, JINJA_DATA);
	return !r->status;
}

static bool end_item(struct jinja_run *r, const struct value *in, bool last, struct value *out)
{
	struct value *items;
	size_t count;

	if (!value_items(r, in, &items, &count))
		return false;
	*out = count ? items[last ? count - 1 : 0]
		     : (struct value){
			       .kind = VALUE_UNDEFINED,
			       .undefined = {last ? "the last item" : "the first item", 14 - last, NULL}};
	return true;
}

FILTER(filter_first)
{
	(void)s;
	return end_item(r, in, false, out);
}

FILTER(filter_last)
{
	(void)s;
	if (in->kind == VALUE_LIST && in->list->form == FORM_GENERATOR)
		return run_fail(r, "a generator has no last item; add the filter list");
	return end_item(r, in, true, out);
}

static bool list_of(struct jinja_run *r, const struct value *in, enum list_form form, struct value *out)
{
	struct value *items;
	size_t count;

	if (!value_items(r, in, &items, &count) || !list_create(r, form, count, out))
		return false;
	if (count)
		memcpy(out->list->items, items, count * sizeof(*items));
	return true;
}

FILTER(filter_list)
{
	(void)s;
	return list_of(r, in, FORM_LIST, out);
}

FILTER(filter_reverse)
{
	struct jinja_output o = {0};
	struct value *items;
	size_t count;

	(void)s;
	if (in->kind == VALUE_STRING) {
		if (!value_items(r, in, &items, &count))
			return false;
		while (count--)
			output_add_string(&o, &items[count]);
		return output_take(r, &o, out);
	}
	if (!list_of(r, in, FORM_GENERATOR, out))
		return false;
	for (size_t i = 0, last = out->list->count; i + 1 < last--; i++) {
		struct value kept = out->list->items[i];

		out->list->items[i] = out->list->items[last];
		out->list->items[last] = kept;
	}
	return true;
}

/* A part of a path as a key: an integer if it has only digits. */
static struct value path_key(const struct value *part)
{
	enum { DIGITS_MAX = 9 };
	int64_t index = 0;

	for (size_t i = 0; i < part->string.size; i++) {
		char c = part->string.bytes[i];

		if (i == DIGITS_MAX || c < '0' || c > '9')
			return *part;
		index = index * 10 + c - '0';
	}
	return part->string.size ? value_int(index) : *part;
}

bool path_of(struct jinja_run *r, const struct value *object, const struct value *path, struct value *out)
{
	size_t begin = 0, end;

	*out = *object;
	if (path->kind == VALUE_INT)
		return item_of(r, object, path, out);
	if (path->kind != VALUE_STRING)
		return run_fail(r, "an attribute is named by a string or an integer");
	for (; begin <= path->string.size; begin = end + 1) {
		struct value part, from = *out;

		for (end = begin; end < path->string.size && path->string.bytes[end] != '.';)
			end++;
		part = string_part(path, begin, end);
		part = path_key(&part);
		if (!item_of(r, &from, &part, out))
			return false;
	}
	return true;
}

static const struct value *named(const struct arguments *a, const char *name)
{
	for (size_t i = 0; i < a->named_count; i++)
		if (value_is(&a->names[i], name))
			return &a->named[i];
	return NULL;
}

/* The items for map, select and reject, which take every false value for an empty list. */
static bool items_if_true(struct jinja_run *r, const struct value *in, struct value **items, size_t *count)
{
	*items = NULL;
	*count = 0;
	return !value_truth(in) || value_items(r, in, items, count);
}

/* map(attribute=.., default=..) or map("filter", arguments). */
FILTER_ANY(filter_map)
{
	const struct value *attribute = named(a, "attribute"), *unset = named(a, "default");
	const struct function *f = NULL;
	struct arguments more = *a;
	struct value *items;
	size_t count;

	if (!attribute) {
		if (!a->count || a->values[0].kind != VALUE_STRING)
			return run_fail(r, "map needs the name of a filter, or attribute=");
		f = filter_find(a->values[0].string.bytes, a->values[0].string.size);
		if (!f)
			return run_fail(r, "the filter \"%.*s\" is not supported",
					(int)(a->values[0].string.size < 60 ? a->values[0].string.size : 60),
					a->values[0].string.bytes);
		more.values++;
		more.count--;
	}
	if (!items_if_true(r, in, &items, &count) || !list_create(r, FORM_GENERATOR, count, out))
		return false;
	for (size_t i = 0; i < count; i++) {
		struct value *to = &out->list->items[i];

		if (f ? !call_function(r, f, &items[i], &more, to) : !path_of(r, &items[i], attribute, to))
			return false;
		if (!f && unset && to->kind == VALUE_UNDEFINED)
			*to = *unset;
	}
	return true;
}

/* The items for which a test holds, or does not. `attribute`: the test applies to this attribute. */
static bool choose(struct jinja_run *r, const struct value *in, const struct arguments *a, bool attribute,
		   bool keep, struct value *out)
{
	size_t skip = attribute ? 1 : 0, at = 0, count;
	const struct value *name = a->count > skip ? &a->values[skip] : NULL;
	const struct test *t = NULL;
	struct arguments more = *a;
	struct value *items, tested;
	bool holds;

	if (attribute && !a->count)
		return run_fail(r, "this filter needs the name of an attribute");
	if (name) {
		if (name->kind == VALUE_STRING)
			t = test_find(name->string.bytes, name->string.size);
		if (!t)
			return run_fail(r, "the test of this filter is not supported");
		more.values += skip + 1;
		more.count -= skip + 1;
	}
	if (!items_if_true(r, in, &items, &count) || !list_create(r, FORM_GENERATOR, count, out))
		return false;
	for (size_t i = 0; i < count; i++) {
		tested = items[i];
		if (attribute && !path_of(r, &items[i], &a->values[0], &tested))
			return false;
		holds = value_truth(&tested);
		if (t && !test_value(r, t, &tested, &more, &holds))
			return false;
		if (holds == keep)
			out->list->items[at++] = items[i];
	}
	out->list->count = at;
	return true;
}

FILTER_ANY(filter_select)
{
	return choose(r, in, a, false, true, out);
}

FILTER_ANY(filter_reject)
{
	return choose(r, in, a, false, false, out);
}

FILTER_ANY(filter_selectattr)
{
	return choose(r, in, a, true, true, out);
}

FILTER_ANY(filter_rejectattr)
{
	return choose(r, in, a, true, false, out);
}

FILTER(filter_items)
{
	struct value pair;

	(void)s;
	if (in->kind == VALUE_UNDEFINED)
		return list_create(r, FORM_GENERATOR, 0, out);
	if (in->kind != VALUE_DICT)
		return run_fail(r, "items needs a dictionary, not a value of type %s", value_type(in));
	if (!dict_load(r, in->dict) || !list_create(r, FORM_GENERATOR, in->dict->count, out))
		return false;
	for (size_t i = 0; i < in->dict->count; i++) {
		if (!list_create(r, FORM_TUPLE, 2, &pair))
			return false;
		pair.list->items[0] = in->dict->entries[i].key;
		pair.list->items[1] = in->dict->entries[i].value;
		out->list->items[i] = pair;
	}
	return true;
}

/* What items are ordered by: strings without their case, unless it counts. */
static bool sort_key(struct jinja_run *r, const struct value *v, bool with_case, struct value *out)
{
	*out = *v;
	return v->kind != VALUE_STRING || with_case || string_case(r, v, CASE_LOWER, out);
}

/* The order of two keys. Undefined keys are equal. */
static bool key_order(struct jinja_run *r, const struct value *a, const struct value *b, int *out)
{
	*out = 0;
	return (a->kind == VALUE_UNDEFINED && b->kind == VALUE_UNDEFINED) || value_order(r, a, b, out);
}

/* Merge sort, which is stable, of items by keys. */
static bool sort(struct jinja_run *r, struct value *items, struct value *keys, size_t count, bool reverse)
{
	struct value *old, *old_keys;
	size_t half = count / 2, a = 0, b = half;
	int order;

	if (count < 2)
		return true;
	if (!run_enter(r))
		return false;
	if (!sort(r, items, keys, half, reverse) ||
	    !sort(r, items + half, keys + half, count - half, reverse))
		return false;
	old = run_charge(r, count) ? run_take(r, 2 * count * sizeof(*old)) : NULL;
	if (!old)
		return false;
	old_keys = old + count;
	memcpy(old, items, count * sizeof(*old));
	memcpy(old_keys, keys, count * sizeof(*old));
	for (size_t i = 0; i < count; i++) {
		bool right = a == half;

		if (!right && b < count) {
			if (!key_order(r, &old_keys[b], &old_keys[a], &order))
				return false;
			right = reverse ? order > 0 : order < 0;
		}
		items[i] = old[right ? b : a];
		keys[i] = old_keys[right ? b++ : a++];
	}
	run_leave(r);
	return true;
}

/* The attributes "a,b" of an item as a tuple; one attribute, or the item, as it is. */
static bool attributes_of(struct jinja_run *r, const struct value *item, const struct value *paths,
			  bool with_case, struct value *out)
{
	size_t begin = 0, end, count = 1;
	struct value path, found;

	if (!paths || paths->kind != VALUE_STRING || !paths->string.size ||
	    !memchr(paths->string.bytes, ',', paths->string.size)) {
		found = *item;
		return (!paths || path_of(r, item, paths, &found)) && sort_key(r, &found, with_case, out);
	}
	for (size_t i = 0; i < paths->string.size; i++)
		count += paths->string.bytes[i] == ',';
	if (!list_create(r, FORM_TUPLE, count, out))
		return false;
	for (size_t i = 0; i < count; i++, begin = end + 1) {
		for (end = begin; end < paths->string.size && paths->string.bytes[end] != ',';)
			end++;
		path = string_part(paths, begin, end);
		if (!path_of(r, item, &path, &found) || !sort_key(r, &found, with_case, &out->list->items[i]))
			return false;
	}
	return true;
}

static bool sorted(struct jinja_run *r, struct value *list, const struct value *attribute, bool with_case,
		   bool reverse)
{
	struct value keys;

	if (!list_create(r, FORM_LIST, list->list->count, &keys))
		return false;
	for (size_t i = 0; i < list->list->count; i++)
		if (!attributes_of(r, &list->list->items[i], attribute, with_case, &keys.list->items[i]))
			return false;
	return sort(r, list->list->items, keys.list->items, list->list->count, reverse);
}

FILTER(filter_sort)
{
	const struct value *attribute = s->at[2] && s->at[2]->kind == VALUE_NONE ? NULL : s->at[2];

	return list_of(r, in, FORM_LIST, out) &&
	       sorted(r, out, attribute, slot_truth(s, 1), slot_truth(s, 0));
}

FILTER(filter_dictsort)
{
	const struct value zero = value_int(0), one = value_int(1);
	bool by_value = s->at[1] && value_is(s->at[1], "value");

	if (s->at[1] && !by_value && !value_is(s->at[1], "key"))
		return run_fail(r, "dictsort orders by \"key\" or by \"value\"");
	if (in->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, in);
	if (!filter_items(r, in, s, out))
		return false;
	out->list->form = FORM_LIST;
	return sorted(r, out, by_value ? &one : &zero, slot_truth(s, 0), slot_truth(s, 2));
}

FILTER(filter_unique)
{
	struct value *items, key, seen;
	size_t count, kept = 0;
	bool equal;

	if (!value_items(r, in, &items, &count) || !list_create(r, FORM_GENERATOR, count, out) ||
	    !list_create(r, FORM_LIST, count, &seen))
		return false;
	for (size_t i = 0; i < count; i++) {
		key = items[i];
		if (s->at[1] && !path_of(r, &items[i], s->at[1], &key))
			return false;
		if (!sort_key(r, &key, slot_truth(s, 0), &key))
			return false;
		equal = false;
		for (size_t k = 0; k < kept && !equal; k++)
			if (!value_equal(r, &seen.list->items[k], &key, &equal))
				return false;
		if (equal)
			continue;
		seen.list->items[kept] = key;
		out->list->items[kept++] = items[i];
	}
	out->list->count = kept;
	return true;
}

static bool extreme(struct jinja_run *r, const struct value *in, const struct slots *s, bool most,
		    struct value *out)
{
	struct value *items, key, best;
	size_t count;
	int order;

	if (!value_items(r, in, &items, &count))
		return false;
	*out = (struct value){.kind = VALUE_UNDEFINED, .undefined = {"an item of an empty list", 24, NULL}};
	for (size_t i = 0; i < count; i++) {
		key = items[i];
		if (s->at[1] && !path_of(r, &items[i], s->at[1], &key))
			return false;
		if (!sort_key(r, &key, slot_truth(s, 0), &key))
			return false;
		if (i && !value_order(r, &key, &best, &order))
			return false;
		if (!i || (most ? order > 0 : order < 0)) {
			best = key;
			*out = items[i];
		}
	}
	return true;
}

FILTER(filter_max)
{
	return extreme(r, in, s, true, out);
}

FILTER(filter_min)
{
	return extreme(r, in, s, false, out);
}

FILTER(filter_sum)
{
	struct value *items, part, before;
	size_t count;

	*out = s->at[1] ? *s->at[1] : value_int(0);
	if (!value_items(r, in, &items, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		part = items[i];
		if (s->at[0] && s->at[0]->kind != VALUE_NONE && !path_of(r, &items[i], s->at[0], &part))
			return false;
		before = *out;
		if (!operate(r, OP_ADD, &before, &part, out))
			return false;
	}
	return true;
}

FILTER(filter_groupby)
{
	struct value items, key, group = {0}, pair, before = value_none();
	struct slots by = {{NULL, s->at[2], s->at[0]}};
	bool equal = false;
	size_t groups = 0;

	if (!filter_sort(r, in, &by, &items) || !list_create(r, FORM_LIST, items.list->count, out))
		return false;
	for (size_t i = 0; i < items.list->count; i++) {
		if (!path_of(r, &items.list->items[i], s->at[0], &key))
			return false;
		if (key.kind == VALUE_UNDEFINED && s->at[1])
			key = *s->at[1];
		if (i && !value_equal(r, &key, &before, &equal))
			return false;
		before = key;
		if (!i || !equal) {
			if (!list_create(r, FORM_LIST, items.list->count - i, &group) ||
			    !list_create(r, FORM_TUPLE, 2, &pair))
				return false;
			group.list->count = 0;
			pair.list->items[0] = key;
			pair.list->items[1] = group;
			out->list->items[groups++] = pair;
		}
		group.list->items[group.list->count++] = items.list->items[i];
	}
	out->list->count = groups;
	return true;
}

FILTER(filter_batch)
{
	struct value *items, line;
	int64_t size = 1;
	size_t count, lines;

	if (!slot_int(r, s, 0, &size) || !value_items(r, in, &items, &count))
		return false;
	if (size < 1 || size > INT32_MAX)
		return run_fail(r, "batch needs a positive size");
	lines = (count + (size_t)size - 1) / (size_t)size;
	if (!list_create(r, FORM_GENERATOR, lines, out))
		return false;
	for (size_t i = 0; i < lines; i++) {
		size_t begin = i * (size_t)size,
		       some = count - begin < (size_t)size ? count - begin : (size_t)size;

		if (!list_create(r, FORM_LIST, s->at[1] ? (size_t)size : some, &line))
			return false;
		for (size_t k = 0; k < line.list->count; k++)
			line.list->items[k] = k < some ? items[begin + k] : *s->at[1];
		out->list->items[i] = line;
	}
	return true;
}

FILTER(filter_attr)
{
	bool entry = in->kind == VALUE_DICT;

	if (s->at[0]->kind != VALUE_STRING)
		return run_fail(r, "attr needs the name of an attribute");
	*out = undefined_attribute(in, s->at[0]);
	return entry && !method_find(in, s->at[0]) ? true : attribute_of(r, in, s->at[0], out);
}

FILTER(filter_abs)
{
	(void)s;
	*out = *in;
	if (in->kind == VALUE_FLOAT)
		*out = value_float(fabs(in->real));
	else if (in->kind == VALUE_BOOL)
		*out = value_int(in->truth);
	else if (in->kind != VALUE_INT)
		return run_fail(r, "a value of type %s has no absolute value", value_type(in));
	else if (in->integer < 0)
		return negate(r, in, out);
	return true;
}

FILTER(filter_round)
{
	static const char common[] = "common";
	struct value method = value_string(common, strlen(common), JINJA_TEMPLATE);
	int64_t precision = 0;
	double scale, value;

	if (s->at[1])
		method = *s->at[1];
	if (!slot_int(r, s, 0, &precision))
		return false;
	if ((in->kind == VALUE_INT || in->kind == VALUE_BOOL) && value_is(&method, "common")) {
		*out = value_int(in->kind == VALUE_INT ? in->integer : in->truth);
		return true;
	}
	if (in->kind != VALUE_INT && in->kind != VALUE_FLOAT)
		return run_fail(r, "a value of type %s cannot be rounded", value_type(in));
	if (precision < -300 || precision > 300)
		return run_fail(r, "round needs a precision from -300 to 300");
	value = in->kind == VALUE_INT ? (double)in->integer : in->real;
	scale = pow(10, (double)precision);
	if (value_is(&method, "common")) {
		char digits[400];

		if (precision < 0 || !isfinite(value)) {
			*out = value_float(rint(value * scale) / scale);
			return true;
		}
		snprintf(digits, sizeof(digits), "%.*f", (int)(precision > 60 ? 60 : precision), value);
		*out = value_float(strtod(digits, NULL));
	} else if (value_is(&method, "ceil")) {
		*out = value_float(ceil(value * scale) / scale);
	} else if (value_is(&method, "floor")) {
		*out = value_float(floor(value * scale) / scale);
	} else {
		return run_fail(r, "round knows the methods common, ceil and floor");
	}
	return true;
}

static const struct function filters[] = {
	{.name = "length", .parameters = "", .call = filter_length},
	{.name = "count", .parameters = "", .call = filter_length},
	{.name = "default", .parameters = "default_value boolean", .call = filter_default},
	{.name = "d", .parameters = "default_value boolean", .call = filter_default},
	{.name = "first", .parameters = "", .call = filter_first},
	{.name = "last", .parameters = "", .call = filter_last},
	{.name = "list", .parameters = "", .call = filter_list},
	{.name = "reverse", .parameters = "", .call = filter_reverse},
	{.name = "map", .parameters = "*", .any = filter_map},
	{.name = "select", .parameters = "*", .any = filter_select},
	{.name = "reject", .parameters = "*", .any = filter_reject},
	{.name = "selectattr", .parameters = "*", .any = filter_selectattr},
	{.name = "rejectattr", .parameters = "*", .any = filter_rejectattr},
	{.name = "items", .parameters = "", .call = filter_items},
	{.name = "dictsort", .parameters = "case_sensitive by reverse", .call = filter_dictsort},
	{.name = "sort", .parameters = "reverse case_sensitive attribute", .call = filter_sort},
	{.name = "unique", .parameters = "case_sensitive attribute", .call = filter_unique},
	{.name = "max", .parameters = "case_sensitive attribute", .call = filter_max},
	{.name = "min", .parameters = "case_sensitive attribute", .call = filter_min},
	{.name = "sum", .parameters = "attribute start", .call = filter_sum},
	{.name = "groupby",
	 .parameters = "attribute default case_sensitive",
	 .least = 1,
	 .call = filter_groupby},
	{.name = "batch", .parameters = "linecount fill_with", .least = 1, .call = filter_batch},
	{.name = "attr", .parameters = "name", .least = 1, .call = filter_attr},
	{.name = "abs", .parameters = "", .call = filter_abs},
	{.name = "round", .parameters = "precision method", .call = filter_round},
};

const struct function *filter_find(const char *name, size_t size)
{
	const struct function *f = function_among(filters, sizeof(filters) / sizeof(filters[0]), name, size);

	return f ? f : filter_text_find(name, size);
}
