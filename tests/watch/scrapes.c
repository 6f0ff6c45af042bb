/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the exporter, for tests and measurements.
 * usage: scrapes PORT COUNT RATE SECONDS   scrapes at RATE a second over COUNT connections, whatever the answers take. Prints
 *                                          scrapes, failures, scrapes a second, and two percentiles of the time to the last byte
 *        scrapes PORT COUNT idle           opens COUNT connections, says so, and holds them until the end of stdin
 *        scrapes PORT COUNT unread         the same with a request on each, whose answer is not read
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char request[] = "GET /metrics HTTP/1.1\r\nHost: a\r\nAccept-Encoding: gzip\r\n\r\n";
/* Without compression, so that an answer does not fit into the buffers of the sockets. */
static const char whole[] = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";

struct client {
	int fd;
	bool asked;
	double due_s; /* when the scrape under way was due */
	char head[2048];
	size_t head_size;
	long left; /* bytes of the answer; -1: the head is not complete */
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* -1: refused. */
static int dial(int port, bool small)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), room = 2048;

	if (small)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (fd < 0 || !connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return fd;
	close(fd);
	return -1;
}

/* Takes what has arrived. 1: the answer is complete, 0: not yet, -1: the server closed or said something else. */
static int take(struct client *c)
{
	char block[65536], *end, *length;
	ssize_t n = recv(c->fd, block, sizeof(block), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0)
		return -1;
	if (c->left < 0) {
		size_t part = (size_t)n < sizeof(c->head) - 1 - c->head_size ? (size_t)n : sizeof(c->head) - 1 - c->head_size;

		memcpy(c->head + c->head_size, block, part);
		c->head_size += part;
		c->head[c->head_size] = '\0';
		end = memmem(c->head, c->head_size, "\r\n\r\n", 4);
		length = strstr(c->head, "Content-Length: ");
		if (!end)
			return c->head_size == sizeof(c->head) - 1 ? -1 : 0;
		if (strncmp(c->head, "HTTP/1.1 200", 12) || !length)
			return -1;
		c->left = strtol(length + 16, NULL, 10) - ((long)c->head_size - (end + 4 - c->head)) - (n - (long)part);
	} else {
		c->left -= n;
	}
	return c->left <= 0;
}

static bool ask(struct client *c, double due_s)
{
	*c = (struct client){.fd = c->fd, .asked = true, .due_s = due_s, .left = -1};
	return send(c->fd, request, sizeof(request) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(request) - 1;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct sums {
	double *took_s;
	size_t done, failed, room;
};

static void end_scrape(struct client *c, int port, struct sums *s, bool ok)
{
	if (ok)
		s->took_s[s->done++] = now_s() - c->due_s;
	else
		s->failed++;
	c->asked = false;
	if (!ok) {
		close(c->fd);
		c->fd = dial(port, false);
	}
}

static int scrape(int port, size_t count, double rate, double seconds)
{
	struct client *c = calloc(count, sizeof(*c));
	struct pollfd *p = calloc(count, sizeof(*p));
	struct sums s = {.room = (size_t)(rate * seconds) + 1};
	double began = now_s();
	size_t sent = 0, busy = 0, next = 0;

	s.took_s = calloc(s.room, sizeof(*s.took_s));
	if (!c || !p || !s.took_s)
		return 1;
	for (size_t i = 0; i < count; i++)
		c[i].fd = dial(port, false);
	while ((sent < s.room - 1 || busy) && now_s() < began + 2 * seconds + 10) {
		double due = began + (double)sent / rate;

		for (; sent < s.room - 1 && busy < count && now_s() >= due; due = began + (double)++sent / rate, busy++) {
			while (c[next].asked)
				next = (next + 1) % count;
			if (!ask(&c[next], due)) {
				end_scrape(&c[next], port, &s, false);
				busy--;
			}
			next = (next + 1) % count;
		}
		for (size_t i = 0; i < count; i++)
			p[i] = (struct pollfd){.fd = c[i].asked ? c[i].fd : -1, .events = POLLIN};
		poll(p, count, 1);
		for (size_t i = 0; i < count; i++) {
			int got = p[i].revents ? take(&c[i]) : 0;

			if (got) {
				end_scrape(&c[i], port, &s, got > 0);
				busy--;
			}
		}
	}
	seconds = now_s() - began;
	qsort(s.took_s, s.done, sizeof(*s.took_s), by_value);
	printf("%zu scrapes, %zu failed, %.0f per second, p50 %.2f ms, p99 %.2f ms\n", s.done, s.failed, (double)s.done / seconds,
	       s.done ? 1e3 * s.took_s[s.done / 2] : 0, s.done ? 1e3 * s.took_s[s.done * 99 / 100] : 0);
	return s.failed || busy ? 1 : 0;
}

/* Opens the connections, asks on each if `ask`, reads nothing, and holds them until the end of stdin. */
static int hold(int port, size_t count, bool asks)
{
	size_t open = 0;

	for (size_t i = 0; i < count; i++) {
		int fd = dial(port, asks);

		open += fd >= 0 && (!asks || send(fd, whole, sizeof(whole) - 1, MSG_NOSIGNAL) > 0);
	}
	printf("%zu open\n", open);
	fflush(stdout);
	while (getchar() != EOF)
		;
	return open < count;
}

int main(int argc, char **argv)
{
	struct rlimit files;
	int port = argc > 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;

	if (!getrlimit(RLIMIT_NOFILE, &files)) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
	if (port && count && argc == 5)
		return scrape(port, count, strtod(argv[3], NULL), strtod(argv[4], NULL));
	if (port && count && argc == 4 && !strcmp(argv[3], "unread"))
		return hold(port, count, true);
	if (port && count && argc == 4 && !strcmp(argv[3], "idle"))
		return hold(port, count, false);
	fprintf(stderr, "usage: scrapes PORT COUNT RATE SECONDS | scrapes PORT COUNT unread | scrapes PORT COUNT idle\n");
	return 64;
}
