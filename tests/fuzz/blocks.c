/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are block lists within their own limits, or a refusal with a place. */
#include "fuzz.h"

#include "probe/attention/attended_pairs.h"

static void check_list(const uint32_t *list, uint32_t count, uint32_t below)
{
	for (uint32_t i = 0; i < count; i++)
		FUZZ_CHECK(list[i] < below && (!i || list[i] > list[i - 1]));
}

static void check_lists(const struct attention_blocks *l, size_t size)
{
	struct attention_problem p = {.batch = l->batches, .heads = l->heads, .kv_heads = l->heads,
				      .q_len = l->q_blocks * l->q_block, .kv_len = l->k_blocks * l->k_block,
				      .head_dim = 64};
	struct error err = {0};
	double pairs;

	FUZZ_CHECK((double)l->batches * l->heads * l->q_blocks * 8 + 40 <= (double)size);
	for (uint32_t b = 0; b < l->batches; b++)
		for (uint32_t h = 0; h < l->heads; h++)
			for (uint32_t q = 0; q < l->q_blocks; q++) {
				struct attention_row row = attention_blocks_row(l, b, h, q);

				check_list(row.full, row.full_count, l->k_blocks);
				check_list(row.partial, row.partial_count, l->k_blocks);
			}
	FUZZ_CHECK(attention_blocks_fit(l, &p, "fuzz", &err) == STATUS_OK);
	FUZZ_CHECK(attention_blocks_density(l) >= 0 && attention_blocks_density(l) <= 1);
	if (l->q_block > 256)
		return; /* a row of a partial block each: too long to count */
	pairs = attention_attended_pairs(&p, l);
	FUZZ_CHECK(pairs >= 0 && pairs <= attention_pairs(&p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct attention_blocks *l = NULL;
	struct error err = {0};
	enum status st = attention_blocks_parse(&l, "fuzz", data, size, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status && !l == (st != STATUS_OK));
	FUZZ_CHECK(!st || strstr(err.text, "fuzz: "));
	if (l)
		check_lists(l, size);
	attention_blocks_free(l);
	return 0;
}
