/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Perplexity, the share of right answers, and their differences from a reference. Both sides measured the
 * same windows and the same questions, so differences are taken pair by pair: what makes a text hard for both
 * cancels out. Intervals are two-sided 95 % by Student's t, with windows or questions as the independent
 * samples.
 */
#ifndef CMD_EVAL_DIFFERENCE_H
#define CMD_EVAL_DIFFERENCE_H
#include <stddef.h>
#include <stdint.h>

/* The scored tokens of one window. */
struct eval_score {
	double loss; /* sum of -log(probability), natural logarithm */
	uint64_t tokens;
};

/* A figure and the half-width of its interval. INFINITY: fewer than two samples. */
struct eval_figure {
	double value, half_width;
};
/* exp(sum of losses / sum of tokens), by the delta method of a ratio. NaN without a token. */
struct eval_figure eval_perplexity(const struct eval_score *s, size_t count);
/* Relative difference of perplexity, (b - a) / a. Window i of both sides has the same tokens. */
struct eval_figure eval_perplexity_difference(const struct eval_score *a, const struct eval_score *b,
					      size_t count);
/* Difference of the shares of right answers, b - a; each element is 0 or 1. NaN without an answer. */
struct eval_figure eval_share_difference(const uint8_t *a, const uint8_t *b, size_t count);
#endif
