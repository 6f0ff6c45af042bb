/* SPDX-License-Identifier: Apache-2.0 */
#include "team/launcher/nodelist.h"

#include <stdbool.h>

enum { BRACKETS_MAX = 8, DIGITS_MAX = 9 };

struct expansion {
	struct nodelist *list;
	size_t most, room;
	const char *whole; /* for messages */
	struct error *err;
	char name[NODELIST_NAME];
};

static bool of_host(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
	       c == '-' || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static enum status refuse(const struct expansion *e, const char *why)
{
	return error_set(e->err, STATUS_BAD_INPUT, "node list \"%.200s\": %s", e->whole, why);
}

static enum status add_name(struct expansion *e, size_t size)
{
	struct nodelist *l = e->list;
	char **grown;

	if (!size)
		return refuse(e, "a name is empty");
	if (l->count >= e->most)
		return error_set(e->err, STATUS_BAD_INPUT, "node list \"%.200s\" has more than %zu names",
				 e->whole, e->most);
	if (l->count == e->room) {
		e->room = e->room ? 2 * e->room : 16;
		grown = realloc(l->name, e->room * sizeof(*grown));
		if (!grown)
			return error_set_cause(e->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for %zu node names", e->room);
		l->name = grown;
	}
	e->name[size] = '\0';
	l->name[l->count] = strdup(e->name);
	if (!l->name[l->count])
		return error_set_cause(e->err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for %zu node names", e->room);
	l->count++;
	return STATUS_OK;
}

/* Reads digits at *at; false: none or too many. */
static bool take_number(const char **at, unsigned long *value, int *width)
{
	const char *p = *at;

	*value = 0;
	for (; is_digit(*p) && p - *at < DIGITS_MAX + 1; p++)
		*value = *value * 10 + (unsigned long)(*p - '0');
	*width = (int)(p - *at);
	*at = p;
	return *width && *width <= DIGITS_MAX;
}

static enum status expand(struct expansion *e, const char *at, size_t used, int brackets);

/* Expands the bracket at *at (after its '['): each number in it, followed by the rest of the item. */
static enum status expand_bracket(struct expansion *e, const char *at, size_t used, int brackets)
{
	const char *behind = strchr(at, ']');
	unsigned long low, high, v;
	int width, width_high;
	enum status st;

	if (!behind)
		return refuse(e, "a bracket is not closed");
	if (memchr(at, '[', (size_t)(behind - at)))
		return refuse(e, "a bracket is inside another bracket");
	for (;; at++) {
		if (!take_number(&at, &low, &width))
			return refuse(
				e,
				"a bracket holds numbers and ranges of numbers only, of nine digits at most");
		high = low;
		if (*at == '-') {
			at++;
			if (!take_number(&at, &high, &width_high))
				return refuse(e, "a range has no end");
		}
		if (high < low)
			return refuse(e, "a range runs backwards");
		for (v = low; v <= high; v++) {
			int n = snprintf(e->name + used, sizeof(e->name) - used, "%0*lu", width, v);

			if (n < 0 || (size_t)n >= sizeof(e->name) - used)
				return refuse(e, "a name is too long");
			st = expand(e, behind + 1, used + (size_t)n, brackets);
			if (st)
				return st;
		}
		if (at == behind)
			return STATUS_OK;
		if (*at != ',')
			return refuse(
				e,
				"a bracket holds numbers and ranges of numbers only, of nine digits at most");
	}
}

/* Appends the rest of one item to the text in e->name. */
static enum status expand(struct expansion *e, const char *at, size_t used, int brackets)
{
	for (; of_host(*at); at++) {
		if (used + 1 >= sizeof(e->name))
			return refuse(e, "a name is too long");
		e->name[used++] = *at;
	}
	if (!*at || *at == ',')
		return add_name(e, used);
	if (*at != '[')
		return refuse(e, "it holds a character that no host name has");
	if (brackets == BRACKETS_MAX)
		return refuse(e, "a name has more than eight brackets");
	return expand_bracket(e, at + 1, used, brackets + 1);
}

/* The end of the item: a comma inside a bracket does not end it. */
static const char *item_end(const char *at)
{
	bool inside = false;

	for (; *at && (inside || *at != ','); at++)
		inside = *at == '[' || (inside && *at != ']');
	return at;
}

enum status nodelist_parse(struct nodelist *l, const char *text, size_t most, struct error *err)
{
	struct expansion e = {.list = l, .most = most, .whole = text, .err = err};
	const char *at = text;
	enum status st;

	*l = (struct nodelist){0};
	for (;;) {
		st = expand(&e, at, 0, 0);
		at = item_end(at);
		if (st || !*at)
			break;
		at++;
	}
	if (st)
		nodelist_release(l);
	return st;
}

void nodelist_release(struct nodelist *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->name[i]);
	free(l->name);
	*l = (struct nodelist){0};
}

enum status nodelist_tasks(unsigned *tasks, const char *text, unsigned index, struct error *err)
{
	unsigned long count, times, before = 0;
	const char *at = text;
	int width;

	for (;; at++) {
		times = 1;
		if (!take_number(&at, &count, &width))
			break;
		if (*at == '(') {
			if (at[1] != 'x')
				break;
			at += 2;
			if (!take_number(&at, &times, &width) || *at++ != ')')
				break;
		}
		if (index < before + times) {
			*tasks = (unsigned)count;
			return STATUS_OK;
		}
		before += times;
		if (!*at)
			return error_set(err, STATUS_BAD_INPUT,
					 "tasks per node \"%.100s\": it lists %lu nodes, and this is node %u",
					 text, before, index);
		if (*at != ',')
			break;
	}
	return error_set(err, STATUS_BAD_INPUT, "tasks per node \"%.100s\" is not written as \"2(x3),1\"",
			 text);
}
