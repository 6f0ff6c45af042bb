/* SPDX-License-Identifier: Apache-2.0 */
/* A team over the loopback interface: a thread a rank, each with its own part to play. */
#ifndef TESTS_TEAM_BED_H
#define TESTS_TEAM_BED_H
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/text/text.h"
#include "team/control/control.h"
#include "team_env.h"

enum { ACTORS = 6, LONG_MS = 60000, SHORT_MS = 400, QUIET_MS = 1200 };
static const char *const secret_rows[] = {"ASSAY_TEAM_SECRET=0123456789abcdef", NULL};

struct actor {
	pthread_t thread;
	struct control_options o;
	enum status (*play)(struct actor *a);
	struct control *control;
	struct error err;
	enum status st;
	enum ending worst;
	unsigned who, generation;
	struct error agreed;
	bool fell;
	const struct team_shape *shape;
};

struct stage {
	struct actor actor[ACTORS];
	unsigned count;
	uint16_t port;
};

/* For clocks of a test's own: who comes before rank 0 listens sleeps a little. */
static inline void doze(void *arg, uint64_t ns)
{
	(void)arg;
	clock_sleep_ns(clock_monotonic(), ns);
}

/* This process's own: a team of another test that runs beside it, of one secret and at a neighbouring port, is not taken for ours. */
static inline const char *bed_job(char out[64])
{
	snprintf(out, 64, "job-%d", (int)getpid());
	return out;
}

/* A port with nobody on it and its seven neighbours, likely. */
static inline uint16_t free_port(void)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0 && !bind(fd, (struct sockaddr *)&a, size) &&
		    !getsockname(fd, (struct sockaddr *)&a, &size));
	close(fd);
	return ntohs(a.sin_port) < 65000 ? ntohs(a.sin_port) : (uint16_t)(ntohs(a.sin_port) - 5000);
}

static inline void stage_set(struct stage *s, unsigned count, enum status (*play)(struct actor *a))
{
	*s = (struct stage){.count = count, .port = free_port()};
	for (unsigned r = 0; r < count; r++)
		s->actor[r] = (struct actor){.play = play,
					     .o = {.place = {.launcher = TEAM_TOLD,
							     .rank = r,
							     .size = count,
							     .host = "127.0.0.1",
							     .port = s->port,
							     .node = "node-a"},
						   .env = team_env(secret_rows),
						   .build = "0123456789abcdef",
						   .join_ms = LONG_MS,
						   .quiet_ms = LONG_MS,
						   .clock = clock_monotonic()}};
	for (unsigned r = 0; r < count; r++)
		bed_job(s->actor[r].o.place.job);
}

static inline void *act(void *arg)
{
	struct actor *a = arg;

	a->st = control_join(&a->control, &a->o, &a->err);
	a->shape = control_shape(a->control);
	if (!a->st && a->play)
		a->st = a->play(a);
	return NULL;
}

static inline void stage_play(struct stage *s)
{
	for (unsigned r = 0; r < s->count; r++)
		assert_int_equal(pthread_create(&s->actor[r].thread, NULL, act, &s->actor[r]), 0);
	for (unsigned r = 0; r < s->count; r++)
		pthread_join(s->actor[r].thread, NULL);
}

static inline void stage_clear(struct stage *s)
{
	for (unsigned r = 0; r < s->count; r++)
		control_leave(&s->actor[r].control);
}

static inline bool failed_so(const struct actor *a, enum cause cause, const char *one, const char *other)
{
	return a->st && a->err.cause == cause && strstr(a->err.text, one) && strstr(a->err.text, other);
}

static inline void all_fail(const struct stage *s, enum cause cause, const char *one, const char *other)
{
	unsigned others = 0;

	for (unsigned r = 0; r < s->count; r++) {
		const struct actor *a = &s->actor[r];

		if (failed_so(a, cause, one, other))
			continue;
		print_error("rank %u: %s, %s: %s\n", r, status_name(a->st), cause_name(a->err.cause), a->err.text);
		others++;
	}
	assert_int_equal(others, 0);
}

/* A short limit, which must pass for one rank and for no other, is too short on a machine that has other
 * work: it is tried again with a longer one, up to a minute, until all say what they should. */
static inline bool again_longer(const struct stage *s, unsigned *limit_ms, enum cause cause, const char *one,
				const char *other)
{
	bool all = true;

	for (unsigned r = 0; r < s->count; r++)
		all &= failed_so(&s->actor[r], cause, one, other);
	*limit_ms *= 4;
	return !all && *limit_ms <= LONG_MS;
}

static inline void all_well(const struct stage *s)
{
	for (unsigned r = 0; r < s->count; r++)
		if (s->actor[r].st)
			fail_msg("rank %u: %s", r, s->actor[r].err.text);
}

/* Attends for a while, or until the team is over. */
static inline enum status attend(struct actor *a, unsigned for_ms)
{
	const struct clock *k = clock_monotonic();
	uint64_t end = clock_now_ns(k) + for_ms * 1000000ull;
	enum status st = STATUS_OK;
	struct pollfd set[ACTORS];

	while (!st && !a->fell && clock_now_ns(k) < end) {
		poll(set, control_fds(a->control, set, ACTORS), 10);
		st = control_attend(a->control, &a->fell, &a->err);
	}
	return st;
}

/* Every step of a run once. */
static inline enum status whole_run(struct actor *a)
{
	const struct error mine = {0};
	unsigned rank = a->o.place.rank;
	char word[8] = "-------";
	enum status st = control_line(a->control, 1, 3, NULL, LONG_MS, &a->err);

	if (!rank)
		memcpy(word, "address", 8);
	if (!st)
		st = control_share(a->control, word, sizeof(word), LONG_MS, &a->err);
	if (!st && strcmp(word, "address"))
		return STATUS_MISMATCH;
	if (!st)
		st = control_begin(a->control, 1, "key a", &mine, &a->agreed, &a->generation, LONG_MS,
				   &a->err);
	if (!st)
		st = attend(a, 30);
	if (!st)
		st = control_end(a->control, ENDING_DONE, &a->worst, &a->who, LONG_MS, &a->err);
	return st ? st : control_part(a->control, LONG_MS, &a->err);
}
#endif
