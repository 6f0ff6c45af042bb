/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are the head of a file of the table within its limit, or a refusal. */
#include "fuzz.h"

#include "team/control/collect_receive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	uint64_t bytes = 0;
	unsigned row = 0;
	enum status st = collect_head(data, size, &row, &bytes, &err);

	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || (st == STATUS_BAD_INPUT && *err.text));
	FUZZ_CHECK(st || (row < COLLECT_FILES && bytes <= collect_rows[row].most));
	return 0;
}
