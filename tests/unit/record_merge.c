/* SPDX-License-Identifier: Apache-2.0 */
/* Journals of a team as one record; the team is that of team_run.h. */
#include "test.h"

#include "journal/record/record.h"
#include "journal/record/merge.h"
#include "team_run.h"

static void read_it(struct record *r, const char *dir)
{
	struct error err = {0};

	if (record_read_run(r, dir, &err))
		fail_msg("%s", err.text);
}

static void test_merge__all_ranks_are_one_record(void **state)
{
	static const char *const where[] = {"node-a/gpu0", "team", "node-a/gpu0", "node-a/cpu", "node-b/gpu0", "node-b/gpu0",
					    "node-b/cpu", "node-b/gpu1", "node-b/gpu1"};
	static const unsigned step[] = {0, 1, 2, 2, 3, 5, 5, 6, 8};
	struct record r, slice;

	team_write_all(*state);
	read_it(&r, *state);
	assert_int_equal(r.node_count, 2);
	assert_string_equal(r.node[0].name, "node-a");
	assert_int_equal(r.node[1].state, NODE_WHOLE);
	assert_string_equal(r.node[1].why, "");
	assert_int_equal(r.node[1].leader, 1);
	assert_int_equal(r.node[1].ranks, 2);
	assert_int_equal(r.case_count, 9);
	for (unsigned i = 0; i < 9; i++) {
		assert_int_equal(r.cases[i].id, i);
		assert_string_equal(r.cases[i].where, where[i]);
		assert_int_equal(r.cases[i].step, step[i]);
		assert_true(r.cases[i].ended);
	}
	assert_string_equal(r.cases[7].target, "gpu1"); /* gpu0 to rank 2 itself */
	assert_int_equal(r.cases[7].rank, 2);
	assert_int_equal(json_array_size(json_object_get(r.node[1].machine, "gpus")), 2);
	assert_int_equal(json_integer_value(json_object_get(r.cases[8].plan, "again")), 7);
	assert_int_equal(json_integer_value(json_object_get(r.cases[5].plan, "again")), 4);
	record_slice(&slice, &r, 1);
	assert_int_equal(slice.case_count, 5);
	assert_ptr_equal(slice.cases, &r.cases[4]);
	assert_ptr_equal(slice.machine, r.node[1].machine);
	assert_int_equal(slice.node_count, 0);
	record_release(&r);
}

static void test_merge__a_team_case_is_one_with_what_each_rank_told(void **state)
{
	const struct record_case *c;
	struct record r;

	team_write_all(*state);
	read_it(&r, *state);
	c = &r.cases[1];
	assert_string_equal(c->target, "team");
	assert_int_equal(c->rank_count, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(c->ranks[i].rank, i + 1);
		assert_true(c->ranks[i].ended && c->ranks[i].ending == ENDING_DONE);
		assert_int_equal(json_integer_value(json_object_get(c->ranks[i].values, "time_ns_mean")), 101 + i);
	}
	record_release(&r);
}

/* Times of node-b were made from rank 0's: they come back to them, but for the rounding of the drift. */
static void test_merge__times_are_on_rank_0s_clock(void **state)
{
	const struct series *s;
	struct record r, slice;

	team_write_all(*state);
	read_it(&r, *state);
	assert_int_equal(r.cases[4].t0_ns, r.cases[0].t0_ns);
	assert_in_range(r.cases[7].phase[0].t1_ns, r.cases[0].phase[0].t1_ns - 1, r.cases[0].phase[0].t1_ns + 1);
	assert_in_range(r.cases[6].t0_ns, 16999, 17001);
	record_slice(&slice, &r, 1);
	s = record_series(&slice, "host", "load");
	assert_non_null(s);
	assert_int_equal(s->count, 2); /* rank 1's alone */
	assert_in_range(s->t_ns[0], 14999, 15001);
	record_release(&r);
}

static void test_merge__a_clock_is_linear_between_its_readings(void **state)
{
	struct record_node n = {.joined = {true, 1000, 5, 10000}, .parted = {true, 2000, 5, 20000}};

	(void)state;
	assert_int_equal(record_clock_zero(&n, 11000), 10000);
	assert_int_equal(record_clock_zero(&n, 22000), 20000);
	assert_int_equal(record_clock_zero(&n, 16500), 15000);
	assert_int_equal(record_clock_zero(&n, 6000), 5000); /* before and after: as at the nearest reading */
	assert_int_equal(record_clock_zero(&n, 52000), 50000);
	n.parted.known = false;
	assert_int_equal(record_clock_zero(&n, 22000), 21000);
	n.joined.offset_ns = -3000;
	assert_int_equal(record_clock_zero(&n, 100), 3100);
	n.joined.offset_ns = INT64_C(3000000000000000000);
	assert_int_equal(record_clock_zero(&n, 100), 0);
	n.joined.known = false;
	assert_int_equal(record_clock_zero(&n, 100), 100);
}

