/* SPDX-License-Identifier: Apache-2.0 */
/* JSON that people wrote: a byte order mark is passed over, and what is wrong is said in words of its own. */
#ifndef MODEL_JSON_READ_H
#define MODEL_JSON_READ_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct json_wrong {
	int line, column; /* 1-based */
	char text[240];
};

/* Jansson's flags. NULL: *wrong says why. Owner: caller, json_decref. */
json_t *json_read(const char *text, size_t size, size_t flags, struct json_wrong *wrong);
bool json_is_blank(char c); /* what JSON passes over between its words */
#endif
