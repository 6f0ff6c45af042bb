/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/record.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>
#include "core/clock.h"

enum { KEYFRAME_MS = 60000, FLUSH_MS = 1000, FRAME_BYTES = 4 << 20, LEVEL = 3, BLOCK = 1 << 16 };

struct watch_recorder {
	int fd;
	char path[4096], why[512];
	ZSTD_CStream *stream;
	uint64_t began_ns, key_ms, flush_ms, frame_bytes;
	unsigned nodes;
	const struct watch_state *state[WATCH_NODES_MAX];
};

static void fail(struct watch_recorder *r, const char *what)
{
	if (!*r->why)
		snprintf(r->why, sizeof(r->why), "cannot write the recording %.300s: %s", r->path, what);
}

static void put(struct watch_recorder *r, const char *data, size_t size, ZSTD_EndDirective how)
{
	ZSTD_inBuffer in = {.src = data, .size = size};
	char block[BLOCK];
	size_t left = 1;

	while (!*r->why && (in.pos < in.size || (how != ZSTD_e_continue && left))) {
		ZSTD_outBuffer out = {.dst = block, .size = sizeof(block)};
		size_t at = 0;

		left = ZSTD_compressStream2(r->stream, &out, &in, how);
		if (ZSTD_isError(left)) {
			fail(r, ZSTD_getErrorName(left));
			return;
		}
		while (at < out.pos) {
			ssize_t n = write(r->fd, block + at, out.pos - at);

			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0) {
				fail(r, strerror(errno));
				return;
			}
			at += (size_t)n;
		}
	}
}

static uint64_t now_ms(const struct watch_recorder *r)
{
	return (clock_now_ns(clock_monotonic()) - r->began_ns) / 1000000;
}

static void put_line(struct watch_recorder *r, unsigned node, uint64_t ms, const char *line, size_t size)
{
	char mark[48];
	int n = snprintf(mark, sizeof(mark), "%u %llu ", node, (unsigned long long)ms);

	put(r, mark, (size_t)n, ZSTD_e_continue);
	put(r, line, size, ZSTD_e_continue);
	put(r, "\n", 1, ZSTD_e_continue);
	r->frame_bytes += (size_t)n + size + 1;
}

static void put_state(struct watch_recorder *r, unsigned node, uint64_t ms)
{
	struct text all = {0};
	const char *at, *end;

	if (r->state[node])
		watch_state_write(r->state[node], &all);
	if (all.failed)
		fail(r, "no memory");
	for (at = text_str(&all); (end = strchr(at, '\n')); at = end + 1)
		put_line(r, node, ms, at, (size_t)(end - at));
	text_release(&all);
}

static void put_mark(struct watch_recorder *r, uint64_t ms)
{
	char mark[128];
	struct timespec wall;
	int n;

	clock_gettime(CLOCK_REALTIME, &wall);
	n = snprintf(mark, sizeof(mark), WATCH_RECORDING "%u %llu %.3f\n", r->nodes, (unsigned long long)ms,
		     (double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec);
	put(r, mark, (size_t)n, ZSTD_e_continue);
	r->key_ms = ms;
}

enum status watch_recorder_open(struct watch_recorder **out, const char *path, unsigned nodes,
				struct error *err)
{
	struct watch_recorder *r = calloc(1, sizeof(*r));
	enum status st;

	*out = NULL;
	if (!r || nodes > WATCH_NODES_MAX) {
		free(r);
		return error_set(err, STATUS_NO_RESOURCE, "no memory for a recording of %u nodes", nodes);
	}
	r->nodes = nodes;
	r->began_ns = clock_now_ns(clock_monotonic());
	text_copy(r->path, sizeof(r->path), path);
	r->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (r->fd < 0 && errno == EEXIST)
		st = error_set(err, STATUS_BAD_INPUT, "%s exists already; choose another name", path);
	else if (r->fd < 0)
		st = error_errno(err, errno, "cannot make the recording %s", path);
	else
		st = (r->stream = ZSTD_createCStream())
			     ? STATUS_OK
			     : error_errno(err, ENOMEM, "cannot record to %s", path);
	if (st) {
		if (r->fd >= 0)
			close(r->fd);
		free(r);
		return st;
	}
	ZSTD_CCtx_setParameter(r->stream, ZSTD_c_compressionLevel, LEVEL);
	ZSTD_CCtx_setParameter(r->stream, ZSTD_c_checksumFlag, 1);
	put_mark(r, 0);
	*out = r;
	return STATUS_OK;
}

void watch_recorder_node(struct watch_recorder *r, unsigned node, const struct watch_state *state)
{
	if (node >= r->nodes)
		return;
	r->state[node] = state;
	put_state(r, node, now_ms(r));
}

void watch_recorder_line(struct watch_recorder *r, unsigned node, const char *line, size_t size)
{
	uint64_t ms = now_ms(r);

	if (*r->why || node >= r->nodes)
		return;
	if (ms - r->key_ms >= KEYFRAME_MS || r->frame_bytes >= FRAME_BYTES) {
		put(r, NULL, 0, ZSTD_e_end);
		r->frame_bytes = 0;
		put_mark(r, ms);
		for (unsigned i = 0; i < r->nodes; i++)
			put_state(r, i, ms);
	}
	put_line(r, node, ms, line, size);
	if (ms - r->flush_ms >= FLUSH_MS) {
		put(r, NULL, 0, ZSTD_e_flush);
		r->flush_ms = ms;
	}
}

const char *watch_recorder_why(const struct watch_recorder *r)
{
	return *r->why ? r->why : NULL;
}

enum status watch_recorder_close(struct watch_recorder *r, struct error *err)
{
	enum status st = STATUS_OK;

	if (!r)
		return st;
	put(r, NULL, 0, ZSTD_e_end);
	if (close(r->fd))
		fail(r, strerror(errno));
	if (*r->why)
		st = error_set(err, STATUS_NO_RESOURCE, "%s", r->why);
	ZSTD_freeCStream(r->stream);
	free(r);
	return st;
}
