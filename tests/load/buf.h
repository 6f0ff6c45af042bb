/* SPDX-License-Identifier: Apache-2.0 */
/* Growing bytes. A zeroed struct is valid and empty. Without memory the program ends: this is a test tool. */
#ifndef TESTS_LOAD_BUF_H
#define TESTS_LOAD_BUF_H
#include <stddef.h>
#include <stdint.h>

struct buf {
	char *data;
	size_t size, room;
};

void *must_alloc(size_t size); /* zeroed */
/* At least `more` free bytes behind the content; returns where they begin. */
char *buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *bytes, size_t size);
void buf_adds(struct buf *b, const char *s);
void buf_addf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_add_u64(struct buf *b, uint64_t value); /* decimal; much cheaper than buf_addf */
void buf_drop(struct buf *b, size_t size);	 /* the first bytes go */
void buf_release(struct buf *b);
#endif
