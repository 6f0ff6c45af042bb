/* SPDX-License-Identifier: Apache-2.0 */
/* assay comprehensive: amounts by machine and options, the choice of stages, the exit code, and the judges of
 * stages from files that their commands could have left. */
#include "test.h"
#include <signal.h>
#include "cmd/comprehensive/comprehensive.h"
#include "core/file/file.h"
#include "scratch.h"

static volatile sig_atomic_t stop;
static const struct command_context context = {.stop = &stop};
static const struct comprehensive_opts plain;

static void begin(struct comprehensive *s, const char *dir)
{
	struct error err = {0};

	*s = (struct comprehensive){.c = &context, .o = &plain};
	text_copy(s->dir, sizeof(s->dir), dir);
	assert_int_equal(comprehensive_only(s, &err), STATUS_OK);
}

static void put(const struct comprehensive *s, enum stage_id id, const char *name, const char *text)
{
	char dir[PATH_MAX + 32], path[PATH_MAX + 128];
	struct error err = {0};

	stage_dir(s, id, dir);
	assert_int_equal(file_make_dir(dir, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
}

/* A figure's value; fails if there is none. */
static double figure(const struct stage_result *r, const char *name)
{
	const json_t *one;
	size_t i;

	json_array_foreach(r->figures, i, one)
	{
		if (!strcmp(json_string_value(json_object_get(one, "name")), name))
			return json_number_value(json_object_get(one, "value"));
	}
	fail_msg("no figure \"%s\"", name);
	return 0;
}

static void end(struct comprehensive *s)
{
	for (int i = 0; i < STAGE_COUNT; i++)
		json_decref(s->result[i].figures);
}

/* -- amounts -- */

static struct comprehensive_size size_of(const char *recording, const struct comprehensive_opts *o)
{
	struct comprehensive_size size;
	struct machine *m = NULL;
	struct error err = {0};
	char path[256];

	snprintf(path, sizeof(path), SOURCE_DIR "/tests/replay/%s", recording);
	assert_int_equal(machine_read(&m, LAYER_NVML, path, NULL, &err), STATUS_OK);
	comprehensive_size_set(&size, m, o);
	machine_free(m);
	return size;
}

static void a_gpu_gets_the_load_of_the_source_with_its_marks(void **state)
{
	const struct comprehensive_size full = size_of("derived-h100-sxm-8", &plain);

	(void)state;
	assert_int_equal(full.gpus, 8);
	assert_true(full.nvlink);
	assert_true(full.gpu_bytes > 0);
	assert_string_equal(full.device, "gpu");
	assert_string_equal(full.shape, "qwen2-7b");
	assert_true(full.rate == 100 && full.duration_s == 120 && full.stress_s == 60);
	assert_true(full.marked);
}

static void another_load_has_no_marks(void **state)
{
	const struct comprehensive_opts quick = {.quick = true}, slower = {.rate = 10, .duration = 20};
	const struct comprehensive_size small = size_of("h200-sxm-1", &quick),
					own = size_of("h200-sxm-1", &slower);

	(void)state;
	assert_false(small.marked);
	assert_true(small.duration_s < 60 && small.stress_s < 60);
	assert_string_equal(small.shape, "qwen2-0.5b");
	assert_false(own.marked);
	assert_true(own.rate == 10 && own.duration_s == 20 && own.grace_s == 20);
}

/* -- stages -- */

static void a_list_takes_numbers_and_words_and_what_they_need(void **state)
{
	const struct comprehensive_opts some = {.only = "9,nvlink"}, wrong = {.only = "load,12"};
	struct comprehensive s = {.c = &context, .o = &some};
	struct error err = {0};

	(void)state;
	assert_int_equal(comprehensive_only(&s, &err), STATUS_OK);
	for (int i = 0; i < STAGE_COUNT; i++)
		assert_int_equal(s.result[i].asked, i == STAGE_LOAD || i == STAGE_STRESS ||
							    i == STAGE_POWER || i == STAGE_NVLINK);
	s.o = &wrong;
	assert_int_equal(comprehensive_only(&s, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "\"12\""));
}

static void the_exit_code_is_that_of_the_worst_core_stage(void **state)
{
	struct comprehensive s;

	(void)state;
	begin(&s, "none");
	for (int i = 0; i < STAGE_COUNT; i++)
		s.result[i].verdict = stage_list[i].core ? VERDICT_STAGE_PASSED : VERDICT_STAGE_SKIPPED;
	assert_int_equal(comprehensive_code(&s), EXIT_PASS);
	s.result[STAGE_ACCURACY].verdict = VERDICT_STAGE_INCONCLUSIVE;
	assert_int_equal(comprehensive_code(&s), EXIT_PASS);
	s.result[STAGE_LOAD].verdict = VERDICT_STAGE_INCONCLUSIVE;
	assert_int_equal(comprehensive_code(&s), EXIT_INCONCLUSIVE);
	s.result[STAGE_ACCURACY].verdict = VERDICT_STAGE_FAILED;
	assert_int_equal(comprehensive_code(&s), EXIT_FAILED);
	s.result[STAGE_ACCURACY].verdict = VERDICT_STAGE_PASSED;
	s.result[STAGE_LOAD].verdict = VERDICT_STAGE_NOT_RUN;
	assert_int_equal(comprehensive_code(&s), EXIT_INCONCLUSIVE);
	s.result[STAGE_LOAD].asked = false;
	assert_int_equal(comprehensive_code(&s), EXIT_PASS);
	stop = 1;
	assert_int_equal(comprehensive_code(&s), EXIT_INCONCLUSIVE);
	stop = 0;
}

/* The reason depends on the memory: it must be true of the card. */
static void a_large_model_is_skipped_for_what_stops_it_here(void **state)
{
	static const struct {
		unsigned gpus;
		uint64_t bytes;
		const char *words;
	} rows[] = {
		{0, 0, "no usable GPU"},
		{4, 80ull << 30, "do not fit one GPU here, and assay cannot serve one model on several"},
		{1, 84ull << 30, "do not fit one GPU here"}, /* serve takes 90 % */
		{1, 85ull << 30, "fit one GPU here, but this stage needs tensor parallelism"},
		{8, 141ull << 30, "fit one GPU here, but this stage needs tensor parallelism"},
	};
	struct comprehensive s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		s.size.gpus = rows[i].gpus;
		s.size.gpu_bytes = rows[i].bytes;
		if (!strstr((stage_list[STAGE_LARGE].skip)(&s), rows[i].words))
			fail_msg("%zu: %s", i, (stage_list[STAGE_LARGE].skip)(&s));
	}
}

/* -- judges -- */

static void a_load_keeps_the_words_of_its_run(void **state)
{
	struct comprehensive s;
	struct stage_result *r = &s.result[STAGE_LOAD];

	begin(&s, *state);
	put(&s, STAGE_LOAD, "results.json",
	    "{\"headline\": \"fail: too slow: 1 of 1\", \"cases\": [{\"phases\": [{\"phase\": \"once\", \"values\": "
	    "{\"ttft_p95_s\": 0.25, \"completed_rate\": 99.5}}]}]}");
	judge_load(&s, r, EXIT_FAILED);
	assert_int_equal(r->verdict, VERDICT_STAGE_FAILED);
	assert_string_equal(r->reason, "too slow: 1 of 1");
	assert_string_equal(r->headline, "TTFT P95 250 ms, 99.5 requests/s");
	assert_true(figure(r, "TTFT, P95") == 0.25);
	end(&s);
}

static void load_of(struct comprehensive *s, const char *rates)
{
	char text[256];

	snprintf(text, sizeof(text), "{\"cases\": [{\"phases\": [{\"phase\": \"once\", \"values\": {%s}}]}]}",
		 rates);
	put(s, STAGE_LOAD, "results.json", text);
	judge_load(s, &s->result[STAGE_LOAD], EXIT_PASS);
}

static void no_rate_is_shown_if_all_answers_ended_after_the_window(void **state)
{
	struct comprehensive s;

	begin(&s, *state);
	load_of(&s, "\"completed_rate\": 0, \"output_tokens_per_s\": 3.25");
	assert_string_equal(s.result[STAGE_LOAD].headline, "3.25 output tokens/s");
	load_of(&s, "\"completed_rate\": 0, \"output_tokens_per_s\": 0");
	assert_string_equal(s.result[STAGE_LOAD].headline, "0 requests/s, 0 output tokens/s");
	end(&s);
}

/* The verdict is the load test's own. */
static void a_load_without_an_answer_in_its_window_is_inconclusive(void **state)
{
	struct comprehensive s;
	const struct stage_result *r = &s.result[STAGE_LOAD];

	begin(&s, *state);
	load_of(&s, "\"completed_rate\": 0.1, \"output_tokens_per_s\": 3.25");
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	put(&s, STAGE_LOAD, "results.json",
	    "{\"headline\": \"no answer ended within the measured window\", \"cases\": [{\"phases\": [{\"phase\": "
	    "\"once\", \"values\": {\"completed_rate\": 0, \"output_tokens_per_s\": 3.25}}]}]}");
	judge_load(&s, &s.result[STAGE_LOAD], EXIT_INCONCLUSIVE);
	assert_int_equal(r->verdict, VERDICT_STAGE_INCONCLUSIVE);
	assert_non_null(strstr(r->reason, "no answer ended within the measured window"));
	end(&s);
}

static void a_load_by_marks_says_what_was_held_to_what(void **state)
{
	struct comprehensive s;
	struct stage_result *r = &s.result[STAGE_LOAD];

	begin(&s, *state);
	s.size = (struct comprehensive_size){.device = "gpu", .gpus = 8, .rate = 100, .marked = true};
	put(&s, STAGE_LOAD, "results.json",
	    "{\"headline\": \"fail: too slow: 1 of 1\", \"cases\": [{\"phases\": [{\"phase\": \"once\", \"values\": "
	    "{\"completed_rate\": 30.5}}]}]}");
	judge_load(&s, r, EXIT_FAILED);
	assert_non_null(strstr(r->headline, "30.5 requests/s; one engine on one of 8 GPUs; limits of D2"));
	assert_non_null(
		strstr(r->headline, "at 100 requests/s: TTFT P95 100 ms, P99 200 ms. Its 10,000 tokens/s"));
	end(&s);
}

static void tokens_per_joule_come_from_the_table_of_energy(void **state)
{
	struct comprehensive s;
	struct stage_result *r = &s.result[STAGE_POWER];

	begin(&s, *state);
	put(&s, STAGE_POWER, "output.txt",
	    "[{\"tables\": {\"energy_per_token\": {\"rows\": [{\"row\": \"per token, input and output\", \"joules\": 0.25, "
	    "\"tokens_per_joule\": 4.0}, {\"row\": \"decode\", \"why\": \"no stages\"}]}}}]");
	judge_power(&s, r, EXIT_PASS);
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	assert_string_equal(r->headline, "4 tokens/J (per token, input and output)");
	end(&s);
	begin(&s, *state);
	put(&s, STAGE_POWER, "output.txt",
	    "[{\"tables\": {\"energy_per_token\": {\"rows\": [{\"row\": \"per token\", \"why\": \"no energy counter\"}]}}}]");
	judge_power(&s, r, EXIT_INCONCLUSIVE);
	assert_int_equal(r->verdict, VERDICT_STAGE_SKIPPED);
	assert_string_equal(r->reason, "no energy counter");
	end(&s);
	begin(&s, *state);
	put(&s, STAGE_POWER, "output.txt", "no JSON");
	put(&s, STAGE_POWER, "messages.txt", "assay: one\nassay: error: the run counted no tokens\n");
	judge_power(&s, r, EXIT_INCONCLUSIVE);
	assert_int_equal(r->verdict, VERDICT_STAGE_INCONCLUSIVE);
	assert_string_equal(r->reason, "it printed no JSON; exit code 2: the run counted no tokens");
	end(&s);
}

#define LINKS(rate, active, more)                                                                            \
	"{\"nvlink\": {\"gpus\": [{\"gpu\": 0, \"sum\": {" rate                                              \
	"}, \"links\": [{\"link\": 0, \"active\": " active more "}]}]}}\n"

static void watch(struct comprehensive *s, const char *dir, const char *lines)
{
	begin(s, dir);
	s->size.gpus = 2;
	put(s, STAGE_NVLINK, "output.txt", lines);
	judge_nvlink(s, &s->result[STAGE_NVLINK], 0);
}

static void links_fail_by_errors_and_by_a_link_that_is_down(void **state)
{
	struct comprehensive s;
	struct stage_result *r = &s.result[STAGE_NVLINK];

	watch(&s, *state,
	      LINKS("\"payload_tx\": 2e9", "true", "") LINKS("\"payload_tx\": 9e9", "true", "") "{\"nvl");
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	assert_true(figure(r, "payload sent by a GPU, most") == 9e9);
	assert_true(figure(r, "readings") == 2); /* the last line is cut */
	end(&s);
	watch(&s, *state,
	      LINKS("\"payload_tx\": 2e9", "true", ", \"risen\": {\"error_crc\": 3}") LINKS(
		      "\"payload_tx\": 2e9", "true", ", \"risen\": {\"error_crc\": 2, \"error_replay\": 1}"));
	assert_int_equal(r->verdict, VERDICT_STAGE_FAILED);
	assert_true(figure(r, "errors during the stress") == 6);
	end(&s);
	watch(&s, *state, LINKS("\"payload_tx\": 2e9", "false", ""));
	assert_int_equal(r->verdict, VERDICT_STAGE_FAILED);
	assert_string_equal(r->reason, "a link is down");
	end(&s);
	watch(&s, *state, LINKS("", "true", ""));
	assert_int_equal(r->verdict, VERDICT_STAGE_INCONCLUSIVE); /* no throughput */
	end(&s);
	watch(&s, *state, "{\"nvlink\": {\"gpus\": [], \"why\": \"the driver hangs\"}}\n");
	assert_int_equal(r->verdict, VERDICT_STAGE_INCONCLUSIVE);
	assert_string_equal(r->reason, "no reading of the links: the driver hangs");
	end(&s);
}

static void precisions_stand_beside_the_reference(void **state)
{
	struct comprehensive s;
	struct stage_result *r = &s.result[STAGE_ACCURACY];

	begin(&s, *state);
	put(&s, STAGE_ACCURACY, "output.txt",
	    "{\"precisions\": [{\"precision\": \"bf16\", \"verdict\": \"reference\", \"perplexity\": {\"value\": 8.5}, "
	    "\"calls\": {\"rows\": 0}}, {\"precision\": \"fp8\", \"verdict\": \"fail\", \"perplexity\": {\"value\": 9.0}, "
	    "\"perplexity_difference_percent\": {\"value\": 5.88}, \"calls\": {\"rows\": 4, \"exact\": 3}}]}");
	judge_accuracy(&s, r, EXIT_FAILED);
	assert_int_equal(r->verdict, VERDICT_STAGE_FAILED);
	assert_string_equal(r->headline, "perplexity 8.5 (bf16); fp8 +5.88 %");
	assert_true(figure(r, "right function calls, fp8") == 3);
	end(&s);
}

/* -- memory, from a server's journal -- */

static void serve_journal(const struct comprehensive *s, double weights, double cache)
{
	char dir[PATH_MAX + 32], path[PATH_MAX + 64], line[1024];
	struct error err = {0};
	struct text t = {0};

	text_add(
		&t,
		"{\"n\":0,\"t\":1,\"type\":\"open\",\"schema\":3,\"program\":\"0.1.0\"}\n"
		"{\"n\":1,\"t\":2,\"type\":\"plan\",\"hash\":\"\",\"suite\":\"serve\",\"fields\":{},\"steps\":[{\"together\":false,"
		"\"cases\":[{\"case\":0,\"key\":\"serve m\",\"probe\":\"serve\",\"engine\":\"\",\"options\":{},\"kind\":\"job\","
		"\"target\":\"node\",\"phases\":\"once\",\"skip\":null}]}]}\n"
		"{\"n\":2,\"t\":3,\"type\":\"begin\",\"case\":0,\"attempt\":1,\"pid\":0}\n"
		"{\"n\":3,\"t\":5,\"type\":\"phase\",\"case\":0,\"phase\":\"load\",\"t0\":3,\"t1\":5}\n");
	snprintf(
		line, sizeof(line),
		"{\"n\":4,\"t\":5,\"type\":\"result\",\"case\":0,\"phase\":\"load\",\"values\":{\"weight_bytes\":%.1f,"
		"\"cache_bytes\":%.1f}}\n",
		weights, cache);
	text_add(&t, line);
	stage_dir(s, STAGE_LOAD, dir);
	snprintf(path, sizeof(path), "%s/serve", dir);
	assert_int_equal(file_make_dir(path, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/serve/journal.jsonl", dir);
	assert_int_equal(file_write(path, t.data, t.size, &err), STATUS_OK);
	text_release(&t);
}

static void memory_beyond_the_plan_fails(void **state)
{
	static const struct {
		double weights, cache;
		enum stage_verdict verdict;
	} rows[] = {
		{1000, 2000, VERDICT_STAGE_PASSED},
		{1005, 1500, VERDICT_STAGE_PASSED},
		{1100, 2000, VERDICT_STAGE_FAILED},
		{1000, 2100, VERDICT_STAGE_FAILED},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct comprehensive s;
		struct stage_result *r = &s.result[STAGE_MEMORY];

		begin(&s, *state);
		serve_journal(&s, rows[i].weights, rows[i].cache);
		put(&s, STAGE_MEMORY, "output.txt",
		    "{\"bytes\": 3000, \"kinds\": {\"weights\": 1000, \"cache\": 2000}, \"pages\": 10}");
		judge_memory(&s, r, EXIT_PASS);
		assert_int_equal(r->verdict, rows[i].verdict);
		assert_true(figure(r, "used, cache") == rows[i].cache);
		end(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_gpu_gets_the_load_of_the_source_with_its_marks),
		cmocka_unit_test(another_load_has_no_marks),
		cmocka_unit_test(a_large_model_is_skipped_for_what_stops_it_here),
		cmocka_unit_test_setup_teardown(a_load_without_an_answer_in_its_window_is_inconclusive,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(a_load_by_marks_says_what_was_held_to_what, scratch_create,
						scratch_remove),
		cmocka_unit_test(a_list_takes_numbers_and_words_and_what_they_need),
		cmocka_unit_test(the_exit_code_is_that_of_the_worst_core_stage),
		cmocka_unit_test_setup_teardown(no_rate_is_shown_if_all_answers_ended_after_the_window,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(a_load_keeps_the_words_of_its_run, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(tokens_per_joule_come_from_the_table_of_energy,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(links_fail_by_errors_and_by_a_link_that_is_down,
						scratch_create, scratch_remove),
		cmocka_unit_test_setup_teardown(precisions_stand_beside_the_reference, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(memory_beyond_the_plan_fails, scratch_create, scratch_remove),
	};

	return cmocka_run_group_tests_name("comprehensive", tests, NULL, NULL);
}
