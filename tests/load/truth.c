/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "load/truth.h"

enum { FLUSH_BYTES = 1 << 18 };

void truth_flush(struct truth *t)
{
	size_t done = 0;

	while (t->fd >= 0 && done < t->lines.size) {
		ssize_t n = write(t->fd, t->lines.data + done, t->lines.size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (!t->failed)
				fprintf(stderr, "stub_server: cannot write the truth file: %s\n",
					strerror(errno));
			t->failed = true;
			break;
		}
		done += (size_t)n;
	}
	t->lines.size = 0;
}

static void add_time(struct buf *b, const char *name, uint64_t ns)
{
	buf_addf(b, ",\"%s\":", name);
	if (ns)
		buf_add_u64(b, ns);
	else
		buf_adds(b, "null");
}

static void add_times(struct buf *b, const struct answer *a)
{
	const uint64_t *at = (const uint64_t *)(const void *)a->times.data;

	buf_adds(b, ",\"token_ns\":[");
	for (size_t i = 0; i < a->times.size / sizeof(*at); i++) {
		if (i)
			buf_add(b, ",", 1);
		if (at[i])
			buf_add_u64(b, at[i]);
		else
			buf_add(b, "null", 4);
	}
	buf_adds(b, "]");
}

static void add_request(struct buf *b, const struct answer *a)
{
	buf_addf(b,
		 "{\"request\":%" PRIu64 ",\"key\":\"%016" PRIx64
		 "\",\"endpoint\":\"%s\",\"stream\":%s,\"prompt_tokens\":%" PRIu64 ",\"max_tokens\":%" PRIu32
		 ",\"tokens\":%" PRIu32,
		 a->number, a->key, a->shape.chat ? "chat" : "completion",
		 a->request.stream ? "true" : "false", a->request.prompt_tokens, a->request.max_tokens,
		 a->plan.tokens);
	buf_addf(b, ",\"fault\":\"%s\",\"value\":%.17g,\"at\":%" PRIu32, stub_fault_word(a->plan.fault),
		 a->plan.value, a->plan.at);
}

static void add_done(struct buf *b, const struct answer *a)
{
	buf_addf(b,
		 ",\"status\":%d,\"letter\":\"%s\",\"sent\":%" PRIu32 ",\"events\":%" PRIu32
		 ",\"lost\":%" PRIu32,
		 a->status, a->shape.letter, a->sent, a->events, a->lost_count);
	buf_addf(b, ",\"duplicated\":%s,\"fill_bytes\":%" PRIu64 ",\"finish\":%s,\"done\":%s",
		 a->duplicated ? "true" : "false", a->fill, a->finish_sent ? "true" : "false",
		 a->done_sent ? "true" : "false");
	if (a->usage_sent)
		buf_addf(b,
			 ",\"usage\":{\"prompt_tokens\":%" PRIu64 ",\"completion_tokens\":%" PRIu64
			 ",\"cached_tokens\":%" PRIu64 "}",
			 a->usage.prompt_tokens, a->usage.completion_tokens, a->usage.cached_tokens);
	else
		buf_adds(b, ",\"usage\":null");
}

void truth_add(struct truth *t, const struct answer *a, uint64_t end_ns)
{
	struct buf *b = &t->lines;

	if (t->fd < 0)
		return;
	add_request(b, a);
	add_done(b, a);
	add_time(b, "received_ns", a->received_ns);
	add_time(b, "first_due_ns", a->first_due_ns);
	add_time(b, "last_due_ns", a->last_due_ns);
	add_time(b, "header_ns", a->header_ns);
	add_time(b, "role_ns", a->role_ns);
	add_times(b, a);
	add_time(b, "end_ns", end_ns);
	buf_addf(b, ",\"end\":\"%s\"}\n", a->end);
	if (b->size > FLUSH_BYTES)
		truth_flush(t);
}

void truth_add_refused(struct truth *t, uint64_t connection, uint64_t now_ns)
{
	if (t->fd >= 0)
		buf_addf(&t->lines,
			 "{\"connection\":%" PRIu64 ",\"fault\":\"refuse\",\"received_ns\":%" PRIu64
			 ",\"end\":\"refused\"}\n",
			 connection, now_ns);
}
