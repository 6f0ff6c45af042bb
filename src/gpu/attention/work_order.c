/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/attention/work_order.h"
#include <stdlib.h>
#include "kernel/attention/forward/args.h"

enum { WORD_LIMIT = 1 << 16 }; /* half of the bits of a list word */

struct sequence {
	uint32_t number, units;
};

static uint32_t units_of(const uint32_t *starts, uint32_t i)
{
	return (starts[i + 1] - starts[i] + ATTENTION_ORDER_ROWS - 1) / ATTENTION_ORDER_ROWS;
}

uint64_t attention_order_count(const uint32_t *starts, uint32_t batch)
{
	uint64_t count = 0;

	for (uint32_t i = 0; i < batch; i++)
		count += units_of(starts, i);
	return count;
}

bool attention_order_holds(const uint32_t *starts, uint32_t batch)
{
	if (batch > WORD_LIMIT)
		return false;
	for (uint32_t i = 0; i < batch; i++)
		if (units_of(starts, i) > WORD_LIMIT)
			return false;
	return true;
}

/* Longest first; equal lengths keep their order. */
static int by_length(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;

	if (x->units != y->units)
		return x->units > y->units ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static void fill_causal(uint32_t *list, const struct sequence *sequence, uint32_t batch)
{
	for (uint32_t unit = batch ? sequence[0].units : 0; unit-- > 0;)
		for (uint32_t i = 0; i < batch && sequence[i].units > unit; i++)
			*list++ = ATTENTION_ORDER(sequence[i].number, unit);
}

static void fill_whole(uint32_t *list, const struct sequence *sequence, uint32_t batch)
{
	for (uint32_t i = 0; i < batch; i++)
		for (uint32_t unit = 0; unit < sequence[i].units; unit++)
			*list++ = ATTENTION_ORDER(sequence[i].number, unit);
}

enum status attention_order_fill(uint32_t *list, const uint32_t *starts, uint32_t batch, bool causal,
				 struct error *err)
{
	struct sequence *sequence = malloc((batch ? batch : 1) * sizeof(*sequence));

	if (!sequence)
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory to order %u sequences", batch);
	for (uint32_t i = 0; i < batch; i++)
		sequence[i] = (struct sequence){i, units_of(starts, i)};
	qsort(sequence, batch, sizeof(*sequence), by_length);
	if (causal)
		fill_causal(list, sequence, batch);
	else
		fill_whole(list, sequence, batch);
	free(sequence);
	return STATUS_OK;
}
