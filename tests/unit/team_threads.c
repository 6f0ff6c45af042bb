/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of one process: what they agree on, in what order, and how a wait ends. */
#include "test.h"
#include <pthread.h>
#include "core/clock.h"
#include "team/team.h"

enum { RANKS = 5, ROUNDS = 300 };

struct part {
	struct team *team;
	struct error err;
	enum status st;
	unsigned long long found;
	pthread_t thread;
};

struct stage {
	struct team team[RANKS];
	struct part part[RANKS];
};

static void stage_open(struct stage *s, unsigned limit_ms)
{
	struct error err = {0};

	memset(s, 0, sizeof(*s));
	assert_int_equal(team_threads_create(s->team, RANKS, &err), STATUS_OK);
	for (unsigned r = 0; r < RANKS; r++) {
		s->part[r].team = &s->team[r];
		s->team[r].limit_ms = limit_ms;
	}
}

/* Every rank plays; rank 0 on this thread. */
static void stage_play(struct stage *s, void *(*play)(void *))
{
	for (unsigned r = 1; r < RANKS; r++)
		assert_int_equal(pthread_create(&s->part[r].thread, NULL, play, &s->part[r]), 0);
	play(&s->part[0]);
	for (unsigned r = 1; r < RANKS; r++)
		pthread_join(s->part[r].thread, NULL);
}

static void *play_bytes(void *arg)
{
	struct part *p = arg;

	for (unsigned i = 0; i < ROUNDS && !p->st; i++) {
		uint64_t mine = 1000 * i + p->team->rank, all[RANKS], id = p->team->rank ? 0 : 77 + i;

		p->st = team_gather(p->team, &mine, sizeof(mine), all, &p->err);
		for (unsigned r = 0; r < RANKS; r++)
			p->found += all[r] == 1000 * i + r;
		if (!p->st)
			p->st = team_share(p->team, &id, sizeof(id), &p->err);
		p->found += id == 77 + i;
		if (!p->st)
			p->st = team_agree(p->team, STATUS_OK, &p->err);
	}
	return NULL;
}

static void test_team_threads__bytes_come_from_the_right_rank_every_time(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_bytes);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(s.part[r].st, STATUS_OK);
		assert_int_equal(s.part[r].found, ROUNDS * (RANKS + 1));
	}
	team_threads_destroy(s.team);
}

static void *play_worst(void *arg)
{
	static const enum status mine[RANKS] = {STATUS_OK, STATUS_UNAVAILABLE, STATUS_OK, STATUS_LOST,
						STATUS_LOST};
	struct part *p = arg;
	unsigned r = p->team->rank;

	if (mine[r])
		error_set_cause(&p->err, mine[r], r == 3 ? CAUSE_GPU_LOST : CAUSE_NONE, "said by %u", r);
	p->st = team_agree(p->team, mine[r], &p->err);
	return NULL;
}

static void test_team_threads__the_worst_of_the_lowest_rank_is_everybodys(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_worst);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(s.part[r].st, STATUS_LOST);
		assert_int_equal(s.part[r].err.cause, CAUSE_GPU_LOST);
		assert_string_equal(s.part[r].err.text, "rank 3: said by 3");
	}
	team_threads_destroy(s.team);
}

static void *play_absent(void *arg)
{
	struct part *p = arg;

	if (p->team->rank != 2)
		p->st = team_agree(p->team, STATUS_OK, &p->err);
	return NULL;
}

static void test_team_threads__who_does_not_come_is_named_at_the_limit(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 200);
	stage_play(&s, play_absent);
	for (unsigned r = 0; r < RANKS; r++) {
		if (r == 2)
			continue;
		assert_int_equal(s.part[r].st, STATUS_NO_RESOURCE);
		assert_int_equal(s.part[r].err.cause, CAUSE_TIMED_OUT);
		assert_string_equal(s.part[r].err.text, "rank 2 did not come to an agreement within 0.2 s");
	}
	team_threads_destroy(s.team);
}

static void *play_leaver(void *arg)
{
	struct part *p = arg;
	struct error why = {0};

	if (p->team->rank == 4) {
		error_set_cause(&why, STATUS_VENDOR, CAUSE_VENDOR_CALL, "no stream");
		team_leave(p->team, &why);
		return NULL;
	}
	p->st = team_agree(p->team, STATUS_OK, &p->err);
	if (p->st) { /* and so does every later one of this step */
		struct error again = {0};

		assert_int_equal(team_agree(p->team, STATUS_OK, &again), STATUS_VENDOR);
	}
	return NULL;
}

static void test_team_threads__who_leaves_ends_the_wait_of_all_at_once(void **state)
{
	uint64_t t0 = clock_now_ns(clock_monotonic());
	struct stage s;

	(void)state;
	stage_open(&s, 60000);
	stage_play(&s, play_leaver);
	for (unsigned r = 0; r < 4; r++) {
		assert_int_equal(s.part[r].st, STATUS_VENDOR);
		assert_string_equal(s.part[r].err.text, "rank 4: no stream");
		s.part[r] = (struct part){.team = &s.team[r]};
	}
	assert_true(clock_now_ns(clock_monotonic()) - t0 < 20000000000u);
	team_begin(s.team);
	stage_play(&s, play_bytes);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(s.part[r].st, STATUS_OK);
	team_threads_destroy(s.team);
}

