/* SPDX-License-Identifier: Apache-2.0 */
/* The base model of tests/data/model/adapters (tests/oracles/peft_adapters.py), and adapters of it. */
#ifndef TESTS_UNIT_ADAPTER_BASE_H
#define TESTS_UNIT_ADAPTER_BASE_H
#include <limits.h>
#include <unistd.h>
#include "model/files/model_folder.h"
#include "model/files/random_weights.h"
#include "must.h"
#include "text/files/tokenizer_files.h"

enum { BASE_SEED = 1 };
static const char *const base_adapters[] = {"plain", "patterns", "dora"};
enum { BASE_ADAPTERS = sizeof(base_adapters) / sizeof(base_adapters[0]) };

static inline enum status base_rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
				    struct error *err)
{
	(void)arg, (void)err;
	random_weights(n, BASE_SEED, row, count, out);
	return STATUS_OK;
}

static inline enum status base_more(void *arg, const char *dir, struct error *err)
{
	(void)arg;
	return tokenizer_files_of_bytes(dir, err);
}

/* Makes the model in the folder `scratch` unless it is there, and sets its path. */
static inline void base_make(char path[PATH_MAX], const char *scratch, struct shape *s)
{
	const struct folder_options folder = {.shape = s,
					      .dtype = DTYPE_F32,
					      .shard_bytes = UINT64_MAX,
					      .rows = base_rows,
					      .more = base_more};
	struct error err = {0};

	must(shape_by_name(s, "tiny", &err), &err);
	snprintf(path, PATH_MAX, "%s/base", scratch);
	if (access(path, F_OK))
		must(folder_write(path, &folder, &err), &err);
}

static inline void base_adapter(char path[PATH_MAX], const char *name)
{
	snprintf(path, PATH_MAX, "%s/tests/data/model/adapters/%s", SOURCE_DIR, name);
}
#endif
