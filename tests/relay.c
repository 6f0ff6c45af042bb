/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bad way between two hosts: takes connections at a port and carries their bytes on, with a fault.
 * usage: relay PORT HOST PORT plain | delay MILLISECONDS | drop N | drip MILLISECONDS | keep FILE
 *   delay: each piece comes so much later, both ways    drop: the N-th byte of each connection is lost (from 0)
 *   drip: to the other host a byte at a time, so far apart    keep: all bytes, of both ways, are in FILE too
 * Runs until it is killed. Says "ready" when it listens.
 */
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum fault { PLAIN, DELAY, DROP, DRIP, KEEP };

static enum fault fault;
static long amount;
static const char *to_host, *to_port;
static FILE *kept;

struct way { /* one direction of a connection */
	int from, to;
	int outward; /* to the other host */
};

static int send_all(int fd, const char *at, size_t left)
{
	while (left) {
		ssize_t n = send(fd, at, left, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		left -= (size_t)n;
	}
	return 0;
}

static int drip(int fd, const char *at, size_t left)
{
	for (; left; at++, left--) {
		usleep((useconds_t)amount * 1000);
		if (send_all(fd, at, 1))
			return -1;
	}
	return 0;
}

/* Without the N-th byte, where it lies here. */
static int drop(int fd, const char *at, size_t size, long before)
{
	size_t skip = amount >= before && amount < before + (long)size ? (size_t)(amount - before) : size;

	if (send_all(fd, at, skip))
		return -1;
	return skip < size ? send_all(fd, at + skip + 1, size - skip - 1) : 0;
}

static void *carry(void *arg)
{
	struct way w = *(struct way *)arg;
	char piece[65536];
	long before = 0;
	ssize_t n;

	free(arg);
	while ((n = recv(w.from, piece, sizeof(piece), 0)) > 0) {
		int bad;

		if (fault == KEEP && (fwrite(piece, 1, (size_t)n, kept) != (size_t)n || fflush(kept)))
			break;
		if (fault == DELAY)
			usleep((useconds_t)amount * 1000);
		if (fault == DRIP && w.outward)
			bad = drip(w.to, piece, (size_t)n);
		else if (fault == DROP && w.outward)
			bad = drop(w.to, piece, (size_t)n, before);
		else
			bad = send_all(w.to, piece, (size_t)n);
		before += n;
		if (bad)
			break;
	}
	shutdown(w.to, SHUT_WR);
	shutdown(w.from, SHUT_RD);
	return NULL;
}

static int begin_way(int from, int to, int outward)
{
	struct way *w = malloc(sizeof(*w));
	pthread_t thread;

	if (!w)
		return -1;
	*w = (struct way){from, to, outward};
	if (pthread_create(&thread, NULL, carry, w)) {
		free(w);
		return -1;
	}
	return pthread_detach(thread);
}

/* Both descriptors stay open: this lives as long as its test. */
static void begin(int from)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found;
	int to = -1;

	if (!getaddrinfo(to_host, to_port, &hints, &found)) {
		to = socket(found->ai_family, SOCK_STREAM, 0);
		if (to >= 0 && connect(to, found->ai_addr, found->ai_addrlen)) {
			close(to);
			to = -1;
		}
		freeaddrinfo(found);
	}
	if (to < 0 || begin_way(from, to, 1) || begin_way(to, from, 0))
		close(from);
}

static int listen_at(const char *port)
{
	const struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	struct addrinfo *found;
	int fd, on = 1;

	if (getaddrinfo(NULL, port, &hints, &found))
		return -1;
	fd = socket(found->ai_family, SOCK_STREAM, 0);
	if (fd >= 0 && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) ||
			bind(fd, found->ai_addr, found->ai_addrlen) || listen(fd, 128))) {
		close(fd);
		fd = -1;
	}
	freeaddrinfo(found);
	return fd;
}

int main(int argc, char **argv)
{
	static const char *const names[] = {"plain", "delay", "drop", "drip", "keep"};
	int at, fd;

	for (int i = 0; argc > 4 && i < 5; i++)
		if (!strcmp(argv[4], names[i]))
			fault = (enum fault)i;
	if (argc < 5 || (fault && argc < 6)) {
		fprintf(stderr, "usage: relay PORT HOST PORT plain|delay N|drop N|drip N|keep FILE\n");
		return 64;
	}
	amount = argc > 5 ? strtol(argv[5], NULL, 10) : 0;
	kept = fault == KEEP ? fopen(argv[5], "w") : NULL;
	if (fault == KEEP && !kept) {
		perror(argv[5]);
		return 1;
	}
	to_host = argv[2];
	to_port = argv[3];
	at = listen_at(argv[1]);
	if (at < 0) {
		perror("relay");
		return 1;
	}
	puts("ready");
	fflush(stdout);
	while ((fd = accept(at, NULL, NULL)) >= 0 || errno == EINTR)
		if (fd >= 0)
			begin(fd);
	return 1;
}
