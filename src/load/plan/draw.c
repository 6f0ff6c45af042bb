/* SPDX-License-Identifier: Apache-2.0 */
#include "load/plan/draw.h"

#include <math.h>
#include "core/math/random.h"

void draw_begin(struct draw *d, uint64_t seed, uint32_t stream)
{
	*d = (struct draw){.seed = seed, .stream = stream, .used = 4};
}

static uint32_t next_word(struct draw *d)
{
	if (d->used == 4) {
		const uint32_t counter[4] = {(uint32_t)d->at, (uint32_t)(d->at >> 32), d->stream, 0};
		const uint32_t key[2] = {(uint32_t)d->seed, (uint32_t)(d->seed >> 32)};

		philox4x32(d->word, counter, key);
		d->at++;
		d->used = 0;
	}
	return d->word[d->used++];
}

uint64_t draw_u64(struct draw *d)
{
	uint64_t high = next_word(d);

	return high << 32 | next_word(d);
}

double draw_uniform(struct draw *d)
{
	return ((double)(draw_u64(d) >> 12) + 0.5) * 0x1p-52;
}

double draw_exponential(struct draw *d)
{
	return -log(draw_uniform(d));
}

/* Box and Muller; the second value is not kept, so that each call takes the same number of words. */
double draw_normal(struct draw *d)
{
	double radius = sqrt(2 * draw_exponential(d));

	return radius * cos(2 * 3.14159265358979323846 * draw_uniform(d));
}

static double gamma_from_one(struct draw *d, double shape)
{
	double base = shape - 1.0 / 3, scale = 1 / sqrt(9 * base), x, v;

	for (;;) {
		x = draw_normal(d);
		v = 1 + scale * x;
		if (v <= 0)
			continue;
		v = v * v * v;
		if (log(draw_uniform(d)) < 0.5 * x * x + base - base * v + base * log(v))
			return base * v;
	}
}

double draw_gamma(struct draw *d, double shape)
{
	if (shape >= 1)
		return gamma_from_one(d, shape);
	return gamma_from_one(d, shape + 1) * pow(draw_uniform(d), 1 / shape);
}
