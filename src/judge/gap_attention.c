/* SPDX-License-Identifier: Apache-2.0 */
/* Attention's chain: the clock, where SMs limit it. What else is lost (softmax that no product hides, masked
 * and padded tiles, the last wave) has no signal yet: it stays in the residual, by name. */
#include "judge/gap.h"

bool gap_attention(struct judgement *out, const struct subject *s)
{
	struct bound again = {.from = BOUND_NONE};
	enum attention_limit by = bound_attention(s, &again);

	if (by == ATTENTION_BY_MEMORY)
		gap_absent(
			out, "busy",
			"device memory limits it, and nothing here tells how much of its time that worked");
	else
		gap_clock(out, s);
	gap_absent(out, by == ATTENTION_BY_EXP ? "exponentials" : "pipe",
		   "no signal of the critical unit: what products and softmax wait for each other stays in "
		   "the residual");
	gap_absent(out, "useful", "masked and padded tiles are not told: they stay in the residual");
	return false;
}
