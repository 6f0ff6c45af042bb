/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/replay.h"
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>
#include "core/file/mapped.h"
#include "watch/record.h"

enum { BLOCK = 1 << 16, PREFIX_MAX = 64, FRAMES_MAX = 1 << 20 };
#define FRAME_BYTES_MAX ((uint64_t)256 << 20)
#define MS_MAX 4102444800000ull /* 130 years */

/* A part of the file that begins with the whole state. */
struct frame {
	uint64_t at, size, ms;
};

/* The place of the next line. */
struct cursor {
	size_t frame; /* frame_count: the end */
	uint64_t at, out;
	bool ended;	  /* the compressed frame is complete */
	struct text line; /* complete, without newline, or the beginning of one */
	bool held;	  /* line is complete and not taken yet */
	uint64_t ms;
	unsigned node;
	size_t body; /* offset of the stream's line in `line` */
	char block[BLOCK];
	size_t block_at, block_size;
};

struct watch_replay {
	char path[4096], why[512];
	void *data;
	uint64_t size;
	bool compressed;
	ZSTD_DStream *stream;
	struct frame *frame;
	size_t frame_count;
	unsigned nodes;
	uint64_t end_ms, now_ms;
	bool begun;
	struct cursor c;
	bool kept[CATALOGUE_COUNT];
	struct watch_state *state;
};

static bool read_mark(const char *line, unsigned *nodes, uint64_t *ms, double *wall)
{
	static const char mark[] = WATCH_RECORDING;
	const char *at = line + sizeof(mark) - 1;
	char *end;

	if (strncmp(line, mark, sizeof(mark) - 1))
		return false;
	errno = 0;
	*nodes = (unsigned)strtoul(at, &end, 10);
	if (end == at || *end != ' ' || !*nodes || *nodes > WATCH_NODES_MAX)
		return false;
	*ms = strtoull(end + 1, &end, 10);
	if (*end != ' ' || errno || *ms > MS_MAX)
		return false;
	*wall = strtod(end + 1, &end);
	return !*end && isfinite(*wall);
}

static void stop(struct watch_replay *r, const char *what)
{
	if (!*r->why)
		snprintf(r->why, sizeof(r->why), "%.300s %s after %.0f s", r->path, what,
			 1e-3 * (double)r->end_ms);
	r->c.frame = r->frame_count;
}

/* Fills the block with the next bytes of the frame. False: the frame has ended, or is damaged. */
static bool fill(struct watch_replay *r)
{
	struct cursor *c = &r->c;
	const struct frame *f = &r->frame[c->frame];
	ZSTD_outBuffer out = {.dst = c->block, .size = sizeof(c->block)};

	c->block_at = c->block_size = 0;
	if (!r->compressed) {
		uint64_t left = f->size - c->at;

		c->block_size = left < sizeof(c->block) ? (size_t)left : sizeof(c->block);
		if (c->block_size)
			memcpy(c->block, (char *)r->data + f->at + c->at, c->block_size);
		c->at += c->block_size;
		return c->block_size > 0;
	}
	while (!c->ended) {
		ZSTD_inBuffer in = {.src = (char *)r->data + f->at, .size = f->size, .pos = c->at};
		size_t left = ZSTD_decompressStream(r->stream, &out, &in);
		bool moved = in.pos > c->at;

		c->at = in.pos;
		if (ZSTD_isError(left)) {
			stop(r, "is damaged");
			return false;
		}
		c->ended = !left;
		c->out += out.pos;
		if (c->out > FRAME_BYTES_MAX) {
			stop(r, "holds more than 256 MB in one minute");
			return false;
		}
		c->block_size = out.pos;
		if (out.pos)
			return true;
		if (left && !moved) {
			stop(r, "is cut");
			return false;
		}
	}
	return false;
}

static void enter(struct watch_replay *r, size_t frame)
{
	struct cursor *c = &r->c;

	c->frame = frame;
	c->at = c->out = 0;
	c->ended = false;
	c->block_at = c->block_size = 0;
	c->held = false;
	text_release(&c->line);
	if (r->compressed)
		ZSTD_initDStream(r->stream);
}

