/* SPDX-License-Identifier: Apache-2.0 */
/* What a team agrees on from join to leave, over the loopback interface; team_join.c: how it comes together.
 * Limits that must pass are short; those that must not are long. */
#include "test.h"

#include "team/transport/frame.h"
#include "team_bed.h"

static void test_control__a_run_from_join_to_leave(void **state)
{
	json_t *about = json_pack("{s:s,s:[s],s:{s:f,s:i}}", "boot", "b1", "gpus", "0000:18:00.0", "network", "rate",
				  4e11, "gpus", 8);
	struct stage s;

	(void)state;
	stage_set(&s, 4, whole_run);
	s.actor[0].o.about = about; /* the others say nothing of GPUs */
	text_copy(s.actor[2].o.place.node, 64, "node-b");
	text_copy(s.actor[3].o.place.node, 64, "node-b");
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 4; r++) {
		const struct team_shape *shape = s.actor[r].shape;

		assert_int_equal(shape->size, 4);
		assert_int_equal(shape->nodes, 3); /* rank 1 has no boot id: another host of that name */
		assert_string_equal(shape->rank[0].pci[0], "0000:18:00.0");
		assert_int_equal(shape->rank[1].gpu_count, 0);
		assert_float_equal(shape->node[0].network, 4e11, 1);
		assert_int_equal(shape->node[0].gpus, 8);
		assert_float_equal(shape->node[2].network, 0, 0.5);
		assert_string_equal(shape->node[2].name, "node-b");
		assert_int_equal(shape->node[2].leader, 2);
		assert_int_equal(shape->node[2].ranks, 2);
		assert_int_equal(shape->rank[3].local_rank, 1);
		assert_non_null(strstr(shape->node[2].host, "127.0.0.1"));
		assert_true(shape->node[2].joined.at_ns &&
			    shape->node[2].parted.at_ns > shape->node[2].joined.at_ns);
		assert_int_equal(s.actor[r].worst, ENDING_DONE);
		assert_int_equal(s.actor[r].agreed.status, STATUS_OK);
	}
	stage_clear(&s);
	json_decref(about);
}

/* Who has little to do in a line waits for who has more. */
static enum status tell_work(struct actor *a)
{
	unsigned work_ms = 1000 * (1 + a->o.place.rank % 2 * 80);
	enum status st = control_line(a->control, 1, 1, &work_ms, LONG_MS, &a->err);

	a->generation = work_ms;
	work_ms = 7;
	if (!st)
		st = control_line(a->control, 1, 2, &work_ms, LONG_MS, &a->err);
	a->who = work_ms;
	return st ? st : control_part(a->control, LONG_MS, &a->err);
}

static void test_control__the_longest_work_of_a_line_is_told_to_all(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, tell_work);
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 3; r++) {
		assert_int_equal(s.actor[r].generation, 81000); /* rank 1's */
		assert_int_equal(s.actor[r].who, 7);
	}
	stage_clear(&s);
}

/* Each rank's own word reaches each, by rank. */
static enum status say_and_hear(struct actor *a)
{
	unsigned sum = 0;
	json_t *all, *one;
	size_t r;
	enum status st =
		control_gather(a->control, "what each has", json_pack("{s:i}", "own", 1 << a->o.place.rank),
			       &all, LONG_MS, &a->err);

	json_array_foreach(all, r, one) sum +=
		(unsigned)json_integer_value(json_object_get(one, "own")) * (r + 1);
	json_decref(all);
	if (!st && sum != 1 * 1 + 2 * 2 + 4 * 3)
		st = STATUS_MISMATCH;
	control_rank_host(a->control, 2, a->agreed.text);
	return st ? st : control_part(a->control, LONG_MS, &a->err);
}

static void test_control__a_word_of_each_to_all(void **state)
{
	struct stage s;
	json_t *all = NULL;

	(void)state;
	stage_set(&s, 3, say_and_hear);
	text_copy(s.actor[2].o.place.node, 64, "node-b");
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 3; r++) /* without the port that rank 0 saw it come from */
		assert_string_equal(s.actor[r].agreed.text, "127.0.0.1");
	stage_clear(&s);
	assert_int_equal(control_gather(NULL, "alone", json_pack("{s:i}", "own", 7), &all, 0, NULL),
			 STATUS_OK);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 0), "own")), 7);
	json_decref(all);
}

