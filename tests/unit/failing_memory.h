/* SPDX-License-Identifier: Apache-2.0 */
/* Allocations that fail when a test asks for it. The program is linked with
 * --wrap=malloc,--wrap=calloc,--wrap=realloc. For one file of a program. */
#ifndef FAILING_MEMORY_H
#define FAILING_MEMORY_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static int64_t left = -1; /* allocations until one fails; -1: none does */

static bool fails(void)
{
	return left >= 0 && !left--;
}

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
	return fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
	return fails() ? NULL : __real_realloc(old, size);
}
#endif
