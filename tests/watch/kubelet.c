/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubelet that tells the pods of GPUs on a Unix socket. usage: kubelet SOCKET KIND
 * It speaks as much of HTTP/2 and gRPC as one question needs: it reads frames until the question ends, and sends
 * its answer as one DATA frame between two HEADERS frames, whose fields are literals.
 * KIND: pods: four devices in two pods, one of them shared. refused: gRPC status 7. garbage, short, compressed:
 * the message is none. http: status 404. close: no answer. hang: never one. It ends at TERM.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { FRAME = 9, PREFACE = 24, DATA = 0, HEADERS = 1, SETTINGS = 4, END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

struct bytes {
	uint8_t byte[4096];
	size_t size;
};

static void put(struct bytes *b, const void *data, size_t size)
{
	if (b->size + size > sizeof(b->byte))
		exit(2);
	memcpy(b->byte + b->size, data, size);
	b->size += size;
}

static void put_byte(struct bytes *b, unsigned value)
{
	put(b, &(uint8_t){(uint8_t)value}, 1);
}

/* A field of protobuf: text or a message, shorter than 16384 bytes. */
static void field(struct bytes *b, unsigned number, const void *data, size_t size)
{
	put_byte(b, number << 3 | 2);
	put_byte(b, (unsigned)(size & 127) | (size > 127 ? 128u : 0));
	if (size > 127)
		put_byte(b, (unsigned)(size >> 7));
	put(b, data, size);
}

static void pod(struct bytes *all, const char *name, const char *space, const char *container, const char *const ids[])
{
	struct bytes devices = {0}, inner = {0}, outer = {0};

	field(&devices, 1, "nvidia.com/gpu", 14);
	for (size_t i = 0; ids[i]; i++)
		field(&devices, 2, ids[i], strlen(ids[i]));
	field(&inner, 1, container, strlen(container));
	field(&inner, 2, devices.byte, devices.size);
	field(&outer, 1, name, strlen(name));
	field(&outer, 2, space, strlen(space));
	field(&outer, 3, inner.byte, inner.size);
	field(all, 1, outer.byte, outer.size);
}

#define UUID "GPU-00000000-0000-4000-8000-00000000000"

static void pods(struct bytes *all)
{
	static const char *const train[] = {UUID "1", UUID "2::0", NULL}, *const serve[] = {UUID "2::1", "nvidia3", NULL},
				 *const other[] = {"mlx5_0", NULL};

	pod(all, "train-0", "research", "trainer", train);
	pod(all, "serve-\"0\"", "prod", "server", serve);
	pod(all, "net", "kube-system", "plugin", other);
}

static void frame(int to, unsigned type, unsigned flags, const struct bytes *b)
{
	const size_t size = b ? b->size : 0;
	const uint8_t head[FRAME] = {(uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size, (uint8_t)type,
				     (uint8_t)flags, 0, 0, 0, type == SETTINGS ? 0 : 1};

	if (write(to, head, FRAME) != FRAME || (b && write(to, b->byte, size) != (ssize_t)size))
		perror("kubelet");
}

static void header(struct bytes *b, const char *name, const char *value)
{
	put_byte(b, 0); /* a literal that is not indexed */
	put_byte(b, (unsigned)strlen(name));
	put(b, name, strlen(name));
	put_byte(b, (unsigned)strlen(value));
	put(b, value, strlen(value));
}

static int take(int from, uint8_t *to, size_t size)
{
	for (size_t done = 0; done < size;) {
		const ssize_t got = read(from, to + done, size - done);

		if (got <= 0)
			return 0;
		done += (size_t)got;
	}
	return 1;
}

/* Reads the question. 0: the client is gone. */
static int question(int client)
{
	uint8_t head[FRAME], rest[16384];

	if (!take(client, rest, PREFACE) || memcmp(rest, "PRI * HTTP/2.0", 14) != 0)
		return 0;
	frame(client, SETTINGS, 0, NULL);
	for (;;) {
		size_t size;

		if (!take(client, head, FRAME))
			return 0;
		size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
		if (size > sizeof(rest) || !take(client, rest, size))
			return 0;
		if (head[3] == SETTINGS && !(head[4] & ACK))
			frame(client, SETTINGS, ACK, NULL);
		if (head[3] == DATA && head[4] & END_STREAM)
			return 1;
	}
}

static void answer(int client, const char *kind)
{
	struct bytes first = {0}, last = {0}, message = {0}, body = {0};

	if (!strcmp(kind, "garbage"))
		put(&message, "\x0a\x7f not so long", 14);
	else if (strcmp(kind, "refused") != 0)
		pods(&message);
	put_byte(&first, !strcmp(kind, "http") ? 0x8d : 0x88); /* 404, 200 */
	header(&first, "content-type", "application/grpc");
	put_byte(&body, !strcmp(kind, "compressed"));
	put_byte(&body, 0);
	put_byte(&body, 0);
	put_byte(&body, (unsigned)(message.size >> 8));
	put_byte(&body, (unsigned)(message.size & 255) + !strcmp(kind, "short"));
	put(&body, message.byte, message.size);
	header(&last, "grpc-status", !strcmp(kind, "refused") ? "7" : "0");
	if (!strcmp(kind, "refused"))
		header(&last, "grpc-message", "planted refusal");
	frame(client, HEADERS, END_HEADERS, &first);
	if (strcmp(kind, "refused") != 0)
		frame(client, DATA, 0, &body);
	frame(client, HEADERS, END_HEADERS | END_STREAM, &last);
}

int main(int argc, char **argv)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), client;
	uint8_t rest[256];

	if (argc != 3 || strlen(argv[1]) >= sizeof(address.sun_path))
		return 64;
	signal(SIGPIPE, SIG_IGN);
	memcpy(address.sun_path, argv[1], strlen(argv[1]));
	unlink(argv[1]);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 8)) {
		perror(argv[1]);
		return 2;
	}
	while ((client = accept(listener, NULL, NULL)) >= 0) {
		if (question(client) && strcmp(argv[2], "close") != 0) {
			if (strcmp(argv[2], "hang") != 0)
				answer(client, argv[2]);
			while (read(client, rest, sizeof(rest)) > 0)
				continue;
		}
		close(client);
	}
	return 0;
}
