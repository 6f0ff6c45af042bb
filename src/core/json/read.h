/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON written by people: skips a byte order mark, and describes errors in plain words. */
#ifndef CORE_JSON_READ_H
#define CORE_JSON_READ_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_wrong {
	int line, column; /* 1-based */
	char text[240];
};

/* `flags`: jansson's. NULL: *wrong says why. Owner: caller, json_decref. */
json_t *json_read(const char *text, size_t size, size_t flags, struct json_wrong *wrong);
bool json_is_blank(char c); /* white space between JSON tokens */
#endif
