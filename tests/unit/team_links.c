/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks as threads of one process, and over connections as workers have them: what they agree on, in what
 * order, and how a wait ends. */
#include "test.h"
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "core/clock.h"
#include "team/team.h"
#include "team/transport/rendezvous.h"
#include "team/transport/frame.h"
#include "team/links/processes.h"

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

static bool by_wire; /* connections instead of threads' links */
static const char secret[] = "0123456789abcdef0123456789abcdef";

struct comer {
	struct team *team;
	struct process_links_place place;
	pthread_t thread;
	enum status st;
};

static void *come(void *arg)
{
	struct comer *c = arg;
	struct error err = {0};

	c->st = process_links_connect(c->team, &c->place, &err);
	if (c->st)
		print_message("# %s\n", err.text);
	return NULL;
}

static void open_wires(struct team *team, unsigned limit_ms)
{
	struct process_links_place place = {.size = RANKS, .limit_ms = 20000, .secret = secret, .host = "127.0.0.1"};
	struct comer comer[RANKS];
	struct error err = {0};

	assert_int_equal(process_links_listen(&team[0], &place, &place.port, &err), STATUS_OK);
	for (unsigned r = 1; r < RANKS; r++) {
		comer[r] = (struct comer){.team = &team[r], .place = place};
		comer[r].place.rank = r;
		assert_int_equal(pthread_create(&comer[r].thread, NULL, come, &comer[r]), 0);
	}
	assert_int_equal(process_links_gather(&team[0], &err), STATUS_OK);
	for (unsigned r = 1; r < RANKS; r++) {
		pthread_join(comer[r].thread, NULL);
		assert_int_equal(comer[r].st, STATUS_OK);
	}
	for (unsigned r = 0; r < RANKS; r++) {
		snprintf(team[r].name, sizeof(team[r].name), "rank %u", r);
		team[r].limit_ms = limit_ms;
	}
}

static void stage_open(struct stage *s, unsigned limit_ms)
{
	struct error err = {0};

	memset(s, 0, sizeof(*s));
	if (by_wire)
		open_wires(s->team, limit_ms);
	else
		assert_int_equal(team_threads_create(s->team, RANKS, &err), STATUS_OK);
	for (unsigned r = 0; r < RANKS; r++) {
		s->part[r].team = &s->team[r];
		s->team[r].limit_ms = limit_ms;
	}
}

static void stage_close(struct stage *s)
{
	if (!by_wire) {
		team_threads_destroy(s->team);
		return;
	}
	for (unsigned r = 0; r < RANKS; r++)
		process_links_close(&s->team[r]);
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

static void test_team_links__bytes_come_from_the_right_rank_every_time(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_bytes);
	for (unsigned r = 0; r < RANKS; r++) {
		assert_int_equal(s.part[r].st, STATUS_OK);
		assert_int_equal(s.part[r].found, ROUNDS * (RANKS + 1));
	}
	stage_close(&s);
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

static void test_team_links__the_worst_of_the_lowest_rank_is_everybodys(void **state)
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
	stage_close(&s);
}

static void *play_absent(void *arg)
{
	struct part *p = arg;

	if (p->team->rank != 2)
		p->st = team_agree(p->team, STATUS_OK, &p->err);
	return NULL;
}

static void test_team_links__who_does_not_come_is_named_at_the_limit(void **state)
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
		assert_string_equal(s.part[r].err.text, "rank 2 did not reach an agreement step within 0.2 s");
	}
	stage_close(&s);
}

/* As every step ends: the conductor knows that the others are through with it. */
static void end_step(struct part *p)
{
	struct error own = {0};
	size_t size;
	char byte = 0;

	if (p->team->rank)
		assert_int_equal(team_answer(p->team, &byte, 1, &own), STATUS_OK);
	for (unsigned r = 1; !p->team->rank && r < RANKS; r++)
		assert_int_equal(team_collect(p->team, r, &byte, 1, &size, &own), STATUS_OK);
}

static void *play_leaver(void *arg)
{
	struct part *p = arg;
	struct error why = {0};

	if (p->team->rank == 4) {
		error_set_cause(&why, STATUS_VENDOR, CAUSE_VENDOR_CALL, "no stream");
		team_leave(p->team, &why);
		end_step(p);
		return NULL;
	}
	p->st = team_agree(p->team, STATUS_OK, &p->err);
	if (p->st) { /* and so does every later one of this step */
		struct error again = {0};

		assert_int_equal(team_agree(p->team, STATUS_OK, &again), STATUS_VENDOR);
	}
	end_step(p);
	return NULL;
}

/* The conductor's next step: nobody has left it. */
static void *play_next_step(void *arg)
{
	struct part *p = arg;
	struct team_command c = {.word = 1};

	if (p->team->rank) {
		p->st = team_wait_for_lead(p->team, &c, &p->err);
	} else {
		team_begin(p->team);
		p->st = team_post(p->team, &c, &p->err);
	}
	return p->st ? NULL : play_bytes(p);
}

