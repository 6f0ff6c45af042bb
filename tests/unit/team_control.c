/* SPDX-License-Identifier: Apache-2.0 */
/* Teams over the loopback interface. Limits that must pass are short; those that must not are long. */
#include "test.h"

#include "team/rendezvous.h"
#include "team/wire.h"
#include "team_bed.h"

static const char *const other_secret[] = {"ASSAY_TEAM_SECRET=another secret of it", NULL};

static enum status whole_run(struct actor *a)
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
		st = control_begin(a->control, 1, "key a", &mine, &a->agreed, &a->generation, LONG_MS, &a->err);
	if (!st)
		st = attend(a, 30);
	if (!st)
		st = control_end(a->control, ENDING_DONE, &a->worst, &a->who, LONG_MS, &a->err);
	return st ? st : control_part(a->control, LONG_MS, &a->err);
}

static void test_control__a_run_from_join_to_leave(void **state)
{
	json_t *about = json_pack("{s:s,s:[s]}", "boot", "b1", "gpus", "0000:18:00.0");
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
		assert_string_equal(shape->node[2].name, "node-b");
		assert_int_equal(shape->node[2].leader, 2);
		assert_int_equal(shape->node[2].ranks, 2);
		assert_int_equal(shape->rank[3].local_rank, 1);
		assert_non_null(strstr(shape->node[2].host, "127.0.0.1"));
		assert_true(shape->node[2].joined.at_ns && shape->node[2].parted.at_ns > shape->node[2].joined.at_ns);
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
	enum status st = control_gather(a->control, "what each has", json_pack("{s:i}", "own", 1 << a->o.place.rank), &all,
					LONG_MS, &a->err);

	json_array_foreach(all, r, one) sum += (unsigned)json_integer_value(json_object_get(one, "own")) * (r + 1);
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
	assert_int_equal(control_gather(NULL, "alone", json_pack("{s:i}", "own", 7), &all, 0, NULL), STATUS_OK);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(all, 0), "own")), 7);
	json_decref(all);
}

/* Who asks another question stands elsewhere; who does not come is named. */
static enum status say_another(struct actor *a)
{
	json_t *all;
	enum status st = control_gather(a->control, a->o.place.rank == 1 ? "figures" : "groups", json_object(), &all,
					LONG_MS, &a->err);

	assert_null(all);
	return st;
}

static void test_control__words_of_two_questions(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, say_another);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a stands at figures", "rank 0 stands at groups");
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

/* Who is refused, and all others with him, hear the same sentence. */
static void test_control__a_wrong_world_size(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 4, NULL);
	s.actor[2].o.place.size = 5;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 2 on node-a", "one of 5 ranks, and rank 0 for one of 4");
}

static void test_control__a_rank_twice(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 4, NULL);
	s.actor[3].o.place.rank = 2;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "two processes say that they are rank 2", "127.0.0.1");
}

static void test_control__mixed_builds(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, NULL);
	s.actor[1].o.build = "fedcba9876543210";
	stage_play(&s);
	all_fail(&s, CAUSE_VERSION_MISMATCH, "rank 1 on node-a", "build fedcba9876543210");
}

/* They join: what they cannot measure is said by their cases. */
static void test_control__ranks_of_one_gpu_are_named(void **state)
{
	json_t *about = json_pack("{s:s,s:[s],s:b}", "boot", "b1", "gpus", "0000:18:00.0", "given", 1);
	struct text names = {0};
	struct stage s;
	unsigned lowest = 9;

	(void)state;
	stage_set(&s, 5, NULL);
	s.actor[1].o.about = s.actor[2].o.about = s.actor[4].o.about = about;
	stage_play(&s);
	all_well(&s);
	for (unsigned r = 0; r < 5; r++) {
		const struct team_shape *shape = s.actor[r].shape;
		unsigned node = shape->rank[1].node;

		assert_int_equal(control_gpu_ranks(shape, node, "0000:18:00.0", &lowest, &names), 3);
		assert_int_equal(lowest, 1);
		assert_string_equal(text_str(&names), "1-2, 4");
		assert_int_equal(control_gpu_ranks(shape, node, "0000:19:00.0", NULL, NULL), 0);
		assert_int_equal(control_gpu_ranks(shape, !node, "0000:18:00.0", NULL, NULL), 0);
		text_release(&names);
	}
	stage_clear(&s);
	json_decref(about);
}

/* A list of one's own: its first. One that several see: each has another of it, as its launcher numbers them where all
 * of the node see it. */
