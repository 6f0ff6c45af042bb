/* SPDX-License-Identifier: Apache-2.0 */
/* Writes bytes to a file descriptor as one gzip member (RFC 1952). The header has no time and no file name,
 * so equal input gives equal files. */
#ifndef PROFILE_TRACE_GZIP_OUT_H
#define PROFILE_TRACE_GZIP_OUT_H
#include <stddef.h>

struct gzip_out;

/* The caller keeps and closes `fd`. End with gzip_out_end. NULL: out of memory. */
struct gzip_out *gzip_out_begin(int fd);
/* Returns 0, or the errno of the failed write. After a failure nothing more is written. */
int gzip_out_add(struct gzip_out *g, const void *data, size_t size);
/* Writes the rest and frees `g`. Returns 0 if the file is complete, or the errno of the first failure; ENOMEM
 * if `g` is NULL. */
int gzip_out_end(struct gzip_out *g);
#endif
