/* SPDX-License-Identifier: Apache-2.0 */
/* Splits rows into a training set and a held-out set that share no function. Rows with a function in common
 * stay together. */
#ifndef DATA_FUNCTION_CALLS_HOLDOUT_H
#define DATA_FUNCTION_CALLS_HOLDOUT_H
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"

/*
 * held[i]: row i of {"messages", "tools"} is in the held-out set, which has at most the share `share` of the
 * rows. The seed determines the order in which groups of rows are taken. A row without tools is its own
 * group.
 */
enum status holdout_split(bool *held, const json_t *rows, double share, uint64_t seed, struct error *err);
#endif
