/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes to a descriptor as one gzip member (RFC 1952). The header has no time and no file name, so the same
 * bytes give the same file. */
#ifndef PROFILE_TRACE_GZIP_OUT_H
#define PROFILE_TRACE_GZIP_OUT_H
#include <stddef.h>

struct gzip_out;

/* The descriptor stays the caller's. NULL: memory. */
struct gzip_out *gzip_out_begin(int fd);
/* 0, or errno of the write that failed: once failed, nothing is written any more. */
int gzip_out_add(struct gzip_out *g, const void *data, size_t size);
/* Writes what is left and frees it. The same code as above: 0 says that the file is whole. NULL is ENOMEM. */
int gzip_out_end(struct gzip_out *g);
#endif
