/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many streams at once, for tests and measurements of the front end: opens COUNT connections, sends the same request on
 * each, reads to the end. Prints one line: streams that ended with [DONE], chunks, seconds, chunks per second, and
 * two percentiles (50, 99) of the time between chunks of a stream.
 * usage: streams PORT COUNT BODY [idle | silent | header | partial | unread | chaos]
 *   idle: connects and waits for the end of stdin instead of sending anything
 *   silent: sends nothing, and waits until the server closes the connections
 *   header: sends half of each request's header, and waits until the server closes the connections
 *   partial: sends half of each request, and waits until the server closes the connections
 *   unread: sends the requests, reads nothing, and waits until the server closes the connections
 *   chaos: COUNT requests, 64 at a time; every third client leaves at a random moment, and one that is refused
 *   is followed by the next after half a second. Prints how they ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { GAPS_MOST = 4 << 20, PIECE = 65536 };

struct stream {
	int fd;
	double last_s;
	size_t tail_size;
	char tail[16];
	int done;
};

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* `small`: with a small buffer, so that the server notices soon that nobody reads. */
static int dial(int port, int small)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0), room = 4096;

	if (small)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to))) {
		fprintf(stderr, "streams: %s\n", strerror(errno));
		exit(1);
	}
	return fd;
}

/* Sends `part` bytes of the body after the header. -1: half of the header only. */
static void say(int fd, const char *body, ssize_t part)
{
	char head[256];
	int size = snprintf(head, sizeof(head),
			    "POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
			    "Connection: close\r\nContent-Length: %zu\r\n\r\n",
			    strlen(body));

	if (part < 0)
		size /= 2;
	/* reading shows whether the server closed the connection */
	if (send(fd, head, (size_t)size, MSG_NOSIGNAL) == size && part > 0 &&
	    send(fd, body, (size_t)part, MSG_NOSIGNAL) != part)
		fprintf(stderr, "streams: %s\n", strerror(errno));
}

struct endings {
	int done, refused, failed, left, other;
};

/* How a stream ended, from all that came. */
static void classify(struct endings *e, const char *all, int left)
{
	if (left)
		e->left++;
	else if (strstr(all, "data: [DONE]"))
		e->done++;
	else if (strstr(all, "data: {\"error\""))
		e->failed++;
	else if (!strncmp(all, "HTTP/1.1 4", 10) || !strncmp(all, "HTTP/1.1 5", 10))
		e->refused++;
	else
		e->other++;
}

struct one {
	int fd;
	double leaves_s; /* 0: stays */
	double after_s;	 /* no request before this time */
	size_t size;
	char *all;
};

static void one_end(struct one *o, struct endings *e, int left)
{
	const int refused = e->refused;

	o->all[o->size] = '\0';
	classify(e, o->all, left);
	o->after_s = e->refused > refused ? now_s() + 0.5 : 0;
	close(o->fd);
	o->fd = -1;
}

/* Reads what is there; the end of a long stream is what counts. */
static void one_read(struct one *o, struct endings *e)
{
	ssize_t got;

	if (o->size > PIECE / 2) { /* keeps the status line */
		memmove(o->all + 32, o->all + o->size - 256, 256);
		o->size = 288;
	}
	got = recv(o->fd, o->all + o->size, PIECE - o->size - 1, MSG_DONTWAIT);
	if (got > 0)
		o->size += (size_t)got;
	else if (!got || (errno != EAGAIN && errno != EWOULDBLOCK))
		one_end(o, e, 0);
}

static int chaos(int port, int count, const char *body)
{
	enum { AT_ONCE = 64 };
	static struct one ones[AT_ONCE];
	struct endings e = {0};
	int begun = 0, running = 0;

	srandom(1);
	for (int i = 0; i < AT_ONCE; i++)
		ones[i] = (struct one){.fd = -1, .all = malloc(PIECE)};
	while (begun < count || running) {
		struct timespec pause = {.tv_nsec = 500000};

		running = 0;
		for (int i = 0; i < AT_ONCE; i++) {
			struct one *o = &ones[i];

			if (o->fd < 0 && begun < count && now_s() >= o->after_s) {
				o->fd = dial(port, 0);
				o->size = 0;
				o->leaves_s = begun++ % 3 ? 0 : now_s() + (double)(random() % 200) * 1e-3;
				say(o->fd, body, (ssize_t)strlen(body));
			}
			if (o->fd >= 0)
				one_read(o, &e);
			if (o->fd >= 0 && o->leaves_s > 0 && now_s() > o->leaves_s)
				one_end(o, &e, 1);
			running += o->fd >= 0;
		}
		nanosleep(&pause, NULL);
	}
	for (int i = 0; i < AT_ONCE; i++)
		free(ones[i].all);
	printf("%d done, %d refused, %d failed, %d left, %d other\n", e.done, e.refused, e.failed, e.left, e.other);
	return e.other > 0;
}

