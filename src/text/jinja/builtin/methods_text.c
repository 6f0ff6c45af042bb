/* SPDX-License-Identifier: Apache-2.0 */
/* Methods of strings. */
#include <stdlib.h>
#include <string.h>
#include "text/jinja/builtin/methods.h"
#include "text/jinja/value/unicode.h"

static bool strip(struct jinja_run *r, const struct value *self, const struct slots *s,
		  enum string_sides sides, struct value *out)
{
	const struct value *characters = NULL;

	if (s->at[0] && s->at[0]->kind != VALUE_NONE && !slot_string(r, s, 0, &characters))
		return false;
	if (!run_charge_bytes(r, self->string.size * (characters ? characters->string.size + 1 : 1)))
		return false;
	*out = string_strip(self, characters, sides);
	return true;
}

METHOD(string_strip_both)
{
	return strip(r, self, s, STRIP_BOTH, out);
}

METHOD(string_lstrip)
{
	return strip(r, self, s, STRIP_LEFT, out);
}

METHOD(string_rstrip)
{
	return strip(r, self, s, STRIP_RIGHT, out);
}

METHOD(string_upper)
{
	(void)s;
	return string_case(r, self, CASE_UPPER, out);
}

METHOD(string_lower)
{
	(void)s;
	return string_case(r, self, CASE_LOWER, out);
}

METHOD(string_title)
{
	(void)s;
	return string_case(r, self, CASE_TITLE, out);
}

METHOD(string_capitalize)
{
	(void)s;
	return string_case(r, self, CASE_CAPITAL, out);
}

METHOD(string_swapcase)
{
	(void)s;
	return string_case(r, self, CASE_SWAP, out);
}

/* Parts of a string while it is split. */
struct parts {
	struct value list;
	size_t room;
};

static bool add_part(struct jinja_run *r, struct parts *p, struct value part)
{
	struct list *l = p->list.list;
	struct value *grown;

	if (!run_charge_bytes(r, part.string.size + 64))
		return false;
	if (l->count == p->room) {
		grown = run_take(r, 2 * (p->room + 4) * sizeof(*grown));
		if (!grown)
			return false;
		if (l->count)
			memcpy(grown, l->items, l->count * sizeof(*grown));
		l->items = grown;
		p->room = 2 * (p->room + 4);
	}
	l->items[l->count++] = part;
	return true;
}

static void turn_round(struct list *l)
{
	for (size_t i = 0, last = l->count; i + 1 < last--; i++) {
		struct value kept = l->items[i];

		l->items[i] = l->items[last];
		l->items[last] = kept;
	}
}

/* Searching from the right compares the word at each place. */
static bool charge_search(struct jinja_run *r, const struct value *s, const struct value *word, bool right)
{
	return run_charge_bytes(r, s->string.size * (right ? word->string.size / 16 + 1 : 1));
}

/* Splits at white space; blanks at the ends and between parts do not count. */
static bool split_blanks(struct jinja_run *r, const struct value *self, int64_t most, struct parts *p)
{
	struct value rest = string_strip(self, NULL, STRIP_LEFT);
	size_t end, taken;

	while (rest.string.size) {
		if (!most--)
			return add_part(r, p, rest);
		for (end = 0; end < rest.string.size && !unicode_is_space(string_code(&rest, end, &taken));)
			end += taken;
		if (!add_part(r, p, string_part(&rest, 0, end)))
			return false;
		rest = string_part(&rest, end, rest.string.size);
		rest = string_strip(&rest, NULL, STRIP_LEFT);
	}
	return true;
}

/* The same from the right; parts come in reverse. */
static bool rsplit_blanks(struct jinja_run *r, const struct value *self, int64_t most, struct parts *p)
{
	struct value rest = string_strip(self, NULL, STRIP_RIGHT);

	while (rest.string.size) {
		size_t begin = rest.string.size, at, taken;

		if (!most--)
			return add_part(r, p, rest);
		while (begin) {
			for (at = begin - 1; at && (rest.string.bytes[at] & 0xc0) == 0x80;)
				at--;
			if (unicode_is_space(string_code(&rest, at, &taken)))
				break;
			begin = at;
		}
		if (!add_part(r, p, string_part(&rest, begin, rest.string.size)))
			return false;
		rest = string_part(&rest, 0, begin);
		rest = string_strip(&rest, NULL, STRIP_RIGHT);
	}
	return true;
}

