/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts of load tests: limits, failed requests, trust, and the marks d2. */
#include "judge_bed.h"

static struct record_case *load_of(double answered, double failed)
{
	struct record_case *c = world_case(&w, "load", "node", "", "");

	c->job = true;
	world_set(c, "once", "requests", answered + failed);
	world_set(c, "once", "answered", answered);
	world_set(c, "once", "failed", failed);
	world_set(c, "once", "completed_rate", 10);
	return c;
}

static json_t *list_of(struct record_case *c, const char *name)
{
	json_t *values = world_phase(c, "once")->values, *list = json_object_get(values, name);

	if (!list) {
		list = json_array();
		json_object_set_new(values, name, list);
	}
	return list;
}

/* attainment 0: the journal does not say it */
static void add_set(struct record_case *c, const char *name, double attainment, double share, double low,
		    double high)
{
	json_t *set = json_pack("{s:s, s:f, s:f, s:f, s:f, s:b}", "name", name, "share", share, "share_low",
				low, "share_high", high, "goodput", 9.5, "met", share >= 0.99);

	if (attainment > 0)
		json_object_set_new(set, "attainment", json_real(attainment));
	json_array_append_new(list_of(c, "slo"), set);
}

static void add_doubt(struct record_case *c, const char *check, const char *reason)
{
	json_array_append_new(list_of(c, "checks"), json_pack("{s:s, s:f, s:f, s:b}", "name", check, "value",
							      1.0, "limit", 0.5, "kept", 0));
	json_array_append_new(list_of(c, "untrusted"), json_string(reason));
}

static void expect(struct record_case *c, enum verdict v, enum cause cause, int exit_code, const char *words)
{
	world_judge(&w);
	assert_verdict(&w, c, v, cause);
	if (!strstr(world_of(&w, c)->reason, words))
		fail_msg("%s", world_of(&w, c)->reason);
	assert_int_equal(w.out.exit_code, exit_code);
	assert_non_null(strstr(w.out.headline, words));
}

static void test_load__without_limits_is_measured(void **state)
{
	struct record_case *c = load_of(1000, 0);

	(void)state;
	expect(c, VERDICT_MEASURED, CAUSE_NONE, 0, "no limits were asked for");
	assert_string_equal(world_of(&w, c)->figure_field, "completed_rate");
	world_set(c, "once", "output_tokens_per_s", 640);
	world_set(c, "once", "ttft_p50_s", 0.0123);
	expect(c, VERDICT_MEASURED, CAUSE_NONE, 0, "median TTFT 12.3 ms");
	assert_string_equal(world_of(&w, c)->figure_field, "output_tokens_per_s");
	assert_true(world_of(&w, c)->figure == 640);
}

