/* SPDX-License-Identifier: Apache-2.0 */
/* What ports allow between nodes, by numbers worked by hand; what is expected of all that is known; ports of
 * a machine. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include "journal/figure/network_bound.h"
#include "journal/figure/expected.h"
#include "machine/link/network.h"

static json_t *json(const char *text)
{
	json_error_t err;
	json_t *j = json_loads(text, 0, &err);

	if (!j)
		fail_msg("%s: %s", text, err.text);
	return j;
}

static struct network_bound nodes(const char *text)
{
	json_t *layout = json(text);
	struct network_bound b;

	assert_true(network_bound_read(&b, layout));
	json_decref(layout);
	return b;
}

#define NODE(nodes, ranks, gpus, next, network)                                                              \
	"{\"nodes\": " nodes ", \"ranks\": " ranks ", \"gpus\": " gpus ", \"next\": " next                   \
	", \"network\": " network "}"
#define ALIKE(...) "{\"nodes\": [" NODE(__VA_ARGS__) "]}"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-6 * b;
}

/* Two nodes of eight GPUs, 400 GB/s of ports each: n = 16, m = 2, k = 8. */
static void test_between__two_nodes_of_eight(void **state)
{
	static const struct {
		const char *op;
		double ring, least, adds; /* GB/s */
	} rows[] = {
		{"allreduce", 400, 750, 750},	  {"allgather", 400, 750, 750},
		{"reducescatter", 400, 750, 750}, {"alltoall", 93.75, 93.75, 93.75},
		{"broadcast", 400, 400, 400},	  {"reduce", 400, 400, 400},
		{"sendrecv", 400, 400, 400},
	};
	struct network_bound b = nodes(ALIKE("2", "8", "8", "1", "4e11"));

	(void)state;
	assert_int_equal(b.nodes, 2);
	assert_int_equal(b.ranks, 16);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (!near(network_bound_of(&b, rows[i].op, NETWORK_BOUND_RING), rows[i].ring * 1e9) ||
		    !near(network_bound_of(&b, rows[i].op, NETWORK_BOUND_LEAST), rows[i].least * 1e9) ||
		    !near(network_bound_of(&b, rows[i].op, NETWORK_BOUND_ADDS), rows[i].adds * 1e9))
			fail_msg("%s", rows[i].op);
		assert_true(near(network_bound_usual(&b, rows[i].op), rows[i].ring * 1e9));
	}
	assert_true(near(network_bound_rate(&b), 4e11));
	assert_true(!(network_bound_of(&b, "scan", NETWORK_BOUND_RING) > 0));
}

/* Four of them: 31/32 x 4/3 and 2 x 31/32 of 400; 31/24 of 400; 31/(8 x 24). */
static void test_between__four_nodes_of_eight(void **state)
{
	struct network_bound b = nodes(ALIKE("4", "8", "8", "1", "4e11"));

	(void)state;
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_RING), 400e9));
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_LEAST), 400e9 * 31 / 24));
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_ADDS), 775e9));
	assert_true(near(network_bound_of(&b, "allgather", NETWORK_BOUND_LEAST), 400e9 * 31 / 24));
	assert_true(near(network_bound_of(&b, "alltoall", NETWORK_BOUND_RING), 400e9 * 31 / 192));
}

/* One that has half of the ports holds all up; by what moves least the others carry more. */
static void test_between__the_node_with_the_fewest_ports_counts(void **state)
{
	struct network_bound b = nodes(
		"{\"nodes\": [" NODE("3", "8", "8", "1", "4e11") "," NODE("1", "8", "8", "1", "2e11") "]}");

	(void)state;
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_RING), 200e9));
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_LEAST),
			 2 * 31.0 / 32 * 200e9)); /* not 1400/3 x 31/32 */
	assert_true(near(network_bound_of(&b, "broadcast", NETWORK_BOUND_LEAST), 200e9));
	assert_true(near(network_bound_rate(&b), 200e9));
}

/* Two ranks of eight GPUs' node have two eighths of its ports near them; the bound has all of them. Ranks
 * that go round the nodes send to another node each. */
static void test_between__ranks_have_their_share_of_the_ports(void **state)
{
	struct network_bound b = nodes(ALIKE("2", "2", "8", "2", "4e11"));

	(void)state;
	assert_true(near(network_bound_of(&b, "allreduce", NETWORK_BOUND_RING), 400e9));
	assert_true(near(network_bound_usual(&b, "allreduce"), 100e9));
	assert_true(near(network_bound_of(&b, "sendrecv", NETWORK_BOUND_LEAST), 200e9));
	b = nodes(ALIKE("2", "2", "0", "2", "4e11")); /* of how many is not known */
	assert_true(!(network_bound_usual(&b, "allreduce") > 0));
}

static void test_between__what_is_not_known_bounds_nothing(void **state)
{
	static const char *const none[] = {
		"{}",
		"{\"gpus\": [\"0000:10:00.0\"]}",
		"{\"nodes\": []}",
		ALIKE("1", "8", "8", "1", "4e11"),
		ALIKE("2", "0", "8", "1", "4e11"),
		ALIKE("2", "8", "8", "1", "-1"),
		ALIKE("2", "\"8\"", "8", "1", "4e11"),
	};
	struct network_bound b = nodes(
		"{\"nodes\": [" NODE("1", "8", "8", "1", "4e11") "," NODE("1", "8", "8", "1", "0") "]}");

	(void)state;
	assert_true(!(network_bound_of(&b, "allreduce", NETWORK_BOUND_RING) > 0));
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
		json_t *layout = json(none[i]);

		if (network_bound_read(&b, layout))
			fail_msg("%s", none[i]);
		json_decref(layout);
	}
	assert_false(network_bound_read(&b, NULL));
}

