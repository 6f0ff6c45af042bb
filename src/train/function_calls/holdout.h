/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to train on and rows held out, so that no function is in both: rows that share one go together. */
#ifndef TRAIN_FUNCTION_CALLS_HOLDOUT_H
#define TRAIN_FUNCTION_CALLS_HOLDOUT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

/*
 * held[i]: row i of {"messages", "tools"} is held out. At most `share` of the rows are; groups of rows are
 * taken in an order that the seed gives. A row without tools is a group by itself.
 */
enum status holdout_split(bool *held, const json_t *rows, double share, uint64_t seed, struct error *err);
#endif
