/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The members of one JSON object, one after the other, without a tree of them all: what a tree takes is 40
 * times the text of one that is made for it. Each name and value is lent as text, which jansson reads and
 * checks.
 */
#ifndef MODEL_JSON_MEMBERS_H
#define MODEL_JSON_MEMBERS_H
#include <stdbool.h>
#include <stddef.h>

struct json_members {
	const char *text;
	size_t size, at;
	bool first, bad; /* bad: it is no object, or its commas, colons or brackets are wrong (at `at`) */
	const char *name, *value; /* of the member at hand; the name with its quotes */
	size_t name_size, value_size;
};

void json_members_begin(struct json_members *m, const char *text, size_t size);
/* False: there are no more, or it is bad. Behind the last one there is nothing but blanks. */
bool json_members_next(struct json_members *m);
#endif
