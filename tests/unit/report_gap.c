/* SPDX-License-Identifier: Apache-2.0 */
/* How the end of a gap chain is told: explained, not explained, or the share of a link's gap that is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>
#include "report/view/gap.h"

/* Bound 100, one factor of 0.8, figure 72: residual 0.9. */
static struct judgement chain(double figure)
{
	return (struct judgement){.figure_unit = "B/s",
				  .figure = figure,
				  .has_figure = true,
				  .bound = {.value = 100e9, .from = BOUND_DEVICE},
				  .gap = {{.name = "clock", .value = 0.8, .present = true}},
				  .gap_count = 1};
}

static void told(const struct judgement *j, const char *words)
{
	const struct view_row row = {.j = j};
	struct text out = {0};

	gap_conclusion(&out, &row);
	assert_string_equal(text_str(&out), words);
	text_release(&out);
}

static void test_report_gap__a_chain_is_explained_or_what_is_left_is_told(void **state)
{
	struct judgement j = chain(80e9);

	(void)state;
	j.explained = true;
	told(&j, "explained: the factors reproduce the measurement within 0.0 %");
	j = chain(72e9);
	told(&j, "not explained: 10.0 % has no measured cause");
	j = chain(79e9);
	told(&j, "not explained: 1.2 % remains, and a factor has no signal here");
	j.gap_count = 0; /* no chain */
	told(&j, "");
}

static void test_report_gap__a_link_tells_the_share_that_signals_and_assumptions_account_for(void **state)
{
	struct judgement j = chain(72e9);

	(void)state;
	j.has_explained_share = true;
	j.explained_share = j.assumed_share = 20.0 / 28;
	told(&j, "signals account for 71.4 % of the gap to the bound");
	j.explained_share = 0;
	told(&j, "signals account for 0.0 % of the gap to the bound, or for 71.4 % with assumed factors");
	j.explained_share = j.assumed_share = -0.1; /* a factor above 1 */
	told(&j, "signals account for 0.0 % of the gap to the bound");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report_gap__a_chain_is_explained_or_what_is_left_is_told),
		cmocka_unit_test(
			test_report_gap__a_link_tells_the_share_that_signals_and_assumptions_account_for),
	};

	return cmocka_run_group_tests_name("report_gap", tests, NULL, NULL);
}
