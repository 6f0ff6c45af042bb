/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are expectations that hold or are held up, or a refusal that names file and line. */
#include "fuzz.h"

#include "judge/expect.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct expectations *e = calloc(1, sizeof(*e));
	struct error err = {0};
	enum status st;

	if (!e || size > 65536) {
		free(e);
		return 0;
	}
	st = expect_add(e, "input", (const char *)data, size, &err);
	if (!st)
		st = expectations_check(e, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input:", 6));
	expectations_free(e);
	return 0;
}