static bool split_at(struct jinja_run *r, const struct value *self, const struct value *between, int64_t most,
		     bool right, struct parts *p)
{
	size_t begin = 0, end = self->string.size, found;

	if (!between->string.size)
		return run_fail(r, "a string cannot be split at an empty string");
	if (!charge_search(r, self, between, right))
		return false;
	while (most--) {
		found = right ? string_rfind(self, between, end) : string_find(self, between, begin);
		if (found == SIZE_MAX)
			break;
		if (right ? !add_part(r, p, string_part(self, found + between->string.size, end))
			  : !add_part(r, p, string_part(self, begin, found)))
			return false;
		if (right)
			end = found;
		else
			begin = found + between->string.size;
	}
	return add_part(r, p, string_part(self, begin, end));
}

static bool split_string(struct jinja_run *r, const struct value *self, const struct slots *s, bool right,
			 struct value *out)
{
	const struct value *between = NULL;
	struct parts p = {0};
	int64_t most = -1;
	bool good;

	if (s->at[0] && s->at[0]->kind != VALUE_NONE && !slot_string(r, s, 0, &between))
		return false;
	if (!slot_int(r, s, 1, &most) || !list_create(r, FORM_LIST, 0, &p.list))
		return false;
	most = most < 0 ? -1 : most;
	if (between)
		good = split_at(r, self, between, most, right, &p);
	else
		good = right ? rsplit_blanks(r, self, most, &p) : split_blanks(r, self, most, &p);
	if (right)
		turn_round(p.list.list);
	*out = p.list;
	return good;
}

METHOD(string_split)
{
	return split_string(r, self, s, false, out);
}

METHOD(string_rsplit)
{
	return split_string(r, self, s, true, out);
}

static bool ends_line(uint32_t code)
{
	return (code >= 10 && code <= 13) || (code >= 0x1c && code <= 0x1e) || code == 0x85 ||
	       code == 0x2028 || code == 0x2029;
}

METHOD(string_splitlines)
{
	struct parts p = {0};
	size_t begin = 0, at = 0, taken;

	if (!list_create(r, FORM_LIST, 0, &p.list))
		return false;
	while (at < self->string.size) {
		size_t end = at;
		uint32_t code = string_code(self, at, &taken);

		at += taken;
		if (!ends_line(code))
			continue;
		if (code == '\r' && at < self->string.size && self->string.bytes[at] == '\n')
			at++;
		if (!add_part(r, &p, string_part(self, begin, slot_truth(s, 0) ? at : end)))
			return false;
		begin = at;
	}
	*out = p.list;
	return begin == at || add_part(r, &p, string_part(self, begin, at));
}

static bool part_at_border(struct jinja_run *r, const struct value *self, const struct value *word, bool end,
			   bool *out)
{
	size_t size;

	if (word->kind != VALUE_STRING)
		return run_fail(r, "the beginning or end of a string is a string, not a value of type %s",
				value_type(word));
	size = word->string.size;
	*out = size <= self->string.size &&
	       !memcmp(self->string.bytes + (end ? self->string.size - size : 0), word->string.bytes, size);
	return run_charge_bytes(r, size);
}

/* The characters that the slots from `from` on choose, [begin, end) in bytes. */
static bool range_of(struct jinja_run *r, const struct value *self, const struct slots *s, size_t from,
		     struct value *out)
{
	int64_t begin = 0, end = INT64_MAX, length = (int64_t)string_length(self);

	if ((s->at[from] && s->at[from]->kind != VALUE_NONE && !slot_int(r, s, from, &begin)) ||
	    (s->at[from + 1] && s->at[from + 1]->kind != VALUE_NONE && !slot_int(r, s, from + 1, &end)))
		return false;
	begin = begin < -length ? 0 : begin < 0 ? begin + length : begin > length ? length : begin;
	end = end < -length ? 0 : end < 0 ? end + length : end > length ? length : end;
	begin = begin > end ? end : begin;
	*out = string_part(self, string_offset(self, (size_t)begin), string_offset(self, (size_t)end));
	return run_charge_bytes(r, self->string.size);
}

static bool borders(struct jinja_run *r, const struct value *self, const struct slots *s, bool end,
		    struct value *out)
{
	const struct value *words = s->at[0];
	struct value part;
	bool is = false;

	if (!range_of(r, self, s, 1, &part))
		return false;
	if (words->kind != VALUE_LIST || words->list->form != FORM_TUPLE) {
		if (!part_at_border(r, &part, words, end, &is))
			return false;
	} else {
		for (size_t i = 0; i < words->list->count && !is; i++)
			if (!part_at_border(r, &part, &words->list->items[i], end, &is))
				return false;
	}
	*out = value_bool(is);
	return true;
}

METHOD(string_startswith)
{
	return borders(r, self, s, false, out);
}

