/* SPDX-License-Identifier: Apache-2.0 */
/* Filters that give texts, and those that read numbers from texts. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "text/jinja/run.h"
#include "text/jinja/value/unicode.h"

#define FILTER(name)                                                                                         \
	static bool name(struct jinja_run *r, const struct value *in, const struct slots *s,                 \
			 struct value *out)

static const char nothing[] = "";

FILTER(filter_string)
{
	(void)s;
	return string_of(r, in, out);
}

static bool recased(struct jinja_run *r, const struct value *in, enum string_case how, struct value *out)
{
	struct value text;

	return string_of(r, in, &text) && string_case(r, &text, how, out);
}

FILTER(filter_upper)
{
	(void)s;
	return recased(r, in, CASE_UPPER, out);
}

FILTER(filter_lower)
{
	(void)s;
	return recased(r, in, CASE_LOWER, out);
}

FILTER(filter_capitalize)
{
	(void)s;
	return recased(r, in, CASE_CAPITAL, out);
}

/* Unlike the method, a letter begins a word only after blanks and some punctuation. */
FILTER(filter_title)
{
	struct jinja_output o = {0};
	struct value text;
	bool begins = true;
	size_t taken;

	(void)s;
	if (!string_of(r, in, &text))
		return false;
	for (size_t at = 0; at < text.string.size; at += taken) {
		uint32_t code = string_code(&text, at, &taken);

		output_add_code(&o, begins ? unicode_upper(code) : unicode_lower(code),
				string_source(&text, at));
		begins = unicode_is_space(code) || (code && code < 0x80 && strchr("-({[<", (int)code));
	}
	return output_take(r, &o, out);
}

FILTER(filter_trim)
{
	const struct value *characters = NULL;
	struct value text;

	if (s->at[0] && s->at[0]->kind != VALUE_NONE && !slot_string(r, s, 0, &characters))
		return false;
	if (!string_of(r, in, &text))
		return false;
	if (!run_charge_bytes(r, text.string.size * (characters ? characters->string.size + 1 : 1)))
		return false;
	*out = string_strip(&text, characters, STRIP_BOTH);
	return true;
}

FILTER(filter_replace)
{
	struct value text, old, new;
	int64_t count = -1;

	if (s->at[2] && s->at[2]->kind != VALUE_NONE && !slot_int(r, s, 2, &count))
		return false;
	return string_of(r, in, &text) && string_of(r, s->at[0], &old) && string_of(r, s->at[1], &new) &&
	       string_replace(r, &text, &old, &new, count, out);
}

