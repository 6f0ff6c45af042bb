/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes with the right sum behind them, as an attacker would write it: no kept tokens, or rows in order whose ids
 * are of the vocabulary. */
#include "fuzz.h"

#include "core/file/file.h"
#include "train/data/tokenised.h"

enum { VOCABULARY = 500 };

static void check(const struct tokenised_set *set)
{
	FUZZ_CHECK(set->begin[0] == 0);
	for (uint64_t i = 0; i < set->rows; i++)
		FUZZ_CHECK(set->begin[i] <= set->begin[i + 1]);
	for (uint64_t i = 0; i < set->begin[set->rows]; i++) {
		int32_t id = set->token[i] & ~TOKENISED_TRAINED;

		FUZZ_CHECK(id >= 0 && id < VOCABULARY);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *file = malloc(size + 65);
	struct tokenised_set set;

	FUZZ_CHECK(file);
	if (size)
		memcpy(file, data, size);
	file_sha256(file + size, file, size);
	if (tokenised_cache_parse(&set, file, size + 64, VOCABULARY)) {
		check(&set);
		free(set.begin);
		free(set.token);
	} else {
		FUZZ_CHECK(!set.begin && !set.token && !set.rows);
	}
	free(file);
	return 0;
}
