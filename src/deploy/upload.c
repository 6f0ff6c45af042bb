/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/file/file.h"
#include "deploy/bundle.h"

enum { BLOCK = 4096, PIECE = 1 << 20 };

static uint64_t blocks_of(uint64_t size)
{
	return (size + BLOCK - 1) / BLOCK;
}

/* Lines for node.sh; file `i` begins at block first[i]. */
static void header_lines(struct text *t, const struct bundle *b, const bool *have, uint64_t first)
{
	for (size_t i = 0; i < b->count; i++) {
		const struct bundle_file *f = &b->file[i];

		if (have[i])
			continue;
		text_addf(t, "file %s %llu %llu\n", f->sum, (unsigned long long)first,
			  (unsigned long long)f->size);
		first += blocks_of(f->size);
	}
	for (size_t i = 0; i < b->count; i++)
		text_addf(t, "name %s %s %s\n", b->file[i].executable ? "700" : "600", b->file[i].sum,
			  b->file[i].name);
	text_add(t, "whole\n");
}

/* The numbers of the header are digits of unequal length, so its size depends on itself: with more blocks it
 * is made again. */
static void make_header(struct text *t, unsigned *blocks, const struct bundle *b, const bool *have)
{
	for (*blocks = 1;;) {
		header_lines(t, b, have, *blocks);
		if (t->failed || blocks_of(t->size) <= *blocks)
			return;
		*blocks = (unsigned)blocks_of(t->size) + 1;
		text_release(t);
	}
}

/* Zeros, at most two blocks. */
static enum status pad(struct file_new *out, uint64_t size, struct error *err)
{
	static const char zeros[2 * BLOCK];

	return file_new_write(out, zeros, (size_t)size, err);
}

static enum status copy_file(struct file_new *out, const struct bundle_file *f, struct error *err)
{
	char *piece = malloc(PIECE);
	int fd = f->path ? open(f->path, O_RDONLY | O_CLOEXEC) : -1;
	enum status st = STATUS_OK;
	uint64_t done = 0;
	ssize_t n = 1;

	if (!piece)
		st = error_errno(err, ENOMEM, "no memory to read %s", f->name);
	else if (!f->path)
		st = file_new_write(out, f->text, f->size, err);
	else if (fd < 0)
		st = error_errno(err, errno, "cannot read %s", f->path);
	while (!st && f->path && n > 0) {
		n = read(fd, piece, PIECE);
		if (n < 0)
			st = error_errno(err, errno, "cannot read %s", f->path);
		else
			st = file_new_write(out, piece, (size_t)n, err);
		done += n > 0 ? (uint64_t)n : 0;
	}
	if (!st && f->path && done != f->size)
		st = error_set(err, STATUS_MISMATCH, "%s changed while it was read", f->path);
	if (fd >= 0)
		close(fd);
	free(piece);
	return st ? st : pad(out, blocks_of(f->size) * BLOCK - f->size, err);
}

static enum status write_upload(const char *path, const struct text *header, unsigned blocks,
				const struct bundle *b, const bool *have, struct error *err)
{
	struct file_new out;
	enum status st = file_new_begin(&out, path, err);

	if (st)
		return st;
	st = file_new_write(&out, header->data, header->size, err);
	if (!st)
		st = pad(&out, (uint64_t)blocks * BLOCK - header->size, err);
	for (size_t i = 0; i < b->count && !st; i++)
		if (!have[i])
			st = copy_file(&out, &b->file[i], err);
	return file_new_end(&out, st, err);
}

enum status upload_make(struct upload *u, const struct bundle *b, const bool *have, const char *folder,
			const struct upload *known, struct error *err)
{
	struct text header = {0};
	struct stat info;
	char id[65];
	enum status st = STATUS_OK;

	*u = (struct upload){0};
	make_header(&header, &u->header, b, have);
	if (header.failed) {
		text_release(&header);
		return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
				       "no memory for the list of files to copy");
	}
	file_sha256(id, header.data, header.size);
	snprintf(u->path, sizeof(u->path), "%.4000s/upload-%.16s", folder, id);
	if (stat(u->path, &info))
		st = write_upload(u->path, &header, u->header, b, have, err);
	else if (known && !strcmp(known->path, u->path))
		*u = *known;
	text_release(&header);
	if (u->size)
		return st;
	if (!st && stat(u->path, &info))
		st = error_errno(err, errno, "cannot read %s", u->path);
	if (st)
		return st;
	u->size = (uint64_t)info.st_size;
	return file_sha256_of(u->sum, u->path, err);
}
