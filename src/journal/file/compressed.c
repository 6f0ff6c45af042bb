/* SPDX-License-Identifier: Apache-2.0 */
#include "journal/file/compressed.h"
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zstd.h>

enum { INPUT_BYTES = 1 << 17 };

struct compressed_journal {
	int fd;
	ZSTD_DStream *stream;
	ZSTD_inBuffer in;
	bool within; /* a frame has begun and not ended */
	bool damaged;
	unsigned char input[INPUT_BYTES];
};

enum status compressed_journal_open(struct compressed_journal **out, int fd, struct error *err)
{
	struct compressed_journal *p = calloc(1, sizeof(*p));

	*out = NULL;
	if (p)
		p->stream = ZSTD_createDStream();
	if (!p || !p->stream) {
		free(p);
		return error_errno(err, ENOMEM, "no memory to read a compressed journal");
	}
	p->fd = fd;
	p->in.src = p->input;
	*out = p;
	return STATUS_OK;
}

/* *more false: the file has ended. */
static enum status fill(struct compressed_journal *p, bool *more, struct error *err)
{
	ssize_t got;

	*more = p->in.pos < p->in.size;
	if (*more)
		return STATUS_OK;
	do
		got = read(p->fd, p->input, sizeof(p->input));
	while (got < 0 && errno == EINTR);
	if (got < 0)
		return error_errno(err, errno, "cannot read the compressed journal");
	p->in.size = (size_t)got;
	p->in.pos = 0;
	*more = got > 0;
	return STATUS_OK;
}

enum status compressed_journal_read(struct compressed_journal *p, void *to, size_t room, size_t *got,
				    struct error *err)
{
	ZSTD_outBuffer out = {.dst = to, .size = room};
	bool more = true;

	*got = 0;
	while (!p->damaged && !out.pos && more) {
		enum status st = fill(p, &more, err);
		size_t left;

		if (st)
			return st;
		if (!more && !p->within)
			break;
		left = ZSTD_decompressStream(p->stream, &out,
					     &p->in); /* without input it returns buffered output */
		p->damaged = ZSTD_isError(left);
		p->within = left > 0;
	}
	*got = out.pos;
	return STATUS_OK;
}

enum status compressed_journal_rest(struct compressed_journal *p, uint64_t *bytes, struct error *err)
{
	char thrown[1 << 14];
	size_t got = 1;
	enum status st = STATUS_OK;

	for (*bytes = 0; !st && got; *bytes += got)
		st = compressed_journal_read(p, thrown, sizeof(thrown), &got, err);
	*bytes += p->damaged || p->within;
	return st;
}

void compressed_journal_close(struct compressed_journal **p)
{
	if (*p)
		ZSTD_freeDStream((*p)->stream);
	free(*p);
	*p = NULL;
}
