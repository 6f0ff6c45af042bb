/* SPDX-License-Identifier: Apache-2.0 */
/* A fuzz target is one file with this function: it takes any bytes, asserts what must hold, returns 0. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "core/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts with the place, so that libFuzzer and the replay both see a crash. */
#define FUZZ_CHECK(condition)                                                                                \
	((condition)                                                                                         \
		 ? (void)0                                                                                   \
		 : (fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #condition), abort()))

/* Ends a target that could not start. In a build without this part the test is skipped with the error's words. Any other error is a defect of
 * the target, which would accept every input from then on. */
static inline void fuzz_skip_without(const char *part, const struct error *err)
{
	char words[64];

	fprintf(stderr, "%s\n", err->text);
	snprintf(words, sizeof(words), "built without %s", part);
	if (!strstr(err->text, words))
		abort();
	_exit(77); /* for Meson; exit would look like a crash to libFuzzer */
}

/* The input as a text of its own, NUL-terminated, on the heap, so that a read past its end is seen. Owner:
 * caller. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	if (!text)
		abort();
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}
#endif