FILTER(filter_join)
{
	struct value between = value_string(nothing, 0, JINJA_DATA), *items, part;
	const struct value *attribute = s->at[1] && s->at[1]->kind == VALUE_NONE ? NULL : s->at[1];
	struct jinja_output o = {0};
	bool good;
	size_t count;

	if ((s->at[0] && !string_of(r, s->at[0], &between)) || !value_items(r, in, &items, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		part = items[i];
		good = !attribute || path_of(r, &items[i], attribute, &part);
		if (i)
			output_add_string(&o, &between);
		if (!good || !write_value(r, &o, &part) || !run_charge_bytes(r, between.string.size)) {
			jinja_output_release(&o);
			return false;
		}
	}
	return output_take(r, &o, out);
}

/* How tojson writes: transformers' parameters. */
static bool json_form(struct jinja_run *r, const struct slots *s, struct json_form *f)
{
	static const char comma[] = ", ", colon[] = ": ";
	const struct value *indent = s->at[1], *separators = s->at[2];
	int64_t width = -1;

	*f = (struct json_form){.ascii = slot_truth(s, 0), .sorted = slot_truth(s, 3)};
	if (indent && indent->kind != VALUE_NONE && !slot_int(r, s, 1, &width))
		return false;
	if (indent && indent->kind != VALUE_NONE && width < 0)
		width = 0;
	if (width > 64)
		return run_fail(r, "tojson allows an indent of at most 64");
	f->indent = (int)width;
	f->comma = value_string(comma, width >= 0 ? 1 : 2, JINJA_DATA);
	f->colon = value_string(colon, 2, JINJA_DATA);
	if (!separators || separators->kind == VALUE_NONE)
		return true;
	if (separators->kind != VALUE_LIST || separators->list->count != 2 ||
	    !list_load(r, separators->list) || separators->list->items[0].kind != VALUE_STRING ||
	    separators->list->items[1].kind != VALUE_STRING)
		return run_fail(r, "the separators of tojson must be two strings");
	f->comma = separators->list->items[0];
	f->colon = separators->list->items[1];
	return true;
}

FILTER(filter_tojson)
{
	struct jinja_output o = {0};
	struct json_form f;

	if (!json_form(r, s, &f))
		return false;
	if (write_json(r, &o, in, &f))
		return output_take(r, &o, out);
	jinja_output_release(&o);
	return false;
}

/* A line of text from `at`, without its newline; *next is the place after it. */
static struct value line_at(const struct value *text, size_t at, size_t *next)
{
	size_t end = at;

	while (end < text->string.size && text->string.bytes[end] != '\n')
		end++;
	*next = end + 1;
	return string_part(text, at, end);
}

FILTER(filter_indent)
{
	static const char blanks[] = "                                                                ";
	struct value text, width = value_string(blanks, 4, JINJA_DATA), line;
	struct jinja_output o = {0};
	int64_t count = 4;
	size_t at = 0, next;

	if (s->at[0] && s->at[0]->kind == VALUE_STRING)
		width = *s->at[0];
	else if (!slot_int(r, s, 0, &count))
		return false;
	else if (count > (int64_t)strlen(blanks))
		return run_fail(r, "indent allows a width of at most %zu", strlen(blanks));
	else
		width = value_string(blanks, count > 0 ? (size_t)count : 0, JINJA_DATA);
	if (in->kind != VALUE_STRING)
		return run_fail(r, "a value of type %s cannot be indented", value_type(in));
	text = *in;
	for (; at <= text.string.size; at = next) {
		line = line_at(&text, at, &next);
		if (!run_charge_bytes(r, width.string.size + 64) || o.text.size > r->limits.memory) {
			jinja_output_release(&o);
			return run_fail_limit(r, "memory");
		}
		if (at)
			output_add(&o, "\n", 1, string_source(&text, at - 1));
		if (at ? line.string.size || slot_truth(s, 2) : slot_truth(s, 1))
			output_add_string(&o, &width);
		output_add_string(&o, &line);
	}
	return output_take(r, &o, out);
}

FILTER(filter_escape)
{
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
	static const char escaped[] = "&<>'\"";
	struct jinja_output o = {0};
	struct value text;

	(void)s;
	if (!string_of(r, in, &text))
		return false;
	for (size_t at = 0; at < text.string.size; at++) {
		char c = text.string.bytes[at];
		const char *found = c ? strchr(escaped, c) : NULL;

		if (found)
			output_add(&o, entities[found - escaped], strlen(entities[found - escaped]),
				   string_source(&text, at));
		else
			output_add(&o, &c, 1, string_source(&text, at));
	}
	return output_take(r, &o, out);
}

FILTER(filter_center)
{
	int64_t width = 80;
	struct jinja_output o = {0};
	struct value text;
	size_t size, left;

	if (!slot_int(r, s, 0, &width) || !string_of(r, in, &text))
		return false;
	if (width > 4096)
		return run_fail(r, "center allows a width of at most 4096");
	size = string_length(&text);
	left = width > (int64_t)size ? (size_t)width - size : 0;
	for (size_t i = 0; i < left / 2 + (left & (size_t)width & 1); i++)
		output_add_text(&o, " ");
	output_add_string(&o, &text);
	for (size_t i = left / 2 + (left & (size_t)width & 1); i < left; i++)
		output_add_text(&o, " ");
	return output_take(r, &o, out);
}

FILTER(filter_wordcount)
{
	struct value text;
	int64_t words = 0;
	bool inside = false;
	size_t taken;

	(void)s;
	if (!string_of(r, in, &text))
		return false;
	for (size_t at = 0; at < text.string.size; at += taken) {
		uint32_t code = string_code(&text, at, &taken);
		bool word = unicode_is_letter(code) || unicode_is_digit(code) || code == '_';

		words += word && !inside;
		inside = word;
	}
	*out = value_int(words);
	return true;
}

/* A string's digits without blanks around it and underscores within it, for strtoll and strtod. */
static bool number_text(const struct value *in, char *out, size_t room)
{
	struct value text = string_strip(in, NULL, STRIP_BOTH);
	size_t kept = 0;

	if (text.string.size >= room)
		return false;
	for (size_t i = 0; i < text.string.size; i++) {
		char c = text.string.bytes[i];

		if (c == '_' && i && i + 1 < text.string.size && text.string.bytes[i - 1] != '_')
			continue;
		if (!c || c == '_')
			return false;
		out[kept++] = c;
	}
	out[kept] = 0;
	return kept > 0;
}

static bool real_of(const struct value *in, double *out)
{
	char copy[400], *end;

	*out = in->kind == VALUE_FLOAT	? in->real
	       : in->kind == VALUE_INT	? (double)in->integer
	       : in->kind == VALUE_BOOL ? (double)in->truth
					: 0;
	if (in->kind != VALUE_STRING)
		return in->kind == VALUE_FLOAT || in->kind == VALUE_INT || in->kind == VALUE_BOOL;
	if (!number_text(in, copy, sizeof(copy)) || strpbrk(copy, "xXpP"))
		return false;
	*out = strtod(copy, &end);
	return !*end;
}

FILTER(filter_int)
{
	char copy[400], *end;
	int64_t base = 10;
	double real;

	if (in->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, in);
	if (!slot_int(r, s, 1, &base))
		return false;
	if (base < 2 || base > 36)
		return run_fail(r, "int allows a base from 2 to 36");
	*out = s->at[0] ? *s->at[0] : value_int(0);
	if (in->kind == VALUE_INT || in->kind == VALUE_BOOL) {
		*out = value_int(in->kind == VALUE_INT ? in->integer : in->truth);
		return true;
	}
	if (in->kind == VALUE_STRING && number_text(in, copy, sizeof(copy))) {
		char *digits = copy + (copy[0] == '+' || copy[0] == '-');
		int prefix = base == 16 ? 'x' : base == 8 ? 'o' : base == 2 ? 'b' : 0;

		if (prefix && digits[0] == '0' && (digits[1] | 0x20) == prefix)
			memmove(digits, digits + 2, strlen(digits + 2) + 1);
		errno = 0;
		real = (double)strtoll(copy, &end, (int)base);
		if (errno == ERANGE)
			return run_fail(r, "the number does not fit into 64 bits");
		if (!*end && *digits) {
			*out = value_int(strtoll(copy, NULL, (int)base));
			return true;
		}
	}
	if (real_of(in, &real) && fabs(real) < 9e18)
		*out = value_int((int64_t)real);
	return true;
}

FILTER(filter_float)
{
	double real;

	if (in->kind == VALUE_UNDEFINED)
		return run_fail_undefined(r, in);
	if (real_of(in, &real))
		*out = value_float(real);
	else
		*out = s->at[0] ? *s->at[0] : value_float(0);
	return true;
}

/* A conversion of Python's % operator: %[flags][width][.precision]letter. */
struct conversion {
	char flags[8];
	int width, precision; /* precision -1: none */
	char letter;
};

static bool read_conversion(struct jinja_run *r, const struct value *f, size_t *at, struct conversion *c)
{
	size_t flags = 0;
	int *number = &c->width;

	*c = (struct conversion){.precision = -1};
	for (; *at < f->string.size; ++*at) {
		char now = f->string.bytes[*at];

		if (now && strchr("-+ 0#", now) && number == &c->width && !c->width) {
			if (flags + 1 < sizeof(c->flags))
				c->flags[flags++] = now;
		} else if (now >= '0' && now <= '9') {
			*number = *number * 10 + now - '0';
			if (*number > 4096)
				return run_fail(r, "the width of a format is more than 4096");
		} else if (now == '.' && number == &c->width) {
			number = &c->precision;
			c->precision = 0;
		} else {
			c->letter = now;
			++*at;
			return true;
		}
	}
	return run_fail(r, "the format ends within a conversion");
}

static bool convert_number(struct jinja_run *r, struct jinja_output *o, const struct conversion *c,
			   const struct value *v)
{
	char format[32], made[4608];
	double real;
	bool whole = strchr("diuxXo", c->letter) != NULL;

	if (!real_of(v, &real) || v->kind == VALUE_STRING)
		return run_fail(r, "%%%c needs a number, not a value of type %s", c->letter, value_type(v));
	if (c->precision > 300)
		return run_fail(r, "the precision of a format is more than 300");
	snprintf(format, sizeof(format), "%%%s*%s%s%c", c->flags, c->precision >= 0 ? ".*" : "",
		 whole ? "ll" : "", c->letter == 'u' ? 'd' : c->letter);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	if (whole) {
		long long integer = v->kind == VALUE_INT ? v->integer
				    : fabs(real) < 9e18	 ? (long long)real
							 : 0;

		if (c->precision >= 0)
			snprintf(made, sizeof(made), format, c->width, c->precision, integer);
		else
			snprintf(made, sizeof(made), format, c->width, integer);
	} else if (c->precision >= 0) {
		snprintf(made, sizeof(made), format, c->width, c->precision, real);
	} else {
		snprintf(made, sizeof(made), format, c->width, real);
	}
#pragma GCC diagnostic pop
	output_add_text(o, made);
	return true;
}

static bool convert_text(struct jinja_run *r, struct jinja_output *o, const struct conversion *c,
			 const struct value *v)
{
	struct jinja_output repr = {0};
	struct value text;
	size_t size;

	if (c->letter == 's') {
		if (!string_of(r, v, &text))
			return false;
	} else {
		if (!write_repr(r, &repr, v)) {
			jinja_output_release(&repr);
			return false;
		}
		if (!output_take(r, &repr, &text))
			return false;
	}
	if (c->precision >= 0)
		text = string_part(&text, 0, string_offset(&text, (size_t)c->precision));
	size = string_length(&text);
	for (size_t i = size; !strchr(c->flags, '-') && i < (size_t)c->width; i++)
		output_add_text(o, " ");
	output_add_string(o, &text);
	for (size_t i = size; strchr(c->flags, '-') && i < (size_t)c->width; i++)
		output_add_text(o, " ");
	return true;
}

static bool format_all(struct jinja_run *r, const struct value *f, const struct arguments *a,
		       struct jinja_output *o)
{
	struct conversion c;
	struct value part;
	size_t at = 0, plain, used = 0;

	for (;;) {
		for (plain = at; at < f->string.size && f->string.bytes[at] != '%';)
			at++;
		part = string_part(f, plain, at);
		output_add_string(o, &part);
		if (at++ == f->string.size)
			break;
		if (!read_conversion(r, f, &at, &c))
			return false;
		if (c.letter == '%') {
			output_add(o, "%", 1, string_source(f, at - 1));
			continue;
		}
		if (used == a->count)
			return run_fail(r, "the format needs more than %zu values", used);
		if (!c.letter || !strchr("srdiuxXofFeEgG", c.letter))
			return run_fail(r, "this conversion of a format is not supported");
		if (c.letter == 's' || c.letter == 'r' ? !convert_text(r, o, &c, &a->values[used++])
						       : !convert_number(r, o, &c, &a->values[used++]))
			return false;
	}
	return used == a->count || run_fail(r, "the format uses %zu of %zu values", used, a->count);
}

static bool filter_format(struct jinja_run *r, const struct value *in, const struct arguments *a,
			  struct value *out)
{
	struct jinja_output o = {0};
	struct value format;

	if (a->named_count)
		return run_fail(r, "formats with names are not supported");
	if (!string_of(r, in, &format))
		return false;
	if (format_all(r, &format, a, &o))
		return output_take(r, &o, out);
	jinja_output_release(&o);
	return false;
}

static const struct function filters[] = {
	{.name = "string", .parameters = "", .call = filter_string},
	{.name = "safe", .parameters = "", .call = filter_string},
	{.name = "upper", .parameters = "", .call = filter_upper},
	{.name = "lower", .parameters = "", .call = filter_lower},
	{.name = "capitalize", .parameters = "", .call = filter_capitalize},
	{.name = "title", .parameters = "", .call = filter_title},
	{.name = "trim", .parameters = "chars", .call = filter_trim},
	{.name = "replace", .parameters = "old new count", .least = 2, .call = filter_replace},
	{.name = "join", .parameters = "d attribute", .call = filter_join},
	{.name = "tojson", .parameters = "ensure_ascii indent separators sort_keys", .call = filter_tojson},
	{.name = "indent", .parameters = "width first blank", .call = filter_indent},
	{.name = "escape", .parameters = "", .call = filter_escape},
	{.name = "e", .parameters = "", .call = filter_escape},
	{.name = "center", .parameters = "width", .call = filter_center},
	{.name = "wordcount", .parameters = "", .call = filter_wordcount},
	{.name = "int", .parameters = "default base", .call = filter_int},
	{.name = "float", .parameters = "default", .call = filter_float},
	{.name = "format", .parameters = "*", .any = filter_format},
};

const struct function *filter_text_find(const char *name, size_t size)
{
	return function_among(filters, sizeof(filters) / sizeof(filters[0]), name, size);
}
