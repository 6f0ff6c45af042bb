/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/random_weights.h"

#include "core/math/random.h"

/* FNV-1a: each tensor's name gives its own random stream. */
static uint32_t stream_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

struct random_fill random_weights_fill(const struct named *n, uint64_t seed)
{
	const char *dot = strrchr(n->hf, '.');

	return (struct random_fill){
		.seed = seed,
		.stream = stream_of(n->hf),
		.centre = n->vector && dot && !strcmp(dot, ".weight") ? 1.0f : 0.0f, /* weights of norms */
		/* Half the width of a uniform distribution with this deviation: 0.02 * sqrt(3). */
		.width = 0.02f * 1.7320508f,
	};
}

void random_weights(const struct named *n, uint64_t seed, int64_t row, int64_t rows, float *out)
{
	const struct random_fill f = random_weights_fill(n, seed);
	uint64_t count = (uint64_t)(rows * n->cols), first = (uint64_t)(row * n->cols);

	random_fill_f32(out, count, f.seed, f.stream, first);
	for (uint64_t i = 0; i < count; i++)
		out[i] = f.centre + f.width * out[i];
}
