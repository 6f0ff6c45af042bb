/* SPDX-License-Identifier: Apache-2.0 */
/* Two trees of facts held against each other: where they differ, less what moves by itself. */
#ifndef JUDGE_COMPARE_FACTS_DIFFERENCE_H
#define JUDGE_COMPARE_FACTS_DIFFERENCE_H
#include <jansson.h>
#include "core/error.h"

/* A place ("gpus[0].facts.bus_bits") that differs; NULL: absent there. Lists of unequal length are one place.
 */
typedef enum status facts_difference_visit(void *arg, const char *path, const json_t *a, const json_t *b,
					   struct error *err);
/* `path`: what is before each place, "" for whole trees. Ends where `visit` is not OK. */
enum status facts_difference_walk(const char *path, const json_t *a, const json_t *b,
				  facts_difference_visit *visit, void *arg, struct error *err);
/* Both of a place as text. Lists of unequal length by their number, and by name what one alone has. */
void facts_difference_two(const json_t *a, const json_t *b, char *before, char *after, size_t size);
/* A leaf as text; "absent" for NULL. */
void facts_difference_leaf(const json_t *v, char *out, size_t size);
#endif