/* Reads until `line` is complete. False: the end of the recording. */
static bool next_line(struct watch_replay *r)
{
	struct cursor *c = &r->c;

	text_release(&c->line);
	while (c->frame < r->frame_count) {
		char *from = c->block + c->block_at, *end;
		size_t left = c->block_size - c->block_at;

		if (!left) {
			size_t frame = c->frame;

			if (fill(r))
				continue;
			if (c->frame == frame && c->line.size)
				stop(r, "is cut");
			else if (c->frame == frame)
				enter(r, frame + 1);
			continue;
		}
		end = memchr(from, '\n', left);
		text_add_bytes(&c->line, from, end ? (size_t)(end - from) : left);
		c->block_at += end ? (size_t)(end - from) + 1 : left;
		if (c->line.size > WATCH_LINE_MAX + PREFIX_MAX || c->line.failed) {
			stop(r, "has a line that is too long");
			return false;
		}
		if (end)
			return true;
	}
	return false;
}

/* Moves to the next line of a stream. False: the end. */
static bool next(struct watch_replay *r)
{
	struct cursor *c = &r->c;
	unsigned nodes;
	uint64_t ms;
	double wall;

	while (next_line(r)) {
		const char *line = text_str(&c->line);
		char *end;

		if (read_mark(line, &nodes, &ms, &wall))
			continue;
		errno = 0;
		c->node = (unsigned)strtoul(line, &end, 10);
		if (end == line || *end != ' ' || c->node >= r->nodes) {
			stop(r, "is damaged");
			return false;
		}
		line = end + 1;
		ms = strtoull(line, &end, 10);
		if (end == line || *end != ' ' || errno || ms > MS_MAX) {
			stop(r, "is damaged");
			return false;
		}
		c->ms = ms > c->ms ? ms : c->ms;
		c->body = (size_t)(end + 1 - text_str(&c->line));
		c->held = true;
		return true;
	}
	return false;
}

static enum status add_frame(struct watch_replay *r, uint64_t at, uint64_t size, uint64_t ms,
			     struct error *err)
{
	if (r->frame_count % 256 == 0) {
		struct frame *more = realloc(r->frame, (r->frame_count + 256) * sizeof(*more));

		if (!more || r->frame_count >= FRAMES_MAX)
			return error_errno(err, ENOMEM, "%s has too many parts", r->path);
		r->frame = more;
	}
	r->frame[r->frame_count++] = (struct frame){.at = at, .size = size, .ms = ms};
	return STATUS_OK;
}

/* Takes the mark at the beginning of the frame that was added last. False: there is none. */
static bool take_mark(struct watch_replay *r)
{
	struct frame *f = &r->frame[r->frame_count - 1];
	unsigned nodes;
	double wall;
	uint64_t ms;

	enter(r, r->frame_count - 1);
	if (!next_line(r) || !read_mark(text_str(&r->c.line), &nodes, &ms, &wall))
		return false;
	if (r->frame_count == 1)
		r->nodes = nodes;
	f->ms = ms;
	return nodes == r->nodes && (r->frame_count == 1 || ms >= f[-1].ms);
}

static enum status find_frames(struct watch_replay *r, struct error *err)
{
	uint64_t at = 0;

	while (at < r->size) {
		const char *from = (char *)r->data + at;
		uint64_t size = r->size - at;
		enum status st;

		if (r->compressed) {
			size_t one = ZSTD_findFrameCompressedSize(from, size);

			size = ZSTD_isError(one) ? size : one;
		} else {
			const char *mark = memmem(from + 1, size - 1, "\n" WATCH_RECORDING,
						  sizeof("\n" WATCH_RECORDING) - 1);

			size = mark ? (uint64_t)(mark + 1 - from) : size;
		}
		st = add_frame(r, at, size, 0, err);
		if (st)
			return st;
		if (!take_mark(r)) {
			r->frame_count--;
			break;
		}
		at += size;
	}
	if (!r->frame_count)
		return error_set(err, STATUS_BAD_INPUT, "%s is not a recording of assay top", r->path);
	if (at < r->size)
		snprintf(r->why, sizeof(r->why), "%.300s is damaged after %.0f s", r->path,
			 1e-3 * (double)r->frame[r->frame_count - 1].ms);
	else
		*r->why = '\0';
	return STATUS_OK;
}

/* The time of the last line that can be read. */
static void find_end(struct watch_replay *r)
{
	r->c.ms = r->frame[r->frame_count - 1].ms;
	r->end_ms = r->c.ms;
	enter(r, r->frame_count - 1);
	while (next(r))
		r->end_ms = r->c.ms;
}

