/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/step/token_mask.h"

#include <math.h>

bool token_mask_any(const uint32_t *mask, size_t words)
{
	for (size_t i = 0; i < words; i++)
		if (mask[i])
			return true;
	return false;
}

static bool is_in(const uint32_t *mask, size_t words, int32_t id)
{
	return id >= 0 && (size_t)id / 32 < words && (mask[id / 32] >> id % 32 & 1);
}

static void take_out(uint32_t *mask, int32_t id)
{
	mask[id / 32] &= ~(1u << id % 32);
}

static void without_stops(uint32_t *mask, size_t words, const struct running *r)
{
	bool was[ENGINE_STOPS_MOST] = {false};

	for (size_t i = 0; i < r->stops; i++) {
		was[i] = is_in(mask, words, r->stop[i]);
		if (was[i])
			take_out(mask, r->stop[i]);
	}
	if (token_mask_any(mask, words))
		return;
	for (size_t i = 0; i < r->stops; i++)
		if (was[i])
			mask[r->stop[i] / 32] |= 1u << r->stop[i] % 32;
}

void token_mask_narrow(uint32_t *mask, size_t words, const struct running *r, int64_t index)
{
	for (size_t i = 0; i < r->biases; i++)
		if (isinf(r->bias[i].add) && r->bias[i].add < 0 && is_in(mask, words, r->bias[i].id))
			take_out(mask, r->bias[i].id);
	if (index < r->min_tokens)
		without_stops(mask, words, r);
}
