/* SPDX-License-Identifier: Apache-2.0 */
#include "core/json/members.h"

#include <string.h>

static void skip_blanks(struct json_members *m)
{
	while (m->at < m->size && memchr(" \t\r\n", m->text[m->at], 4))
		m->at++;
}

static bool take(struct json_members *m, char sign)
{
	skip_blanks(m);
	if (m->at >= m->size || m->text[m->at] != sign)
		return false;
	m->at++;
	return true;
}

/* Moves behind the closing quote of the text that begins here. */
static bool skip_text(struct json_members *m)
{
	if (!take(m, '"'))
		return false;
	for (; m->at < m->size && m->text[m->at] != '"'; m->at++)
		m->at += m->text[m->at] == '\\';
	return m->at++ < m->size;
}

/* Moves to the comma or bracket after the value. Nesting depth is limited later, by jansson. */
static bool skip_value(struct json_members *m)
{
	size_t depth = 0;

	while (m->at < m->size) {
		char sign = m->text[m->at];

		if (sign == '"') {
			if (!skip_text(m))
				return false;
			continue;
		}
		if (!depth && (sign == ',' || sign == '}'))
			return true;
		depth += sign == '{' || sign == '[';
		if (sign == '}' || sign == ']') {
			if (!depth)
				return false;
			depth--;
		}
		m->at++;
	}
	return false;
}

void json_members_begin(struct json_members *m, const char *text, size_t size)
{
	*m = (struct json_members){.text = text, .size = size, .first = true};
	m->bad = !take(m, '{');
}

/* Checks that nothing but white space follows the object. */
static bool ended(struct json_members *m)
{
	if (!take(m, '}'))
		return false;
	skip_blanks(m);
	m->bad = m->at < m->size;
	return true;
}

bool json_members_next(struct json_members *m)
{
	if (m->bad)
		return false;
	if (ended(m))
		return false;
	m->bad = !m->first && !take(m, ',');
	m->first = false;
	skip_blanks(m);
	m->name = m->text + m->at;
	m->bad = m->bad || !skip_text(m);
	m->name_size = (size_t)(m->text + m->at - m->name);
	m->bad = m->bad || !take(m, ':');
	skip_blanks(m);
	m->value = m->text + m->at;
	m->bad = m->bad || !skip_value(m);
	m->value_size = (size_t)(m->text + m->at - m->value);
	if (m->at > m->size)
		m->at = m->size;
	return !m->bad;
}