enum status watch_replay_open(struct watch_replay **out, const char *path, struct error *err)
{
	struct watch_replay *r = calloc(1, sizeof(*r));
	enum status st;

	*out = NULL;
	if (!r)
		return error_errno(err, ENOMEM, "no memory to read %s", path);
	text_copy(r->path, sizeof(r->path), path);
	st = mapped_open(&r->data, &r->size, path, err);
	if (!st) {
		r->compressed = r->size >= 4 && !memcmp(r->data, "\x28\xb5\x2f\xfd", 4);
		r->stream = ZSTD_createDStream();
		if (!r->stream)
			st = error_errno(err, ENOMEM, "no memory to read %s", path);
	}
	if (!st)
		st = find_frames(r, err);
	if (!st)
		find_end(r);
	st = mapped_check(st, err);
	if (!st) {
		r->state = calloc(r->nodes, sizeof(*r->state));
		if (!r->state)
			st = error_errno(err, ENOMEM, "no memory to read %s", path);
	}
	if (st) {
		watch_replay_close(r);
		return st;
	}
	*out = r;
	return st;
}

void watch_replay_close(struct watch_replay *r)
{
	if (!r)
		return;
	for (unsigned i = 0; r->state && i < r->nodes; i++)
		watch_state_release(&r->state[i]);
	free(r->state);
	text_release(&r->c.line);
	ZSTD_freeDStream(r->stream);
	if (r->data)
		mapped_close(r->data, r->size);
	free(r->frame);
	free(r);
}

unsigned watch_replay_nodes(const struct watch_replay *r)
{
	return r->nodes;
}

const struct watch_state *watch_replay_state(const struct watch_replay *r, unsigned node)
{
	return node < r->nodes ? &r->state[node] : NULL;
}

void watch_replay_keep(struct watch_replay *r, enum catalogue row)
{
	r->kept[row] = true;
	for (unsigned i = 0; i < r->nodes; i++)
		watch_state_keep(&r->state[i], row);
}

double watch_replay_length(const struct watch_replay *r)
{
	return 1e-3 * (double)r->end_ms;
}

const char *watch_replay_why(const struct watch_replay *r)
{
	return *r->why ? r->why : NULL;
}

/* The frame at which reading begins so that rates exist at the wanted time. */
static size_t frame_for(const struct watch_replay *r, uint64_t ms)
{
	double interval = r->state[0].interval > 0 ? r->state[0].interval : 1;
	uint64_t before = (uint64_t)(2e3 * (interval < 60 ? interval : 60));
	size_t f = 0;

	while (f + 1 < r->frame_count && r->frame[f + 1].ms + before <= ms)
		f++;
	return f;
}

static void begin(struct watch_replay *r, size_t frame)
{
	for (unsigned i = 0; i < r->nodes; i++) {
		watch_state_release(&r->state[i]);
		memcpy(r->state[i].kept, r->kept, sizeof(r->kept));
	}
	enter(r, frame);
	r->c.ms = r->frame[frame].ms;
	r->begun = true;
}

enum status watch_replay_seek(struct watch_replay *r, double seconds, struct error *err)
{
	uint64_t ms = seconds > 0 ? (uint64_t)(1e3 * (seconds < 1e12 ? seconds : 1e12) + 0.5) : 0;
	struct cursor *c = &r->c;
	struct error wrong = {0};
	enum status st = STATUS_OK;
	size_t frame;

	ms = ms < r->end_ms ? ms : r->end_ms;
	frame = frame_for(r, ms);
	if (!r->begun || ms < r->now_ms || frame > c->frame + 1)
		begin(r, frame);
	r->now_ms = ms;
	while (!st && (c->held || next(r))) {
		const char *line = text_str(&c->line) + c->body;

		if (c->ms > ms)
			break;
		c->held = false;
		st = watch_state_line(&r->state[c->node], line, c->line.size - c->body, &wrong);
	}
	if (st) {
		stop(r, "has a wrong line");
		error_set_cause(err, st, wrong.cause, "%.300s: the line after %.3f s is wrong: %s", r->path,
				1e-3 * (double)c->ms, wrong.text);
	}
	return mapped_check(st, err);
}