static void lost_rank_2(void **state, enum record_node_state node, const char *why)
{
	unsigned lost = 0;
	struct record r;

	read_it(&r, *state);
	assert_int_equal(r.node[1].state, node);
	assert_non_null(strstr(r.node[1].why, why));
	for (size_t i = 0; i < r.case_count; i++) {
		const struct record_case *c = &r.cases[i];

		if (c->rank != 2)
			continue;
		lost++;
		assert_string_equal(c->where, "node-b/rank-2/gpu0");
		assert_string_equal(c->key, "gemm engine=x m=1");
		assert_int_equal(c->ending, ENDING_NOT_RUN);
		assert_int_equal(c->cause, CAUSE_TEAM_LOST);
		assert_int_equal(c->require, REQUIRE_MEASURED);
		assert_non_null(strstr(c->text, "no result from rank 2 on node-b: "));
		assert_int_equal(c->phase_count, 0);
	}
	assert_int_equal(lost, 1); /* of rank 0's: the GPU's, its second round apart; the CPU's is rank 1's */
	record_release(&r);
}

static void remove_rank(const char *dir, unsigned rank)
{
	char at[PATH_MAX], path[PATH_MAX + 32];

	rank_dir_path(at, sizeof(at), dir, "node-b", rank);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, at);
	assert_int_equal(unlink(path), 0);
}

static void test_merge__a_rank_that_sent_nothing(void **state)
{
	team_write_all(*state);
	remove_rank(*state, 2);
	lost_rank_2(state, NODE_CUT, "rank 2: its journal was not received");
}

static void test_merge__journals_of_another_run_are_none_of_this(void **state)
{
	struct team_run o;

	team_write_all(*state);
	o = team_rank(2);
	o.build = "b2";
	team_write(*state, &o);
	lost_rank_2(state, NODE_CUT, "another program, build or seed");
	o = team_rank(2);
	o.says_rank = 1; /* a node's journal twice */
	team_write(*state, &o);
	lost_rank_2(state, NODE_CUT, "belongs to another rank or team");
	o = team_rank(2);
	o.says_size = 4;
	team_write(*state, &o);
	lost_rank_2(state, NODE_CUT, "belongs to another rank or team");
	o = team_rank(2);
	o.unplanned = true;
	team_write(*state, &o);
	lost_rank_2(state, NODE_CUT, "it has no plan");
}

static void write_rank_2(const char *dir, const char *bytes, size_t size)
{
	char at[PATH_MAX], path[PATH_MAX + 32];

	rank_dir_path(at, sizeof(at), dir, "node-b", 2);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, at);
	assert_int_equal(file_write(path, bytes, size, NULL), STATUS_OK);
}

static void test_merge__garbage_for_a_journal(void **state)
{
	static const char schema[] = "{\"n\":0,\"t\":1,\"type\":\"open\",\"schema\":99}\n";
	char bytes[4096], at[PATH_MAX], path[PATH_MAX + 32];

	team_write_all(*state);
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	write_rank_2(*state, bytes, sizeof(bytes));
	lost_rank_2(state, NODE_CUT, "it does not begin like the journal of a run");
	write_rank_2(*state, "", 0);
	lost_rank_2(state, NODE_CUT, "it does not begin like the journal of a run");
	write_rank_2(*state, schema, sizeof(schema) - 1);
	lost_rank_2(state, NODE_CUT, "its journal cannot be read");
	remove_rank(*state, 2);
	rank_dir_path(at, sizeof(at), *state, "node-b", 2);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, at);
	assert_int_equal(mkfifo(path, 0600), 0);
	lost_rank_2(state, NODE_CUT, "its journal cannot be read");
}

static void test_merge__a_whole_node_is_missing(void **state)
{
	struct record r;

	team_write_all(*state);
	remove_rank(*state, 1);
	remove_rank(*state, 2);
	read_it(&r, *state);
	assert_int_equal(r.node[1].state, NODE_MISSING);
	assert_null(r.node[1].machine);
	assert_int_equal(r.node[0].state, NODE_WHOLE);
	assert_int_equal(r.case_count, 4 + 2 + 1); /* the leader's GPU and CPU, the other's GPU */
	assert_string_equal(r.cases[5].where, "node-b/rank-1/cpu");
	assert_int_equal(r.cases[1].rank_count, 0);
	record_release(&r);
}

static void test_merge__a_torn_and_an_open_journal(void **state)
{
	struct team_run o = team_rank(2);
	struct record r;

	team_write_all(*state);
	o.open = true;
	team_write(*state, &o);
	read_it(&r, *state);
	assert_int_equal(r.node[1].state, NODE_CUT);
	assert_string_equal(r.node[1].why, "rank 2: its journal was not closed");
	assert_int_equal(r.case_count, 9); /* what it has counts */
	record_release(&r);
	o = team_rank(2);
	o.more = "{\"n\":17,\"t\":";
	team_write(*state, &o);
	read_it(&r, *state);
	assert_string_equal(r.node[1].why, "rank 2: its journal ends early");
	record_release(&r);
}

