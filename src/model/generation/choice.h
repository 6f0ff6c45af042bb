/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses one of a set of candidates at random: top_k, then top_p among what top_k left, then min_p. */
#ifndef MODEL_GENERATION_CHOICE_H
#define MODEL_GENERATION_CHOICE_H
#include <stdint.h>

struct candidate {
	double share; /* probability relative to the most likely candidate's */
	int32_t id;
};

struct choice {
	int64_t top_k; /* choose among this many most likely candidates; 0: all */
	double top_p;  /* choose among the fewest most likely ones with this total probability; 1: all */
	double min_p;  /* only those with at least this share; 0: all */
};
/* Returns the id of a candidate. `number` selects it, at least 0 and below 1. The shares of the candidates
 * that are left divide this range. If nothing is cut, they do so in the order of ids, else from the most
 * likely one on. count >= 1. The candidates, in the order of ids, are in another order afterwards. */
int32_t choice_take(const struct choice *choice, struct candidate *c, int64_t count, double number);
#endif
