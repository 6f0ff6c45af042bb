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

void rope_table(const struct shape *s, struct mat cos_sin)
{
	const int64_t half = s->head_dim / 2;

	for (int64_t i = 0; i < half; i++) {
		float exponent = (float)(2 * i) / (float)s->head_dim;
		float frequency = 1.0f / powf((float)s->rope_theta, exponent);

		if (s->rope.llama3)
			frequency = llama3(&s->rope, frequency);
		for (int64_t p = 0; p < cos_sin.rows; p++) {
			double angle = (double)((float)p * frequency);
			size_t at = (size_t)(p * cos_sin.ld + i);

			if (cos_sin.dtype == DTYPE_F64) {
				((double *)cos_sin.data)[at] = cos(angle);
				((double *)cos_sin.data)[at + (size_t)half] = sin(angle);
			} else {
				((float *)cos_sin.data)[at] = (float)cos(angle);
				((float *)cos_sin.data)[at + (size_t)half] = (float)sin(angle);
			}
		}
	}
}