/* A clock that is twenty times as fast: what rank 0 takes half a second for, takes ten here. */
static uint64_t hasty_now(void *arg)
{
	(void)arg;
	return 20 * clock_now_ns(clock_monotonic());
}
static const struct clock hasty = {hasty_now, doze, NULL};

static void keep_line(void *arg, enum log_level level, enum log_topic topic, const char *line)
{
	(void)topic;
	if (level == LOG_INFO)
		text_addf(arg, "%s\n", line);
}

static enum status wait_for_zero(struct actor *a)
{
	json_t *all = NULL;
	enum status st;

	if (!a->o.place.rank)
		clock_sleep_ns(clock_monotonic(), 700000000);
	st = control_gather(a->control, "the next round", json_object(), &all, 20 * LONG_MS, &a->err);
	json_decref(all);
	return st ? st : control_part(a->control, 20 * LONG_MS, &a->err);
}

static void test_control__a_long_wait_for_rank_0_is_told_once(void **state)
{
	struct text said[3] = {{0}};
	struct log log[3];
	struct stage s;

	(void)state;
	stage_set(&s, 3, wait_for_zero);
	for (unsigned r = 0; r < 3; r++) {
		log[r] = (struct log){.sink = keep_line, .arg = &said[r]};
		s.actor[r].o.log = &log[r];
		s.actor[r].o.quiet_ms = 20 * LONG_MS;
	}
	s.actor[1].o.clock = &hasty;
	s.actor[1].o.join_ms = 20 * LONG_MS;
	stage_play(&s);
	all_well(&s);
	assert_string_equal(text_str(&said[0]), "");
	assert_string_equal(text_str(&said[1]), "waiting for rank 0 to reach the next round, 1190 s at most\n");
	assert_string_equal(text_str(&said[2]), ""); /* it has waited less than a second */
	for (unsigned r = 0; r < 3; r++)
		text_release(&said[r]);
	stage_clear(&s);
}

/* Who asks another question stands elsewhere; who does not come is named. */
static enum status say_another(struct actor *a)
{
	json_t *all;
	enum status st = control_gather(a->control, a->o.place.rank == 1 ? "figures" : "groups",
					json_object(), &all, LONG_MS, &a->err);

	assert_null(all);
	return st;
}

static void test_control__words_of_two_questions(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, say_another);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a is at figures", "rank 0 is at groups");
	stage_clear(&s);
}

static void test_control__alone_it_is_a_team_of_one(void **state)
{
	struct actor a = {.o.place = {.size = 1}};
	const struct error mine = {STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, NULL, 0, "no such engine"};

	(void)state;
	assert_int_equal(control_join(&a.control, &a.o, &a.err), STATUS_OK);
	assert_null(a.control);
	assert_null(control_shape(NULL));
	assert_int_equal(control_line(NULL, 1, 1, NULL, 0, &a.err), STATUS_OK);
	assert_int_equal(control_begin(NULL, 1, "k", &mine, &a.agreed, &a.generation, 0, &a.err), STATUS_OK);
	assert_string_equal(a.agreed.text, "no such engine");
	assert_int_equal(control_end(NULL, ENDING_CRASHED, &a.worst, &a.who, 0, &a.err), STATUS_OK);
	assert_int_equal(a.worst, ENDING_CRASHED);
	assert_int_equal(control_share(NULL, &a, sizeof(a), 0, &a.err), STATUS_OK);
	assert_int_equal(control_attend(NULL, &a.fell, &a.err), STATUS_OK);
	assert_int_equal(control_fds(NULL, NULL, 0), 0);
	assert_int_equal(control_part(NULL, 0, &a.err), STATUS_OK);
	control_leave(&a.control);
	a.o.place.size = 5000;
	assert_int_equal(control_join(&a.control, &a.o, &a.err), STATUS_BAD_INPUT);
}

static unsigned line_ms;

static enum status late_at_line(struct actor *a)
{
	if (a->o.place.rank == 2)
		return attend(a, LONG_MS);
	return control_line(a->control, 1, 7, NULL, line_ms, &a->err);
}

static enum status zero_late(struct actor *a)
{
	return a->o.place.rank ? control_line(a->control, 1, 7, NULL, line_ms, &a->err) : attend(a, LONG_MS);
}

