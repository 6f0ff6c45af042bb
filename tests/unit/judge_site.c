/* SPDX-License-Identifier: Apache-2.0 */
/* What was bought against what is here. */
#include "judge_bed.h"
#include <unistd.h>
#include "core/text/text.h"

static void stated(const char *expect, enum verdict v, enum cause cause, int exit_code)
{
	struct judge_site site = {.expect = expect};
	struct error err = {0};

	judgements_release(&w.out);
	if (judge_run(&w.out, &w.ctx, &site, &err))
		fail_msg("%s", err.text);
	assert_true(w.out.has_stated);
	assert_int_equal(w.out.stated.verdict, v);
	assert_int_equal(w.out.stated.cause, cause);
	assert_int_equal(w.out.exit_code, exit_code);
}

static void test_site__what_was_bought_is_held_against_what_is_here(void **state)
{
	(void)state;
	world_gemm(&w, "gpu0", "bf16", 8192, 689, 1395, 695, 0.918);
	stated("h100-sxm:8", VERDICT_PASS, CAUSE_NONE, 0);
	stated("h100-sxm:4", VERDICT_WARN, CAUSE_CONFIG_MISMATCH, 0);
	stated("h100-sxm-80:8,h100:8", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	stated("h200:8", VERDICT_FAIL, CAUSE_CONFIG_MISMATCH, 1);
	world_fact(&w.gpu[6], GPU_FACT_memory_bytes, 39.8 * 0x1p30); /* half the memory is another product */
	stated("h100-sxm:8", VERDICT_FAIL, CAUSE_CONFIG_MISMATCH, 1);
	assert_non_null(strstr(w.out.stated.reason, "7 found"));
	world_fact(&w.gpu[6], GPU_FACT_memory_bytes, 79.6 * 0x1p30);
	stated("h100-sxm:9", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	w.gpu[3].status = STATUS_LOST;
	stated("h100-sxm:8", VERDICT_FAIL, CAUSE_GPU_MISSING, 1);
	assert_true(w.out.could_not_look_count >= 1);
}

static void test_site__a_wrong_statement_is_a_usage_error_with_the_nearest_name(void **state)
{
	static const char *const wrong[] = {"h100-smx:8", "h100-sxm:0",	 "h100-sxm:8x",
					    ":8",	  "h100-sxm:-1", "h100-sxm:99999"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct judge_site site = {.expect = wrong[i]};
		struct error err = {0};

		judgements_release(&w.out);
		assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_BAD_INPUT);
		assert_non_null(strstr(err.text, "--expect"));
		assert_int_equal(judge_site_text(&(struct text){0}, &site, w.ctx.e, &err), STATUS_BAD_INPUT);
	}
}

static void test_site__a_short_name_has_its_nearest_short_name(void **state)
{
	static const struct {
		const char *stated, *meant;
	} rows[] = {
		{"h10-sxm:8", "\"h100-sxm\""}, {"h20o", "\"h200\""}, {"h100-sxm-8O:8", "\"h100-sxm-80\""}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct judge_site site = {.expect = rows[i].stated};
		struct error err = {0};

		assert_int_equal(judge_site_text(&(struct text){0}, &site, w.ctx.e, &err), STATUS_BAD_INPUT);
		if (!strstr(err.text, rows[i].meant))
			fail_msg("%s", err.text);
	}
}

static void test_site__a_statement_kept_as_a_file_says_the_same(void **state)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	struct judge_site site = {.expect = "h100-sxm:8,l40s"}, kept = {.file = path};
	struct text first = {0}, second = {0};
	FILE *f = fdopen(mkstemp(path), "w");
	struct error err = {0};

	(void)state;
	assert_int_equal(judge_site_text(&first, &site, w.ctx.e, &err), STATUS_OK);
	fprintf(f, "%spower_limit: 650.5 W\nnvlinks: 18\n", text_str(&first));
	fclose(f);
	assert_int_equal(judge_site_text(&second, &kept, w.ctx.e, &err), STATUS_OK);
	assert_string_equal(strchr(text_str(&second), '\n'),
			    "\ngpus: [\"h100-sxm:8\", \"l40s:1\"]\npower_limit: 650.5 W\nnvlinks: 18\n");
	text_release(&first);
	assert_int_equal(judge_site_text(&first, &(struct judge_site){0}, w.ctx.e, &err), STATUS_OK);
	assert_int_equal(first.size, 0);
	unlink(path);
	text_release(&first);
	text_release(&second);
}

static void test_site__a_site_file_states_limits_and_links(void **state)
{
	char path[] = "/tmp/assay-site-XXXXXX";
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct judge_site site = {.file = path};
	struct error err = {0};

	(void)state;
	fputs("gpus: [\"h100-sxm:8\"]\npower_limit: 650 W\nnvlinks: 18\n", f);
	fclose(f);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_OK);
	assert_int_equal(w.out.stated.cause, CAUSE_CONFIG_MISMATCH);
	f = fopen(path, "w");
	fputs("gpu: [\"h100-sxm:8\"]\n", f);
	fclose(f);
	judgements_release(&w.out);
	assert_int_equal(judge_run(&w.out, &w.ctx, &site, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "gpus"));
	remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(setup, name) cmocka_unit_test_setup_teardown(test_site__##name, setup, end)
		T(begin_eight, what_was_bought_is_held_against_what_is_here),
		T(begin_one, a_wrong_statement_is_a_usage_error_with_the_nearest_name),
		T(begin_one, a_short_name_has_its_nearest_short_name),
		T(begin_one, a_statement_kept_as_a_file_says_the_same),
		T(begin_eight, a_site_file_states_limits_and_links),
#undef T
	};

	return cmocka_run_group_tests_name("judge_site", tests, NULL, NULL);
}
