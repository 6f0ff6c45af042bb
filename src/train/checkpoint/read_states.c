/* SPDX-License-Identifier: Apache-2.0 */
#include "train/checkpoint/read_states.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "model/tensor/dtype.h"
#include "train/checkpoint/manifest.h"
#include "train/checkpoint/manifest_parts.h"

enum { ROOM = 4 << 20 }; /* bytes that are read at once, if their rows are cut */

static enum status read_at(const char *path, uint64_t offset, size_t size, void *out, struct error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t done = 0;
	ssize_t got = 1;

	if (fd < 0)
		return error_errno(err, errno, "cannot open %s", path);
	while (done < size && got > 0) { /* one call reads at most 2 GiB */
		got = pread(fd, (char *)out + done, size - done, (off_t)offset + (off_t)done);
		done += got > 0 ? (size_t)got : 0;
		if (got < 0 && errno == EINTR)
			got = 1;
	}
	close(fd);
	return done == size
		       ? STATUS_OK
		       : error_set(err, STATUS_BAD_INPUT, "%s: it is shorter than its manifest says", path);
}

enum status read_states_range(const struct state_source *s, size_t part, uint64_t begin, uint64_t count,
			      uint8_t *out, struct error *err)
{
	const uint64_t size = dtype_bytes(s->dtype, 1);
	struct manifest_piece piece = {.part = part};
	uint64_t done = 0;

	while (manifest_next(&piece, s->f->manifest, s->which)) {
		const uint64_t end = piece.first + piece.count,
			       from = begin > piece.first ? begin : piece.first,
			       to = begin + count < end ? begin + count : end;
		char path[PATH_MAX + 400];
		enum status st;

		if (from >= to)
			continue;
		snprintf(path, sizeof(path), "%s/%s", s->f->path, piece.file);
		st = read_at(path, piece.offset + (from - piece.first) * size, (size_t)((to - from) * size),
			     out + (from - begin) * size, err);
		if (st)
			return st;
		done += to - from;
	}
	return done == count ? STATUS_OK
			     : error_set(err, STATUS_BAD_INPUT, "%s: its shards do not hold its state %s",
					 s->f->path, params_state_name(s->which));
}

/* -- tensors that are cut -- */

/* Rows and columns of a whole tensor. */
struct block {
	int64_t row, rows, col, cols;
};

static struct block common(const struct block *want, const struct manifest_tensor *t)
{
	const int64_t row = want->row > t->row ? want->row : t->row,
		      col = want->col > t->col ? want->col : t->col;
	const int64_t last = want->row + want->rows, end = t->row + t->rows, right = want->col + want->cols,
		      edge = t->col + t->cols;

	return (struct block){row, (last < end ? last : end) - row, col, (right < edge ? right : edge) - col};
}

/* Whether a part before this one has the same rows and columns. */
static bool is_repeated(const json_t *manifest, size_t index, size_t part)
{
	const struct manifest_tensor t = manifest_tensor(manifest, index, part);

	for (size_t i = 0; i < part; i++) {
		const struct manifest_tensor other = manifest_tensor(manifest, index, i);

		if (other.row == t.row && other.rows == t.rows && other.col == t.col && other.cols == t.cols)
			return true;
	}
	return false;
}

/* What a part of the checkpoint has of the block: its rows, with what lies between them. */
static enum status read_rows(const struct state_source *s, size_t part, const struct manifest_tensor *t,
			     const struct block *rows, uint8_t *room, struct error *err)
{
	const uint64_t first = (uint64_t)((rows->row - t->row) * t->cols + rows->col - t->col);

	return read_states_range(s, part, t->offset + first,
				 (uint64_t)((rows->rows - 1) * t->cols + rows->cols), room, err);
}

/* `out` is the packed block `want`. */
static enum status copy_rows(const struct state_source *s, size_t part, const struct manifest_tensor *t,
			     const struct block *want, const struct block *both, uint8_t *out,
			     struct error *err)
{
	const size_t width = dtype_bytes(s->dtype, 1), pitch = (size_t)t->cols * width;
	const int64_t fit = (int64_t)(ROOM / pitch), most = fit < 1 ? 1 : fit < both->rows ? fit : both->rows;
	uint8_t *room = malloc((size_t)most * pitch);
	enum status st = room ? STATUS_OK : error_errno(err, ENOMEM, "%s", s->f->path);

	for (int64_t at = 0; at < both->rows && !st; at += most) {
		struct block some = *both;

		some.row += at;
		some.rows = both->rows - at < most ? both->rows - at : most;
		st = read_rows(s, part, t, &some, room, err);
		for (int64_t i = 0; i < some.rows && !st; i++)
			memcpy(out + (size_t)((some.row - want->row + i) * want->cols + some.col -
					      want->col) *
					       width,
			       room + (size_t)i * pitch, (size_t)some.cols * width);
	}
	free(room);
	return st;
}

/* From all parts of the checkpoint that have something of it. */
static enum status read_block(const struct state_source *s, size_t index, const struct block *want,
			      uint8_t *out, struct error *err)
{
	const json_t *manifest = s->f->manifest;
	const size_t width = dtype_bytes(s->dtype, 1);
	enum status st = STATUS_OK;

	for (size_t part = 0; part < manifest_parts_count(manifest) && !st; part++) {
		const struct manifest_tensor t = manifest_tensor(manifest, index, part);
		const struct block both = common(want, &t);

		if (both.rows <= 0 || both.cols <= 0 || is_repeated(manifest, index, part))
			continue;
		if (both.cols == want->cols && (both.cols == t.cols || both.rows == 1))
			st = read_rows(s, part, &t, &both,
				       out + (size_t)((both.row - want->row) * want->cols) * width, err);
		else
			st = copy_rows(s, part, &t, want, &both, out, err);
	}
	return st;
}

enum status read_states_tensor(const struct state_source *s, size_t index, const struct split_part *want,
			       size_t first, size_t count, uint8_t *out, struct error *err)
{
	const size_t width = dtype_bytes(s->dtype, 1), cols = (size_t)want->cols,
		     used = (size_t)want->rows * cols;
	const size_t end = first + count < used ? first + count : used;
	enum status st = STATUS_OK;

	for (size_t at = first, n; at < end && !st; at += n) {
		const size_t col = at % cols, rest = end - at;
		const bool rows = !col && rest >= cols;
		struct block one = {.row = want->row + (int64_t)(at / cols), .col = want->col + (int64_t)col};

		n = rows ? rest / cols * cols : rest < cols - col ? rest : cols - col;
		one.rows = rows ? (int64_t)(n / cols) : 1;
		one.cols = rows ? want->cols : (int64_t)n;
		st = read_block(s, index, &one, out + (at - first) * width, err);
	}
	if (first + count > used) {
		const size_t from = first > used ? first : used;

		memset(out + (from - first) * width, 0, (first + count - from) * width);
	}
	return st;
}
