/* SPDX-License-Identifier: Apache-2.0 */
/* How teams are joined over the loopback interface, and who is refused, missed or not found. */
#include "test.h"

#include "team/transport/rendezvous.h"
#include "team_bed.h"

static const char *const other_secret[] = {"ASSAY_TEAM_SECRET=another secret of it", NULL};

/* Who is refused, and all others with him, hear the same sentence. */
static void test_join__a_wrong_world_size(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 4, NULL);
	s.actor[2].o.place.size = 5;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 2 on node-a", "a team of 5 ranks, and rank 0 for one of 4");
}

static void test_join__a_rank_twice(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 4, NULL);
	s.actor[3].o.place.rank = 2;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "two processes claim to be rank 2", "127.0.0.1");
}

static void test_join__mixed_builds(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 3, NULL);
	s.actor[1].o.build = "fedcba9876543210";
	stage_play(&s);
	all_fail(&s, CAUSE_VERSION_MISMATCH, "rank 1 on node-a", "build fedcba9876543210");
}

/* They join: what they cannot measure is said by their cases. */
static void test_join__ranks_of_one_gpu_are_named(void **state)
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

/* A list of one's own: its first. One that several see: each has another of it, as its launcher numbers them
 * where all of the node see it. */
static void test_join__each_rank_has_one_of_the_gpus_it_sees(void **state)
{
	static const struct {
		const char *seen[3], *own[3];
		bool backwards; /* as the launcher numbers them */
	} row[] = {
		{{"01", "23", "45"}, {"0", "2", "4"}, false},
		{{"01", "23", "45"}, {"0", "2", "4"}, true},
		{{"012", "012", "012"}, {"0", "1", "2"}, false},
		{{"012", "012", "012"}, {"2", "1", "0"}, true},
		{{"01", "01", "23"}, {"0", "1", "2"}, false},
		{{"01", "01", "01"}, {"0", "1", ""}, false},
		{{"5", "5", "5"}, {"5", "", ""}, false},
		{{"01", "", "01"}, {"0", "", "1"}, false},
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

static void test_join__a_rank_that_says_nonsense_of_itself(void **state)
{
	json_t *about = json_pack("{s:[i]}", "gpus", 3);
	struct stage s;

	(void)state;
	stage_set(&s, 2, NULL);
	s.actor[1].o.about = about;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 sent invalid facts", "GPUs");
	json_decref(about);
}

static void test_join__a_node_whose_network_is_nonsense(void **state)
{
	json_t *about = json_pack("{s:{s:f, s:i}}", "network", "rate", -1.0, "gpus", 8);
	struct stage s;

	(void)state;
	stage_set(&s, 2, NULL);
	s.actor[1].o.about = about;
	text_copy(s.actor[1].o.place.node, 64, "node-b");
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 1 sent invalid facts", "network");
	json_decref(about);
}

static void test_join__another_secret(void **state)
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
	all_fail(&s, CAUSE_TEAM_LATE, "1 of 3 ranks did not join", "came as rank 2 with another secret");
}

static void test_join__nobody_there(void **state)
{
	struct stage s;

	(void)state;
	stage_set(&s, 2, NULL);
	s.actor[1].o.join_ms = SHORT_MS;
	s.actor[0].o.join_ms = SHORT_MS;
	s.actor[0].o.place.rank = 1; /* both look for a rank 0 that is not there */
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "rank 1 did not reach rank 0 within 0.4 s: 127.0.0.1, port",
		 "Connection refused");
	stage_set(&s, 1, NULL);
	s.actor[0].o.place.size = 3;
	s.actor[0].o.join_ms = SHORT_MS;
	stage_play(&s);
	all_fail(&s, CAUSE_TEAM_LATE, "2 of 3 ranks did not join within 0.4 s", "rank 1, 2");
}

static void test_join__a_host_that_cannot_be_reached(void **state)
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
	all_fail(&s, CAUSE_TEAM_REFUSED, "rank 0 cannot listen on no-such-interface", "");
}

static void test_join__both_families_and_one_interface(void **state)
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

static void test_join__a_port_in_use(void **state)
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

/* Two teams: both are told one port and have a secret each; job_of_b NULL: they have one name. */
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

static void test_join__two_teams_at_one_port(void **state)
{
	(void)state;
	two_teams("job of b");
	two_teams(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_join__a_wrong_world_size),
		cmocka_unit_test(test_join__a_rank_twice),
		cmocka_unit_test(test_join__mixed_builds),
		cmocka_unit_test(test_join__ranks_of_one_gpu_are_named),
		cmocka_unit_test(test_join__each_rank_has_one_of_the_gpus_it_sees),
		cmocka_unit_test(test_join__a_rank_that_says_nonsense_of_itself),
		cmocka_unit_test(test_join__a_node_whose_network_is_nonsense),
		cmocka_unit_test(test_join__another_secret),
		cmocka_unit_test(test_join__nobody_there),
		cmocka_unit_test(test_join__a_host_that_cannot_be_reached),
		cmocka_unit_test(test_join__both_families_and_one_interface),
		cmocka_unit_test(test_join__a_port_in_use),
		cmocka_unit_test(test_join__two_teams_at_one_port),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
