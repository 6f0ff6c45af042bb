/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of templates. Positions count characters where Python does; parts of a text share its bytes. */
#ifndef TEXT_JINJA_VALUE_STRING_H
#define TEXT_JINJA_VALUE_STRING_H
#include "text/jinja/value/value.h"

/* Appends bytes of one source. */
void output_add(struct jinja_output *o, const char *bytes, size_t size, enum jinja_source source);
void output_add_text(struct jinja_output *o, const char *text); /* DATA */
void output_add_string(struct jinja_output *o, const struct value *string);
void output_add_code(struct jinja_output *o, uint32_t code, enum jinja_source source);
/* Makes a string of the output and releases it, after an error too. */
bool output_take(struct jinja_run *r, struct jinja_output *o, struct value *out);

static inline enum jinja_source string_source(const struct value *s, size_t at)
{
	return (enum jinja_source)(s->string.sources ? s->string.sources[at] : s->source);
}

/* The bytes [begin, end). */
static inline struct value string_part(const struct value *s, size_t begin, size_t end)
{
	struct value part = *s;

	part.string.bytes += begin;
	part.string.size = end - begin;
	if (part.string.sources)
		part.string.sources += begin;
	return part;
}

bool string_join(struct jinja_run *r, const struct value *a, const struct value *b, struct value *out);
size_t string_length(const struct value *s); /* characters */
/* The byte offset of a character, at most the text's size. */
size_t string_offset(const struct value *s, size_t character);
uint32_t string_code(const struct value *s, size_t at, size_t *size);
enum string_sides { STRIP_LEFT = 1, STRIP_RIGHT = 2, STRIP_BOTH = 3 };
/* Without `characters` (NULL), white space is removed. */
struct value string_strip(const struct value *s, const struct value *characters, enum string_sides sides);
/* The first place of `word` at or after `from`, or SIZE_MAX; string_rfind: the last place before `end`. */
size_t string_find(const struct value *s, const struct value *word, size_t from);
size_t string_rfind(const struct value *s, const struct value *word, size_t end);
/* `most` < 0: all. */
bool string_replace(struct jinja_run *r, const struct value *s, const struct value *old,
		    const struct value *new, int64_t most, struct value *out);
enum string_case { CASE_UPPER, CASE_LOWER, CASE_TITLE, CASE_CAPITAL, CASE_SWAP };
bool string_case(struct jinja_run *r, const struct value *s, enum string_case how, struct value *out);
#endif
