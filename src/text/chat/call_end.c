/* SPDX-License-Identifier: Apache-2.0 */
#include "text/chat/call_end.h"

#include <string.h>

static bool is_space(char c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static bool begins_with(const char *text, size_t size, const char *mark)
{
	return size >= strlen(mark) && !memcmp(text, mark, strlen(mark));
}

static bool is_beginning_of(const char *text, size_t size, const char *mark)
{
	return size < strlen(mark) && !memcmp(text, mark, size);
}

/* `text` begins with a byte that JSON has only in strings: < */
static enum call_end mark_at(const char *text, size_t size)
{
	if (begins_with(text, size, CALL_CLOSE_MARK))
		return CALL_END_CLOSE;
	if (begins_with(text, size, CALL_OPEN_MARK))
		return CALL_END_OPEN;
	return is_beginning_of(text, size, CALL_CLOSE_MARK) || is_beginning_of(text, size, CALL_OPEN_MARK)
		       ? CALL_END_UNKNOWN
		       : CALL_END_BROKEN;
}

/* Reads one byte. False: it has no place in a JSON object. */
static bool take(struct call_scan *s, char c)
{
	if (s->in_string) {
		s->in_string = s->escaped || c != '"';
		s->escaped = !s->escaped && c == '\\';
		return (unsigned char)c >= ' ';
	}
	if (!s->begun && !is_space(c) && c != '{')
		return false;
	s->begun |= c == '{';
	s->in_string = c == '"';
	return true;
}

enum call_end call_end_find(struct call_scan *s, const char *text, size_t size, size_t *at)
{
	for (; s->at < size; s->at++) {
		if (!s->in_string && text[s->at] == '<') {
			*at = s->at;
			return mark_at(text + s->at, size - s->at);
		}
		if (!take(s, text[s->at]))
			return CALL_END_BROKEN;
	}
	return CALL_END_UNKNOWN;
}
