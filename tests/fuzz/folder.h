/* SPDX-License-Identifier: Apache-2.0 */
/* A folder for a target whose reader takes files: of memory where /dev/shm is, and gone at the end. */
#ifndef TESTS_FUZZ_FOLDER_H
#define TESTS_FUZZ_FOLDER_H
#include <unistd.h>
#include "core/file/file.h"
#include "fuzz.h"

static char fuzz_dir[64];

static inline void fuzz_dir_remove(void)
{
	file_remove_tree(fuzz_dir);
}

/* The path of a file in it; lent until the next call. */
static inline const char *fuzz_path(const char *name)
{
	static char path[256];

	if (!*fuzz_dir) {
		snprintf(fuzz_dir, sizeof(fuzz_dir), "%s/assay-fuzz-XXXXXX",
			 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
		FUZZ_CHECK(mkdtemp(fuzz_dir));
		atexit(fuzz_dir_remove);
	}
	snprintf(path, sizeof(path), "%s/%s", fuzz_dir, name);
	return path;
}

static inline void fuzz_write(const char *name, const uint8_t *data, size_t size)
{
	FILE *f = fopen(fuzz_path(name), "wb");

	FUZZ_CHECK(f && fwrite(data, 1, size, f) == size && !fclose(f));
}

/* The input in parts: up to `mark`, which is taken out, and the rest. */
static inline size_t fuzz_part(const uint8_t **data, size_t *size, const char *mark)
{
	const uint8_t *at = memmem(*data, *size, mark, strlen(mark));
	size_t part = at ? (size_t)(at - *data) : *size, skip = at ? part + strlen(mark) : part;

	*data += skip;
	*size -= skip;
	return part;
}
#endif
