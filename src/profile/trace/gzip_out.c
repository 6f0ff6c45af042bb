/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/trace/gzip_out.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#define ZLIB_CONST
#include <zlib.h>

/* WINDOW: zlib's largest window. GZIP: added to it, requests a gzip header. */
enum { BLOCK = 1 << 16, WINDOW = 15, GZIP = 16, MEMORY = 9, LEVEL = 6 };

struct gzip_out {
	z_stream z;
	int fd, code; /* code: errno of the failed write */
	unsigned char block[BLOCK];
};

struct gzip_out *gzip_out_begin(int fd)
{
	struct gzip_out *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->fd = fd;
	g->z.next_out = g->block;
	g->z.avail_out = BLOCK;
	if (deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW + GZIP, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) {
		free(g);
		return NULL;
	}
	return g;
}

static void write_block(struct gzip_out *g)
{
	size_t done = 0, size = BLOCK - g->z.avail_out;

	while (!g->code && done < size) {
		ssize_t n = write(g->fd, g->block + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			g->code = n ? errno : ENOSPC;
		else
			done += (size_t)n;
	}
	g->z.next_out = g->block;
	g->z.avail_out = BLOCK;
}

/* Runs zlib until it has no more output. Output that does not fill a block stays in the buffer. */
static void deflate_all(struct gzip_out *g, int flush)
{
	while (!g->code) {
		if (deflate(&g->z, flush) == Z_STREAM_ERROR)
			g->code = EIO;
		if (g->z.avail_out)
			return;
		write_block(g);
	}
}

int gzip_out_add(struct gzip_out *g, const void *data, size_t size)
{
	const unsigned char *from = data;

	while (!g->code && size) {
		uInt part = size > INT_MAX ? INT_MAX : (uInt)size;

		g->z.next_in = from;
		g->z.avail_in = part;
		deflate_all(g, Z_NO_FLUSH);
		from += part;
		size -= part;
	}
	return g->code;
}

int gzip_out_end(struct gzip_out *g)
{
	int code;

	if (!g)
		return ENOMEM;
	g->z.next_in = NULL;
	g->z.avail_in = 0;
	deflate_all(g, Z_FINISH);
	write_block(g);
	code = g->code;
	deflateEnd(&g->z);
	free(g);
	return code;
}
