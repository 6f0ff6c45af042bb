/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "load/buf.h"

static void no_memory(void)
{
	fputs("stub_server: no memory\n", stderr);
	abort();
}

void *must_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		no_memory();
	return p;
}

char *buf_reserve(struct buf *b, size_t more)
{
	if (b->room - b->size < more) {
		size_t room = b->room ? b->room : 512;
		char *grown;

		while (room - b->size < more)
			room *= 2;
		grown = realloc(b->data, room);
		if (!grown)
			no_memory();
		b->data = grown;
		b->room = room;
	}
	return b->data + b->size;
}

void buf_add(struct buf *b, const void *bytes, size_t size)
{
	if (!size)
		return;
	memcpy(buf_reserve(b, size), bytes, size);
	b->size += size;
}

void buf_adds(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_addf(struct buf *b, const char *format, ...)
{
	va_list args, again;
	int size;

	va_start(args, format);
	va_copy(again, args);
	size = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (size > 0) {
		vsnprintf(buf_reserve(b, (size_t)size + 1), (size_t)size + 1, format, again);
		b->size += (size_t)size;
	}
	va_end(again);
}

void buf_add_u64(struct buf *b, uint64_t value)
{
	char digits[20], *at = digits + sizeof(digits);

	do
		*--at = (char)('0' + value % 10);
	while (value /= 10);
	buf_add(b, at, (size_t)(digits + sizeof(digits) - at));
}

void buf_drop(struct buf *b, size_t size)
{
	b->size -= size;
	if (b->size)
		memmove(b->data, b->data + size, b->size);
}

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){0};
}