static void *play_other_step(void *arg)
{
	struct part *p = arg;
	uint64_t all[RANKS] = {0};

	p->st = p->team->rank == 1 ? team_share(p->team, all, sizeof(all), &p->err)
				   : team_gather(p->team, all, sizeof(all[0]), all + 0, &p->err);
	return NULL;
}

static void test_team_threads__different_agreements_are_a_bug_on_all(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_other_step);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(s.part[r].st, STATUS_BUG);
	team_threads_destroy(s.team);
}

static enum status follower_loop(struct part *p)
{
	struct team_command c;
	uint64_t sum = 0;

	for (;;) {
		enum status st = team_follow(p->team, &c, &p->err);

		if (st)
			return st;
		sum += c.number;
		p->found++;
		if (c.word == 2)
			st = team_answer(p->team, &sum, sizeof(sum), &p->err);
		if (st)
			return st;
	}
}

static void *play_commands(void *arg)
{
	struct part *p = arg;
	uint64_t sum = 0, got;
	size_t size;

	if (p->team->rank) {
		p->st = follower_loop(p);
		return NULL;
	}
	for (unsigned i = 1; i <= 1000 && !p->st; i++) { /* more than the ring holds */
		struct team_command c = {.word = i % 100 ? 1 : 2, .number = i};

		sum += i;
		p->st = team_post(p->team, &c, &p->err);
		for (unsigned r = 1; c.word == 2 && r < RANKS && !p->st; r++) {
			p->st = team_collect(p->team, r, &got, sizeof(got), &size, &p->err);
			p->found += size == sizeof(got) && got == sum;
		}
	}
	team_threads_end(p->team);
	return NULL;
}

static void test_team_threads__commands_come_in_order_and_answers_of_each(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_commands);
	assert_int_equal(s.part[0].st, STATUS_OK);
	assert_int_equal(s.part[0].found, 10 * (RANKS - 1));
	for (unsigned r = 1; r < RANKS; r++) {
		assert_int_equal(s.part[r].st, STATUS_CANCELLED);
		assert_int_equal(s.part[r].found, 1000);
	}
	team_threads_destroy(s.team);
}

static void test_team_threads__nobody_answering_or_taking_is_told(void **state)
{
	struct team_command c = {.word = 1};
	struct stage s;
	struct error err = {0};
	enum status st = STATUS_OK;
	uint64_t got;
	size_t size;

	(void)state;
	stage_open(&s, 100);
	assert_int_equal(team_collect(s.team, 3, &got, sizeof(got), &size, &err), STATUS_NO_RESOURCE);
	assert_string_equal(err.text, "rank 3 did not answer within 0.1 s");
	error_clear(&err);
	for (unsigned i = 0; i < 1000 && !st; i++)
		st = team_post(s.team, &c, &err);
	assert_int_equal(st, STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_TIMED_OUT);
	team_threads_destroy(s.team);
}

static void test_team_threads__a_team_of_one_agrees_with_itself(void **state)
{
	struct error err = {0};
	int mine = 5, all = 0;

	(void)state;
	assert_int_equal(team_agree(NULL, STATUS_VENDOR, &err), STATUS_VENDOR);
	assert_int_equal(team_share(NULL, &mine, sizeof(mine), &err), STATUS_OK);
	assert_int_equal(team_gather(NULL, &mine, sizeof(mine), &all, &err), STATUS_OK);
	assert_int_equal(all, 5);
}

static void stand(struct team_board *b, unsigned rank, enum team_op op, uint64_t since_ns)
{
	team_board_take(b, rank);
	team_at(b, op);
	b->since_ns = since_ns;
}

static void test_team_threads__the_board_says_who_waited_where(void **state)
{
	struct team_board b[8] = {0};
	char text[256];

	(void)state;
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "");
	for (unsigned r = 0; r < 3; r++)
		stand(&b[r], r, TEAM_OP_AGREE, 5000000000u + r);
	stand(&b[3], 3, TEAM_OP_INIT, 4900000000u);
	stand(&b[4], 6, TEAM_OP_AGREE, 5000000000u);
	stand(&b[5], 5, TEAM_OP_IDLE, 5000000000u);
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "rank 3 waited 4.1 s in making the communicator, "
				  "ranks 0, 1, 2, 6 waited 4.0 s in agreeing with the other ranks");
	b[0].op = 4711; /* garbage says nothing */
	b[1].since_ns = UINT64_MAX;
	b[2].used = 7;
	b[4].rank = 0xffffffff;
	team_board_text(text, sizeof(text), b, 8, 9000000000u);
	assert_string_equal(text, "rank 3 waited 4.1 s in making the communicator");
}

#define test(name) cmocka_unit_test(test_team_threads__##name)
int main(void)
{
	const struct CMUnitTest tests[] = {
		test(bytes_come_from_the_right_rank_every_time),
		test(the_worst_of_the_lowest_rank_is_everybodys),
		test(who_does_not_come_is_named_at_the_limit),
		test(who_leaves_ends_the_wait_of_all_at_once),
		test(different_agreements_are_a_bug_on_all),
		test(commands_come_in_order_and_answers_of_each),
		test(nobody_answering_or_taking_is_told),
		test(a_team_of_one_agrees_with_itself),
		test(the_board_says_who_waited_where),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
