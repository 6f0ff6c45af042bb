/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of results.json that manifest.json shares. */
#ifndef REPORT_DATA_JSON_H
#define REPORT_DATA_JSON_H
#include <jansson.h>
#include "report/view/about.h"

enum { REPORT_SCHEMA_VERSION = 1 };

/* The machine's GPUs with facts, SKU row, price; NULL: no memory. Caller decrefs, as below. */
json_t *json_gpus(const struct view *v);
/* {"name": "value", ..} of one of the about_* functions; NULL: no memory. */
json_t *json_facts(const struct view *v, void (*facts)(const struct view *, about_visit *, void *));
#endif
