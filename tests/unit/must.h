/* SPDX-License-Identifier: Apache-2.0 */
/* What a test needs and does not look at: a call that succeeds, a tensor of a file. */
#ifndef TESTS_UNIT_MUST_H
#define TESTS_UNIT_MUST_H
#include "test.h"
#include "core/error.h"
#include "model/files/safetensors/safetensors.h"

/* Fails the test in the error's words. */
static inline void must(enum status st, const struct error *err)
{
	if (st)
		fail_msg("%s: %s", status_name(st), err->text);
}

/* Fails the test where the file holds none of that name. */
static inline const struct tensor *tensor_of(const struct safetensors *s, const char *name)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->tensors[i].name, name))
			return &s->tensors[i];
	fail_msg("%s holds no %s", s->path, name);
	return NULL;
}
#endif
