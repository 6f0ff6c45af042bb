/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include "model/decoder/rope.h"

/* Long wavelengths are divided by `factor` in frequency, short ones stay, those between are interpolated. */
static float llama3(const struct rope_scaling *r, float frequency)
{
	const double two_pi = 6.283185307179586, wave = two_pi / (double)frequency;
	double smooth;

	if (wave < (double)r->context / r->high)
		return frequency;
	if (wave > (double)r->context / r->low)
		return frequency / (float)r->factor;
	smooth = ((double)r->context / wave - r->low) / (r->high - r->low);
	return (float)((1 - smooth) * (double)frequency / r->factor + smooth * (double)frequency);
}

/* The index, as a real number, of the frequency that turns `turns` times in the context. */
static double index_of(const struct shape *s, double turns)
{
	const double two_pi = 6.283185307179586;

	return (double)s->head_dim * log((double)s->rope.context / (turns * two_pi)) /
	       (2 * log(s->rope_theta));
}

/* The share of frequency i that stays; the rest is divided by `factor`. As in transformers. */
static float yarn(const struct shape *s, int64_t i, float frequency)
{
	const struct rope_scaling *r = &s->rope;
	double first = index_of(s, r->high), last = index_of(s, r->low), ramp;

	if (!r->smooth) {
		first = floor(first);
		last = ceil(last);
	}
	first = fmax(first, 0);
	last = fmin(last, (double)s->head_dim - 1);
	if (first == last)
		last += 0.001;
	ramp = fmin(fmax(((double)i - first) / (last - first), 0), 1);
	return (float)((double)frequency / r->factor * ramp + (double)frequency * (1 - ramp));
}

void rope_table(const struct shape *s, struct mat cos_sin)
{
	const int64_t half = s->head_dim / 2;
	const double scale = s->rope.yarn ? s->rope.attention : 1;

	for (int64_t i = 0; i < half; i++) {
		float exponent = (float)(2 * i) / (float)s->head_dim;
		float frequency = 1.0f / powf((float)s->rope_theta, exponent);

		if (s->rope.llama3)
			frequency = llama3(&s->rope, frequency);
		if (s->rope.yarn)
			frequency = yarn(s, i, frequency);
		for (int64_t p = 0; p < cos_sin.rows; p++) {
			double angle = (double)((float)p * frequency);
			size_t at = (size_t)(p * cos_sin.ld + i);

			if (cos_sin.dtype == DTYPE_F64) {
				((double *)cos_sin.data)[at] = scale * cos(angle);
				((double *)cos_sin.data)[at + (size_t)half] = scale * sin(angle);
			} else {
				((float *)cos_sin.data)[at] = (float)(scale * cos(angle));
				((float *)cos_sin.data)[at + (size_t)half] = (float)(scale * sin(angle));
			}
		}
	}
}
