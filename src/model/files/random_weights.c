/* SPDX-License-Identifier: Apache-2.0 */
#include "model/files/random_weights.h"

#include "core/random.h"

/* FNV-1a: a stream a name, whatever stands around it. */
static uint32_t stream_of(const char *name)
{
	uint32_t hash = 2166136261u;

	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 16777619u;
	return hash;
}

void random_weights(const struct named *n, uint64_t seed, int64_t row, int64_t rows, float *out)
{
	const float width = 0.02f * 1.7320508f; /* of a uniform number: deviation times root 3 */
	const char *dot = strrchr(n->hf, '.');
	const float centre = n->vector && dot && !strcmp(dot, ".weight") ? 1.0f : 0.0f; /* norms */
	uint64_t count = (uint64_t)(rows * n->cols), first = (uint64_t)(row * n->cols);

	random_fill_f32(out, count, seed, stream_of(n->hf), first);
	for (uint64_t i = 0; i < count; i++)
		out[i] = centre + width * out[i];
}
