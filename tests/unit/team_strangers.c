/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks that die or misbehave, rank 0's that do, and bytes of strangers at the door. A clock that runs twenty times as fast
 * brings the long limits near; a rank of the team under test is always a real one. */
#include "test.h"

#include <poll.h>

#include "team/channel.h"
#include "team/rendezvous.h"
#include "team_bed.h"

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

static int reach(uint16_t port)
{
	struct error err = {0};
	int fd;

	for (int i = 0; i < 400; i++) {
		if (!rendezvous_connect(&fd, "127.0.0.1", port, NULL, 1000, &err))
			return fd;
		error_clear(&err);
		usleep(25000);
	}
	fail_msg("nobody listens at %u", port);
	return -1;
}

static void say(struct channel *ch, enum wire_kind kind, const char *text)
{
	channel_send(ch, kind, text, strlen(text), NULL);
}

/* The next frame, waited for; a copy of its payload with a NUL. False: the connection ended or it is none. */
static bool next(struct channel *ch, enum wire_kind *kind, char payload[4096])
{
	struct pollfd p = {.fd = ch->fd, .events = POLLIN};
	struct error err = {0};
	enum wire_state state;
	struct wire_frame f;
	bool any;

	while ((state = wire_take(&ch->in, &f, &err)) == WIRE_MORE) {
		poll(&p, 1, 1000);
		if (channel_read(ch, &any, &err))
			return false;
	}
	if (state != WIRE_FRAME || f.size > 4095)
		return false;
	*kind = f.kind;
	memcpy(payload, f.payload, f.size);
	payload[f.size] = '\0';
	return true;
}

static bool await(struct channel *ch, enum wire_kind kind, char payload[4096])
{
	enum wire_kind got;

	while (next(ch, &got, payload)) {
		if (got == kind)
			return true;
		if (got == WIRE_PING) /* as wire.h has it */
			channel_send(ch, WIRE_PONG, payload, strlen(payload), NULL);
	}
	return false;
}

static void keys(struct channel *ch, const char *mine, const char *theirs, const char *hello, const char *challenge)
{
	wire_key(&ch->key, "0123456789abcdef", mine, hello, strlen(hello), challenge, strlen(challenge));
	wire_key(&ch->in.key, "0123456789abcdef", theirs, hello, strlen(hello), challenge, strlen(challenge));
	ch->keyed = ch->in.keyed = true;
	ch->in.most = WIRE_FRAME_MAX;
}

