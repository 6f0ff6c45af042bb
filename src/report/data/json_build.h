/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the JSON of a report. The functions fail only if memory runs out; then they set `failed`, and the
 * caller drops the result. */
#ifndef REPORT_DATA_JSON_BUILD_H
#define REPORT_DATA_JSON_BUILD_H
#include <jansson.h>
#include "report/view/view.h"

struct json_build {
	const struct view *v;
	bool failed;
};

/* Both take ownership of `value`; NULL sets `failed`. */
void json_put(struct json_build *b, json_t *object, const char *key, json_t *value);
void json_push(struct json_build *b, json_t *array, json_t *value);
/* A text with pseudonyms. */
json_t *json_shown(const struct json_build *b, const char *s);
/* Adds a text with pseudonyms; nothing if it is NULL or "". */
void json_put_text(struct json_build *b, json_t *object, const char *key, const char *s);
/* Adds a number; nothing if it is not finite. */
void json_put_number(struct json_build *b, json_t *object, const char *key, double value);
/* Adds a count, as an integer if the value is one, so that it is exact. */
void json_put_count(struct json_build *b, json_t *object, const char *key, double value);
/* A JSON text; bytes that are not UTF-8 become U+FFFD. NULL: out of memory. */
json_t *json_text(const char *s);
/* Appends the text of `root` and a newline, and takes ownership of `root`. NO_RESOURCE: `root` is NULL or
 * memory ran out. */
enum status json_dump(struct text *out, json_t *root, struct error *err);

/* Parts of results.json. The caller decrefs them. */
json_t *json_case(struct json_build *b, const struct view_row *row);
json_t *json_curves(struct json_build *b);
/* Matrices of pairs of GPUs; values in the unit of their cases. */
json_t *json_p2p(struct json_build *b);
/* The best way to run each collective. */
json_t *json_ways(struct json_build *b);
/* {"nodes": [..], "differences": [..]} */
json_t *json_nodes(struct json_build *b);
#endif
