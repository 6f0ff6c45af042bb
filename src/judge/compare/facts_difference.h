/* SPDX-License-Identifier: Apache-2.0 */
/* Compares two trees of facts and leaves out values that change by themselves. */
#ifndef JUDGE_COMPARE_FACTS_DIFFERENCE_H
#define JUDGE_COMPARE_FACTS_DIFFERENCE_H
#include <jansson.h>
#include "core/error.h"

/* Called for each place that differs, such as "gpus[0].facts.bus_bits"; a or b is NULL if it is absent there.
 * Lists of different length count as one place. */
typedef enum status facts_difference_visit(void *arg, const char *path, const json_t *a, const json_t *b,
					   struct error *err);
/* `path`: prefix of each place, "" for whole trees. Stops if `visit` does not return STATUS_OK. */
enum status facts_difference_walk(const char *path, const json_t *a, const json_t *b,
				  facts_difference_visit *visit, void *arg, struct error *err);
/* Writes both values of a place as text. Lists of different length are written as their length and the names
 * of the entries that only one has. */
void facts_difference_two(const json_t *a, const json_t *b, char *before, char *after, size_t size);
/* Writes a leaf as text; "absent" for NULL. */
void facts_difference_leaf(const json_t *v, char *out, size_t size);
#endif