METHOD(string_endswith)
{
	return borders(r, self, s, true, out);
}

METHOD(string_replace_all)
{
	const struct value *old = NULL, *new = NULL;
	int64_t count = -1;

	return slot_string(r, s, 0, &old) && slot_string(r, s, 1, &new) && slot_int(r, s, 2, &count) &&
	       string_replace(r, self, old, new, count, out);
}

/* The place of a word in characters, -1: it is not there. */
static bool find(struct jinja_run *r, const struct value *self, const struct slots *s, bool right,
		 int64_t *out)
{
	const struct value *word = NULL;
	struct value part, before;
	size_t at;

	if (!slot_string(r, s, 0, &word) || !range_of(r, self, s, 1, &part))
		return false;
	if (!charge_search(r, &part, word, right))
		return false;
	at = right ? string_rfind(&part, word, part.string.size) : string_find(&part, word, 0);
	before = string_part(self, 0,
			     (size_t)(part.string.bytes - self->string.bytes) + (at == SIZE_MAX ? 0 : at));
	*out = at == SIZE_MAX ? -1 : (int64_t)string_length(&before);
	return true;
}

static bool found(struct jinja_run *r, const struct value *self, const struct slots *s, bool right, bool must,
		  struct value *out)
{
	int64_t at;

	if (!find(r, self, s, right, &at))
		return false;
	*out = value_int(at);
	return !must || at >= 0 || run_fail(r, "the string does not contain this string");
}

METHOD(string_find_first)
{
	return found(r, self, s, false, false, out);
}

METHOD(string_find_last)
{
	return found(r, self, s, true, false, out);
}

METHOD(string_index)
{
	return found(r, self, s, false, true, out);
}

METHOD(string_rindex)
{
	return found(r, self, s, true, true, out);
}

METHOD(string_count)
{
	const struct value *word = NULL;
	struct value part;
	int64_t count = 0;
	size_t at = 0;

	if (!slot_string(r, s, 0, &word) || !range_of(r, self, s, 1, &part))
		return false;
	if (!word->string.size) {
		*out = value_int((int64_t)string_length(&part) + 1);
		return true;
	}
	for (; (at = string_find(&part, word, at)) != SIZE_MAX; at += word->string.size)
		count++;
	*out = value_int(count);
	return true;
}

METHOD(string_join_items)
{
	struct jinja_output o = {0};
	struct value *items;
	size_t count;

	if (!value_items(r, s->at[0], &items, &count))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (items[i].kind != VALUE_STRING ||
		    !run_charge_bytes(r, self->string.size + items[i].string.size)) {
			jinja_output_release(&o);
			return run_fail(r, "join needs strings, but item %zu has type %s", i,
					value_type(&items[i]));
		}
		if (i)
			output_add_string(&o, self);
		output_add_string(&o, &items[i]);
		if (o.text.size > r->limits.memory) {
			jinja_output_release(&o);
			return run_fail_limit(r, "memory");
		}
	}
	return output_take(r, &o, out);
}

METHOD(string_removeprefix)
{
	bool is;

	if (!part_at_border(r, self, s->at[0], false, &is))
		return false;
	*out = is ? string_part(self, s->at[0]->string.size, self->string.size) : *self;
	return true;
}

METHOD(string_removesuffix)
{
	bool is;

	if (!part_at_border(r, self, s->at[0], true, &is))
		return false;
	*out = is ? string_part(self, 0, self->string.size - s->at[0]->string.size) : *self;
	return true;
}

static bool partition(struct jinja_run *r, const struct value *self, const struct slots *s, bool right,
		      struct value *out)
{
	const struct value *word = NULL;
	size_t at, end;

	if (!slot_string(r, s, 0, &word))
		return false;
	if (!word->string.size)
		return run_fail(r, "a string cannot be split at an empty string");
	if (!charge_search(r, self, word, right))
		return false;
	at = right ? string_rfind(self, word, self->string.size) : string_find(self, word, 0);
	if (!list_create(r, FORM_TUPLE, 3, out))
		return false;
	end = at == SIZE_MAX ? 0 : at + word->string.size;
	if (at == SIZE_MAX)
		at = end = right ? 0 : self->string.size;
	out->list->items[0] = string_part(self, 0, at);
	out->list->items[1] = string_part(self, at, end);
	out->list->items[2] = string_part(self, end, self->string.size);
	return true;
}

METHOD(string_partition)
{
	return partition(r, self, s, false, out);
}

METHOD(string_rpartition)
{
	return partition(r, self, s, true, out);
}

/* Fills up to a width, with `left` of the missing characters on the left. */
enum side { SIDE_LEFT, SIDE_RIGHT, SIDE_BOTH };

