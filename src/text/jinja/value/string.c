/* SPDX-License-Identifier: Apache-2.0 */
#include "text/jinja/value/string.h"

#include <stdlib.h>
#include <string.h>
#include "core/text/utf8.h"
#include "text/jinja/run.h"
#include "text/jinja/value/unicode.h"

void jinja_output_release(struct jinja_output *o)
{
	text_release(&o->text);
	free(o->spans);
	*o = (struct jinja_output){0};
}

void output_add(struct jinja_output *o, const char *bytes, size_t size, enum jinja_source source)
{
	struct jinja_span *last = o->count ? &o->spans[o->count - 1] : NULL, *grown;
	size_t room;

	if (!size || o->failed)
		return;
	text_add_bytes(&o->text, bytes, size);
	o->failed = o->text.failed;
	if (last && last->source == source) {
		last->end = o->text.size;
		return;
	}
	if (o->count == o->room) {
		room = o->room ? o->room * 2 : 16;
		grown = realloc(o->spans, room * sizeof(*grown));
		if (!grown) {
			o->failed = true;
			return;
		}
		o->spans = grown;
		o->room = room;
	}
	o->spans[o->count++] = (struct jinja_span){.end = o->text.size, .source = source};
}

void output_add_text(struct jinja_output *o, const char *text)
{
	output_add(o, text, strlen(text), JINJA_DATA);
}

void output_add_string(struct jinja_output *o, const struct value *s)
{
	size_t end;

	for (size_t at = 0; at < s->string.size; at = end) {
		end = s->string.sources ? at + 1 : s->string.size;
		while (end < s->string.size && s->string.sources[end] == s->string.sources[at])
			end++;
		output_add(o, s->string.bytes + at, end - at, string_source(s, at));
	}
}

void output_add_code(struct jinja_output *o, uint32_t code, enum jinja_source source)
{
	char utf8[4];

	output_add(o, utf8, unicode_encode(code, utf8), source);
}

bool output_take(struct jinja_run *r, struct jinja_output *o, struct value *out)
{
	size_t size = o->text.size, at = 0;
	bool mixed = o->count > 1;
	char *bytes = o->failed ? NULL : run_take(r, size + 1);
	uint8_t *sources = bytes && mixed ? run_take(r, size) : NULL;
	bool good = bytes && (sources || !mixed);

	if (o->failed)
		run_fail_limit(r, "memory");
	if (good) {
		memcpy(bytes, text_str(&o->text), size);
		for (size_t i = 0; mixed && i < o->count; i++)
			for (; at < o->spans[i].end; at++)
				sources[at] = (uint8_t)o->spans[i].source;
		*out = value_string(bytes, size, o->count ? o->spans[0].source : JINJA_DATA);
		out->string.sources = sources;
	}
	jinja_output_release(o);
	return good;
}

bool string_join(struct jinja_run *r, const struct value *a, const struct value *b, struct value *out)
{
	size_t size = a->string.size + b->string.size;
	bool mixed = a->string.sources || b->string.sources || a->source != b->source;
	uint8_t *sources = NULL;
	char *bytes;

	if (!a->string.size || !b->string.size) {
		*out = a->string.size ? *a : *b;
		return true;
	}
	bytes = run_charge_bytes(r, size) ? run_take(r, size + 1) : NULL;
	if (bytes && mixed)
		sources = run_take(r, size);
	if (!bytes || (mixed && !sources))
		return false;
	memcpy(bytes, a->string.bytes, a->string.size);
	memcpy(bytes + a->string.size, b->string.bytes, b->string.size);
	for (size_t i = 0; mixed && i < size; i++)
		sources[i] = (uint8_t)(i < a->string.size ? string_source(a, i)
							  : string_source(b, i - a->string.size));
	*out = value_string(bytes, size, (enum jinja_source)a->source);
	out->string.sources = sources;
	return true;
}

size_t string_length(const struct value *s)
{
	size_t count = 0;

	for (size_t i = 0; i < s->string.size; i++)
		count += (s->string.bytes[i] & 0xc0) != 0x80;
	return count;
}

size_t string_offset(const struct value *s, size_t character)
{
	size_t at = 0;

	for (; at < s->string.size; at++)
		if ((s->string.bytes[at] & 0xc0) != 0x80 && !character--)
			break;
	return at;
}

uint32_t string_code(const struct value *s, size_t at, size_t *size)
{
	char copy[5] = "";
	size_t left = s->string.size - at;
	uint32_t code;

	memcpy(copy, s->string.bytes + at, left < 4 ? left : 4);
	code = utf8_decode(copy, size);
	if (!*size) /* a NUL character */
		*size = 1;
	return code;
}

