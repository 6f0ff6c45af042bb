/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts the single-turn categories of bfcl-eval (Berkeley Function Calling Leaderboard, from PyPI), with
 * their answers, to conversations.
 */
#ifndef DATA_FUNCTION_CALLS_BFCL_H
#define DATA_FUNCTION_CALLS_BFCL_H
#include <jansson.h>
#include "core/error.h"

/*
 * `folder`: bfcl_eval/data. Returns an array of {"messages", "tools", "ground_truth"}. Each answer uses the
 * first accepted value of an argument and omits optional arguments; ground_truth has all accepted values
 * (data/function_calls/answers.h). Owner: caller, json_decref.
 */
enum status bfcl_read(json_t **rows, const char *folder, struct error *err);
#endif
