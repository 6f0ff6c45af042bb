/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of results.json that manifest.json has too. */
#ifndef REPORT_DATA_JSON_H
#define REPORT_DATA_JSON_H
#include <jansson.h>
#include "report/view/about.h"

enum { REPORT_SCHEMA_VERSION = 1 };

/* The machine's GPUs with facts, SKU row and price. NULL: out of memory. The caller decrefs it. */
json_t *json_gpus(const struct view *v);
/* {"name": "value", ..} from one of the about_* functions. NULL: out of memory. The caller decrefs it. */
json_t *json_facts(const struct view *v, void (*facts)(const struct view *, about_visit *, void *));
#endif
