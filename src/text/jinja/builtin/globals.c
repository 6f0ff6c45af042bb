/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that every template can call. */
#include <string.h>
#include <time.h>
#include "text/jinja/run.h"

enum { RANGE_MAX = 100000 }; /* jinja2's sandbox allows no more */

static bool range(struct jinja_run *r, const struct value *self, const struct slots *s, struct value *out)
{
	int64_t from = 0, to = 0, step = 1, count;

	(void)self;
	if (!slot_int(r, s, s->at[1] ? 1 : 0, &to) || (s->at[1] && !slot_int(r, s, 0, &from)) ||
	    !slot_int(r, s, 2, &step))
		return false;
	if (!step)
		return run_fail(r, "the step of range cannot be 0");
	if (from < -INT64_MAX / 4 || from > INT64_MAX / 4 || to < -INT64_MAX / 4 || to > INT64_MAX / 4 ||
	    step < -INT64_MAX / 4 || step > INT64_MAX / 4)
		return run_fail(r, "a bound of range is too large");
	count = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
	if (count > RANGE_MAX)
		return run_fail(r, "range has %lld items; at most %d are allowed", (long long)count,
				RANGE_MAX);
	if (!list_create(r, FORM_RANGE, count > 0 ? (size_t)count : 0, out))
		return false;
	for (size_t i = 0; i < out->list->count; i++)
		out->list->items[i] = value_int(from + (int64_t)i * step);
	return true;
}

static bool raise_exception(struct jinja_run *r, const struct value *self, const struct slots *s,
			    struct value *out)
{
	struct value text;

	(void)self, (void)out;
	if (!string_of(r, s->at[0], &text))
		return false;
	return run_fail(r, "the chat template refuses the conversation: %.*s",
			(int)(text.string.size < 180 ? text.string.size : 180), text.string.bytes);
}

static bool strftime_now(struct jinja_run *r, const struct value *self, const struct slots *s,
			 struct value *out)
{
	const struct value *format = s->at[0];
	time_t now = (time_t)r->now;
	char copy[128], text[512], *kept;
	struct tm tm;
	size_t size;

	(void)self;
	if (format->kind != VALUE_STRING || format->string.size >= sizeof(copy))
		return run_fail(r, "strftime_now needs a format of at most %zu bytes", sizeof(copy) - 1);
	memcpy(copy, format->string.bytes, format->string.size);
	copy[format->string.size] = 0;
	if (!localtime_r(&now, &tm))
		return run_fail(r, "the present time cannot be shown");
	size = strftime(text, sizeof(text), copy, &tm);
	kept = run_take(r, size + 1);
	if (!kept)
		return false;
	memcpy(kept, text, size);
	*out = value_string(kept, size, (enum jinja_source)format->source);
	return true;
}

/* dict and namespace: entries of a dictionary, then named arguments. */
static bool make_dict(struct jinja_run *r, const struct arguments *a, enum value_kind kind, struct value *out)
{
	struct dict *from;

	if (a->count > 1 ||
	    (a->count && a->values[0].kind != VALUE_DICT && a->values[0].kind != VALUE_NAMESPACE))
		return run_fail(r, "%s takes named arguments and at most one dictionary",
				kind == VALUE_DICT ? "dict" : "namespace");
	if (!dict_create(r, kind, a->named_count, out))
		return false;
	from = a->count ? a->values[0].dict : NULL;
	if (from && !dict_load(r, from))
		return false;
	for (size_t i = 0; from && i < from->count; i++)
		if (!dict_set(r, out->dict, &from->entries[i].key, &from->entries[i].value))
			return false;
	for (size_t i = 0; i < a->named_count; i++)
		if (!dict_set(r, out->dict, &a->names[i], &a->named[i]))
			return false;
	return true;
}

static bool dict(struct jinja_run *r, const struct value *self, const struct arguments *a, struct value *out)
{
	(void)self;
	return make_dict(r, a, VALUE_DICT, out);
}

static bool namespace(struct jinja_run *r, const struct value *self, const struct arguments *a,
		      struct value *out)
{
	(void)self;
	return make_dict(r, a, VALUE_NAMESPACE, out);
}

static const struct function functions[] = {
	{.name = "range", .parameters = "start stop step", .least = 1, .call = range},
	{.name = "raise_exception", .parameters = "message", .least = 1, .call = raise_exception},
	{.name = "strftime_now", .parameters = "format", .least = 1, .call = strftime_now},
	{.name = "dict", .parameters = "*", .any = dict},
	{.name = "namespace", .parameters = "*", .any = namespace},
};

const struct function *global_find(const char *name)
{
	return function_among(functions, sizeof(functions) / sizeof(functions[0]), name, strlen(name));
}
