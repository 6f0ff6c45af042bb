/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a suite with a name, or a refusal that names file and line. */
#include "fuzz.h"

#include "run/plan/case.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error err = {0};
	struct suite *s = NULL;
	enum status st;

	if (size > 65536)
		return 0;
	st = suite_parse(&s, "input", (const char *)data, size, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK((st == STATUS_OK) == (s != NULL) && st == err.status);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input:", 6));
	FUZZ_CHECK(!s || suite_name(s));
	suite_free(s);
	return 0;
}
