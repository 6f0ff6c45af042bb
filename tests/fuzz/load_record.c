/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a record, which comes back from its own line, or a refusal that names a member. */
#include "fuzz.h"

#include "load/record/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct load_record r, back;
	struct text first = {0}, second = {0};
	struct error err = {0};
	char *line = fuzz_text(data, size);
	enum status st = load_record_read(&r, line, size, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status && (!st || !r.gap_us));
	free(line);
	if (st)
		return 0;
	FUZZ_CHECK(r.scheduled_ns <= r.end_ns && r.end_ns != LOAD_NEVER);
	load_record_write(&first, &r);
	FUZZ_CHECK(!load_record_read(&back, first.data, first.size - 1, &err));
	load_record_write(&second, &back);
	FUZZ_CHECK(!strcmp(first.data, second.data));
	load_record_release(&r);
	load_record_release(&back);
	text_release(&first);
	text_release(&second);
	return 0;
}
