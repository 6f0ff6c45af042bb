/* SPDX-License-Identifier: Apache-2.0 */
/* Folders of models of random numbers, and their tensors in F32. */
#ifndef TESTS_WEIGHTS_BED_H
#define TESTS_WEIGHTS_BED_H
#include "test.h"

#include <stdlib.h>
#include "model/files/model_folder.h"
#include "model/files/random_weights.h"
#include "text/files/tokenizer_files.h"
#include "model/files/weights.h"

enum { SEED = 5 };

static inline enum status rows(void *arg, const struct named *n, int64_t row, int64_t count, float *out,
			struct error *err)
{
	(void)arg;
	(void)err;
	random_weights(n, SEED, row, count, out);
	return STATUS_OK;
}

static inline enum status more(void *arg, const char *dir, struct error *err)
{
	(void)arg;
	return tokenizer_files_of_bytes(dir, err);
}

/* A model of random numbers; `in` is its folder. */
static inline void make(char in[PATH_MAX], const char *scratch, const char *name, const struct shape *s,
		 enum dtype dtype, uint64_t shard)
{
	const struct folder_options o = {
		.shape = s, .dtype = dtype, .shard_bytes = shard, .rows = rows, .more = more};
	struct error err = {0};

	snprintf(in, PATH_MAX, "%s/%s", scratch, name);
	if (folder_write(in, &o, &err))
		fail_msg("%s", err.text);
}

static inline float *load(const struct weights *w, const char *name)
{
	struct weights_slot slot = {.name = name, .to = {.dtype = DTYPE_F32}};
	struct error err = {0};
	struct named n;

	assert_true(names_find(&n, &w->shape, name));
	slot.to.rows = n.rows;
	slot.to.cols = slot.to.ld = n.cols;
	slot.to.data = malloc(sizeof(float) * (size_t)(n.rows * n.cols));
	if (weights_load(w, &slot, 1, &err))
		fail_msg("%s", err.text);
	return slot.to.data;
}
#endif
