/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/read/request_line.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The index of the first byte from `i` on that is no digit. */
static size_t after_digits(const char *s, size_t size, size_t i)
{
	while (i < size && s[i] >= '0' && s[i] <= '9')
		i++;
	return i;
}

/* Bytes of the JSON number at the start of `s`; 0: there is none. */
static size_t number_bytes(const char *s, size_t size)
{
	size_t from = size && *s == '-', i = after_digits(s, size, from);

	if (i == from || (s[from] == '0' && i > from + 1))
		return 0;
	if (i < size && s[i] == '.') {
		from = i + 1;
		i = after_digits(s, size, from);
		if (i == from)
			return 0;
	}
	if (i < size && (s[i] == 'e' || s[i] == 'E')) {
		from = i + 1;
		from += from < size && (s[from] == '+' || s[from] == '-');
		i = after_digits(s, size, from);
		if (i == from)
			return 0;
	}
	return i;
}

bool request_first_token(double *seconds, const char *line, size_t size)
{
	/* Within a text of JSON a backslash precedes each quotation mark, so these bytes are the name of a
	 * member. */
	static const char name[] = "\"first_token_s\":";
	const char *at = memmem(line, size, name, sizeof(name) - 1);
	char number[32];
	size_t n;

	if (!at || line[0] != '{' || line[size - 1] != '}')
		return false;
	at += sizeof(name) - 1;
	n = number_bytes(at, size - (size_t)(at - line)); /* less than all: a brace ends the line */
	if (!n || n >= sizeof(number) || (at[n] != ',' && at[n] != '}'))
		return false;
	memcpy(number, at, n);
	number[n] = '\0';
	*seconds = strtod(number, NULL);
	return isfinite(*seconds);
}
