/* SPDX-License-Identifier: Apache-2.0 */
/* The order of work over sequences of different length: each unit once, those with most work first. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "core/math/random.h"
#include "gpu/attention/work_order.h"
#include "kernel/attention/forward/args.h"

enum { SEQUENCES = 40, LONGEST = 3000 };

static void an_order_written_by_hand(void **state)
{
	/* lengths 100, 300, 0, 129 */
	static const uint32_t starts[] = {0, 100, 400, 400, 529};
	static const uint32_t right[] = {ATTENTION_ORDER(1, 2), ATTENTION_ORDER(1, 1), ATTENTION_ORDER(3, 1),
					 ATTENTION_ORDER(1, 0), ATTENTION_ORDER(3, 0), ATTENTION_ORDER(0, 0)};
	static const uint32_t unmasked[] = {ATTENTION_ORDER(1, 0), ATTENTION_ORDER(1, 1),
					    ATTENTION_ORDER(1, 2), ATTENTION_ORDER(3, 0),
					    ATTENTION_ORDER(3, 1), ATTENTION_ORDER(0, 0)};
	uint32_t list[6];
	struct error err = {0};

	(void)state;
	assert_int_equal(attention_order_count(starts, 4), 6);
	assert_int_equal(attention_order_fill(list, starts, 4, true, &err), STATUS_OK);
	assert_memory_equal(list, right, sizeof(right));
	assert_int_equal(attention_order_fill(list, starts, 4, false, &err), STATUS_OK);
	assert_memory_equal(list, unmasked, sizeof(unmasked));
}

static void every_unit_is_named_once_and_most_work_comes_first(void **state)
{
	uint32_t starts[SEQUENCES + 1] = {0}, seen[SEQUENCES][LONGEST / ATTENTION_ORDER_ROWS + 1] = {{0}};
	uint32_t *list, before = UINT32_MAX;
	struct error err = {0};
	uint64_t count;

	(void)state;
	for (uint32_t i = 0; i < SEQUENCES; i++)
		starts[i + 1] = starts[i] + (uint32_t)((uint64_t)random_u32(1, 2, i) * LONGEST >> 32);
	count = attention_order_count(starts, SEQUENCES);
	assert_true(count <= starts[SEQUENCES]);
	list = calloc((size_t)count, sizeof(*list));
	assert_non_null(list);
	assert_int_equal(attention_order_fill(list, starts, SEQUENCES, true, &err), STATUS_OK);
	for (uint64_t i = 0; i < count; i++) {
		const uint32_t sequence = ATTENTION_ORDER_SEQUENCE(list[i]),
			       unit = ATTENTION_ORDER_UNIT(list[i]);

		assert_true(sequence < SEQUENCES);
		assert_true(unit * ATTENTION_ORDER_ROWS < starts[sequence + 1] - starts[sequence]);
		assert_int_equal(seen[sequence][unit]++, 0);
		assert_true(unit <= before);
		before = unit;
	}
	free(list);
}

static void nothing_to_order_is_an_empty_list(void **state)
{
	static const uint32_t starts[] = {0, 0, 0};
	struct error err = {0};
	uint32_t none = 7;

	(void)state;
	assert_int_equal(attention_order_count(starts, 2), 0);
	assert_int_equal(attention_order_fill(&none, starts, 2, true, &err), STATUS_OK);
	assert_int_equal(attention_order_fill(&none, starts, 0, false, &err), STATUS_OK);
	assert_int_equal(none, 7);
}

static void what_a_word_cannot_name_is_not_held(void **state)
{
	static const uint32_t most[] = {0, 128u << 16}, more[] = {0, (128u << 16) + 1};
	uint32_t *many = calloc((1 << 16) + 2, sizeof(*many));

	(void)state;
	assert_non_null(many);
	assert_true(attention_order_holds(most, 1));
	assert_false(attention_order_holds(more, 1));
	assert_true(attention_order_holds(many, 1 << 16));
	assert_false(attention_order_holds(many, (1 << 16) + 1));
	free(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_order_written_by_hand),
		cmocka_unit_test(every_unit_is_named_once_and_most_work_comes_first),
		cmocka_unit_test(nothing_to_order_is_an_empty_list),
		cmocka_unit_test(what_a_word_cannot_name_is_not_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
