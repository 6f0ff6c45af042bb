/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a checkpoint's manifest, a line "%%", and the optimizer's file, for a run that trains three parameters:
 * refused, or all of them are filled from it. */
#include "folder.h"

#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/manifest.h"

enum { LENGTH = 3 * 5 + 4 * 2 + 7 };

static void load(json_t *manifest)
{
	struct param table[] = {{.name = "a", .rows = 3, .cols = 5},
				{.name = "b", .rows = 4, .cols = 2, .offset = 15},
				{.name = "c", .rows = 1, .cols = 7, .offset = 23}};
	float *memory[3];
	struct mat *flat[3];
	struct checkpoint_found f = {.manifest = manifest};
	struct params p = {.table = table, .count = 3, .length = LENGTH};
	struct error err = {0};

	flat[0] = &p.master;
	flat[1] = &p.m;
	flat[2] = &p.v;
	for (int i = 0; i < 3; i++) {
		memory[i] = malloc(LENGTH * sizeof(float)); /* of exactly its size, for the sanitizers */
		FUZZ_CHECK(memory[i]);
		flat[i]->data = memory[i];
	}
	fuzz_path("x");
	snprintf(f.path, sizeof(f.path), "%s", fuzz_dir);
	FUZZ_CHECK(!!checkpoint_load(&f, &p, &err) == !!err.status);
	for (int i = 0; i < 3; i++)
		free(memory[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *at = data;
	size_t part = fuzz_part(&at, &size, "\n%%\n");
	struct error err = {0};
	json_t *j = NULL;

	if (manifest_parse(&j, "input", (const char *)data, part, &err))
		return 0;
	fuzz_write("optimizer.bin", at, size);
	load(j);
	json_decref(j);
	return 0;
}