static bool fill(struct jinja_run *r, const struct value *self, const struct slots *s, enum side side,
		 struct value *out)
{
	enum { WIDTH_MAX = 4096 };
	static const char blank[] = " ";
	const struct value space = value_string(blank, 1, JINJA_DATA), *with = &space;
	struct jinja_output o = {0};
	int64_t width = 0;
	size_t size = string_length(self), missing, left;

	if (!slot_int(r, s, 0, &width) || !slot_string(r, s, 1, &with))
		return false;
	if (width > WIDTH_MAX || string_length(with) != 1)
		return run_fail(r, "a width is at most %d, and it is filled with one character", WIDTH_MAX);
	missing = width > (int64_t)size ? (size_t)width - size : 0;
	left = side == SIDE_LEFT    ? missing
	       : side == SIDE_RIGHT ? 0
				    : missing / 2 + (missing & (size_t)width & 1);
	for (size_t i = 0; i < left; i++)
		output_add_string(&o, with);
	output_add_string(&o, self);
	for (size_t i = left; i < missing; i++)
		output_add_string(&o, with);
	return output_take(r, &o, out);
}

METHOD(string_ljust)
{
	return fill(r, self, s, SIDE_RIGHT, out);
}

METHOD(string_rjust)
{
	return fill(r, self, s, SIDE_LEFT, out);
}

METHOD(string_center)
{
	return fill(r, self, s, SIDE_BOTH, out);
}

METHOD(string_zfill)
{
	static const char zero[] = "0";
	const struct value with = value_string(zero, 1, JINJA_DATA);
	bool sign = self->string.size && (*self->string.bytes == '-' || *self->string.bytes == '+');
	struct value digits = string_part(self, sign, self->string.size), filled, width;
	struct value first = string_part(self, 0, sign);
	int64_t count = 0;

	if (!slot_int(r, s, 0, &count))
		return false;
	width = value_int(count < 0 ? 0 : count - sign);
	return fill(r, &digits, &(struct slots){{&width, &with}}, SIDE_LEFT, &filled) &&
	       string_join(r, &first, &filled, out);
}

/* Whether a text has characters, and all are of a class. */
static bool all_are(const struct value *self, bool (*is)(uint32_t), bool (*or_is)(uint32_t),
		    struct value *out)
{
	bool all = self->string.size > 0;
	size_t taken;

	for (size_t at = 0; all && at < self->string.size; at += taken) {
		uint32_t code = string_code(self, at, &taken);

		all = is(code) || (or_is && or_is(code));
	}
	*out = value_bool(all);
	return true;
}

METHOD(string_isdigit)
{
	(void)r, (void)s;
	return all_are(self, unicode_is_digit, NULL, out);
}

METHOD(string_isalpha)
{
	(void)r, (void)s;
	return all_are(self, unicode_is_letter, NULL, out);
}

METHOD(string_isalnum)
{
	(void)r, (void)s;
	return all_are(self, unicode_is_letter, unicode_is_digit, out);
}

METHOD(string_isspace)
{
	(void)r, (void)s;
	return all_are(self, unicode_is_space, NULL, out);
}

static bool test_of(struct jinja_run *r, const struct value *self, const char *name, struct value *out)
{
	bool is;

	if (!test_find(name, strlen(name))->call(r, self, NULL, &is))
		return false;
	*out = value_bool(is);
	return true;
}

METHOD(string_isupper)
{
	(void)s;
	return test_of(r, self, "upper", out);
}

METHOD(string_islower)
{
	(void)s;
	return test_of(r, self, "lower", out);
}

/* One field of str.format, without braces: a place, a name or nothing. */
static bool format_field(struct jinja_run *r, const struct value *field, const struct arguments *a,
			 size_t *next, const struct value **out)
{
	size_t index = 0;

	*out = NULL;
	for (size_t i = 0; i < field->string.size; i++) {
		char c = field->string.bytes[i];

		if (c == ':' || c == '!' || c == '.' || c == '[')
			return run_fail(r, "format supports only fields such as {}, {0} and {name}");
		index = c >= '0' && c <= '9' && index < 1000 ? index * 10 + (size_t)(c - '0') : SIZE_MAX;
	}
	if (!field->string.size)
		index = (*next)++;
	for (size_t i = 0; i < a->named_count && !*out; i++)
		if (a->names[i].string.size == field->string.size &&
		    !memcmp(a->names[i].string.bytes, field->string.bytes, field->string.size))
			*out = &a->named[i];
	if (!*out && index < a->count)
		*out = &a->values[index];
	return *out ||
	       run_fail(r, "format got no argument for the field {%.*s}",
			(int)(field->string.size < 60 ? field->string.size : 60), field->string.bytes);
}