static void test_control__each_rank_has_one_of_the_gpus_it_sees(void **state)
{
	static const struct {
		const char *seen[3], *own[3];
		bool backwards; /* as the launcher numbers them */
	} row[] = {
		{{"01", "23", "45"}, {"0", "2", "4"}, false}, {{"01", "23", "45"}, {"0", "2", "4"}, true},
		{{"012", "012", "012"}, {"0", "1", "2"}, false}, {{"012", "012", "012"}, {"2", "1", "0"}, true},
		{{"01", "01", "23"}, {"0", "1", "2"}, false}, {{"01", "01", "01"}, {"0", "1", ""}, false},
		{{"5", "5", "5"}, {"5", "", ""}, false},      {{"01", "", "01"}, {"0", "", "1"}, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		json_t *about[3];
		struct stage s;

		stage_set(&s, 3, NULL);
		for (unsigned r = 0; r < 3; r++) {
			json_t *gpus = json_array();

			for (const char *g = row[i].seen[r]; *g; g++)
				json_array_append_new(gpus, json_stringn(g, 1));
			s.actor[r].o.about = about[r] = json_pack("{s:o}", "gpus", gpus);
			if (row[i].backwards) {
				s.actor[r].o.place.local_rank = 2 - r;
				s.actor[r].o.place.local_size = 3;
			}
		}
		stage_play(&s);
		all_well(&s);
		for (unsigned r = 0; r < 3; r++)
			for (unsigned q = 0; q < 3; q++) {
				const struct team_rank *t = &s.actor[r].shape->rank[q];

				assert_int_equal(t->gpu_count, strlen(row[i].own[q]));
				assert_string_equal(t->gpu_count ? t->pci[0] : "", row[i].own[q]);
			}
		stage_clear(&s);
		for (unsigned r = 0; r < 3; r++)
			json_decref(about[r]);
	}
}

static void test_control__a_rank_that_says_nonsense_of_itself(void **state)
{
	json_t *about = json_pack("{s:[i]}", "gpus", 3);
	struct stage s;

	(void)state;
	stage_set(&s, 2, NULL);
	s.actor[1].o.about = about;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 says nothing sound", "GPUs");
	json_decref(about);
}

static void test_control__another_secret(void **state)
{
	struct stage s;
	unsigned limit_ms = 1500;

	(void)state;
	do {
		stage_set(&s, 3, NULL);
		s.actor[2].o.env = team_env(other_secret);
		for (unsigned r = 0; r < 3; r++)
			s.actor[r].o.join_ms = limit_ms;
		stage_play(&s);
		s.count = 2;
	} while (again_longer(&s, &limit_ms, CAUSE_TEAM_LATE, "1 of 3 ranks", "with another secret"));
	assert_int_equal(s.actor[2].err.cause, CAUSE_TEAM_REFUSED);
	assert_non_null(strstr(s.actor[2].err.text, "another secret than rank 2"));
	s.count = 2;
	all_fail(&s, CAUSE_TEAM_LATE, "1 of 3 ranks did not come", "came as rank 2 with another secret");
}

static void test_control__nobody_there(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 2, NULL);
	s.actor[1].o.join_ms = SHORT_MS;
	s.actor[0].o.join_ms = SHORT_MS;
	s.actor[0].o.place.rank = 1; /* both look for a rank 0 that is not there */
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "rank 1 did not reach rank 0 within 0.4 s: 127.0.0.1, port", "Connection refused");
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.size = 3;
	s.actor[0].o.join_ms = SHORT_MS;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "2 of 3 ranks did not come within 0.4 s", "rank 1, 2");
}

static void test_control__a_host_that_cannot_be_reached(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.rank = 1;
	s.actor[0].o.place.size = 2;
	s.actor[0].o.join_ms = SHORT_MS;
	text_copy(s.actor[0].o.place.host, 256, "255.255.255.255"); /* no route is ever there */
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "255.255.255.255, port", ":");
	s.actor[0].err = (struct error){0};
	text_copy(s.actor[0].o.place.host, 256, "127.0.0.1");
	s.actor[0].o.interface = "no-such-interface";
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "from no-such-interface", "Cannot assign");
	s.actor[0].err = (struct error){0};
	s.actor[0].o.place.rank = 0;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 0 cannot listen at no-such-interface", "");
}

static void test_control__both_families_and_one_interface(void **state)
{
	struct stage s;
	int fd = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool six = fd >= 0 && !bind(fd, (struct sockaddr *)&a, sizeof(a));

	(void)state;
	if (fd >= 0)
		close(fd);
	stage_set(&s, 3, whole_run);
	text_copy(s.actor[2].o.place.host, 256, six ? "::1" : "127.0.0.1");
	stage_play(&s);
	all_well(&s);
	stage_clear(&s);
	stage_set(&s, 2, whole_run);
	s.actor[0].o.interface = "lo";
	s.actor[1].o.interface = "127.0.0.1";
	stage_play(&s);
	all_well(&s);
	stage_clear(&s);
}

static int occupy(uint16_t port)
{
	struct listener l;

	if (rendezvous_listen(&l, port, "127.0.0.1", NULL))
		return -1;
	assert_true(l.fd[0] >= 0 && l.fd[1] < 0);
	return l.fd[0];
}

