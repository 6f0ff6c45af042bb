/* SPDX-License-Identifier: Apache-2.0 */
/* How the JSON of a report is put together: every function here may fail for memory alone, which makes
 * `failed` true, and the whole is then dropped. */
#ifndef REPORT_DATA_JSON_BUILD_H
#define REPORT_DATA_JSON_BUILD_H
#include <jansson.h>
#include "report/view/view.h"

struct json_build {
	const struct view *v;
	bool failed;
};

/* Both take `value`; NULL is a failure. */
void json_put(struct json_build *b, json_t *object, const char *key, json_t *value);
void json_push(struct json_build *b, json_t *array, json_t *value);
/* A text with its names replaced. */
json_t *json_shown(const struct json_build *b, const char *s);
/* Nothing where the text is NULL or "". */
void json_put_text(struct json_build *b, json_t *object, const char *key, const char *s);
/* Nothing where the value is not finite. */
void json_put_number(struct json_build *b, json_t *object, const char *key, double value);
/* What counts is exact: an integer where it is one. */
void json_put_count(struct json_build *b, json_t *object, const char *key, double value);
/* A JSON text of any bytes: what is no UTF-8 becomes U+FFFD. NULL: no memory. */
json_t *json_text(const char *s);
/* Appends the text of `root` and a newline; takes `root`, which may be NULL (then NO_RESOURCE). */
enum status json_dump(struct text *out, json_t *root, struct error *err);

/* Parts of results.json, each in a file of its own. Caller decrefs. */
json_t *json_case(struct json_build *b, const struct view_row *row);
json_t *json_curves(struct json_build *b);
/* Of pairs of GPUs; values in the unit of their cases. */
json_t *json_p2p(struct json_build *b);
/* The best way to run each collective. */
json_t *json_ways(struct json_build *b);
/* {"nodes": [..], "differences": [..]} */
json_t *json_nodes(struct json_build *b);
#endif
