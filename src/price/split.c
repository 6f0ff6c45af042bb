/* SPDX-License-Identifier: Apache-2.0 */
#include "price/split.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

static void unknown(struct split *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void unknown(struct split *s, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(s->why, sizeof(s->why), format, list);
	va_end(list);
}

/* Sums of products of the rows, each divided by its joules: all stages count alike, whatever their length. */
struct sums {
	double xx, xy, yy, x, y;
};

static struct sums sums_of(const struct split_stage *stage, size_t count)
{
	struct sums s = {0};

	for (size_t i = 0; i < count; i++) {
		double x = stage[i].input / stage[i].joules, y = stage[i].output / stage[i].joules;

		s.xx += x * x;
		s.xy += x * y;
		s.yy += y * y;
		s.x += x;
		s.y += y;
	}
	return s;
}

/* The condition number of two columns of length 1 with the cosine c is sqrt((1 + c) / (1 - c)). */
static double condition_of(const struct sums *s)
{
	double cosine = s->xx > 0 && s->yy > 0 ? s->xy / sqrt(s->xx * s->yy) : 1;

	return cosine < 1 ? sqrt((1 + cosine) / (1 - cosine)) : INFINITY;
}

static void solve(struct split *out, const struct split_stage *stage, size_t count, const struct sums *s)
{
	double determinant = s->xx * s->yy - s->xy * s->xy, residual = 0, variance;

	out->input_j = (s->yy * s->x - s->xy * s->y) / determinant;
	out->output_j = (s->xx * s->y - s->xy * s->x) / determinant;
	for (size_t i = 0; i < count; i++) {
		double fitted = out->input_j * stage[i].input + out->output_j * stage[i].output;

		residual += pow(1 - fitted / stage[i].joules, 2);
	}
	variance = residual / (double)(count - 2);
	out->input_error_j = sqrt(variance * s->yy / determinant);
	out->output_error_j = sqrt(variance * s->xx / determinant);
	out->known = out->input_j > 0 && out->output_j > 0;
	if (!out->known)
		unknown(out,
			"the fit gives a negative energy (%.3g J per input token, %.3g J per output token)",
			out->input_j, out->output_j);
}

void split_fit(struct split *out, const struct split_stage *stage, size_t count)
{
	struct sums s;

	*out = (struct split){0};
	for (size_t i = 0; i < count; i++)
		if (!(stage[i].joules > 0)) {
			unknown(out, "stage %zu has no energy", i + 1);
			return;
		}
	if (count < SPLIT_STAGES_LEAST) {
		unknown(out,
			"a split needs at least %d stages with different ratios of input to output, and there %s %zu",
			SPLIT_STAGES_LEAST, count == 1 ? "is" : "are", count);
		return;
	}
	s = sums_of(stage, count);
	out->condition = condition_of(&s);
	if (out->condition > SPLIT_CONDITION_MOST)
		unknown(out,
			"the stages have almost the same ratio of input to output (condition number %.3g)",
			out->condition);
	else
		solve(out, stage, count, &s);
}
