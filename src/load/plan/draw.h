/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of a plan: one sequence per purpose, so that a change of the rate changes no length. */
#ifndef LOAD_PLAN_DRAW_H
#define LOAD_PLAN_DRAW_H
#include <stdint.h>

enum draw_stream { DRAW_ARRIVAL = 0x6c6f6164, DRAW_INPUT, DRAW_OUTPUT, DRAW_TEXT, DRAW_THINK, DRAW_PREFIX };

struct draw {
	uint64_t seed, at;
	uint32_t stream, word[4];
	unsigned used; /* words of `word` */
};

void draw_begin(struct draw *d, uint64_t seed, uint32_t stream);
uint64_t draw_u64(struct draw *d);
double draw_uniform(struct draw *d);	 /* in (0, 1), in steps of 2^-52 */
double draw_exponential(struct draw *d); /* of mean 1 */
double draw_normal(struct draw *d);	 /* of mean 0 and deviation 1 */
/* Gamma with scale 1, so its mean is `shape`. Marsaglia and Tsang, "A simple method for generating gamma
 * variables", ACM TOMS 26 (2000). */
double draw_gamma(struct draw *d, double shape);
#endif