static void test_control__a_port_in_use(void **state)
{
	int fd[RENDEZVOUS_PORTS];
	struct stage s;

	(void)state;
	stage_set(&s, 2, whole_run);
	fd[0] = occupy(s.port); /* somebody who listens and never answers */
	stage_play(&s);
	all_well(&s);
	stage_clear(&s);
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.size = 2;
	for (unsigned i = 1; i < RENDEZVOUS_PORTS; i++)
		fd[i] = occupy(s.port);
	close(fd[0]);
	fd[0] = occupy(s.port);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "ports", "are in use");
	for (unsigned i = 0; i < RENDEZVOUS_PORTS; i++)
		close(fd[i]);
}

/* Two teams that were told the same port, with secrets of their own. */
/* Both are told one port and have a secret each; job_of_b NULL: they have one name. */
static void two_teams(const char *job_of_b)
{
	struct stage a, b;

	stage_set(&a, 2, whole_run);
	stage_set(&b, 2, whole_run);
	for (unsigned r = 0; r < 2; r++) {
		b.actor[r].o.place.port = a.port;
		b.actor[r].o.env = team_env(other_secret);
		if (job_of_b)
			text_copy(b.actor[r].o.place.job, 64, job_of_b);
		pthread_create(&a.actor[r].thread, NULL, act, &a.actor[r]);
	}
	stage_play(&b);
	for (unsigned r = 0; r < 2; r++)
		pthread_join(a.actor[r].thread, NULL);
	all_well(&a);
	all_well(&b);
	stage_clear(&a);
	stage_clear(&b);
}

static void test_control__two_teams_at_one_port(void **state)
{
	(void)state;
	two_teams("job of b");
	two_teams(NULL);
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
	static const char named[] = "rank 2 on node-b (last: its greeting) did not come to line 7 of round 1 within";
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
	all_fail(&s, CAUSE_TEAM_LATE, "rank 0 on node-a did not come to line 7 of round 1", "");
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

	return control_begin(a->control, 1, a->o.place.rank == 1 ? "key b" : "key a", &mine, &a->agreed, &a->generation, LONG_MS,
			     &a->err);
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
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a stands at line 8 of round 1", "rank 0 stands at line 7");
	stage_clear(&s);
	stage_set(&s, 3, another_key);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 on node-a begins another case", "case 1");
	stage_clear(&s);
	stage_set(&s, 2, another_share);
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 0 shared 8 bytes where rank 1 waits for 9", "");
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
	enum status st = control_begin(a->control, 1, "key", &none, &a->agreed, &a->generation, LONG_MS, &a->err);
	bool mine = a->o.place.rank == who_falls;

	if (!st && !mine)
		st = attend(a, LONG_MS); /* until we hear of it */
	if (!st)
		st = control_end(a->control, mine ? ENDING_CRASHED : ENDING_CANCELLED, &a->worst, &a->who, LONG_MS, &a->err);
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
	error_set_cause(&a->err, STATUS_UNAVAILABLE, CAUSE_TEAM_LOST, "lost rank 1 on node-a: it left the team");
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

static void doze(void *arg, uint64_t ns)
{
	(void)arg;
	clock_sleep_ns(clock_monotonic(), ns);
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
			assert_true((uint64_t)llabs((long long)(k->offset_ns - 3600000000000ll)) <= k->error_ns);
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
	assert_int_equal(control_share(s.actor[0].control, bytes, sizeof(bytes), LONG_MS, &err), STATUS_BAD_INPUT);
	stage_clear(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_control__a_run_from_join_to_leave),
		cmocka_unit_test(test_control__the_longest_work_of_a_line_is_told_to_all),
		cmocka_unit_test(test_control__a_word_of_each_to_all),
		cmocka_unit_test(test_control__words_of_two_questions),
		cmocka_unit_test(test_control__alone_it_is_a_team_of_one),
		cmocka_unit_test(test_control__a_wrong_world_size),
		cmocka_unit_test(test_control__a_rank_twice),
		cmocka_unit_test(test_control__mixed_builds),
		cmocka_unit_test(test_control__ranks_of_one_gpu_are_named),
		cmocka_unit_test(test_control__each_rank_has_one_of_the_gpus_it_sees),
		cmocka_unit_test(test_control__a_rank_that_says_nonsense_of_itself),
		cmocka_unit_test(test_control__another_secret),
		cmocka_unit_test(test_control__nobody_there),
		cmocka_unit_test(test_control__a_host_that_cannot_be_reached),
		cmocka_unit_test(test_control__both_families_and_one_interface),
		cmocka_unit_test(test_control__a_port_in_use),
		cmocka_unit_test(test_control__two_teams_at_one_port),
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
