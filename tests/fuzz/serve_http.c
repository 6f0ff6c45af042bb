/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes on a connection of the front end, without an engine: it answers with HTTP or closes, and goes on. */
#include "fuzz.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "serve/link/supervisor.h"
#include "serve/serve.h"

static uint16_t port;

static void *run(void *arg)
{
	struct error err = {0};

	front_end_run(arg, &err);
	return NULL;
}

static void start(void)
{
	static const char *const models[] = {"base", NULL};
	struct serve_options o = {.model = SOURCE_DIR "/tests/data/tokenizer/qwen.json", .chat_template = "qwen2.5",
				  .models = models, .cors_origin = "*", .limits = {.body_bytes = 65536}};
	struct supervisor_message m = {0};
	struct front_end *front;
	struct error err = {0};
	bool got = false;
	pthread_t thread;
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair))
		abort();
	o.control = pair[0];
	if (front_end_create(&front, &o, &err))
		fuzz_skip_without("tokenizers", &err);
	FUZZ_CHECK(!pthread_create(&thread, NULL, run, front));
	for (struct pollfd p = {.fd = pair[1], .events = POLLIN}; !got;) {
		poll(&p, 1, 1000);
		FUZZ_CHECK(!supervisor_receive(pair[1], &m, &got, &err));
	}
	port = (uint16_t)m.port;
}

/* Sends all, closes the sending half, and reads to the end. */
static size_t talk(const uint8_t *data, size_t size, char *answer, size_t room)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct timeval limit = {.tv_sec = 20};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	size_t count = 0;
	ssize_t got;

	FUZZ_CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	got = send(fd, data, size, MSG_NOSIGNAL);
	shutdown(fd, SHUT_WR);
	while ((got = recv(fd, answer + count, room - count, 0)) > 0 && count + (size_t)got < room)
		count += (size_t)got;
	FUZZ_CHECK(got >= 0 || errno == ECONNRESET); /* not the time limit */
	close(fd);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char health[] = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
	static char answer[1 << 20];
	static int calls;
	size_t count;

	if (!port)
		start();
	if (size > 100000)
		return 0;
	count = talk(data, size, answer, sizeof(answer));
	FUZZ_CHECK(count < 9 || !memcmp(answer, "HTTP/1.", 7) || !memcmp(answer, "HTTP/1.1 ", 9));
	if (calls++ % 64)
		return 0;
	count = talk((const uint8_t *)health, sizeof(health) - 1, answer, sizeof(answer));
	/* one that closes its sending half may be taken for one that left */
	FUZZ_CHECK(!count || !memcmp(answer, "HTTP/1.1 200", 12));
	return 0;
}