static void test_load__a_set_passes_if_its_whole_interval_does(void **state)
{
	static const struct {
		double attainment, share, low, high;
		enum verdict v;
		enum cause cause;
		int exit_code;
	} rows[] = {
		{0.99, 0.998, 0.991, 0.9995, VERDICT_PASS, CAUSE_NONE, 0},
		{0.99, 0.998, 0.990, 0.9995, VERDICT_PASS, CAUSE_NONE, 0},
		{0.99, 0.995, 0.98, 0.999, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2},
		{0.99, 0.985, 0.97, 0.99, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2},
		{0.99, 0.97, 0.96, 0.98, VERDICT_FAIL, CAUSE_SLO_MISSED, 1},
		{0.9, 0.97, 0.96, 0.98, VERDICT_PASS, CAUSE_NONE, 0},
		{0, 0.97, 0.96, 0.98, VERDICT_FAIL, CAUSE_SLO_MISSED, 1}, /* an earlier journal: 99 % */
		{1, 1, 0.99, 1, VERDICT_PASS, CAUSE_NONE, 0},
		{1, 0.999, 0.99, 0.9999, VERDICT_FAIL, CAUSE_SLO_MISSED, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = load_of(1000, 0);

		add_set(c, "chat", rows[i].attainment, rows[i].share, rows[i].low, rows[i].high);
		expect(c, rows[i].v, rows[i].cause, rows[i].exit_code, "chat");
		world_end(&w);
		world_begin(&w, 1, false);
	}
}

static void test_load__every_set_counts_and_the_reason_names_the_missed_one(void **state)
{
	struct record_case *c = load_of(1000, 0);

	(void)state;
	add_set(c, "chat", 0.99, 0.999, 0.995, 1);
	add_set(c, "rag", 0.99, 0.995, 0.98, 0.999);
	expect(c, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "rag");
	add_set(c, "code", 0.99, 0.5, 0.45, 0.55);
	expect(c, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "50.00 % of the requests met code");
	assert_non_null(strstr(world_of(&w, c)->reason, "required 99 %"));
}

static void test_load__a_set_without_requests_is_undecided(void **state)
{
	struct record_case *c = load_of(1000, 0);

	(void)state;
	json_array_append_new(list_of(c, "slo"), json_pack("{s:s}", "name", "chat"));
	expect(c, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "no request was due");
}

static void test_load__without_requests_there_is_no_verdict(void **state)
{
	struct record_case *c = load_of(0, 0);

	(void)state;
	expect(c, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "no request was measured");
}

/* Requests that the end of the run cancelled are neither answered nor failed. */
static void test_load__without_an_answer_nothing_passes(void **state)
{
	struct record_case *c = load_of(1000, 0);

	(void)state;
	world_set(c, "once", "completed_rate", 0.1);
	expect(c, VERDICT_MEASURED, CAUSE_NONE, 0, "1000 of 1000 requests answered");
	world_set(c, "once", "completed_rate", 0);
	expect(c, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, 2, "no answer ended within the measured window");
	world_set(c, "once", "e2e_p50_s", 31.3);
	expect(c, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, 2, "half of them took more than 31.3 s");
	add_set(c, "chat", 0.99, 0.999, 0.995, 1);
	expect(c, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, 2, "no answer ended within the measured window");
	world_set(c, "once", "answered", 0);
	expect(c, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, 2, "none of the 1000 requests of the measured window was answered");
	add_doubt(c, "client_lag_p99_s", "late"); /* the missing answers are the reason all the same */
	expect(c, VERDICT_UNKNOWN, CAUSE_NO_ANSWER, 2, "none of the 1000 requests");
	json_object_del(world_phase(c, "once")->values, "untrusted");
	add_set(c, "code", 0.99, 0.5, 0.45, 0.55);
	expect(c, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "met code");
	world_set(c, "once", "failed", 1000);
	expect(c, VERDICT_FAIL, CAUSE_REQUESTS_FAILED, 1, "1000 of 1000 requests failed");
}

static void test_load__more_than_one_per_cent_of_failures_fails(void **state)
{
	struct record_case *c = load_of(990, 10);

	(void)state;
	expect(c, VERDICT_MEASURED, CAUSE_NONE, 0, "990 of 1000 requests answered");
	world_set(c, "once", "failed", 11);
	expect(c, VERDICT_FAIL, CAUSE_REQUESTS_FAILED, 1, "11 of 1001 requests failed (1.10 %");
}

static void test_load__failures_of_the_client_make_it_untrusted(void **state)
{
	struct record_case *c = load_of(900, 100);

	(void)state;
	world_set(c, "once", "errors_client", 95);
	expect(c, VERDICT_UNTRUSTED, CAUSE_CLIENT_LIMITED, 2, "95 of 1000");
	world_set(c, "once", "errors_client", 50);
	expect(c, VERDICT_FAIL, CAUSE_REQUESTS_FAILED, 1, "50 of 1000");
}

static void test_load__a_doubt_outweighs_a_missed_set(void **state)
{
	static const struct {
		const char *check;
		enum cause cause;
	} rows[] = {
		{"client_lag_p99_s", CAUSE_CLIENT_LIMITED}, {"send_deviation", CAUSE_CLIENT_LIMITED},
		{"cache_share", CAUSE_CACHED_PROMPTS},	    {"usage_deviation", CAUSE_USAGE_WRONG},
		{"no_done", CAUSE_STREAM_FAULTY},	    {"duplicates", CAUSE_STREAM_FAULTY},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct record_case *c = load_of(1000, 0);

		add_set(c, "chat", 0.99, 0.5, 0.45, 0.55);
		add_doubt(c, rows[i].check, "the first doubt: 3 ms, limit 1 ms");
		expect(c, VERDICT_UNTRUSTED, rows[i].cause, 2, "the first doubt: 3 ms, limit 1 ms");
		add_doubt(c, "no_finish", "another");
		expect(c, VERDICT_UNTRUSTED, rows[i].cause, 2, "(and 1 more)");
		world_end(&w);
		world_begin(&w, 1, false);
	}
}

static void test_load__failures_are_certain_even_if_the_rest_is_not(void **state)
{
	struct record_case *c = load_of(500, 500);

	(void)state;
	add_doubt(c, "client_lag_p99_s", "late");
	expect(c, VERDICT_FAIL, CAUSE_REQUESTS_FAILED, 1, "500 of 1000");
}

static void test_load__a_sweep_is_judged_by_the_rate_that_it_found(void **state)
{
	struct record_case *c = load_of(1000, 0);

	(void)state;
	add_set(c, "chat", 0.99, 0.991, 0.98, 0.999); /* just met, as the search wants it */
	world_set(c, "once", "sweep_met_rate", 12);
	world_set(c, "once", "sweep_missed_rate", 12.5);
	expect(c, VERDICT_PASS, CAUSE_NONE, 0,
	       "met up to 12/s and missed at 12.5/s, by the share of 1000 requests");
	world_set(c, "once", "sweep_sure_rate", 11);
	expect(c, VERDICT_PASS, CAUSE_NONE, 0, "requests; with 95 % confidence they are met up to 11/s");
	world_set(c, "once", "sweep_sure_rate", 0);
	expect(c, VERDICT_PASS, CAUSE_NONE, 0, "no rate has enough requests for 95 % confidence");
	world_set(c, "once", "sweep_met_rate", 0);
	expect(c, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "the lowest one tried was 12.5/s");
}

static void use_marks(void)
{
	struct error err = {0};

	expectations_free(w.e);
	if (expectations_load(&w.e, "d2", &err))
		fail_msg("%s", err.text);
	w.ctx.e = w.e;
}

static struct record_case *load_of_d2(double p95, double p99, double tokens)
{
	struct record_case *c = load_of(1000, 0);

	if (p95 > 0)
		world_set(c, "once", "ttft_p95_s", p95);
	if (p99 > 0)
		world_set(c, "once", "ttft_p99_s", p99);
	if (tokens > 0)
		world_set(c, "once", "output_tokens_per_s", tokens);
	return c;
}

static void test_load_d2__marks_of_one_and_of_eight_gpus(void **state)
{
	static const struct {
		unsigned gpus; /* of the server; 0: not known */
		double p95, p99, tokens;
		enum verdict v;
		enum cause cause;
		int exit_code;
		const char *words;
	} rows[] = {
		{1, 0.099, 0.199, 900, VERDICT_PASS, CAUSE_NONE, 0, "all rules"},
		{4, 0.099, 0.199, 900, VERDICT_PASS, CAUSE_NONE, 0, "all rules"},
		{1, 0.101, 0.199, 900, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "95th percentile"},
		{1, 0.099, 0.201, 900, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "99th percentile"},
		{1, 0.099, 0, 900, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "is not known"},
		{1, 0, 0, 900, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "is not known"},
		{8, 0.099, 0.199, 10000, VERDICT_PASS, CAUSE_NONE, 0, "all rules"},
		{8, 0.099, 0.199, 9999, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "10,000 tokens/s"},
		{8, 0.099, 0.199, 0, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2, "eight GPUs are not known"},
		{0, 0.099, 0.199, 10000, VERDICT_UNKNOWN, CAUSE_SLO_UNDECIDED, 2,
		 "the number of the server's GPUs is not known, so the mark of eight GPUs cannot be judged: give the number with --gpus"},
		{0, 0.101, 0.199, 10000, VERDICT_FAIL, CAUSE_SLO_MISSED, 1, "95th percentile"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* GPUs of the client's machine, which do not count: eight beside a server of one, and the
		 * other way */
		const unsigned own = rows[i].gpus == 8 ? 1 : 8;
		struct record_case *c;

		world_end(&w);
		world_begin(&w, own, false);
		use_marks();
		c = load_of_d2(rows[i].p95, rows[i].p99, rows[i].tokens);
		if (rows[i].gpus)
			world_set(c, "once", "server_gpus", rows[i].gpus);
		expect(c, rows[i].v, rows[i].cause, rows[i].exit_code, rows[i].words);
	}
}

static void test_load_d2__other_cases_are_judged_as_without_it(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	use_marks();
	world_judge(&w);
	assert_int_equal(world_of(&w, c)->verdict, VERDICT_PASS);
}

static void test_load_d2__is_saved_with_the_built_in_set_and_read_again(void **state)
{
	struct expectations *again = NULL;
	struct error err = {0};
	char path[] = "/tmp/assay-marks-XXXXXX";
	const int fd = mkstemp(path);
	FILE *f = fd >= 0 ? fdopen(fd, "w") : NULL;
	const struct text *text;

	(void)state;
	use_marks();
	text = expectations_text(w.e);
	assert_non_null(f);
	assert_int_equal(fwrite(text_str(text), 1, text->size, f), text->size);
	assert_int_equal(fclose(f), 0);
	if (expectations_load(&again, path, &err))
		fail_msg("%s", err.text);
	assert_string_equal(expectations_hash(again), expectations_hash(w.e));
	assert_int_equal(again->rule_count, w.e->rule_count);
	assert_int_equal(again->band_count, w.e->band_count);
	expectations_free(again);
	unlink(path);
}

static void test_load_d2__an_unknown_name_is_refused(void **state)
{
	struct expectations *none = NULL;
	struct error err = {0};

	(void)state;
	assert_int_not_equal(expectations_load(&none, "d3", &err), STATUS_OK);
	assert_null(none);
	assert_non_null(strstr(err.text, "d3"));
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, begin_one, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_world(test_load__without_limits_is_measured),
		with_world(test_load__a_set_passes_if_its_whole_interval_does),
		with_world(test_load__every_set_counts_and_the_reason_names_the_missed_one),
		with_world(test_load__a_set_without_requests_is_undecided),
		with_world(test_load__without_requests_there_is_no_verdict),
		with_world(test_load__without_an_answer_nothing_passes),
		with_world(test_load__more_than_one_per_cent_of_failures_fails),
		with_world(test_load__failures_of_the_client_make_it_untrusted),
		with_world(test_load__a_doubt_outweighs_a_missed_set),
		with_world(test_load__failures_are_certain_even_if_the_rest_is_not),
		with_world(test_load__a_sweep_is_judged_by_the_rate_that_it_found),
		with_world(test_load_d2__marks_of_one_and_of_eight_gpus),
		with_world(test_load_d2__other_cases_are_judged_as_without_it),
		with_world(test_load_d2__is_saved_with_the_built_in_set_and_read_again),
		with_world(test_load_d2__an_unknown_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
