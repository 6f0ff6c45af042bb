/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are expectations that hold or are held up, or a refusal that names file and line: as a file of a
 * set, and as the set that a run keeps. */
#include "fuzz.h"

#include "judge/expect/expect.h"

static void a_file(const uint8_t *data, size_t size)
{
	struct expectations *e = calloc(1, sizeof(*e));
	struct error err = {0};
	enum status st;

	FUZZ_CHECK(e);
	st = expect_add(e, "input", (const char *)data, size, &err);
	if (!st)
		st = expectations_check(e, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status);
	FUZZ_CHECK(st == STATUS_OK || !strncmp(err.text, "input:", 6));
	expectations_free(e);
}

/* Each file of the set is "NAME SIZE" on a line and so many bytes. */
static void a_kept_set(const uint8_t *data, size_t size)
{
	struct expectations *e = calloc(1, sizeof(*e));
	struct error err = {0};
	enum status st;

	FUZZ_CHECK(e);
	st = expect_read_saved(e, "input", (const char *)data, size, &err);
	if (!st)
		st = expectations_check(e, &err);
	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status && (st == STATUS_OK || *err.text));
	expectations_free(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 65536)
		return 0;
	a_file(data, size);
	a_kept_set(data, size);
	return 0;
}