static void test_team_links__who_leaves_ends_the_wait_of_all_at_once(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 60000); /* a wait that ran into its limit has another error text */
	stage_play(&s, play_leaver);
	for (unsigned r = 0; r < 4; r++) {
		assert_int_equal(s.part[r].st, STATUS_VENDOR);
		assert_string_equal(s.part[r].err.text, "rank 4: no stream");
		s.part[r] = (struct part){.team = &s.team[r]};
	}
	s.part[4] = (struct part){.team = &s.team[4]};
	stage_play(&s, play_next_step);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(s.part[r].st, STATUS_OK);
	stage_close(&s);
}

static void *play_other_step(void *arg)
{
	struct part *p = arg;
	uint64_t all[RANKS] = {0};

	p->st = p->team->rank == 1 ? team_share(p->team, all, sizeof(all), &p->err)
				   : team_gather(p->team, all, sizeof(all[0]), all + 0, &p->err);
	return NULL;
}

static void test_team_links__different_agreements_are_a_bug_on_all(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_other_step);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(s.part[r].st, STATUS_BUG);
	stage_close(&s);
}

static enum status follower_loop(struct part *p)
{
	struct team_command c;
	uint64_t sum = 0;

	for (;;) {
		enum status st = team_wait_for_lead(p->team, &c, &p->err);

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
	if (by_wire)
		process_links_close(p->team);
	else
		team_threads_end(p->team);
	return NULL;
}

static void test_team_links__commands_come_in_order_and_answers_of_each(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_commands);
	assert_int_equal(s.part[0].st, STATUS_OK);
	assert_int_equal(s.part[0].found, 10 * (RANKS - 1));
	for (unsigned r = 1; r < RANKS; r++) {
		assert_int_equal(s.part[r].st, by_wire ? STATUS_UNAVAILABLE : STATUS_CANCELLED);
		assert_int_equal(s.part[r].found, 1000);
	}
	stage_close(&s);
}

static void test_team_links__nobody_answering_or_taking_is_told(void **state)
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
	for (unsigned i = 0; i < 1000000 && !st; i++)
		st = team_post(s.team, &c, &err);
	assert_int_equal(st, STATUS_NO_RESOURCE);
	assert_int_equal(err.cause, CAUSE_TIMED_OUT);
	stage_close(&s);
}

static void *play_lost(void *arg)
{
	struct part *p = arg;

	if (p->team->rank == 2)
		process_links_close(p->team);
	else
		p->st = team_agree(p->team, STATUS_OK, &p->err);
	return NULL;
}

static void test_team_links__a_worker_that_is_gone_is_named_to_all(void **state)
{
	struct stage s;

	(void)state;
	by_wire = true;
	stage_open(&s, 20000);
	stage_play(&s, play_lost);
	for (unsigned r = 0; r < RANKS; r++)
		if (r != 2) {
			assert_int_equal(s.part[r].st, STATUS_UNAVAILABLE);
			assert_int_equal(s.part[r].err.cause, CAUSE_TEAM_LOST);
			assert_non_null(strstr(s.part[r].err.text, "rank 2: its worker is gone"));
		}
	stage_close(&s);
	by_wire = false;
}

static void *play_large(void *arg)
{
	struct part *p = arg;
	size_t size = 3000000 + p->team->rank, got;
	char *bytes = malloc(size);

	memset(bytes, 'a' + (int)p->team->rank, size);
	if (p->team->rank)
		p->st = team_answer(p->team, bytes, size, &p->err);
	for (unsigned r = 1; !p->team->rank && r < RANKS && !p->st; r++) {
		char *in = malloc(size + RANKS);

		p->st = team_collect(p->team, r, in, size + RANKS, &got, &p->err);
		p->found += got == size + r && in[0] == 'a' + (int)r && in[got - 1] == 'a' + (int)r;
		free(in);
	}
	if (!p->st) /* or its end takes what it has not sent with it */
		p->st = team_agree(p->team, STATUS_OK, &p->err);
	free(bytes);
	return NULL;
}

static void test_team_links__long_answers_come_whole(void **state)
{
	struct stage s;

	(void)state;
	stage_open(&s, 20000);
	stage_play(&s, play_large);
	assert_int_equal(s.part[0].found, RANKS - 1);
	for (unsigned r = 0; r < RANKS; r++)
		assert_int_equal(s.part[r].st, STATUS_OK);
	stage_close(&s);
}

