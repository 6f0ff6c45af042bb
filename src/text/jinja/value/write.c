/* SPDX-License-Identifier: Apache-2.0 */
/* Values as text: str() and repr() of Python, and JSON as json.dumps writes it. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include "core/json/text.h"
#include "text/jinja/run.h"
#include "text/jinja/value/unicode.h"

/* Checks the limits while a text grows outside the arena. */
static bool check_size(struct jinja_run *r, const struct jinja_output *o)
{
	if (o->failed || o->text.size > r->limits.memory)
		return run_fail_limit(r, "memory");
	return run_charge(r, 1);
}

static void add_float(struct jinja_output *o, double value, bool json)
{
	struct text digits = {0};

	if (isnan(value))
		text_add(&digits, json ? "NaN" : "nan");
	else if (isinf(value))
		text_addf(&digits, "%s%s", value < 0 ? "-" : "", json ? "Infinity" : "inf");
	else
		json_text_add_real(&digits, value);
	o->failed |= digits.failed != 0;
	output_add_text(o, text_str(&digits));
	text_release(&digits);
}

static void add_int(struct jinja_output *o, int64_t value)
{
	char digits[32];

	snprintf(digits, sizeof(digits), "%" PRId64, value);
	output_add_text(o, digits);
}

/* A character of a string's repr. */
static void add_repr_code(struct jinja_output *o, uint32_t code, char quote, enum jinja_source source)
{
	static const char plain[] = "\\\n\r\t", letters[] = "\\nrt";
	const char *named = code && code < 0x80 ? strchr(plain, (char)code) : NULL;
	char escape[12];

	if (named)
		snprintf(escape, sizeof(escape), "\\%c", letters[named - plain]);
	else if (code == (uint32_t)quote)
		snprintf(escape, sizeof(escape), "\\%c", quote);
	else if (unicode_prints(code)) {
		output_add_code(o, code, source);
		return;
	} else
		snprintf(escape, sizeof(escape),
			 code < 0x100	  ? "\\x%02x"
			 : code < 0x10000 ? "\\u%04x"
					  : "\\U%08x",
			 (unsigned)code);
	output_add(o, escape, strlen(escape), source);
}

static void add_repr_string(struct jinja_output *o, const struct value *s)
{
	bool single = s->string.size && memchr(s->string.bytes, '\'', s->string.size);
	bool twice = s->string.size && memchr(s->string.bytes, '"', s->string.size);
	const char quote[] = {single && !twice ? '"' : '\'', 0};
	size_t taken;

	output_add_text(o, quote);
	for (size_t at = 0; at < s->string.size; at += taken) {
		uint32_t code = string_code(s, at, &taken);

		add_repr_code(o, code, quote[0], string_source(s, at));
	}
	output_add_text(o, quote);
}

static bool write_list(struct jinja_run *r, struct jinja_output *o, struct list *l)
{
	static const char *const open[] = {"[", "(", "[", "dict_items([", "dict_keys([", "dict_values([",
					   NULL};
	static const char *const close[] = {"]", ")", "]", "])", "])", "])"};

	if (l->form == FORM_GENERATOR)
		return run_fail(r, "a generator cannot be printed; add the filter list or join");
	if (l->form == FORM_RANGE) {
		int64_t step = l->count > 1 ? l->items[1].integer - l->items[0].integer : 1;

		output_add_text(o, "range(");
		add_int(o, l->count ? l->items[0].integer : 0);
		output_add_text(o, ", ");
		add_int(o, l->count ? l->items[l->count - 1].integer + step : 0);
		if (step != 1) {
			output_add_text(o, ", ");
			add_int(o, step);
		}
		output_add_text(o, ")");
		return true;
	}
	if (!list_load(r, l))
		return false;
	output_add_text(o, open[l->form]);
	for (size_t i = 0; i < l->count; i++) {
		output_add_text(o, i ? ", " : "");
		if (!write_repr(r, o, &l->items[i]))
			return false;
	}
	output_add_text(o, l->form == FORM_TUPLE && l->count == 1 ? ",)" : close[l->form]);
	return true;
}

static bool write_dict(struct jinja_run *r, struct jinja_output *o, struct dict *d)
{
	if (!dict_load(r, d))
		return false;
	output_add_text(o, "{");
	for (size_t i = 0; i < d->count; i++) {
		output_add_text(o, i ? ", " : "");
		if (!write_repr(r, o, &d->entries[i].key))
			return false;
		output_add_text(o, ": ");
		if (!write_repr(r, o, &d->entries[i].value))
			return false;
	}
	output_add_text(o, "}");
	return true;
}

