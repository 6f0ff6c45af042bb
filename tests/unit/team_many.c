/* SPDX-License-Identifier: Apache-2.0 */
/* Thousands of ranks: what is laid ready for them is bounded, and a frame holds what they say. */
#include "test.h"

#include <errno.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "fake_clock.h"
#include "team/control/internal.h"
#include "team_bed.h"

enum { PEERS = 100, BYTES = 1 << 20, QUEUED_MOST = 64 << 20 };

struct many {
	struct control c;
	struct peer peer[PEERS];
	int far[PEERS]; /* their ends */
	size_t read;
};

static void many_set(struct many *m, const struct clock *clock)
{
	int ends[2];

	*m = (struct many){.c = {.clock = clock, .size = PEERS + 1, .peer = m->peer, .peers = PEERS}};
	for (unsigned i = 0; i < PEERS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
		channel_open(&m->peer[i].ch, ends[0]);
		m->peer[i].here = true;
		m->far[i] = ends[1];
	}
}

static size_t many_queued(const struct many *m)
{
	size_t sum = 0;

	for (unsigned i = 0; i < PEERS; i++)
		sum += m->peer[i].ch.out_size;
	return sum;
}

static void many_clear(struct many *m)
{
	for (unsigned i = 0; i < PEERS; i++) {
		channel_close(&m->peer[i].ch);
		close(m->far[i]);
	}
}

/* Ranks that take what they are sent, until nothing more can come. */
static void *take_all(void *arg)
{
	static char bytes[1 << 18];
	struct many *m = arg;
	struct pollfd set[PEERS];
	size_t all = (size_t)PEERS * (WIRE_HEADER + BYTES);

	for (unsigned i = 0; i < PEERS; i++)
		set[i] = (struct pollfd){.fd = m->far[i], .events = POLLIN};
	while (m->read < all) {
		poll(set, PEERS, 1000);
		for (unsigned i = 0; i < PEERS; i++) {
			ssize_t n = set[i].revents ? recv(m->far[i], bytes, sizeof(bytes), MSG_DONTWAIT) : 0;

			m->read += n > 0 ? (size_t)n : 0;
		}
	}
	return NULL;
}

static void test_many__a_large_word_to_all_waits_for_room(void **state)
{
	static char word[BYTES];
	static struct many m;
	pthread_t reader;

	(void)state;
	many_set(&m, clock_monotonic());
	assert_int_equal(pthread_create(&reader, NULL, take_all, &m), 0);
	control_send_all(&m.c, WIRE_SHARE, word, sizeof(word));
	assert_true(many_queued(&m) <= QUEUED_MOST);
	while (many_queued(&m)) {
		for (unsigned i = 0; i < PEERS; i++)
			channel_flush(&m.peer[i].ch, NULL);
		poll(NULL, 0, 1);
	}
	pthread_join(reader, NULL);
	for (unsigned i = 0; i < PEERS; i++) /* nor is the memory kept */
		assert_true(m.peer[i].ch.out_room <= 4096);
	many_clear(&m);
}

/* They are waited for once, not each: then all is laid ready, and who never reads is lost by that. */
static void test_many__who_takes_nothing_holds_nobody_up_for_long(void **state)
{
	static char word[BYTES];
	static struct many m;
	struct fake_clock clock;

	(void)state;
	fake_clock_init(&clock, 1000);
	clock.tick_ns = 2500000000;
	many_set(&m, &clock.clock);
	control_send_all(&m.c, WIRE_SHARE, word, sizeof(word));
	assert_true(many_queued(&m) > QUEUED_MOST);
	assert_true(clock.now_ns < 200 * clock.tick_ns);
	many_clear(&m);
}

static json_t *of_rank(unsigned rank)
{
	return json_pack("{s:o, s:s, s:s, s:[s], s:i, s:i}", "node", json_sprintf("a-node-of-a-large-cluster-%u", rank),
			 "boot", "01234567-89ab-cdef-0123-456789abcdef", "shown", "host-01234567", "gpus", "0000:8d:00.0",
			 "local_rank", 0, "local_size", 1);
}