static void test_between__a_band_counts_before_all_else(void **state)
{
	static const struct {
		struct expected_known known;
		double rate;
		enum expected_from from;
	} rows[] = {
		{{0}, 0, EXPECTED_NOTHING},
		{{.band = 3, .share = 5, .group = 7}, 3, EXPECTED_BAND},
		{{.share = 5, .group = 4}, 5, EXPECTED_SHARE},
		{{.share = 5, .group = 7}, 7, EXPECTED_GROUP},
		{{.group = 7}, 7, EXPECTED_GROUP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct expected e = expected_of(&rows[i].known);

		assert_int_equal(e.from, rows[i].from);
		assert_true(!(e.rate < rows[i].rate) && !(e.rate > rows[i].rate));
	}
}

static double by_group(const char *limit, const char *whole, const char *group, const char *key, double rate)
{
	json_t *a = json(whole), *b = json(group);
	const struct expected_case all = {.key = "k", .limit = limit, .layout = a},
				   part = {.key = key, .limit = limit, .layout = b, .rate = rate};
	double least = expected_by_group(&all, &part);

	json_decref(a);
	json_decref(b);
	return least;
}

static void test_between__fewer_nodes_lead_to_half_of_what_they_reach(void **state)
{
	static const char two[] = ALIKE("2", "8", "8", "1", "0"), four[] = ALIKE("4", "8", "8", "1", "0"),
			  few[] = ALIKE("2", "4", "8", "1", "0"), one[] = "{\"gpus\": [\"0000:10:00.0\"]}";

	(void)state;
	assert_true(near(by_group("collective.allreduce", four, two, "k", 480e9), 240e9));
	/* of each to each more crosses: (31/192) / (15/64) of it */
	assert_true(near(by_group("collective.alltoall", four, two, "k", 90e9), 45e9 * 31 / 45));
	assert_true(!(by_group("collective.allreduce", two, four, "k", 480e9) > 0));
	assert_true(!(by_group("collective.allreduce", four, four, "k", 480e9) > 0));
	assert_true(!(by_group("collective.allreduce", four, few, "k", 480e9) > 0)); /* fewer ranks on each */
	assert_true(!(by_group("collective.allreduce", four, one, "k", 480e9) > 0)); /* NVLinks */
	assert_true(!(by_group("collective.allreduce", four, two, "other", 480e9) > 0));
	assert_true(!(by_group("collective.allreduce", four, two, "k", 0) > 0));
	assert_true(!(by_group("latency", four, two, "k", 480e9) > 0));
}

#define PORT(kind, state, more) "{\"kind\": \"" kind "\", \"state\": \"" state "\"" more "}"
#define NDR ", \"rate_gbit\": 400"

static void test_between__ports_that_carry_something_are_summed(void **state)
{
	static const struct {
		const char *facts;
		double gbytes;
		unsigned ports;
	} rows[] = {
		{"{}", 0, 0},
		{"{\"ports\": []}", 0, 0},
		{"{\"ports\": [" PORT("infiniband", "ACTIVE", NDR) "," PORT(
			 "infiniband", "ACTIVE", NDR) "," PORT("infiniband", "DOWN",
							       NDR) "," PORT("ethernet", "up", "") "]}",
		 100, 2},
		{"{\"ports\": [" PORT("infiniband", "ACTIVE", NDR) "," PORT("infiniband", "ACTIVE", "") "]}",
		 0, 0},
		{"{\"ports\": [" PORT("infiniband", "ACTIVE", NDR) "," PORT(
			 "infiniband", "ACTIVE", NDR ", \"function_of\": \"0000:1a:00.0\"") "]}",
		 50, 1},
		/* a bond of two: the RDMA device tells one port's rate */
		{"{\"ports\": [" PORT("roce", "ACTIVE", ", \"rate_gbit\": 100") "," PORT(
			 "ethernet", "up", ", \"rate_gbit\": 100") "," PORT("ethernet", "up",
									    ", \"rate_gbit\": 100") "]}",
		 25, 2},
		{"{\"ports\": [" PORT("ethernet", "up", ", \"rate_gbit\": 25") "," PORT("ethernet", "down",
											"") "]}",
		 3.125, 1},
		{"{\"ports\": [" PORT("ethernet", "up", ", \"rate_gbit\": 25") "," PORT("ethernet", "up",
											"") "]}",
		 0, 0},
		{"{\"system\": {\"architecture\": \"aarch64\"}, \"gpus\": [{\"facts\": {\"fabric_state\": "
		 "3}}], \"ports\": [" PORT("infiniband", "ACTIVE", NDR) "]}",
		 0, 0},
		{"{\"system\": {\"architecture\": \"x86_64\"}, \"gpus\": [{\"facts\": {\"fabric_state\": "
		 "3}}], \"ports\": [" PORT("infiniband", "ACTIVE", NDR) "]}",
		 50, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *facts = json(rows[i].facts);
		struct network n;

		network_of(&n, facts);
		if (fabs(n.rate - rows[i].gbytes * 1e9) > 1 || n.ports != rows[i].ports)
			fail_msg("%s: %g GB/s by %u", rows[i].facts, n.rate / 1e9, n.ports);
		json_decref(facts);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test(test_between__##name)
		T(a_band_counts_before_all_else),
		T(fewer_nodes_lead_to_half_of_what_they_reach),
		T(four_nodes_of_eight),
		T(ports_that_carry_something_are_summed),
		T(ranks_have_their_share_of_the_ports),
		T(the_node_with_the_fewest_ports_counts),
		T(two_nodes_of_eight),
		T(what_is_not_known_bounds_nothing),
#undef T
	};

	return cmocka_run_group_tests_name("between", tests, NULL, NULL);
}
