/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die or misbehave, and bytes of strangers at the door. A clock that runs twenty times as fast brings the long
 * limits near; a rank of the team under test is always a real one. */
#include "strangers_bed.h"

enum { FAST = 20 };

static uint64_t fast_now(void *arg)
{
	(void)arg;
	return FAST * clock_now_ns(clock_monotonic());
}

static void fast_sleep(void *arg, uint64_t ns)
{
	(void)arg;
	clock_sleep_ns(clock_monotonic(), ns / FAST);
}

static const struct clock fast_clock = {fast_now, fast_sleep, NULL};

/* A rank by hand, up to its welcome. */
static void greet(struct channel *ch, uint16_t port, unsigned rank, unsigned size)
{
	char hello[512], job[64], challenge[4096], rest[4096];

	channel_open(ch, reach(port));
	snprintf(hello, sizeof(hello),
		 "{\"nonce\":\"00112233445566778899aabbccddeeff\",\"team\":\"%s\",\"rank\":%u,\"size\":%u,\"node\":\"node-x\","
		 "\"program\":\"" ASSAY_VERSION "\",\"build\":\"0123456789abcdef\"}",
		 bed_job(job), rank, size);
	assert_int_equal(channel_send(ch, WIRE_HELLO, hello, strlen(hello), NULL), STATUS_OK);
	assert_true(await(ch, WIRE_CHALLENGE, challenge));
	keys(ch, "rank", "rank 0", hello, challenge);
	assert_int_equal(channel_send(ch, WIRE_PROOF, NULL, 0, NULL), STATUS_OK);
	assert_true(await(ch, WIRE_WELCOME, rest));
}

/* .. and on until the team stands. */
static void join(struct channel *ch, uint16_t port, unsigned rank, unsigned size)
{
	char rest[4096];

	greet(ch, port, rank, size);
	say(ch, WIRE_SHAPE, "{\"node\":\"node-a\"}");
	assert_true(await(ch, WIRE_SHAPE, rest));
}

static void start(struct stage *s)
{
	for (unsigned r = 0; r < s->count; r++)
		assert_int_equal(pthread_create(&s->actor[r].thread, NULL, act, &s->actor[r]), 0);
}

static void end(struct stage *s)
{
	for (unsigned r = 0; r < s->count; r++)
		pthread_join(s->actor[r].thread, NULL);
}

/* Ranks 0 and 1 are real, rank 2 is by hand. */
static void three(struct stage *s, enum status (*play)(struct actor *a), unsigned quiet_ms)
{
	stage_set(s, 3, play);
	s->count = 2;
	for (unsigned r = 0; r < 2; r++)
		s->actor[r].o.quiet_ms = quiet_ms;
	start(s);
}

static void fin(struct channel *ch)
{
	channel_close(ch);
}

static void reset(struct channel *ch)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	setsockopt(ch->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	channel_close(ch);
}

