/* SPDX-License-Identifier: Apache-2.0 */
/* A compressed journal of any bytes reads as far as it goes: lines that parse, in their order, and a sum of all its bytes. */
#include "folder.h"

#include "journal/file/compressed.h"

struct seen {
	uint64_t lines;
};

static int see(void *arg, enum journal_type type, uint64_t t_ns, const json_t *body)
{
	struct seen *seen = arg;

	(void)t_ns;
	FUZZ_CHECK(type < JOURNAL_TYPE_COUNT && json_is_object(body));
	seen->lines++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct seen seen = {0};
	struct error err = {0};
	char dir[256], hex[65] = "";
	uint64_t cut = 0;

	fuzz_write(JOURNAL_COMPRESSED, data, size);
	snprintf(dir, sizeof(dir), "%s", fuzz_path("."));
	FUZZ_CHECK(!journal_read(dir, see, &seen, &cut, &err));
	FUZZ_CHECK(!journal_sha256(hex, dir, &err) && strlen(hex) == 64);
	return 0;
}
