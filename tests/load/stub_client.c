/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cheap client for measurements and tests of the stub server: sends streaming requests at a constant rate,
 * each on an idle connection or a new one, and counts what comes. Prints one line of JSON. usage: stub_client
 * PORT RATE SECONDS TOKENS [ARRIVALS] ARRIVALS: a JSON line for each complete answer goes to this file, with
 * the arrival of each token
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>
#include "load/buf.h"

static const char mark[] = "\"delta\":{\"content\":\"";

enum { TAIL = sizeof(mark) - 2, PIECE = 1 << 18, EVENTS = 512, QUIET_S = 30 };

struct stream {
	int fd;
	size_t tail; /* bytes kept of what came last */
	char kept[TAIL];
	char id[24]; /* "" until it came */
	struct buf arrivals;
	struct stream *next_idle, *next; /* next: of all */
};

struct client {
	int epoll_fd, timer_fd, port;
	FILE *arrivals;
	char *piece; /* TAIL + PIECE bytes */
	struct buf request;
	uint64_t begun_ns, gap_ns, sent, planned, complete, failed, chunks, open, open_most, lag_ns_most;
	struct stream *idle, *all;
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "stub_client: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct stream *dial(struct client *c)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)c->port),
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct stream *s = must_alloc(sizeof(*s));
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
	int on = 1;

	s->fd = socket(AF_INET, SOCK_STREAM, 0);
	if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof(to)))
		die("connect");
	setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, s->fd, &e))
		die("epoll");
	s->next = c->all;
	c->all = s;
	return s;
}

static void send_one(struct client *c)
{
	struct stream *s = c->idle;

	if (s)
		c->idle = s->next_idle;
	else
		s = dial(c);
	s->tail = 0;
	s->id[0] = '\0';
	s->arrivals.size = 0;
	if (send(s->fd, c->request.data, c->request.size, MSG_NOSIGNAL) != (ssize_t)c->request.size)
		die("send");
	c->sent++;
	if (++c->open > c->open_most)
		c->open_most = c->open;
}

static void send_due(struct client *c)
{
	uint64_t at = now_ns();

	while (c->sent < c->planned && c->begun_ns + c->sent * c->gap_ns <= at) {
		uint64_t lag = at - c->begun_ns - c->sent * c->gap_ns;

		if (lag > c->lag_ns_most)
			c->lag_ns_most = lag;
		send_one(c);
	}
}

static void write_arrivals(struct client *c, const struct stream *s)
{
	const uint64_t *at = (const uint64_t *)(const void *)s->arrivals.data;

	fprintf(c->arrivals, "{\"request\":%s,\"token_ns\":[", s->id);
	for (size_t i = 0; i < s->arrivals.size / sizeof(*at); i++)
		fprintf(c->arrivals, "%s%" PRIu64, i ? "," : "", at[i]);
	fputs("]}\n", c->arrivals);
}

static void note_id(struct stream *s, const char *bytes, size_t size)
{
	const char *id = memmem(bytes, size, "\"chatcmpl-", 10), *end;

	if (!id)
		return;
	id += 10;
	end = memchr(id, '"', size - (size_t)(id - bytes));
	if (end)
		snprintf(s->id, sizeof(s->id), "%.*s", (int)(end - id), id);
}

/* The bytes are what was kept of those before, and the new ones. */
static void count(struct client *c, struct stream *s, const char *bytes, size_t size, uint64_t at_ns)
{
	const char *at = bytes, *end = bytes + size;

	if (c->arrivals && !s->id[0])
		note_id(s, bytes, size);
	while ((at = memmem(at, (size_t)(end - at), mark, sizeof(mark) - 1))) {
		at += sizeof(mark) - 1;
		c->chunks++;
		if (c->arrivals)
			buf_add(&s->arrivals, &at_ns, sizeof(at_ns));
	}
	s->tail = size < TAIL ? size : TAIL;
	memcpy(s->kept, end - s->tail, s->tail);
}

static void end_stream(struct client *c, struct stream *s, int complete)
{
	c->open--;
	if (!complete) {
		c->failed++;
		close(s->fd); /* and it is not idle: nothing uses it again */
		s->fd = -1;
		return;
	}
	c->complete++;
	if (c->arrivals)
		write_arrivals(c, s);
	s->next_idle = c->idle;
	c->idle = s;
}