static void test_control__a_late_rank_is_named_to_all(void **state)
{
	static const char named[] =
		"rank 2 on node-b (last: its greeting) did not reach line 7 of round 1 within";
	struct stage s;

	(void)state;
	for (line_ms = SHORT_MS;; stage_clear(&s)) {
		stage_set(&s, 4, late_at_line);
		text_copy(s.actor[2].o.place.node, 64, "node-b");
		stage_play(&s);
		if (!again_longer(&s, &line_ms, CAUSE_TEAM_LATE, named, ""))
			break;
	}
	all_fail(&s, CAUSE_TEAM_LATE, named, "");
	stage_clear(&s);
	line_ms = SHORT_MS;
	stage_set(&s, 3, zero_late);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "rank 0 on node-a did not reach line 7 of round 1", "");
	/* What ended the team is said again at once. */
	assert_int_equal(control_line(s.actor[1].control, 1, 8, NULL, LONG_MS, NULL), STATUS_UNAVAILABLE);
	assert_int_equal(control_share(s.actor[1].control, &s, 1, LONG_MS, NULL), STATUS_UNAVAILABLE);
	stage_clear(&s);
}

static enum status another_line(struct actor *a)
{
	return control_line(a->control, 1, a->o.place.rank == 1 ? 8 : 7, NULL, LONG_MS, &a->err);
}

static enum status another_key(struct actor *a)
{
	const struct error mine = {0};

	return control_begin(a->control, 1, a->o.place.rank == 1 ? "key b" : "key a", &mine, &a->agreed,
			     &a->generation, LONG_MS, &a->err);
}

static enum status another_share(struct actor *a)
{
	char bytes[9] = "";
	enum status st = control_share(a->control, bytes, a->o.place.rank ? 9 : 8, LONG_MS, &a->err);

	return st || a->o.place.rank ? st : attend(a, LONG_MS);
}

static void test_control__suites_that_differ(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, another_line);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a is at line 8 of round 1",
		 "rank 0 is at line 7");
	stage_clear(&s);
	stage_set(&s, 3, another_key);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a begins another case", "case 1");
	stage_clear(&s);
	stage_set(&s, 2, another_share);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 0 shared 8 bytes, and rank 1 expects 9", "");
	stage_clear(&s);
}

static enum status skip_case(struct actor *a)
{
	struct error mine = {0};

	if (a->o.place.rank == 1)
		error_set_cause(&mine, STATUS_UNSUPPORTED, CAUSE_UNSUPPORTED, "no FP8 here");
	if (a->o.place.rank == 2)
		error_set_cause(&mine, STATUS_NO_RESOURCE, CAUSE_NO_MEMORY, "no room");
	return control_begin(a->control, 1, "key", &mine, &a->agreed, &a->generation, LONG_MS, &a->err);
}

static void test_control__one_ranks_skip_is_everybodys(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, skip_case);
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 3; r++) {
		assert_int_equal(s.actor[r].agreed.status, STATUS_NO_RESOURCE); /* the worst of all */
		assert_int_equal(s.actor[r].agreed.cause, CAUSE_NO_MEMORY);
		assert_string_equal(s.actor[r].agreed.text, "rank 2 on node-a: no room");
	}
	stage_clear(&s);
}

static unsigned who_falls;

static enum status fall(struct actor *a)
{
	const struct error none = {0};
	enum status st =
		control_begin(a->control, 1, "key", &none, &a->agreed, &a->generation, LONG_MS, &a->err);
	bool mine = a->o.place.rank == who_falls;

	if (!st && !mine)
		st = attend(a, LONG_MS); /* until we hear of it */
	if (!st)
		st = control_end(a->control, mine ? ENDING_CRASHED : ENDING_CANCELLED, &a->worst, &a->who,
				 LONG_MS, &a->err);
	if (!st)
		st = control_begin(a->control, 2, "key", &none, &a->agreed, &a->generation, LONG_MS, &a->err);
	return st;
}

static void test_control__a_worker_that_fell_is_told_at_once(void **state)
{
	struct stage s;

	(void)state;
	for (who_falls = 0; who_falls < 3; who_falls++) {
		stage_set(&s, 3, fall);
		stage_play(&s);
		all_well(&s);
		for (unsigned r = 0; r < 3; r++) {
			assert_int_equal(s.actor[r].worst, ENDING_CRASHED);
			assert_int_equal(s.actor[r].who, who_falls);
			assert_int_equal(s.actor[r].generation, 1);
			assert_true(s.actor[r].fell || r == who_falls);
		}
		stage_clear(&s);
	}
}