static void test_team_links__who_has_another_secret_or_none_is_not_let_in(void **state)
{
	struct process_links_place place = {.size = 2, .limit_ms = 300, .secret = secret, .host = "127.0.0.1"};
	struct team team[2] = {{0}};
	struct comer thief = {.team = &team[1]};
	struct error err = {0};

	(void)state;
	assert_int_equal(process_links_listen(&team[0], &place, &place.port, &err), STATUS_OK);
	thief.place = place;
	thief.place.rank = 1;
	thief.place.secret = "ffffffffffffffff";
	assert_int_equal(pthread_create(&thief.thread, NULL, come, &thief), 0);
	assert_int_equal(process_links_gather(&team[0], &err), STATUS_NO_RESOURCE);
	assert_string_equal(err.text, "rank 1 did not reach rank 0's worker within 0.3 s");
	pthread_join(thief.thread, NULL);
	assert_int_equal(thief.st, STATUS_UNAVAILABLE);
	process_links_close(&team[0]);
	process_links_close(&team[1]);
}

static int knock_at(uint16_t port)
{
	struct error err = {0};
	int fd = -1;

	assert_int_equal(rendezvous_connect(&fd, "127.0.0.1", port, NULL, 5000, &err), STATUS_OK);
	return fd;
}

static void *gather(void *arg)
{
	struct comer *c = arg;
	struct error err = {0};

	c->st = process_links_gather(c->team, &err);
	return NULL;
}

/* More strangers than there are places stand at the door at once. Who came before them and is about to say who he is keeps
 * his place for half a second: a crowd cannot turn him away. */
static void test_team_links__a_crowd_at_the_door_turns_nobody_away(void **state)
{
	enum { CROWD = 100 };
	struct process_links_place place = {.size = 2, .limit_ms = 20000, .secret = secret, .host = "127.0.0.1"};
	struct {
		uint32_t rank;
		char nonce[36];
	} hello = {.rank = 1};
	unsigned char frame[256], answer[256];
	struct team team[2] = {{0}};
	struct comer zero = {.team = &team[0]}, one = {.team = &team[1]};
	struct error err = {0};
	int first, crowd[CROWD];
	size_t size = wire_build(frame, WIRE_HELLO, &hello, sizeof(hello), 0, NULL);
	struct pollfd p;

	(void)state;
	assert_int_equal(process_links_listen(&team[0], &place, &place.port, &err), STATUS_OK);
	first = knock_at(place.port);
	assert_int_equal(send(first, frame, size, MSG_NOSIGNAL), size);
	for (unsigned i = 0; i < CROWD; i++)
		crowd[i] = knock_at(place.port);
	assert_int_equal(pthread_create(&zero.thread, NULL, gather, &zero), 0);
	p = (struct pollfd){.fd = first, .events = POLLIN};
	assert_int_equal(poll(&p, 1, 20000), 1);
	assert_true(read(first, answer, sizeof(answer)) > WIRE_HEADER);
	assert_int_equal(answer[5], WIRE_CHALLENGE);
	one.place = place; /* and who belongs to the team gets in, whoever else stands there */
	one.place.rank = 1;
	assert_int_equal(pthread_create(&one.thread, NULL, come, &one), 0);
	pthread_join(one.thread, NULL);
	pthread_join(zero.thread, NULL);
	assert_int_equal(one.st, STATUS_OK);
	assert_int_equal(zero.st, STATUS_OK);
	close(first);
	for (unsigned i = 0; i < CROWD; i++)
		close(crowd[i]);
	process_links_close(&team[0]);
	process_links_close(&team[1]);
}

static int over_wires(void **state)
{
	(void)state;
	by_wire = true;
	return 0;
}

static int over_threads(void **state)
{
	(void)state;
	by_wire = false;
	return 0;
}

static void test_team_links__a_team_of_one_agrees_with_itself(void **state)
{
	struct error err = {0};
	int mine = 5, all = 0;

	(void)state;
	assert_int_equal(team_agree(NULL, STATUS_VENDOR, &err), STATUS_VENDOR);
	assert_int_equal(team_share(NULL, &mine, sizeof(mine), &err), STATUS_OK);
	assert_int_equal(team_gather(NULL, &mine, sizeof(mine), &all, &err), STATUS_OK);
	assert_int_equal(all, 5);
}

int main(void)
{
#define test(name)                                                                                           \
	cmocka_unit_test_setup(test_team_links__##name, over_threads),                                       \
	{                                                                                                    \
		"wires: " #name, test_team_links__##name, over_wires, over_threads, NULL                     \
	}
	const struct CMUnitTest tests[] = {
		test(bytes_come_from_the_right_rank_every_time),
		test(the_worst_of_the_lowest_rank_is_everybodys),
		test(who_does_not_come_is_named_at_the_limit),
		test(who_leaves_ends_the_wait_of_all_at_once),
		test(different_agreements_are_a_bug_on_all),
		test(commands_come_in_order_and_answers_of_each),
		test(nobody_answering_or_taking_is_told),
		test(long_answers_come_whole),
		cmocka_unit_test(test_team_links__a_worker_that_is_gone_is_named_to_all),
		cmocka_unit_test(test_team_links__who_has_another_secret_or_none_is_not_let_in),
		cmocka_unit_test(test_team_links__a_crowd_at_the_door_turns_nobody_away),
		cmocka_unit_test(test_team_links__a_team_of_one_agrees_with_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
