/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/protocol/body/json_cost.h"

/* jansson 2.14 on 64 bits: an empty object has a table of eight buckets, an empty array eight places. A
 * member is an entry with its key and a value, an element of an array a place and a value. */
enum { OBJECT_UNITS = 6, ARRAY_UNITS = 2, MEMBER_UNITS = 2, VALUE_UNITS = 1 };

/* The place behind a string that begins before `at`. */
static size_t string_end(const char *text, size_t size, size_t at)
{
	while (at < size && text[at] != '"')
		at += text[at] == '\\' ? 2 : 1;
	return at + 1;
}

size_t json_cost(const char *text, size_t size)
{
	size_t cost = 0, i = 0;

	while (i < size) {
		switch (text[i++]) {
		case '"':
			i = string_end(text, size, i);
			break;
		case '{':
			cost += OBJECT_UNITS;
			break;
		case '[':
			cost += ARRAY_UNITS;
			break;
		case ':':
			cost += MEMBER_UNITS;
			break;
		case ',':
			cost += VALUE_UNITS;
			break;
		default:
			break;
		}
	}
	return cost;
}
