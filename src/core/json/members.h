/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterates over the members of one JSON object without building a tree, which could take 40 times the size of
 * a hostile text. Names and values are lent as text; jansson parses and checks them.
 */
#ifndef CORE_JSON_MEMBERS_H
#define CORE_JSON_MEMBERS_H
#include <stdbool.h>
#include <stddef.h>

struct json_members {
	const char *text;
	size_t size, at;
	bool first, bad;	  /* bad: not an object, or wrong commas, colons or brackets (at `at`) */
	const char *name, *value; /* of the present member; the name includes its quotes */
	size_t name_size, value_size;
};

void json_members_begin(struct json_members *m, const char *text, size_t size);
/* Moves to the next member. False: there are no more, or the text is bad. After the last member only white
 * space may follow. */
bool json_members_next(struct json_members *m);
#endif
