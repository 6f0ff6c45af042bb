/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "journal/file/compressed.h"
#include "load/record/record.h"

enum { PIECE_BYTES = 1 << 17, LINE_MOST = 1 << 26 };

/* The file, compressed or not, as lines. */
struct source {
	char path[4096];
	int fd;
	struct compressed_journal *compressed; /* NULL: a plain file */
	struct text rest;		       /* what was read and is not a whole line yet */
	size_t lines;
};

enum status load_records_add(struct load_records *all, struct load_record *r, struct error *err)
{
	if (all->count == all->room) {
		const size_t room = all->room ? 2 * all->room : 256;
		struct load_record *more = realloc(all->record, room * sizeof(*more));

		if (!more)
			return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY,
					       "no memory for %zu records of requests", room);
		all->record = more;
		all->room = room;
	}
	all->record[all->count++] = *r;
	*r = (struct load_record){0};
	return STATUS_OK;
}

void load_records_release(struct load_records *all)
{
	for (size_t i = 0; i < all->count; i++)
		load_record_release(&all->record[i]);
	free(all->record);
	*all = (struct load_records){0};
}

static enum status no_memory(const struct source *s, struct error *err)
{
	return error_set_cause(err, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no memory to read %s", s->path);
}

/* A plain file goes before a compressed one. */
static enum status open_source(struct source *s, const char *dir, struct error *err)
{
	*s = (struct source){.fd = -1};
	for (int compressed = 0; compressed < 2 && s->fd < 0; compressed++) {
		snprintf(s->path, sizeof(s->path), "%s/%s%s", dir, LOAD_REQUESTS_FILE,
			 compressed ? ".zst" : "");
		s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
		if (s->fd >= 0 && compressed)
			return compressed_journal_open(&s->compressed, s->fd, err);
		if (s->fd < 0 && errno != ENOENT)
			break;
	}
	return s->fd < 0 ? error_errno(err, errno, "cannot read %s", s->path) : STATUS_OK;
}

static void close_source(struct source *s)
{
	compressed_journal_close(&s->compressed);
	if (s->fd >= 0)
		close(s->fd);
	text_release(&s->rest);
}

static enum status read_piece(struct source *s, char *to, size_t *got, struct error *err)
{
	ssize_t size;

	if (s->compressed)
		return compressed_journal_read(s->compressed, to, PIECE_BYTES, got, err);
	do
		size = read(s->fd, to, PIECE_BYTES);
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return error_errno(err, errno, "cannot read %s", s->path);
	*got = (size_t)size;
	return STATUS_OK;
}

static enum status take_line(struct load_records *all, struct source *s, const char *line, size_t size,
			     struct error *err)
{
	struct load_record record = {0};
	struct error why = {0};
	enum status st = load_record_read(&record, line, size, &why);

	s->lines++;
	if (st)
		return error_set_cause(err, st, why.cause, "%s:%zu: %s", s->path, s->lines, why.text);
	st = load_records_add(all, &record, err);
	load_record_release(&record);
	return st;
}

/* Reads the whole lines of s->rest, and keeps what is left. `from`: bytes before it have no line end. */
static enum status take_lines(struct load_records *all, struct source *s, size_t from, struct error *err)
{
	const char *line = s->rest.data, *end = s->rest.data + s->rest.size, *look = s->rest.data + from;
	enum status st = STATUS_OK;
	const char *stop;

	while (!st && look < end && (stop = memchr(look, '\n', (size_t)(end - look)))) {
		st = take_line(all, s, line, (size_t)(stop - line), err);
		line = look = stop + 1;
	}
	s->rest.size = (size_t)(end - line);
	memmove(s->rest.data, line, s->rest.size);
	if (!st && s->rest.size > LINE_MOST)
		st = error_set(err, STATUS_BAD_INPUT, "%s:%zu: a line of more than %d bytes", s->path,
			       s->lines + 1, LINE_MOST);
	return st;
}

static enum status read_all(struct load_records *all, struct source *s, size_t *cut, struct error *err)
{
	char *piece = malloc(PIECE_BYTES);
	enum status st = piece ? STATUS_OK : no_memory(s, err);
	size_t got = 1;

	while (!st && got) {
		const size_t before = s->rest.size;

		st = read_piece(s, piece, &got, err);
		if (st || !got)
			break;
		text_add_bytes(&s->rest, piece, got);
		st = s->rest.failed ? no_memory(s, err) : take_lines(all, s, before, err);
	}
	free(piece);
	*cut = !st && s->rest.size > 0;
	return st;
}

/* A compressed file may be cut between two lines. */
static enum status look_for_damage(struct source *s, size_t *cut, struct error *err)
{
	uint64_t bytes = 0;
	enum status st = s->compressed ? compressed_journal_rest(s->compressed, &bytes, err) : STATUS_OK;

	if (!st && bytes)
		*cut = 1;
	return st;
}

enum status load_records_open(struct load_records *all, const char *dir, size_t *cut, struct error *err)
{
	struct source s;
	enum status st = open_source(&s, dir, err);

	*all = (struct load_records){0};
	*cut = 0;
	if (!st)
		st = read_all(all, &s, cut, err);
	if (!st)
		st = look_for_damage(&s, cut, err);
	close_source(&s);
	if (st)
		load_records_release(all);
	return st;
}
