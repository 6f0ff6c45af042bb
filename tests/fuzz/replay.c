/* SPDX-License-Identifier: Apache-2.0 */
/*
 * usage: replay FOLDER: a target on its corpus without libFuzzer, so that every build runs it: each file
 * whole, cut short, and with bytes changed by a fixed random sequence. A crash or a failed check ends it.
 */
#include "fuzz.h"

#include <dirent.h>

#include "core/file/file.h"
#include "core/math/random.h"

enum { INPUT_MAX = 1 << 20, CUTS = 64, CHANGED = 256 };

static void run(const char *data, size_t size)
{
	uint8_t *own = malloc(size ? size : 1); /* of exactly its size, for the sanitizers */

	if (!own)
		abort();
	memcpy(own, data, size);
	LLVMFuzzerTestOneInput(own, size);
	free(own);
}

static void run_cut(const char *data, size_t size)
{
	size_t step = size / CUTS + 1, cut;

	for (cut = 0; cut < size; cut += step)
		run(data, cut);
}

static void run_changed(char *data, size_t size, uint32_t stream)
{
	uint64_t i;

	for (i = 0; size && i < CHANGED; i++) {
		uint32_t r = random_u32(1, stream, i);
		size_t at = random_u32(2, stream, i) % size;
		char kept = data[at];

		data[at] = (char)(r & 1 ? "0-9.,:{}[]\"'\\\n\t &*!|>#%@`~=/x"[r / 2 % 30] : (char)(r >> 8));
		run(data, size);
		if (r & 4) /* keep some: changes add up */
			continue;
		data[at] = kept;
	}
}

int main(int argc, char **argv)
{
	struct error err = {0};
	unsigned files = 0;
	struct dirent *entry;
	char path[4096], *data;
	size_t size;
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

	if (!dir) {
		fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
		return 64;
	}
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", argv[1], entry->d_name);
		if (file_read(&data, &size, path, INPUT_MAX, &err)) {
			fprintf(stderr, "%s\n", err.text);
			return 1;
		}
		run(data, size);
		run_cut(data, size);
		run_changed(data, size, files++);
		free(data);
	}
	closedir(dir);
	if (!files)
		fprintf(stderr, "%s holds no file\n", argv[1]);
	return !files;
}