static bool format_text(struct jinja_run *r, const struct value *self, const struct arguments *a,
			struct jinja_output *o)
{
	const struct value *filled;
	size_t next = 0, size = self->string.size;
	const char *s = self->string.bytes;

	for (size_t at = 0, end; at < size; at = end) {
		struct value part;

		end = at + 1;
		if ((s[at] == '{' || s[at] == '}') && end < size && s[end] == s[at]) {
			end++;
		} else if (s[at] == '}') {
			return run_fail(r, "format found a single }");
		} else if (s[at] == '{') {
			while (end < size && s[end] != '}')
				end++;
			if (end == size)
				return run_fail(r, "format found a { without }");
			part = string_part(self, at + 1, end++);
			if (!format_field(r, &part, a, &next, &filled) || !write_value(r, o, filled))
				return false;
			continue;
		}
		part = string_part(self, at, at + 1);
		output_add_string(o, &part);
	}
	return true;
}

static bool string_format(struct jinja_run *r, const struct value *self, const struct arguments *a,
			  struct value *out)
{
	struct jinja_output o = {0};

	if (format_text(r, self, a, &o))
		return output_take(r, &o, out);
	jinja_output_release(&o);
	return false;
}

static const struct function methods[] = {
	{.name = "strip", .parameters = "chars", .call = string_strip_both},
	{.name = "lstrip", .parameters = "chars", .call = string_lstrip},
	{.name = "rstrip", .parameters = "chars", .call = string_rstrip},
	{.name = "split", .parameters = "sep maxsplit", .call = string_split},
	{.name = "rsplit", .parameters = "sep maxsplit", .call = string_rsplit},
	{.name = "splitlines", .parameters = "keepends", .call = string_splitlines},
	{.name = "startswith", .parameters = "prefix start end", .least = 1, .call = string_startswith},
	{.name = "endswith", .parameters = "suffix start end", .least = 1, .call = string_endswith},
	{.name = "replace", .parameters = "old new count", .least = 2, .call = string_replace_all},
	{.name = "upper", .parameters = "", .call = string_upper},
	{.name = "lower", .parameters = "", .call = string_lower},
	{.name = "casefold", .parameters = "", .call = string_lower},
	{.name = "title", .parameters = "", .call = string_title},
	{.name = "capitalize", .parameters = "", .call = string_capitalize},
	{.name = "swapcase", .parameters = "", .call = string_swapcase},
	{.name = "find", .parameters = "sub start end", .least = 1, .call = string_find_first},
	{.name = "rfind", .parameters = "sub start end", .least = 1, .call = string_find_last},
	{.name = "index", .parameters = "sub start end", .least = 1, .call = string_index},
	{.name = "rindex", .parameters = "sub start end", .least = 1, .call = string_rindex},
	{.name = "count", .parameters = "sub start end", .least = 1, .call = string_count},
	{.name = "join", .parameters = "iterable", .least = 1, .call = string_join_items},
	{.name = "removeprefix", .parameters = "prefix", .least = 1, .call = string_removeprefix},
	{.name = "removesuffix", .parameters = "suffix", .least = 1, .call = string_removesuffix},
	{.name = "partition", .parameters = "sep", .least = 1, .call = string_partition},
	{.name = "rpartition", .parameters = "sep", .least = 1, .call = string_rpartition},
	{.name = "ljust", .parameters = "width fillchar", .least = 1, .call = string_ljust},
	{.name = "rjust", .parameters = "width fillchar", .least = 1, .call = string_rjust},
	{.name = "center", .parameters = "width fillchar", .least = 1, .call = string_center},
	{.name = "zfill", .parameters = "width", .least = 1, .call = string_zfill},
	{.name = "isdigit", .parameters = "", .call = string_isdigit},
	{.name = "isnumeric", .parameters = "", .call = string_isdigit},
	{.name = "isdecimal", .parameters = "", .call = string_isdigit},
	{.name = "isalpha", .parameters = "", .call = string_isalpha},
	{.name = "isalnum", .parameters = "", .call = string_isalnum},
	{.name = "isspace", .parameters = "", .call = string_isspace},
	{.name = "isupper", .parameters = "", .call = string_isupper},
	{.name = "islower", .parameters = "", .call = string_islower},
	{.name = "format", .parameters = "*", .any = string_format},
};

const struct function *method_of_string(const struct value *name)
{
	return function_among(methods, sizeof(methods) / sizeof(methods[0]), name->string.bytes,
			      name->string.size);
}