/* Waits until the server has closed all connections. */
static int closed(int epoll, int count, double begin)
{
	int done = 0;

	while (done < count) {
		struct epoll_event events[256];
		int got = epoll_wait(epoll, events, 256, 20000);

		if (got <= 0)
			return 1;
		for (int i = 0; i < got; i++)
			if (events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
				epoll_ctl(epoll, EPOLL_CTL_DEL, (int)(events[i].data.u64 >> 32), NULL);
				done++;
			}
	}
	printf("%d closed after %.3f s\n", done, now_s() - begin);
	return 0;
}

/* Chunks in new bytes. A word that two reads share is found, because the end of the last read is kept. */
static long chunks(struct stream *s, const char *bytes, size_t size)
{
	char both[PIECE + 16];
	const char *at = both, *end;
	size_t keep;
	long count = 0;

	memcpy(both, s->tail, s->tail_size);
	memcpy(both + s->tail_size, bytes, size);
	end = both + s->tail_size + size;
	for (; (at = memmem(at, (size_t)(end - at), "data: {", 7)); at += 7)
		count++;
	if (memmem(both, (size_t)(end - both), "data: [DONE]", 12))
		s->done = 1;
	keep = (size_t)(end - both) < 6 ? (size_t)(end - both) : 6;
	memcpy(s->tail, end - keep, keep);
	s->tail_size = keep;
	return count;
}

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

static void allow_files(void)
{
	struct rlimit limit;

	getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* The program does not free these at its end. */
static struct stream *all;
static float *gaps;
static char *bytes;

int main(int argc, char **argv)
{
	int count = argc > 3 ? (int)strtol(argv[2], NULL, 10) : 0, port, epoll = epoll_create1(0), open_now, done = 0;
	size_t gap_count = 0;
	char line[16];
	long total = 0;
	double begin = now_s();
	const char *mode = argc > 4 ? argv[4] : "";
	int reads = !*mode;

	gaps = malloc(GAPS_MOST * sizeof(*gaps));
	bytes = malloc(PIECE);
	all = calloc((size_t)count + 1, sizeof(*all));
	if (!count || !all || !gaps || !bytes)
		return 64;
	port = (int)strtol(argv[1], NULL, 10);
	allow_files();
	if (!strcmp(mode, "chaos"))
		return chaos(port, count, argv[3]);
	for (int i = 0; i < count; i++) {
		struct epoll_event e = {.events = reads ? EPOLLIN : EPOLLRDHUP};

		all[i].fd = dial(port, !strcmp(mode, "unread"));
		e.data.u64 = reads ? (uint64_t)i : (uint64_t)all[i].fd << 32;
		epoll_ctl(epoll, EPOLL_CTL_ADD, all[i].fd, &e);
	}
	if (!strcmp(mode, "idle")) {
		printf("%d open\n", count);
		fflush(stdout);
		while (fgets(line, sizeof(line), stdin))
			;
		return 0;
	}
	begin = now_s();
	for (int i = 0; i < count && strcmp(mode, "silent"); i++)
		say(all[i].fd, argv[3],
		    !strcmp(mode, "header") ? -1 : (ssize_t)strlen(argv[3]) / (strcmp(mode, "partial") ? 1 : 2));
	if (!reads)
		return closed(epoll, count, begin);
	for (open_now = count; open_now;) {
		struct epoll_event events[256];
		int got = epoll_wait(epoll, events, 256, 30000);

		if (got <= 0)
			break;
		for (int i = 0; i < got; i++) {
			struct stream *t = &all[events[i].data.u64];
			ssize_t size = read(t->fd, bytes, PIECE);
			long more = size > 0 ? chunks(t, bytes, (size_t)size) : 0;
			double now = now_s();

			if (size <= 0) {
				close(t->fd);
				open_now--;
				continue;
			}
			if (more && t->last_s > 0 && gap_count < GAPS_MOST)
				gaps[gap_count++] = (float)(now - t->last_s);
			if (more)
				t->last_s = now;
			total += more;
		}
	}
	for (int i = 0; i < count; i++)
		done += all[i].done;
	begin = now_s() - begin;
	qsort(gaps, gap_count, sizeof(*gaps), by_size);
	printf("%d done, %ld chunks, %.3f s, %.0f chunks/s, gaps %.3f %.3f ms\n", done, total, begin, (double)total / begin,
	       gap_count ? (double)gaps[gap_count / 2] * 1e3 : 0, gap_count ? (double)gaps[gap_count * 99 / 100] * 1e3 : 0);
	return 0;
}
