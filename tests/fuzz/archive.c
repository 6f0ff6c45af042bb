/* SPDX-License-Identifier: Apache-2.0 */
/* Members of an archive, "NAME\tSIZE\n" and so many bytes each: refused with words, or a run's files in one
 * folder, with a journal and all checksums. A size of - is no regular file. */
#include "fuzz.h"

#include "report/files/pack_check.h"

/* The next member; false: none. */
static bool next(const uint8_t **at, size_t *left, char name[600], const uint8_t **data, size_t *size)
{
	const uint8_t *line = *at, *end = memchr(line, '\n', *left),
		      *tab = end ? memchr(line, '\t', (size_t)(end - line)) : NULL;
	size_t head;

	if (!tab)
		return false;
	snprintf(name, 600, "%.*s", (int)(tab - line), (const char *)line);
	head = (size_t)(end - line) + 1;
	*data = tab[1] == '-' ? NULL : end + 1;
	*size = 0;
	for (const uint8_t *d = tab + 1; d < end && *d >= '0' && *d <= '9' && *size < 1 << 20; d++)
		*size = *size * 10 + (size_t)(*d - '0');
	if (*size > *left - head)
		*size = *left - head;
	*at += head + *size;
	*left -= head + *size;
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pack_check *c = pack_check_begin(size);
	struct error err = {0};
	const uint8_t *bytes;
	char name[600];
	size_t files = 0, part;
	bool refused = false;

	FUZZ_CHECK(c);
	while (!refused && next(&data, &size, name, &bytes, &part))
		refused = pack_check_member(c, name, bytes, part) != 0;
	FUZZ_CHECK(refused == pack_check_refusal(c, "input", &err));
	FUZZ_CHECK(!refused || !strncmp(err.text, "input is not an archive of a run: its member", 44));
	if (!refused && pack_check_end(c, "input", &files, &err))
		FUZZ_CHECK(!strncmp(err.text, "input: ", 7) ||
			   !strcmp(err.text, "input is not an archive of a run: it has no journal.jsonl"));
	else if (!refused)
		FUZZ_CHECK(files >= 1);
	pack_check_free(c);
	return 0;
}