static bool is_among(const struct value *characters, uint32_t code)
{
	size_t taken;

	if (!characters)
		return unicode_is_space(code);
	for (size_t at = 0; at < characters->string.size; at += taken)
		if (string_code(characters, at, &taken) == code)
			return true;
	return false;
}

struct value string_strip(const struct value *s, const struct value *characters, enum string_sides sides)
{
	size_t begin = 0, end = s->string.size, taken, last;

	while ((sides & STRIP_LEFT) && begin < end && is_among(characters, string_code(s, begin, &taken)))
		begin += taken;
	while ((sides & STRIP_RIGHT) && end > begin) {
		for (last = end - 1; last > begin && (s->string.bytes[last] & 0xc0) == 0x80;)
			last--;
		if (!is_among(characters, string_code(s, last, &taken)))
			break;
		end = last;
	}
	return string_part(s, begin, end);
}

size_t string_find(const struct value *s, const struct value *word, size_t from)
{
	const char *found;

	if (from > s->string.size || word->string.size > s->string.size - from)
		return SIZE_MAX;
	if (!word->string.size)
		return from;
	found = memmem(s->string.bytes + from, s->string.size - from, word->string.bytes, word->string.size);
	return found ? (size_t)(found - s->string.bytes) : SIZE_MAX;
}

size_t string_rfind(const struct value *s, const struct value *word, size_t end)
{
	if (word->string.size > end)
		return SIZE_MAX;
	for (size_t at = end - word->string.size + 1; at--;)
		if (!memcmp(s->string.bytes + at, word->string.bytes, word->string.size))
			return at;
	return SIZE_MAX;
}

/* str.replace("", new): `new` stands before each character and at the end. */
static void replace_nothing(struct jinja_output *o, const struct value *s, const struct value *new,
			    int64_t most)
{
	size_t at = 0, taken;

	for (; at < s->string.size; at += taken) {
		struct value one;

		if (most)
			output_add_string(o, new);
		most -= most > 0;
		string_code(s, at, &taken);
		one = string_part(s, at, at + taken);
		output_add_string(o, &one);
	}
	if (most)
		output_add_string(o, new);
}

bool string_replace(struct jinja_run *r, const struct value *s, const struct value *old,
		    const struct value *new, int64_t most, struct value *out)
{
	struct jinja_output o = {0};
	size_t at = 0, found;
	struct value kept;

	if (!run_charge_bytes(r, s->string.size))
		return false;
	if (!old->string.size) {
		if (!run_charge_bytes(r, string_length(s) * (new->string.size + 1)))
			return false;
		replace_nothing(&o, s, new, most);
		return output_take(r, &o, out);
	}
	while (most && (found = string_find(s, old, at)) != SIZE_MAX) {
		if (o.text.size > r->limits.memory || !run_charge_bytes(r, new->string.size)) {
			jinja_output_release(&o);
			return run_fail_limit(r, "memory");
		}
		kept = string_part(s, at, found);
		output_add_string(&o, &kept);
		output_add_string(&o, new);
		at = found + old->string.size;
		most -= most > 0;
	}
	kept = string_part(s, at, s->string.size);
	if (!at) {
		*out = *s;
		return true;
	}
	output_add_string(&o, &kept);
	return output_take(r, &o, out);
}

static bool cased(uint32_t code)
{
	return unicode_is_upper(code) || unicode_is_lower(code) || unicode_upper(code) != code ||
	       unicode_lower(code) != code;
}

static void add_upper(struct jinja_output *o, uint32_t code, bool title, enum jinja_source source)
{
	if (code == 0xdf) /* the sharp s, the only letter that becomes two here */
		output_add(o, title ? "Ss" : "SS", 2, source);
	else
		output_add_code(o, title ? unicode_title(code) : unicode_upper(code), source);
}

static void add_lower(struct jinja_output *o, uint32_t code, enum jinja_source source)
{
	output_add_code(o, code == 0x130 ? 'i' : unicode_lower(code), source);
	if (code == 0x130) /* the dot of the capital I stays */
		output_add_code(o, 0x307, source);
}

bool string_case(struct jinja_run *r, const struct value *s, enum string_case how, struct value *out)
{
	struct jinja_output o = {0};
	bool inside = false; /* a letter stands before */
	size_t taken;

	if (!run_charge_bytes(r, s->string.size))
		return false;
	for (size_t at = 0; at < s->string.size; at += taken) {
		uint32_t code = string_code(s, at, &taken);
		enum jinja_source source = string_source(s, at);
		bool upper = how == CASE_UPPER || (how == CASE_TITLE && !inside) ||
			     (how == CASE_CAPITAL && !at) || (how == CASE_SWAP && unicode_is_lower(code));

		if (upper)
			add_upper(&o, code, how == CASE_TITLE || how == CASE_CAPITAL, source);
		else
			add_lower(&o, code, source);
		inside = cased(code);
	}
	return output_take(r, &o, out);
}
