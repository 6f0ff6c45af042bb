/* SPDX-License-Identifier: Apache-2.0 */
/* Collects readings into lines and writes them to the pipe, without waiting for the reader. */
#include <errno.h>
#include <math.h>
#include <unistd.h>
#include "telemetry/sample.h"

enum status batch_init(struct batch *b, int fd, unsigned sources, struct error *err)
{
	*b = (struct batch){.fd = fd, .sources = sources, .queue_max = BATCH_QUEUE_BYTES};
	b->name = calloc(sources ? sources : 1, sizeof(*b->name));
	b->list = calloc(sources ? sources : 1, sizeof(*b->list));
	if (b->name && b->list)
		return STATUS_OK;
	batch_release(b);
	return error_errno(err, ENOMEM, "cannot sample %u sources", sources);
}

void batch_release(struct batch *b)
{
	free(b->name);
	free(b->list);
	text_release(&b->queue);
	*b = (struct batch){.fd = -1};
}

/* Drops complete lines, oldest first, until `more` bytes fit. A partly sent line stays, because its rest must
 * follow. */
static void make_room(struct batch *b, size_t more)
{
	while (b->queue.size && b->queue.size + more > b->queue_max) {
		char *first = memchr(b->queue.data, '\n', b->queue.size);
		size_t from = b->sent ? (size_t)(first - b->queue.data) + 1 : 0;
		char *end = from < b->queue.size ? memchr(b->queue.data + from, '\n', b->queue.size - from)
						 : NULL;
		size_t to = end ? (size_t)(end - b->queue.data) + 1 : 0;

		if (!end)
			return; /* only the partly sent line is left */
		memmove(b->queue.data + from, b->queue.data + to, b->queue.size - to + 1);
		b->queue.size -= to - from;
		b->lost_lines++;
	}
}

static void add_line(struct batch *b, unsigned source, enum telemetry_signal_id id)
{
	const struct telemetry_signal *signal = telemetry_signal_at(id);
	struct batch_list *list = &b->list[source][id];
	struct text line = {0};
	unsigned i;

	if (!list->count)
		return;
	text_addf(&line, "{\"source\":\"%s\",\"signal\":\"%s\",\"kind\":\"%s\",\"at\":[", b->name[source],
		  signal->name, signal_kind_name(signal->kind));
	for (i = 0; i < list->count; i++)
		text_addf(&line, "%s%llu", i ? "," : "", (unsigned long long)list->t_ns[i]);
	text_add(&line, "],\"v\":[");
	for (i = 0; i < list->count; i++)
		text_addf(&line, "%s%.12g", i ? "," : "", list->value[i]);
	text_add(&line, "]}\n");
	list->count = 0;
	if (!line.failed) {
		make_room(b, line.size);
		text_add_bytes(&b->queue, line.data, line.size);
	}
	if (line.failed || b->queue.failed) { /* no memory: the line is lost, the queue stays valid */
		b->queue.failed = 0;
		b->lost_lines++;
	}
	text_release(&line);
}

void batch_add(struct batch *b, unsigned source, enum telemetry_signal_id id, uint64_t t_ns, double value)
{
	struct batch_list *list = &b->list[source][id];

	if (!isfinite(value))
		return;
	if (list->count == BATCH_READINGS)
		add_line(b, source, id);
	list->t_ns[list->count] = t_ns;
	list->value[list->count++] = value;
}

static void write_queue(struct batch *b)
{
	while (b->sent < b->queue.size) {
		ssize_t n = write(b->fd, b->queue.data + b->sent, b->queue.size - b->sent);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		if (n < 0) {
			b->closed = true;
			return;
		}
		b->sent += (size_t)n;
	}
	/* Removes sent lines. A partly sent line stays, because its rest must follow. */
	while (b->queue.size) {
		char *end = memchr(b->queue.data, '\n', b->queue.size);
		size_t size = end ? (size_t)(end - b->queue.data) + 1 : b->queue.size;

		if (size > b->sent)
			break;
		b->sent -= size;
		b->queue.size -= size;
		memmove(b->queue.data, b->queue.data + size, b->queue.size + 1);
	}
}

void batch_flush(struct batch *b)
{
	unsigned source;
	int id;

	for (source = 0; source < b->sources; source++)
		for (id = 0; id < TELEMETRY_SIGNAL_COUNT; id++)
			add_line(b, source, (enum telemetry_signal_id)id);
	write_queue(b);
}