static void garbage(struct channel *ch)
{
	assert_int_equal(send(ch->fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
}

static void other_key(struct channel *ch)
{
	ch->key.bytes[0] ^= 1;
	say(ch, WIRE_LINE, "{}");
}

static void out_of_turn(struct channel *ch)
{
	say(ch, WIRE_GO, "{}");
}

static void no_json(struct channel *ch)
{
	say(ch, WIRE_PONG, "[1]");
}

static void test_strangers__how_a_rank_can_be_lost(void **state)
{
	static const struct {
		void (*act)(struct channel *ch);
		const char *says;
	} rows[] = {
		{fin, "it closed the connection"},     {reset, "Connection reset"},
		{garbage, "does not come from a process of a team"},	       {other_key, "another secret"},
		{out_of_turn, "it sent an unexpected frame"},
		{no_json, "not a JSON object"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct channel ch;
		struct stage s;

		three(&s, go_on, LONG_MS);
		join(&ch, s.port, 2, 3);
		rows[i].act(&ch);
		end(&s);
		all_fail(&s, CAUSE_TEAM_LOST, "lost rank 2 on node-a: ", rows[i].says);
		stage_clear(&s);
		channel_close(&ch);
	}
}

static enum status listen_only(struct actor *a)
{
	return attend(a, LONG_MS);
}

static void test_strangers__what_nobody_waits_for_is_not_kept_for_ever(void **state)
{
	struct channel ch;
	struct stage s;

	(void)state;
	three(&s, listen_only, LONG_MS);
	join(&ch, s.port, 2, 3);
	for (int i = 0; i < 200; i++)
		say(&ch, WIRE_LINE, "{}");
	end(&s);
	all_fail(&s, CAUSE_TEAM_LOST, "lost rank 2 on node-a: it sent more frames than expected", "");
	stage_clear(&s);
	channel_close(&ch);
}

static void test_strangers__silence_is_death_too(void **state)
{
	struct channel ch;
	struct stage s;

	(void)state;
	three(&s, go_on, QUIET_MS);
	s.actor[1].o.quiet_ms = LONG_MS;
	join(&ch, s.port, 2, 3); /* and answers no ping from here on */
	end(&s);
	all_fail(&s, CAUSE_TEAM_LOST, "lost rank 2 on node-a: it has been silent for ", "");
	stage_clear(&s);
	channel_close(&ch);
}

static void test_strangers__a_rank_lost_while_it_joins(void **state)
{
	struct channel ch;
	struct stage s;

	(void)state;
	three(&s, go_on, LONG_MS);
	greet(&ch, s.port, 2, 3);
	channel_close(&ch);
	end(&s);
	all_fail(&s, CAUSE_TEAM_LOST, "lost rank 2 on node-x: it closed the connection", "");
	stage_clear(&s);
}

/* One who is slow but answers its pings lives on. */
static void test_strangers__who_answers_pings_is_no_silence(void **state)
{
	char rest[4096];
	struct channel ch;
	struct stage s;

	(void)state;
	three(&s, go_on, QUIET_MS);
	join(&ch, s.port, 2, 3);
	for (int i = 0; i < 8; i++) { /* a fifth of the quiet limit apart */
		enum wire_kind kind;

		assert_true(next(&ch, &kind, rest));
		assert_int_equal(kind, WIRE_PING);
		channel_send(&ch, WIRE_PONG, rest, strlen(rest), NULL);
	}
	say(&ch, WIRE_LINE, "{\"what\":\"line 1 of round 1\"}");
	assert_true(await(&ch, WIRE_GO, rest));
	end(&s);
	all_well(&s);
	stage_clear(&s);
	channel_close(&ch);
}

struct drip {
	pthread_t thread;
	int fd;
};

/* A byte now and then, until the other end has enough of it. */
static void *drip(void *arg)
{
	const struct drip *d = arg;
	unsigned char frame[64];
	size_t size = wire_build(frame, WIRE_HELLO, "{\"nonce\":\"0\"                  }", 31, 0, NULL);

	for (size_t i = 0; i < size; i++) {
		if (send(d->fd, frame + i, 1, MSG_NOSIGNAL) != 1)
			return NULL;
		usleep(20000);
	}
	return (void *)d; /* all of it was taken */
}

static void expect_closed(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char byte;

	while (poll(&p, 1, 30000) == 1 && recv(fd, &byte, 1, 0) > 0)
		;
	assert_true(p.revents);
	close(fd);
}

static void test_strangers__bytes_at_the_door_do_no_harm(void **state)
{
	static const char *const words[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "SSH-2.0-x\r\n",
					    "ASTM\001\000\000\000\377\377\377\177\000\000\000\000", "ASTM\001\002\000\000"
												    "\000\000\000\000\000\000\000\000"};
	static const size_t sizes[] = {27, 11, 16, 16};
	struct drip d;
	struct stage s;
	void *whole;
	int fd[4];

	(void)state;
	stage_set(&s, 2, go_on);
	s.count = 1; /* rank 0 alone; its 5 s are 250 ms */
	s.actor[0].o.clock = &fast_clock;
	s.actor[0].o.join_ms = s.actor[0].o.quiet_ms = FAST * LONG_MS;
	start(&s);
	for (int i = 0; i < 4; i++) {
		fd[i] = reach(s.port);
		assert_int_equal(send(fd[i], words[i], sizes[i], MSG_NOSIGNAL), sizes[i]);
	}
	d.fd = reach(s.port);
	pthread_create(&d.thread, NULL, drip, &d);
	for (int i = 0; i < 4; i++)
		expect_closed(fd[i]);
	expect_closed(reach(s.port)); /* one who says nothing */
	pthread_join(d.thread, &whole);
	assert_null(whole);
	close(d.fd);
	s.count = 2;
	assert_int_equal(pthread_create(&s.actor[1].thread, NULL, act, &s.actor[1]), 0);
	end(&s);
	all_well(&s);
	stage_clear(&s);
}

/* More of them than there are places: those who belong here get in all the same. */
static void test_strangers__a_crowd_at_the_door(void **state)
{
	struct stage s;
	int fd[150];

	(void)state;
	stage_set(&s, 3, go_on);
	s.count = 1;
	start(&s);
	for (int i = 0; i < 150; i++)
		fd[i] = reach(s.port);
	s.count = 3;
	for (unsigned r = 1; r < 3; r++)
		assert_int_equal(pthread_create(&s.actor[r].thread, NULL, act, &s.actor[r]), 0);
	end(&s);
	all_well(&s);
	stage_clear(&s);
	for (int i = 0; i < 150; i++)
		close(fd[i]);
}

/* It answers pings, and never the question. */
static void *answer_pings(void *arg)
{
	struct channel *ch = arg;
	char rest[4096];

	await(ch, WIRE_REFUSE, rest);
	return NULL;
}

static enum status ask_shortly(struct actor *a)
{
	return control_line(a->control, 1, 1, NULL, SHORT_MS, &a->err);
}

static void test_strangers__a_rank_that_answers_pings_alone_is_late(void **state)
{
	pthread_t thread;
	struct channel ch;
	struct stage s;

	(void)state;
	stage_set(&s, 3, ask_shortly);
	s.count = 2;
	start(&s);
	join(&ch, s.port, 2, 3);
	pthread_create(&thread, NULL, answer_pings, &ch);
	end(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "rank 2 on node-a", "did not reach line 1 of round 1");
	stage_clear(&s);
	pthread_join(thread, NULL);
	channel_close(&ch);
}

static enum status share_on_and_on(struct actor *a)
{
	static char bytes[WIRE_FRAME_MAX];
	enum status st = STATUS_OK;

	for (int i = 0; i < 64 && !st; i++)
		st = control_share(a->control, bytes, sizeof(bytes), SHORT_MS, &a->err);
	return st;
}

static void test_strangers__a_rank_that_takes_nothing_is_late(void **state)
{
	struct channel ch;
	struct stage s;

	(void)state;
	stage_set(&s, 2, share_on_and_on);
	s.count = 1;
	start(&s);
	join(&ch, s.port, 1, 2);
	end(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "rank 1 did not read 2097152 shared bytes within 0.4 s", "");
	stage_clear(&s);
	channel_close(&ch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_strangers__how_a_rank_can_be_lost),
		cmocka_unit_test(test_strangers__what_nobody_waits_for_is_not_kept_for_ever),
		cmocka_unit_test(test_strangers__silence_is_death_too),
		cmocka_unit_test(test_strangers__a_rank_lost_while_it_joins),
		cmocka_unit_test(test_strangers__who_answers_pings_is_no_silence),
		cmocka_unit_test(test_strangers__bytes_at_the_door_do_no_harm),
		cmocka_unit_test(test_strangers__a_crowd_at_the_door),
		cmocka_unit_test(test_strangers__a_rank_that_answers_pings_alone_is_late),
		cmocka_unit_test(test_strangers__a_rank_that_takes_nothing_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