static void receive(struct client *c, struct stream *s)
{
	ssize_t n = recv(s->fd, c->piece + TAIL, PIECE, 0);
	uint64_t at_ns = now_ns();
	char *begin = c->piece + TAIL - s->tail;
	size_t size;

	if (n <= 0) {
		end_stream(c, s, 0);
		return;
	}
	memcpy(begin, s->kept, s->tail);
	size = s->tail + (size_t)n;
	count(c, s, begin, size, at_ns);
	if (size >= 5 && !memcmp(begin + size - 5, "0\r\n\r\n", 5))
		end_stream(c, s, 1);
}

static void make_request(struct client *c, const char *tokens)
{
	struct buf body = {0};

	buf_addf(
		&body,
		"{\"model\":\"stub\",\"messages\":[{\"role\":\"user\",\"content\":\"one two three four five six seven eight\"}],"
		"\"max_tokens\":%s,\"stream\":true,\"stream_options\":{\"include_usage\":true}}",
		tokens);
	buf_addf(&c->request,
		 "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 body.size);
	buf_add(&c->request, body.data, body.size);
	buf_release(&body);
}

static void run(struct client *c)
{
	struct itimerspec tick = {.it_interval.tv_nsec =
					  (long)(c->gap_ns < 999999999 ? c->gap_ns : 999999999),
				  .it_value.tv_nsec = 1};
	struct epoll_event events[EVENTS], e = {.events = EPOLLIN};
	uint64_t ticks;

	c->epoll_fd = epoll_create1(0);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
	if (epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, c->timer_fd, &e) ||
	    timerfd_settime(c->timer_fd, 0, &tick, NULL))
		die("timer");
	c->begun_ns = now_ns();
	while (c->complete + c->failed < c->planned) {
		int n = epoll_wait(c->epoll_fd, events, EVENTS, QUIET_S * 1000);

		for (int i = 0; i < n; i++)
			if (events[i].data.ptr)
				receive(c, events[i].data.ptr);
			else if (read(c->timer_fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
				die("timer");
		send_due(c);
		if (now_ns() > c->begun_ns + c->planned * c->gap_ns + (uint64_t)QUIET_S * 1000000000)
			break;
	}
}

static void release(struct client *c)
{
	while (c->all) {
		struct stream *s = c->all;

		c->all = s->next;
		if (s->fd >= 0)
			close(s->fd);
		buf_release(&s->arrivals);
		free(s);
	}
	close(c->timer_fd);
	close(c->epoll_fd);
	buf_release(&c->request);
	free(c->piece);
}

static void report(const struct client *c)
{
	struct rusage used;
	double wall = (double)(now_ns() - c->begun_ns) * 1e-9;

	getrusage(RUSAGE_SELF, &used);
	printf("{\"requests\":%" PRIu64 ",\"complete\":%" PRIu64 ",\"failed\":%" PRIu64 ",\"chunks\":%" PRIu64
	       ",\"open_most\":%" PRIu64 ",\"lag_us_most\":%" PRIu64,
	       c->sent, c->complete, c->failed, c->chunks, c->open_most, c->lag_ns_most / 1000);
	printf(",\"wall_s\":%.3f,\"chunks_per_s\":%.0f,\"cpu_s\":%.3f}\n", wall, (double)c->chunks / wall,
	       (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
		       (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6);
}

int main(int argc, char **argv)
{
	struct client c = {0};
	struct rlimit files;
	double rate;

	if (argc < 5 || (rate = strtod(argv[2], NULL)) <= 0) {
		fprintf(stderr, "usage: stub_client PORT RATE SECONDS TOKENS [ARRIVALS]\n");
		return 64;
	}
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	c.port = (int)strtol(argv[1], NULL, 10);
	c.gap_ns = (uint64_t)(1e9 / rate);
	c.planned = (uint64_t)(rate * strtod(argv[3], NULL));
	c.piece = must_alloc(TAIL + PIECE);
	make_request(&c, argv[4]);
	if (argc > 5 && !(c.arrivals = fopen(argv[5], "w")))
		die(argv[5]);
	run(&c);
	if (c.arrivals && fclose(c.arrivals))
		die(argv[5]);
	report(&c);
	release(&c);
	return c.complete != c.planned;
}