static bool write_inner(struct jinja_run *r, struct jinja_output *o, const struct value *v)
{
	switch (v->kind) {
	case VALUE_UNDEFINED:
		output_add_text(o, "Undefined");
		return true;
	case VALUE_NONE:
		output_add_text(o, "None");
		return true;
	case VALUE_BOOL:
		output_add_text(o, v->truth ? "True" : "False");
		return true;
	case VALUE_INT:
		add_int(o, v->integer);
		return true;
	case VALUE_FLOAT:
		add_float(o, v->real, false);
		return true;
	case VALUE_STRING:
		add_repr_string(o, v);
		return run_charge_bytes(r, v->string.size);
	case VALUE_LIST:
		return write_list(r, o, v->list);
	case VALUE_DICT:
		return write_dict(r, o, v->dict);
	case VALUE_NAMESPACE:
		output_add_text(o, "<Namespace ");
		if (!write_dict(r, o, v->dict))
			return false;
		output_add_text(o, ">");
		return true;
	default:
		return run_fail(r, "a value of type %s cannot be printed", value_type(v));
	}
}

bool write_repr(struct jinja_run *r, struct jinja_output *o, const struct value *v)
{
	bool good;

	if (!check_size(r, o) || !run_enter(r))
		return false;
	good = write_inner(r, o, v);
	run_leave(r);
	return good;
}

bool write_value(struct jinja_run *r, struct jinja_output *o, const struct value *v)
{
	if (v->kind == VALUE_UNDEFINED)
		return true;
	if (v->kind != VALUE_STRING)
		return write_repr(r, o, v);
	output_add_string(o, v);
	return run_charge_bytes(r, v->string.size) && check_size(r, o);
}

bool string_of(struct jinja_run *r, const struct value *v, struct value *out)
{
	struct jinja_output o = {0};

	if (v->kind == VALUE_STRING) {
		*out = *v;
		return true;
	}
	if (!write_value(r, &o, v)) {
		jinja_output_release(&o);
		return false;
	}
	return output_take(r, &o, out);
}

static void add_json_code(struct jinja_output *o, uint32_t code, bool ascii, enum jinja_source source)
{
	static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	const char *named = code && code < 0x80 ? strchr(plain, (char)code) : NULL;
	char escape[16];

	if (named) {
		snprintf(escape, sizeof(escape), "\\%c", letters[named - plain]);
	} else if (code < 0x20 || (ascii && code > 0x7e && code < 0x10000)) {
		snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)code);
	} else if (ascii && code >= 0x10000) {
		code -= 0x10000;
		snprintf(escape, sizeof(escape), "\\u%04x\\u%04x", (unsigned)(0xd800 | code >> 10),
			 (unsigned)(0xdc00 | (code & 0x3ff)));
	} else {
		output_add_code(o, code, source);
		return;
	}
	output_add(o, escape, strlen(escape), source);
}

static void add_json_string(struct jinja_output *o, const struct value *s, bool ascii)
{
	size_t taken, plain = 0;
	uint32_t code;

	output_add_text(o, "\"");
	for (size_t at = 0; at < s->string.size; at += taken) {
		unsigned char c = (unsigned char)s->string.bytes[at];
		struct value part;

		taken = 1;
		if (c >= 0x20 && c != '"' && c != '\\' && !(ascii && c >= 0x7f))
			continue;
		part = string_part(s, plain, at);
		output_add_string(o, &part);
		code = string_code(s, at, &taken);
		add_json_code(o, code, ascii, string_source(s, at));
		plain = at + taken;
	}
	{
		struct value rest = string_part(s, plain, s->string.size);

		output_add_string(o, &rest);
	}
	output_add_text(o, "\"");
}

static void add_line(struct jinja_output *o, const struct json_form *f, int depth)
{
	if (f->indent < 0)
		return;
	output_add_text(o, "\n");
	for (int i = 0; i < f->indent * depth; i++)
		output_add_text(o, " ");
}

static bool json_value(struct jinja_run *r, struct jinja_output *o, const struct value *v,
		       const struct json_form *f, int depth);