/* Rank 0's open with another text for the nodes. */
static void write_nodes(const char *dir, const char *nodes)
{
	char path[PATH_MAX];
	struct text t = {0};

	text_addf(&t,
		  "{\"n\":0,\"t\":1,\"type\":\"open\",\"schema\":2,\"program\":\"0.1.0\",\"build\":\"b1\",\"seed\":7,\"team\":{"
		  "\"rank\":0,\"size\":3,\"nodes\":%s}}\n",
		  nodes);
	snprintf(path, sizeof(path), "%s/" JOURNAL_FILE, dir);
	assert_int_equal(file_write(path, t.data, t.size, NULL), STATUS_OK);
	text_release(&t);
}

static void test_merge__a_team_that_does_not_hold_together_is_none(void **state)
{
	static const char *const nodes[] = {
		"[]",
		"7",
		"[{\"name\":\"a\",\"ranks\":[0,1,2]},{\"name\":\"b\",\"ranks\":[2]}]", /* a rank twice */
		"[{\"name\":\"a\",\"ranks\":[0]},{\"name\":\"b\",\"ranks\":[2]}]",    /* one nowhere */
		"[{\"name\":\"a\",\"ranks\":[0]},{\"name\":\"b\",\"ranks\":[1,3]}]",
		"[{\"name\":\"a\",\"ranks\":[0]},{\"name\":\"a\",\"ranks\":[1,2]}]", /* a node twice */
		"[{\"name\":\"b\",\"ranks\":[1,2]},{\"name\":\"a\",\"ranks\":[0]}]", /* rank 0 not first */
		"[{\"name\":\"\",\"ranks\":[0,1,2]}]",
		"[{\"name\":\"a\",\"ranks\":[0,-1,2]}]",
		"[{\"ranks\":[0,1,2]}]",
	};
	struct record r;

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		write_nodes(*state, nodes[i]);
		read_it(&r, *state);
		if (r.node_count)
			fail_msg("%s", nodes[i]);
		record_release(&r);
	}
}

/* The name of a node leads nowhere but below nodes/, and what lies elsewhere is not read. */
static void test_merge__a_name_that_would_lead_out(void **state)
{
	char outer[PATH_MAX], inner[PATH_MAX];
	struct team_run o = team_rank(0);
	struct record r;

	snprintf(inner, sizeof(inner), "%s/in", (char *)*state);
	snprintf(outer, sizeof(outer), "%s/rank-1", (char *)*state);
	assert_int_equal(file_make_dir(inner, NULL), STATUS_OK);
	o.rank = 0;
	o.says_rank = 1;
	team_write(outer, &o); /* a whole journal where "../.." would lead */
	write_nodes(inner, "[{\"name\":\"a\",\"ranks\":[0]},{\"name\":\"../..\",\"ranks\":[1,2],\"offset_ns\":1e300,"
			   "\"error_ns\":-1,\"at\":1}]");
	read_it(&r, inner);
	assert_int_equal(r.node_count, 2);
	assert_int_equal(r.node[1].state, NODE_MISSING);
	assert_false(r.node[1].joined.known);
	rank_dir_path(outer, sizeof(outer), "d", "../..", 1);
	assert_string_equal(outer, "d/nodes/_._../rank-1");
	rank_dir_path(outer, sizeof(outer), "d", "..", 1);
	assert_string_equal(outer, "d/nodes/_./rank-1");
	rank_dir_path(outer, sizeof(outer), "d", "", 1);
	assert_string_equal(outer, "d/nodes/_/rank-1");
	record_release(&r);
}

static void test_merge__another_ranks_own_directory_stands_alone(void **state)
{
	struct team_run o = team_rank(1);
	char dir[PATH_MAX];
	struct record r;

	team_write(*state, &o);
	rank_dir_path(dir, sizeof(dir), *state, "node-b", 1);
	read_it(&r, dir);
	assert_int_equal(r.node_count, 0);
	assert_int_equal(r.case_count, 4);
	assert_string_equal(r.cases[0].where, "gpu0");
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_merge__all_ranks_are_one_record),
		scratch_test(test_merge__a_team_case_is_one_with_what_each_rank_told),
		scratch_test(test_merge__times_are_on_rank_0s_clock),
		scratch_test(test_merge__a_clock_is_linear_between_its_readings),
		scratch_test(test_merge__a_rank_that_sent_nothing),
		scratch_test(test_merge__journals_of_another_run_are_none_of_this),
		scratch_test(test_merge__garbage_for_a_journal),
		scratch_test(test_merge__a_whole_node_is_missing),
		scratch_test(test_merge__a_torn_and_an_open_journal),
		scratch_test(test_merge__a_team_that_does_not_hold_together_is_none),
		scratch_test(test_merge__a_name_that_would_lead_out),
		scratch_test(test_merge__another_ranks_own_directory_stands_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
