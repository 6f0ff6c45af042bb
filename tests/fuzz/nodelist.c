/* SPDX-License-Identifier: Apache-2.0 */
/* Any text is a list of sound names within its limit, or a refusal; the same for tasks a node. */
#include "fuzz.h"

#include "team/launcher/nodelist.h"

enum { MOST = 300 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size);
	struct error err = {0};
	struct nodelist l;
	unsigned tasks = 0;
	enum status st = nodelist_parse(&l, text, MOST, &err);

	FUZZ_CHECK(st == STATUS_OK || st == STATUS_BAD_INPUT);
	FUZZ_CHECK(st == err.status && (st ? !l.count && !l.name : l.count >= 1 && l.count <= MOST));
	for (size_t i = 0; i < l.count; i++) {
		size_t length = strlen(l.name[i]);

		FUZZ_CHECK(length && length < NODELIST_NAME);
		FUZZ_CHECK(strspn(l.name[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == length);
	}
	nodelist_release(&l);
	error_clear(&err);
	st = nodelist_tasks(&tasks, text, size ? data[0] % 8 : 0, &err);
	FUZZ_CHECK((st == STATUS_OK || st == STATUS_BAD_INPUT) && st == err.status);
	free(text);
	return 0;
}
