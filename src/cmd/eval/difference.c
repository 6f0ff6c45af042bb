/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/eval/difference.h"
#include <math.h>
#include "core/math/stats.h"

/* The ratio of two sums over windows, and the half-width of its interval. The variance comes from the
 * residuals (Cochran, Sampling Techniques, 6.4). The losses of `minus` are subtracted if it is not NULL. */
static struct eval_figure mean_loss(const struct eval_score *s, const struct eval_score *minus, size_t count)
{
	double loss = 0, tokens = 0, squares = 0, mean;

	for (size_t i = 0; i < count; i++) {
		loss += s[i].loss - (minus ? minus[i].loss : 0);
		tokens += (double)s[i].tokens;
	}
	if (!(tokens > 0))
		return (struct eval_figure){NAN, INFINITY};
	mean = loss / tokens;
	for (size_t i = 0; i < count; i++) {
		const double rest = s[i].loss - (minus ? minus[i].loss : 0) - mean * (double)s[i].tokens;

		squares += rest * rest;
	}
	if (count < 2)
		return (struct eval_figure){mean, INFINITY};
	return (struct eval_figure){
		mean, stats_t95(count - 1) * sqrt(squares * (double)count / (double)(count - 1)) / tokens};
}

struct eval_figure eval_perplexity(const struct eval_score *s, size_t count)
{
	const struct eval_figure mean = mean_loss(s, NULL, count);

	return (struct eval_figure){exp(mean.value), exp(mean.value) * mean.half_width};
}

struct eval_figure eval_perplexity_difference(const struct eval_score *a, const struct eval_score *b,
					      size_t count)
{
	const struct eval_figure mean = mean_loss(b, a, count);

	return (struct eval_figure){expm1(mean.value), exp(mean.value) * mean.half_width};
}

struct eval_figure eval_share_difference(const uint8_t *a, const uint8_t *b, size_t count)
{
	double sum = 0, squares = 0, mean;

	if (!count)
		return (struct eval_figure){NAN, INFINITY};
	for (size_t i = 0; i < count; i++)
		sum += (double)b[i] - (double)a[i];
	mean = sum / (double)count;
	for (size_t i = 0; i < count; i++) {
		const double rest = (double)b[i] - (double)a[i] - mean;

		squares += rest * rest;
	}
	if (count < 2)
		return (struct eval_figure){mean, INFINITY};
	return (struct eval_figure){mean, stats_t95(count - 1) *
						  sqrt(squares / (double)(count - 1) / (double)count)};
}
