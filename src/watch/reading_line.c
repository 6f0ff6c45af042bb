/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/reading_line.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Integers of so many digits are exact as double, and fit in uint64_t. */
enum { EXACT_DIGITS = 15, TIME_DIGITS = 18, NUMBER_BYTES = 40 };

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *c, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size))
		return false;
	c->at += size;
	return true;
}

static size_t digits(const struct cursor *c)
{
	size_t n = 0;

	while (c->at + n < c->end && c->at[n] >= '0' && c->at[n] <= '9')
		n++;
	return n;
}

/* JSON writes no zero before other digits. */
static bool take_integer(struct cursor *c, size_t most, uint64_t *out)
{
	size_t n = digits(c);

	if (!n || n > most || (n > 1 && *c->at == '0'))
		return false;
	*out = 0;
	while (n--)
		*out = 10 * *out + (uint64_t)(*c->at++ - '0');
	return true;
}

static bool take_below(struct cursor *c, uint64_t limit, uint32_t *out)
{
	uint64_t value;

	if (!take_integer(c, EXACT_DIGITS, &value) || value >= limit)
		return false;
	*out = (uint32_t)value;
	return true;
}

/* The rest of a number with a fraction or an exponent. */
static bool skip_fraction(struct cursor *c)
{
	if (take(c, ".")) {
		size_t n = digits(c);

		c->at += n;
		if (!n)
			return false;
	}
	if (take(c, "e") || take(c, "E")) {
		size_t n;

		if (!take(c, "+"))
			take(c, "-");
		n = digits(c);
		c->at += n;
		return n > 0;
	}
	return true;
}

static bool take_number(struct cursor *c, double *out)
{
	const char *from = c->at;
	bool negative = take(c, "-");
	char text[NUMBER_BYTES];
	uint64_t whole;
	size_t size;

	if (!take_integer(c, EXACT_DIGITS, &whole))
		return false;
	*out = negative ? -(double)whole : (double)whole;
	if (c->at < c->end && *c->at != '.' && *c->at != 'e' && *c->at != 'E')
		return true;
	if (!skip_fraction(c))
		return false;
	size = (size_t)(c->at - from);
	if (size >= sizeof(text))
		return false;
	memcpy(text, from, size);
	text[size] = '\0';
	*out = strtod(text, NULL);
	return isfinite(*out);
}

/* [position, value, ..] */
static bool take_values(struct cursor *c, struct reading_line *l)
{
	if (!take(c, "["))
		return false;
	if (take(c, "]"))
		return true;
	do {
		struct reading_value *v = &l->value[l->values];

		if (l->values == READING_VALUES_MAX || !take_below(c, UINT32_MAX, &v->position) ||
		    !take(c, ","))
			return false;
		v->value = 0;
		v->absent = take(c, "null");
		if (!v->absent && !take_number(c, &v->value))
			return false;
		l->values++;
	} while (take(c, ","));
	return take(c, "]");
}

/* {"3":[..],"9":[..]}. An entity that stands there twice is an error of the line, which this does not tell.
 */
static bool take_lists(struct cursor *c, struct reading_line *l)
{
	if (!take(c, "{"))
		return false;
	if (take(c, "}"))
		return true;
	do {
		struct reading_list *list = &l->list[l->lists];

		if (l->lists == READING_LISTS_MAX || !take(c, "\"") ||
		    !take_below(c, UINT32_MAX, &list->entity) || !take(c, "\":"))
			return false;
		if (l->lists && list->entity <= list[-1].entity)
			return false;
		list->first = l->values;
		list->text = c->at;
		if (!take_values(c, l))
			return false;
		list->count = l->values - list->first;
		list->size = (size_t)(c->at - list->text);
		l->lists++;
	} while (take(c, ","));
	return take(c, "}");
}

static bool take_end(struct cursor *c, struct reading_line *l)
{
	l->ends = take(c, ",\"end\":");
	l->ends_all = l->ends && take(c, "true");
	return !l->ends || l->ends_all || take_below(c, UINT32_MAX, &l->end);
}

bool reading_line_parse(struct reading_line *l, const char *line, size_t size)
{
	struct cursor c = {line, line + size};
	uint32_t source;

	l->lists = l->values = 0;
	l->rare_ns = 0;
	l->end = 0;
	if (!take(&c, "{\"t\":") || !take_integer(&c, TIME_DIGITS, &l->t_ns) || !l->t_ns)
		return false;
	if (!take(&c, ",\"s\":") || !take_below(&c, UINT32_MAX, &source))
		return false;
	l->source = source;
	if (take(&c, ",\"v\":") && !take_lists(&c, l))
		return false;
	if (!take_end(&c, l))
		return false;
	l->alone = take(&c, ",\"alone\":true");
	l->slow = take(&c, ",\"slow\":true");
	if (take(&c, ",\"rare\":") &&
	    (!l->slow || !take_integer(&c, TIME_DIGITS, &l->rare_ns) || !l->rare_ns || l->rare_ns > l->t_ns))
		return false;
	l->done = take(&c, ",\"done\":true");
	return take(&c, "}") && c.at == c.end;
}