/* The most ranks, each on a node of its own. */
static void test_many__the_shape_of_the_largest_team_is_one_frame(void **state)
{
	static struct peer peer[CONTROL_RANKS];
	struct control c = {.size = CONTROL_RANKS, .peers = CONTROL_RANKS, .peer = peer};
	static json_t *said[CONTROL_RANKS];
	struct team_shape other = {0};
	struct error err = {0};
	json_t *shape;
	char *text;

	(void)state;
	for (unsigned r = 0; r < CONTROL_RANKS; r++) {
		said[r] = of_rank(r);
		text_copy(peer[r].host, sizeof(peer[r].host), "[fe80:0000:0000:0000:0123:4567:89ab:cdef]:54321");
	}
	assert_int_equal(shape_make(&c, said, &err), STATUS_OK);
	assert_int_equal(c.shape.nodes, CONTROL_RANKS);
	shape = shape_json(&c.shape);
	text = json_dumps(shape, JSON_COMPACT);
	assert_in_range(strlen(text), 100 * CONTROL_RANKS, WIRE_FRAME_MAX);
	assert_int_equal(shape_take(&other, CONTROL_RANKS, shape, &err), STATUS_OK);
	assert_int_equal(other.rank[CONTROL_RANKS - 1].node, CONTROL_RANKS - 1);
	assert_string_equal(other.node[4095].shown, c.shape.node[4095].shown);
	free(text);
	json_decref(shape);
	for (unsigned r = 0; r < CONTROL_RANKS; r++)
		json_decref(said[r]);
	shape_release(&c.shape);
	shape_release(&other);
}

static void test_many__one_rank_too_many(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.size = CONTROL_RANKS + 1;
	stage_play(&s);
	assert_int_equal(s.actor[0].st, STATUS_BAD_INPUT);
	assert_non_null(strstr(s.actor[0].err.text, "a team can have at most 4096 ranks, and this one has 4097"));
}

static void limit_files(rlim_t soft, rlim_t hard)
{
	const struct rlimit l = {soft, hard};

	if (setrlimit(RLIMIT_NOFILE, &l))
		_exit(9);
}

/* Rank 0 lingers for two seconds after who came too late: not by this clock. */
static uint64_t fast_now(void *arg)
{
	(void)arg;
	return 50 * clock_now_ns(clock_monotonic());
}
static const struct clock fast = {fast_now, doze, NULL};

/* A process with such limits joins as rank 0 of so many; 0: its soft limit was raised for it. */
static int with_files(rlim_t soft, rlim_t hard, unsigned ranks, const char *words)
{
	pid_t pid = fork();
	struct rlimit l;
	struct stage s;
	int code = -1;

	if (pid) {
		waitpid(pid, &code, 0);
		return WIFEXITED(code) ? WEXITSTATUS(code) : -1;
	}
	limit_files(soft, hard);
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.size = ranks;
	s.actor[0].o.join_ms = 10;
	s.actor[0].o.clock = &fast;
	act(&s.actor[0]);
	getrlimit(RLIMIT_NOFILE, &l);
	_exit(!s.actor[0].st || !strstr(s.actor[0].err.text, words) ? 8 : l.rlim_cur >= ranks ? 0 : 1);
}

static void test_many__files_are_asked_for_or_told_to_be_too_few(void **state)
{
	(void)state;
	assert_int_equal(with_files(64, 1000, 300, "did not"), 0); /* the others, who never come */
	assert_int_equal(with_files(64, 300, 300, "rank 0 of 300 ranks needs 428 open files, and the hard limit is 300"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many__a_large_word_to_all_waits_for_room),
		cmocka_unit_test(test_many__who_takes_nothing_holds_nobody_up_for_long),
		cmocka_unit_test(test_many__the_shape_of_the_largest_team_is_one_frame),
		cmocka_unit_test(test_many__one_rank_too_many),
		cmocka_unit_test(test_many__files_are_asked_for_or_told_to_be_too_few),
	};

	return cmocka_run_group_tests_name("team_many", tests, NULL, NULL);
}
