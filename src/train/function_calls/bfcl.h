/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Function-calling rows of PyPI's bfcl-eval (Berkeley Function Calling Leaderboard): its single-turn
 * categories with their answers as conversations.
 */
#ifndef TRAIN_FUNCTION_CALLS_BFCL_H
#define TRAIN_FUNCTION_CALLS_BFCL_H
#include <jansson.h>
#include "core/error.h"

/*
 * `folder`: bfcl_eval/data. An array of {"messages", "tools", "ground_truth"}: each answer takes the first
 * accepted value of an argument, and leaves out those that may be left out; ground_truth has all that are
 * accepted (train/function_calls/answers.h). Owner: caller, json_decref.
 */
enum status bfcl_read(json_t **rows, const char *folder, struct error *err);
#endif
