/* SPDX-License-Identifier: Apache-2.0 */
/* Readings of counters, as a journal has them, held against each other. */
#include "journal/record/health.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct health h;

static void read_line(const char *text)
{
	char copy[1024];
	json_t *body;

	snprintf(copy, sizeof(copy), "%s", text);
	for (char *c = copy; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	body = json_loads(copy, 0, NULL);
	assert_non_null(body);
	assert_int_equal(health_read(&h, body, 0, NULL), STATUS_OK);
	json_decref(body);
}

static int end(void **state)
{
	(void)state;
	health_release(&h);
	return 0;
}

static void test_health__what_differs_is_a_change(void **state)
{
	(void)state;
	read_line("{'when':'before','gpus':{'0000:1b:00.0':{'t_ns':100,'counters':{'pcie_replays':2,'nvlink_errors':3},"
		  "'states':{'remap_pending':0},'signals':{'clock_reasons':1},'errors':{'link 3':3}}}}");
	assert_int_equal(h.change_count, 0);
	assert_true(health_supplied(&h, "0000:1b:00.0", "clock_reasons"));
	assert_false(health_supplied(&h, "0000:1b:00.0", "temperature_c"));
	read_line("{'when':'between','gpus':{'0000:1b:00.0':{'t_ns':200,'counters':{'pcie_replays':2,'nvlink_errors':9},"
		  "'states':{'remap_pending':1},'errors':{'link 3':4,'link 7':5}}}}");
	assert_int_equal(h.change_count, 2);
	assert_string_equal(h.change[0].name, "nvlink_errors");
	assert_string_equal(h.change[0].parts, "link 3: 1, link 7: 5");
	assert_false(h.change[0].state);
	assert_true(h.change[0].before == 3 && h.change[0].now == 9);
	assert_true(h.change[0].t0_ns == 100 && h.change[0].t1_ns == 200);
	assert_true(h.change[1].state);
	read_line("{'when':'after','gpus':{'0000:1b:00.0':{'t_ns':300,'counters':{'pcie_replays':1}}}}");
	assert_int_equal(h.change_count, 3);
	assert_true(h.change[2].now == 1 && h.change[2].before == 2);
}

static void test_health__a_resumed_run_goes_on_unless_the_machine_was_started_anew(void **state)
{
	static const char first[] = "{'gpus':{'0000:1b:00.0':{'t_ns':100,'counters':{'pcie_replays':2}}}}";
	static const char more[] = "{'gpus':{'0000:1b:00.0':{'t_ns':200,'counters':{'pcie_replays':8}}}}";
	static const char last[] = "{'gpus':{'0000:1b:00.0':{'t_ns':300,'counters':{'pcie_replays':9}}}}";

	(void)state;
	read_line(first);
	health_resumed(&h, false);
	read_line(more);
	read_line(last);
	assert_int_equal(h.change_count, 2);
	assert_true(h.change[0].interrupted);
	assert_false(h.change[1].interrupted);
	health_resumed(&h, true);
	read_line(first);
	assert_int_equal(h.change_count, 2);
}

static void test_health__a_silence_is_told_with_what_cuda_said(void **state)
{
	(void)state;
	read_line("{'gpus':{'0000:1b:00.0':{'t_ns':100,'why':'GPU is lost','cause':'gpu_lost','cuda':'cuInit answers 999'},"
		  "'0000:1c:00.0':{'t_ns':100,'why':'GPU is lost','cuda':'ok'},'0000:1d:00.0':{'t_ns':100,'why':'x'}}}");
	assert_int_equal(h.silence_count, 3);
	for (size_t i = 0; i < 3; i++) {
		enum health_cuda cuda = h.silence[i].pci[6] == 'b'   ? CUDA_FAILS
					: h.silence[i].pci[6] == 'c' ? CUDA_ANSWERS
								     : CUDA_NOT_ASKED;
		assert_int_equal(h.silence[i].cuda, cuda);
		assert_int_equal(h.silence[i].lost, h.silence[i].pci[6] == 'b');
	}
}

static void test_health__a_strangers_line_is_passed_over(void **state)
{
	(void)state;
	read_line("{'gpus':[1,2]}");
	read_line("{'gpus':{'0000:1b:00.0':7,'an address that is much too long':{'t_ns':1},'b':{'t_ns':-1},'c':{'t_ns':'x'}}}");
	read_line("{'gpus':{'b':{'t_ns':1,'counters':[3],'states':'x','signals':{'a name that is much too long to be one':1}}}}");
	read_line("{'gpus':{'b':{'t_ns':2,'counters':{'x':'9'}}}}");
	read_line("{'gpus':{'b':{'t_ns':3,'counters':{'x':9}}}}");
	assert_int_equal(h.change_count, 0);
	assert_int_equal(h.silence_count, 0);
}

static uint64_t later(const void *arg, uint64_t t_ns)
{
	return t_ns + *(const uint64_t *)arg;
}

static void test_health__of_another_rank_joins_on_the_axis(void **state)
{
	const uint64_t shift = 1000;
	struct health all = {0};

	(void)state;
	read_line("{'gpus':{'b':{'t_ns':1,'counters':{'x':1},'signals':{'xid':1}}}}");
	read_line("{'gpus':{'b':{'t_ns':2,'counters':{'x':3}},'c':{'t_ns':5,'why':'lost'}}}");
	assert_int_equal(health_join(&all, &h, later, &shift, NULL), STATUS_OK);
	assert_int_equal(h.change_count, 0);
	assert_true(all.change_count == 1 && all.change[0].t1_ns == 1002);
	assert_true(all.silence_count == 1 && all.silence[0].t_ns == 1005);
	assert_true(health_supplied(&all, "b", "xid"));
	health_release(&all);
}

/* Two ranks of a node read one GPU: what both saw at the same time is one change. */
static void test_health__what_two_ranks_saw_counts_once(void **state)
{
	const uint64_t shift = 0;
	struct health all = {0};

	(void)state;
	read_line("{'gpus':{'b':{'t_ns':10,'counters':{'x':1,'y':5}}}}");
	read_line("{'gpus':{'b':{'t_ns':20,'counters':{'x':3,'y':5}}}}");
	assert_int_equal(health_join(&all, &h, later, &shift, NULL), STATUS_OK);
	read_line("{'gpus':{'b':{'t_ns':12,'counters':{'x':1,'y':5}},'c':{'t_ns':12,'counters':{'x':1}}}}");
	read_line("{'gpus':{'b':{'t_ns':22,'counters':{'x':3,'y':5}},'c':{'t_ns':22,'counters':{'x':2}}}}");
	read_line("{'gpus':{'b':{'t_ns':32,'counters':{'x':3,'y':6}}}}");
	assert_int_equal(h.change_count, 3);
	assert_int_equal(health_join(&all, &h, later, &shift, NULL), STATUS_OK);
	assert_int_equal(all.change_count, 3); /* x of b once, x of c, and y of b, which came later */
	health_release(&all);
}

/* A rank that read later saw more of a rise: what the other saw is not counted again, and the rest is not lost. */
static void test_health__a_rise_that_two_ranks_saw_in_part_is_whole(void **state)
{
	const uint64_t shift = 0;
	struct health all = {0};

	(void)state;
	read_line("{'gpus':{'b':{'t_ns':10,'counters':{'x':3}}}}");
	read_line("{'gpus':{'b':{'t_ns':20,'counters':{'x':5}}}}");
	assert_int_equal(health_join(&all, &h, later, &shift, NULL), STATUS_OK);
	read_line("{'gpus':{'b':{'t_ns':12,'counters':{'x':4}}}}");
	read_line("{'gpus':{'b':{'t_ns':22,'counters':{'x':9}}}}");
	assert_int_equal(health_join(&all, &h, later, &shift, NULL), STATUS_OK);
	assert_int_equal(all.change_count, 2);
	assert_true(all.change[0].now - all.change[0].before == 2);
	assert_true(all.change[1].now - all.change[1].before == 4); /* 5 to 9 */
	health_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_health__what_differs_is_a_change, end),
		cmocka_unit_test_teardown(test_health__what_two_ranks_saw_counts_once, end),
		cmocka_unit_test_teardown(test_health__a_rise_that_two_ranks_saw_in_part_is_whole, end),
		cmocka_unit_test_teardown(
			test_health__a_resumed_run_goes_on_unless_the_machine_was_started_anew, end),
		cmocka_unit_test_teardown(test_health__a_silence_is_told_with_what_cuda_said, end),
		cmocka_unit_test_teardown(test_health__a_strangers_line_is_passed_over, end),
		cmocka_unit_test_teardown(test_health__of_another_rank_joins_on_the_axis, end),
	};

	return cmocka_run_group_tests_name("health", tests, NULL, NULL);
}