/* A rank by hand, up to its welcome. */
static void greet(struct channel *ch, uint16_t port, unsigned rank, unsigned size)
{
	char hello[512], challenge[4096], rest[4096];

	channel_open(ch, reach(port));
	snprintf(hello, sizeof(hello),
		 "{\"nonce\":\"00112233445566778899aabbccddeeff\",\"team\":\"job\",\"rank\":%u,\"size\":%u,\"node\":\"node-x\","
		 "\"program\":\"" ASSAY_VERSION "\",\"build\":\"0123456789abcdef\"}",
		 rank, size);
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

static enum status go_on(struct actor *a)
{
	return control_line(a->control, 1, 1, NULL, LONG_MS, &a->err);
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
		{garbage, "not of a team"},	       {other_key, "another secret"},
		{out_of_turn, "a frame out of turn"},
		{no_json, "no JSON object"},
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
	all_fail(&s, CAUSE_TEAM_LOST, "lost rank 2 on node-a: it said more than anybody waits for", "");
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

struct host { /* a rank 0 by hand */
	pthread_t thread;
	struct listener l;
	const char *team;
	enum { HOST_SILENT, HOST_DIES, HOST_ODD_WELCOME, HOST_ODD_SHAPE, HOST_NO_SHAPE, HOST_ODD_ANSWER } how;
};

static void *play_host(void *arg)
{
	struct host *h = arg;
	char hello[4096], rest[4096], address[RENDEZVOUS_ADDRESS], challenge[128];
	struct pollfd p = {.fd = h->l.fd[0], .events = POLLIN};
	struct channel ch;

	poll(&p, 1, 30000);
	channel_open(&ch, rendezvous_accept(&h->l, address));
	assert_true(await(&ch, WIRE_HELLO, hello));
	snprintf(challenge, sizeof(challenge), "{\"nonce\":\"00112233445566778899aabbccddeeff\",\"team\":\"job\"}");
	channel_send(&ch, WIRE_CHALLENGE, challenge, strlen(challenge), NULL);
	keys(&ch, "rank 0", "rank", hello, challenge);
	assert_true(await(&ch, WIRE_PROOF, rest));
	if (h->how == HOST_ODD_WELCOME)
		say(&ch, WIRE_WELCOME, "{\"left_ms\":-1}");
	else
		say(&ch, WIRE_WELCOME, "{\"left_ms\":10}");
	if (h->how == HOST_NO_SHAPE)
		say(&ch, WIRE_GO, "{}");
	if (h->how == HOST_ODD_SHAPE)
		say(&ch, WIRE_SHAPE, "{\"nodes\":[{\"name\":\"a\"}],\"ranks\":[]}");
	if (h->how == HOST_ODD_ANSWER) {
		static const char shape[] = "{\"nodes\":[{\"name\":\"a\",\"boot\":\"\",\"host\":\"\",\"shown\":\"a\",\"leader\":0}],"
					    "\"ranks\":[{\"node\":0},{\"node\":0}]}";

		channel_send(&ch, WIRE_SHAPE, shape, sizeof(shape) - 1, NULL);
		say(&ch, WIRE_SHARE, "x");
	}
	if (h->how == HOST_DIES)
		assert_true(await(&ch, WIRE_SHAPE, rest)); /* bytes left unread would make it a reset */
	else
		while (next(&ch, &(enum wire_kind){0}, rest))
			; /* until it has gone */
	channel_close(&ch);
	return NULL;
}

static void test_strangers__a_rank_0_that_misbehaves(void **state)
{
	static const struct {
		int how;
		enum cause cause;
		const char *says;
	} rows[] = {
		{HOST_SILENT, CAUSE_TEAM_LOST, "lost rank 0: it has been silent"},
		{HOST_DIES, CAUSE_TEAM_LOST, "lost rank 0: it closed the connection; last: its welcome"},
		{HOST_ODD_WELCOME, CAUSE_TEAM_REFUSED, "does not welcome as this version does"},
		{HOST_ODD_SHAPE, CAUSE_TEAM_REFUSED, "shape of the team is not sound"},
		{HOST_NO_SHAPE, CAUSE_TEAM_REFUSED, "sent no shape"},
		{HOST_ODD_ANSWER, CAUSE_TEAM_REFUSED, "answered another question"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct host h = {.how = rows[i].how};
		struct stage s;

		stage_set(&s, 2, go_on);
		assert_int_equal(rendezvous_listen(&h.l, s.port, "127.0.0.1", NULL), STATUS_OK);
		s.actor[0] = s.actor[1];
		s.actor[0].o.place.rank = 1;
		s.actor[0].o.quiet_ms = rows[i].how == HOST_SILENT ? SHORT_MS : LONG_MS;
		s.count = 1;
		pthread_create(&h.thread, NULL, play_host, &h);
		stage_play(&s);
		all_fail(&s, rows[i].cause, rows[i].says, "");
		stage_clear(&s);
		pthread_join(h.thread, NULL);
		rendezvous_close(&h.l);
	}
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
	all_fail(&s, CAUSE_TEAM_LATE, "rank 2 on node-a", "did not come to line 1 of round 1");
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
	all_fail(&s, CAUSE_TEAM_LATE, "rank 1 did not take 2097152 shared bytes within 0.4 s", "");
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
		cmocka_unit_test(test_strangers__a_rank_0_that_misbehaves),
		cmocka_unit_test(test_strangers__a_rank_that_answers_pings_alone_is_late),
		cmocka_unit_test(test_strangers__a_rank_that_takes_nothing_is_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