static bool json_list(struct jinja_run *r, struct jinja_output *o, struct list *l, const struct json_form *f,
		      int depth)
{
	if (l->form != FORM_LIST && l->form != FORM_TUPLE)
		return run_fail(r, "tojson cannot write this kind of list; add the filter list");
	if (!list_load(r, l))
		return false;
	output_add_text(o, "[");
	for (size_t i = 0; i < l->count; i++) {
		if (i)
			output_add_string(o, &f->comma);
		add_line(o, f, depth + 1);
		if (!json_value(r, o, &l->items[i], f, depth + 1))
			return false;
	}
	if (l->count)
		add_line(o, f, depth);
	output_add_text(o, "]");
	return true;
}

static bool json_key(struct jinja_run *r, struct jinja_output *o, const struct value *key,
		     const struct json_form *f)
{
	if (key->kind == VALUE_STRING) {
		add_json_string(o, key, f->ascii);
		return true;
	}
	if (key->kind > VALUE_FLOAT || key->kind == VALUE_UNDEFINED)
		return run_fail(r, "tojson cannot write a key of type %s", value_type(key));
	output_add_text(o, "\"");
	if (!json_value(r, o, key, f, 0))
		return false;
	output_add_text(o, "\"");
	return true;
}

/* For qsort: entries with their places, because qsort is not stable and cannot fail. */
static int by_key(const void *a, const void *b)
{
	const struct value *x = &((const struct dict_entry *)a)->key,
			   *y = &((const struct dict_entry *)b)->key;
	size_t least = x->string.size < y->string.size ? x->string.size : y->string.size;
	int order = least ? memcmp(x->string.bytes, y->string.bytes, least) : 0;

	return order ? order : (x->string.size > y->string.size) - (x->string.size < y->string.size);
}

/* A copy of the entries, in the order of their keys. */
static struct dict_entry *sorted(struct jinja_run *r, const struct dict *d)
{
	struct dict_entry *copy = run_take(r, (d->count + 1) * sizeof(*copy));

	if (!copy)
		return NULL;
	for (size_t i = 0; i < d->count; i++) {
		copy[i] = d->entries[i];
		if (copy[i].key.kind != VALUE_STRING) {
			run_fail(r, "tojson can sort only keys that are strings");
			return NULL;
		}
	}
	qsort(copy, d->count, sizeof(*copy), by_key);
	return copy;
}

static bool json_dict(struct jinja_run *r, struct jinja_output *o, struct dict *d, const struct json_form *f,
		      int depth)
{
	const struct dict_entry *entries;

	if (!dict_load(r, d))
		return false;
	entries = f->sorted ? sorted(r, d) : d->entries;
	if (f->sorted && !entries)
		return false;
	output_add_text(o, "{");
	for (size_t i = 0; i < d->count; i++) {
		if (i)
			output_add_string(o, &f->comma);
		add_line(o, f, depth + 1);
		if (!json_key(r, o, &entries[i].key, f))
			return false;
		output_add_string(o, &f->colon);
		if (!json_value(r, o, &entries[i].value, f, depth + 1))
			return false;
	}
	if (d->count)
		add_line(o, f, depth);
	output_add_text(o, "}");
	return true;
}

static bool json_plain(struct jinja_run *r, struct jinja_output *o, const struct value *v, bool ascii)
{
	switch (v->kind) {
	case VALUE_NONE:
		output_add_text(o, "null");
		return true;
	case VALUE_BOOL:
		output_add_text(o, v->truth ? "true" : "false");
		return true;
	case VALUE_INT:
		add_int(o, v->integer);
		return true;
	case VALUE_FLOAT:
		add_float(o, v->real, true);
		return true;
	case VALUE_STRING:
		add_json_string(o, v, ascii);
		return run_charge_bytes(r, v->string.size);
	case VALUE_UNDEFINED:
		return run_fail_undefined(r, v);
	default:
		return run_fail(r, "tojson cannot write a value of type %s", value_type(v));
	}
}

static bool json_value(struct jinja_run *r, struct jinja_output *o, const struct value *v,
		       const struct json_form *f, int depth)
{
	bool good;

	if (!check_size(r, o) || !run_charge_bytes(r, (size_t)(f->indent > 0 ? f->indent * depth : 0)))
		return false;
	if (!run_enter(r))
		return false;
	if (v->kind == VALUE_LIST)
		good = json_list(r, o, v->list, f, depth);
	else if (v->kind == VALUE_DICT)
		good = json_dict(r, o, v->dict, f, depth);
	else
		good = json_plain(r, o, v, f->ascii);
	run_leave(r);
	return good;
}

bool write_json(struct jinja_run *r, struct jinja_output *o, const struct value *v, const struct json_form *f)
{
	return json_value(r, o, v, f, 0);
}