static enum status leave_early(struct actor *a)
{
	if (a->o.place.rank != 1)
		return attend(a, LONG_MS);
	control_leave(&a->control);
	error_set_cause(&a->err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST,
			"lost rank 1 on node-a: it left the team");
	return STATUS_UNAVAILABLE;
}

static void test_control__who_leaves_early_ends_it(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, leave_early);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LOST, "lost rank 1 on node-a", "left the team");
	stage_clear(&s);
}

static volatile sig_atomic_t stop_one;

static enum status stop_in_line(struct actor *a)
{
	if (a->o.place.rank == 1)
		stop_one = 1;
	return control_line(a->control, 1, a->o.place.rank == 2 ? 99 : 1, NULL, LONG_MS, &a->err);
}

static enum status stop_while_waiting(struct actor *a)
{
	if (a->o.place.rank == 2)
		return attend(a, LONG_MS);
	return stop_in_line(a);
}

static void test_control__a_request_to_stop_ends_it_for_all(void **state)
{
	struct stage s;

	(void)state;
	stop_one = 0;
	stage_set(&s, 3, stop_while_waiting);
	s.actor[1].o.stop = &stop_one;
	stage_play(&s);
	all_fail(&s, CAUSE_INTERRUPTED, "stopped on request", "");
	assert_int_equal(s.actor[0].st, STATUS_CANCELLED);
	stage_clear(&s);
	stop_one = 1;
	stage_set(&s, 2, NULL); /* before anybody has come */
	s.actor[0].o.stop = s.actor[1].o.stop = &stop_one;
	stage_play(&s);
	all_fail(&s, CAUSE_INTERRUPTED, "stopped on request", "");
	stop_one = 0;
}

/* A clock that runs an hour ahead. */
static uint64_t ahead(void *arg)
{
	(void)arg;
	return clock_now_ns(clock_monotonic()) + 3600000000000ull;
}

static void test_control__clocks_of_nodes_are_told_apart(void **state)
{
	const struct clock another = {ahead, doze, NULL};
	const struct team_clock *k;
	struct stage s;

	(void)state;
	stage_set(&s, 2, whole_run);
	text_copy(s.actor[1].o.place.node, 64, "node-b");
	s.actor[1].o.clock = &another;
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 2; r++)
		for (int parted = 0; parted < 2; parted++) {
			k = parted ? &s.actor[r].shape->node[1].parted : &s.actor[r].shape->node[1].joined;
			assert_true(k->error_ns > 0 && k->error_ns < 1000000000u);
			assert_true((uint64_t)llabs((long long)(k->offset_ns - 3600000000000ll)) <=
				    k->error_ns);
		}
	assert_int_equal(s.actor[0].shape->node[0].joined.offset_ns, 0);
	stage_clear(&s);
}

static void test_control__too_much_to_share(void **state)
{
	static char bytes[WIRE_FRAME_MAX + 1];
	struct stage s;
	struct error err = {0};

	(void)state;
	stage_set(&s, 2, NULL);
	stage_play(&s);
	all_well(&s);
	assert_int_equal(control_share(s.actor[0].control, bytes, sizeof(bytes), LONG_MS, &err),
			 STATUS_BAD_INPUT);
	stage_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control__a_run_from_join_to_leave),
		cmocka_unit_test(test_control__the_longest_work_of_a_line_is_told_to_all),
		cmocka_unit_test(test_control__a_word_of_each_to_all),
		cmocka_unit_test(test_control__a_long_wait_for_rank_0_is_told_once),
		cmocka_unit_test(test_control__words_of_two_questions),
		cmocka_unit_test(test_control__alone_it_is_a_team_of_one),
		cmocka_unit_test(test_control__a_late_rank_is_named_to_all),
		cmocka_unit_test(test_control__suites_that_differ),
		cmocka_unit_test(test_control__one_ranks_skip_is_everybodys),
		cmocka_unit_test(test_control__a_worker_that_fell_is_told_at_once),
		cmocka_unit_test(test_control__who_leaves_early_ends_it),
		cmocka_unit_test(test_control__a_request_to_stop_ends_it_for_all),
		cmocka_unit_test(test_control__clocks_of_nodes_are_told_apart),
		cmocka_unit_test(test_control__too_much_to_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
