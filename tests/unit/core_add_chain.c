/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "core/math/add_chain.h"
#include "core/clock.h"

static void it_adds_so_often(void **state)
{
	(void)state;
	assert_true(add_chain(5, 3, 0) == 5);
	assert_true(add_chain(5, 3, 16) == 5 + 16 * 3);
	assert_true(add_chain(UINT64_MAX, 7, 1 << 16) == UINT64_MAX + 7u * (UINT64_C(1) << 16));
}

/* Each add waits for the one before: none faster than a cycle of 10 GHz, however wide the core. */
static void no_two_adds_share_a_cycle(void **state)
{
	uint64_t best = UINT64_MAX;

	(void)state;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t t0 = clock_now_ns(clock_monotonic()), took;

		assert_true(add_chain(1, 3, 1 << 20) == 1 + 3u * (UINT64_C(1) << 20));
		took = clock_now_ns(clock_monotonic()) - t0;
		best = took < best ? took : best;
	}
	assert_true(best > (1 << 20) / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_adds_so_often),
		cmocka_unit_test(no_two_adds_share_a_cycle),
	};

	return cmocka_run_group_tests_name("core_adds", tests, NULL, NULL);
}
