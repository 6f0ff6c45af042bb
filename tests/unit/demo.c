/* SPDX-License-Identifier: Apache-2.0 */
/* assay demo: tours, the time left, the texts on the screen, the exit code, and the lines of a child's
 * terminal.
 */
#include "test.h"
#include <math.h>
#include <signal.h>
#include "cmd/demo/demo.h"
#include "core/file/file.h"
#include "core/json/member.h"
#include "scratch.h"

static volatile sig_atomic_t stop;
static const struct command_context context = {.stop = &stop}, coloured = {.stop = &stop, .colour = true};
static const struct demo_opts plain = {.train_steps = 80};

static void begin(struct demo *d, enum demo_tour tour, const struct demo_opts *o)
{
	struct error err = {0};

	*d = (struct demo){.c = &context, .o = o, .tour = tour, .log = -1};
	d->size = (struct comprehensive_size){.device = "cpu", .shape = "smollm2-135m", .model_s = 5};
	text_copy(d->dir, sizeof(d->dir), "out");
	text_copy(d->host, sizeof(d->host), "A CPU, 2 CPUs; no usable GPU");
	text_copy(d->learner, sizeof(d->learner), "out/learner");
	text_copy(d->weights, sizeof(d->weights), "out/weights");
	tour_fill(d);
	assert_int_equal(tour_choose(d, &err), STATUS_OK);
}

/* Writes a file that a step's command could have left, below `base`. */
static void put(struct demo *d, const char *base, enum step_id id, const char *name, const char *text)
{
	char dir[PATH_MAX + 80], path[PATH_MAX + 128];
	struct error err = {0};

	text_copy(d->dir, sizeof(d->dir), base);
	if (strcmp(name, "output.txt"))
		tour_run_dir(d, id, dir);
	else
		tour_step_dir(d, id, dir);
	assert_int_equal(file_make_dir(dir, &err), STATUS_OK);
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(file_write(path, text, strlen(text), &err), STATUS_OK);
}

static bool in_tour(const struct demo *d, enum step_id id)
{
	return tour_first(d, 1u << id) == id;
}

/* -- tours -- */

static void every_step_is_in_a_tour_and_finds_what_it_needs(void **state)
{
	unsigned seen = 0;

	(void)state;
	for (int t = 0; t < TOUR_COUNT; t++) {
		struct demo d;

		begin(&d, (enum demo_tour)t, &plain);
		assert_true(d.count > 3);
		for (size_t i = 0; i < d.count; i++) {
			const struct demo_step *step = &step_list[d.step[i]];
			unsigned before = 0;

			seen |= 1u << d.step[i];
			for (size_t k = 0; k < i; k++)
				before |= 1u << d.step[k];
			assert_true(!step->needs || (step->needs & before));
			assert_non_null(step->word);
			assert_true(strlen(step->word) < 12);
			assert_non_null(step->judge);
			assert_non_null(strchr(step->says, '.'));
			for (size_t k = 0; k < i; k++) /* words choose steps */
				assert_string_not_equal(step->word, step_list[d.step[k]].word);
		}
	}
	assert_int_equal(seen, (1u << STEP_COUNT) - 1);
}

static void a_list_brings_the_steps_that_it_needs(void **state)
{
	const struct demo_opts some = {.steps = "answer,1"}, wrong = {.steps = "anser"};
	struct demo d;
	struct error err = {0};

	(void)state;
	begin(&d, TOUR_QUICK, &some);
	assert_true(d.result[STEP_ANSWER].asked && d.result[STEP_TRAIN].asked && d.result[STEP_MODEL].asked &&
		    d.result[STEP_MACHINE].asked);
	assert_false(d.result[STEP_CHECK].asked || d.result[STEP_LOAD].asked);
	d.o = &wrong;
	assert_int_equal(tour_choose(&d, &err), STATUS_BAD_INPUT);
	assert_non_null(strstr(err.text, "--steps: there is no step \"anser\", did you mean \"answer\"?"));
}

static void a_machine_without_a_gpu_skips_links_with_the_reason(void **state)
{
	struct demo d;

	(void)state;
	begin(&d, TOUR_BENCHMARK, &plain);
	assert_non_null(strstr(step_list[STEP_LINKS].skips(&d), "no usable GPU"));
	assert_non_null(strstr(step_list[STEP_COST].skips(&d), "--price-per-hour"));
	d.size.gpus = 2;
	assert_null(step_list[STEP_LINKS].skips(&d));
	assert_null(step_list[STEP_ATTENTION].skips(&d));
	assert_null(step_list[STEP_COST].skips(&d));
}

static void the_cost_is_that_of_the_run_of_the_tour(void **state)
{
	const struct demo_opts priced = {.price_per_hour = 2.5};
	struct stage_command load = {0}, speed = {0};
	struct text text = {0};
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &priced);
	step_list[STEP_COST].command(&d, &load);
	stage_command_text(&text, &load);
	assert_string_equal(text_str(&text), "assay cost out/step-8-load --price-per-hour 2.5");
	text_release(&text);
	begin(&d, TOUR_TRAINING, &priced);
	assert_false(in_tour(&d, STEP_LOAD));
	step_list[STEP_COST].command(&d, &speed);
	stage_command_text(&text, &speed);
	assert_string_equal(text_str(&text), "assay cost out/step-8-speed/run --price-per-hour 2.5");
	text_release(&text);
}

/* -- the time left -- */

/* Gives the first steps that run these expected seconds, the others none. */
static void expect_s(struct demo *d, double a, double b, double c)
{
	const double s[] = {a, b, c};

	for (size_t i = 0; i < d->count; i++)
		d->result[d->step[i]].expected_s = i < 3 ? s[i] : 0;
}

static void the_plan_is_the_sum_before_the_run(void **state)
{
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	expect_s(&d, 10, 20, 30);
	assert_true(plan_factor(&d) == 1);
	assert_true(plan_left_s(&d, 0, 0) == 60);
	assert_true(plan_left_s(&d, 0, 4) == 56);
	assert_true(plan_left_s(&d, 2, 25) == 5);
}

static void ended_steps_correct_the_rest(void **state)
{
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	expect_s(&d, 10, 20, 30);
	d.result[d.step[0]].verdict = VERDICT_STAGE_PASSED;
	d.result[d.step[0]].seconds = 30; /* three times as long: the factor is (10 + 30) / (10 + 10) */
	assert_true(plan_factor(&d) == 2);
	assert_true(plan_left_s(&d, 1, 0) == 100);
	d.result[d.step[0]].verdict = VERDICT_STAGE_FAILED;
	d.result[d.step[0]].seconds = 1; /* it failed at once: that says nothing about the others */
	assert_true(plan_factor(&d) == 1);
}

static void a_step_that_takes_longer_never_has_nothing_left(void **state)
{
	(void)state;
	assert_true(plan_step_left_s(10, 4) == 6);
	assert_true(plan_step_left_s(10, 20) == 2);
	assert_true(plan_step_left_s(10, 200) == 20);
}

static void skipped_steps_take_no_time(void **state)
{
	struct demo d;

	(void)state;
	begin(&d, TOUR_BENCHMARK, &plain);
	for (size_t i = 0; i < d.count; i++)
		d.result[d.step[i]].expected_s = 10;
	assert_true(plan_left_s(&d, 0, 0) == 10.0 * (double)(d.count - 2)); /* links and attention */
}

/* -- texts -- */

static void a_step_tells_what_it_proves_and_its_command(void **state)
{
	struct text out = {0};
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	step_list[STEP_ANSWER].command(&d, &d.result[STEP_ANSWER].command);
	tell_step(&out, &d, 5);
	assert_non_null(strstr(text_str(&out), "\n6/9 Ask the trained model\n  The trained model"));
	assert_non_null(
		strstr(text_str(&out),
		       "\n  $ assay generate out/step-5-train/run/model 'Who are you?' --tokens 64\n"));
	assert_null(strchr(text_str(&out), '\033'));
	text_release(&out);
	d.c = &coloured;
	tell_step(&out, &d, 5);
	assert_non_null(strstr(text_str(&out), "\033[1m6/9 Ask the trained model\033[0m"));
	text_release(&out);
}

static void the_end_of_a_step_has_figures_and_reasons(void **state)
{
	struct text out = {0};
	struct stage_result *r;
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	r = &d.result[STEP_LOAD];
	stage_command_add(&r->command, "load");
	stage_figure(r, "output tokens", 2400, "1/s", NULL);
	stage_figure(r, "never measured", NAN, "s", NULL);
	text_copy(r->headline, sizeof(r->headline), "24 output tokens/s");
	stage_say(r, VERDICT_STAGE_FAILED, "the limits were missed");
	r->seconds = 75;
	tell_end(&out, &d, 7);
	assert_non_null(strstr(text_str(&out), "output tokens"));
	assert_non_null(strstr(text_str(&out), "2.40 k/s"));
	assert_null(strstr(text_str(&out), "never measured"));
	assert_non_null(strstr(text_str(&out),
			       "\n  failed in 1:15 min: 24 output tokens/s; the limits were missed\n"));
	text_release(&out);
	json_decref(r->figures);
}

static void the_progress_has_the_commands_own_line(void **state)
{
	struct text out = {0};
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	expect_s(&d, 10, 20, 0);
	tell_progress(&out, &d, 1, 5, "[3/41] memory, about 9 s left");
	assert_string_equal(text_str(&out),
			    "2/9 check 0:05, about 0:15 left in all | [3/41] memory, about 9 s left");
	text_release(&out);
}

static void the_summary_leaves_out_what_nobody_asked_for(void **state)
{
	const struct demo_opts some = {.steps = "machine,model"};
	struct text out = {0};
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &some);
	d.result[STEP_MACHINE].verdict = VERDICT_STAGE_PASSED;
	stage_say(&d.result[STEP_MODEL], VERDICT_STAGE_SKIPPED, "the speaker skipped it");
	tell_summary(&out, &d);
	assert_non_null(strstr(text_str(&out), " 1 machine       passed\n"));
	assert_non_null(strstr(text_str(&out), " 4 model         skipped      the speaker skipped it\n"));
	assert_null(strstr(text_str(&out), "check"));
	text_release(&out);
}

/* The name of a machine is in the output of its step, but on no screen. */
static void the_screen_hides_the_name_of_the_machine(void **state)
{
	static const char output[] = "Machine\n  host                secret7\n  CPU                 fast\n";
	struct text out = {0};
	struct demo d;

	begin(&d, TOUR_QUICK, &plain);
	put(&d, *state, STEP_MACHINE, "output.txt", output);
	tell_output(&out, &d, STEP_MACHINE, 0, 80);
	assert_string_equal(text_str(&out), "Machine\n  CPU                 fast\n");
	text_release(&out);
}

/* -- the judges -- */

/* Judges a step by its files. */
static struct stage_result *judged(struct demo *d, enum step_id id, int code)
{
	char dir[PATH_MAX + 64];

	d->result[id].verdict = VERDICT_STAGE_NOT_RUN;
	*d->result[id].reason = *d->result[id].headline = '\0';
	tour_step_dir(d, id, dir);
	step_list[id].judge(d, &d->result[id], dir, code);
	return &d->result[id];
}

static void only_the_taught_sentence_passes(void **state)
{
	struct stage_result *r;
	struct demo d;

	begin(&d, TOUR_QUICK, &plain);
	put(&d, *state, STEP_ANSWER, "output.txt", "A very small model that learned this a moment ago.\n");
	assert_int_equal(judged(&d, STEP_ANSWER, 0)->verdict, VERDICT_STAGE_PASSED);
	assert_int_equal(judged(&d, STEP_ANSWER, 2)->verdict, VERDICT_STAGE_INCONCLUSIVE);
	put(&d, *state, STEP_ANSWER, "output.txt", "A very small model that learned this a moment ago\n");
	r = judged(&d, STEP_ANSWER, 0);
	assert_int_equal(r->verdict, VERDICT_STAGE_INCONCLUSIVE);
	assert_non_null(strstr(r->reason, "after 80 steps"));
}

static void a_training_without_results_is_inconclusive(void **state)
{
	struct stage_result *r;
	struct demo d;

	begin(&d, TOUR_QUICK, &plain);
	put(&d, *state, STEP_TRAIN, "output.txt", "");
	assert_int_equal(judged(&d, STEP_TRAIN, 0)->verdict, VERDICT_STAGE_INCONCLUSIVE);
	put(&d, *state, STEP_TRAIN, "results.json",
	    "{\"headline\": \"measured: well\", \"cases\": [{\"phases\": [{\"phase\": \"once\", \"values\": "
	    "{\"loss_first\": 5.5, \"loss\": 0.25, \"tokens_per_s\": 12000}}]}]}");
	r = judged(&d, STEP_TRAIN, 0);
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	assert_string_equal(r->headline, "the loss fell from 5.5 to 0.25; 12000 tokens/s");
	json_decref(r->figures);
}

/* A rate of 0 means that there was none. */
static void a_sweep_without_a_limit_has_no_rate_for_it(void **state)
{
	struct stage_result *r;
	struct demo d;

	begin(&d, TOUR_SERVE, &plain);
	put(&d, *state, STEP_SWEEP, "results.json",
	    "{\"headline\": \"pass: well\", \"cases\": [{\"phases\": [{\"phase\": \"once\", \"values\": "
	    "{\"sweep_met_rate\": 12.5, \"sweep_missed_rate\": 0}}]}]}");
	r = judged(&d, STEP_SWEEP, 0);
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	assert_string_equal(r->headline, "12.5 requests/s met the limits");
	assert_int_equal(json_array_size(r->figures), 1);
	json_decref(r->figures);
}

static void stages_of_comprehensive_are_figures(void **state)
{
	struct stage_result *r;
	struct demo d;

	begin(&d, TOUR_FULL, &plain);
	put(&d, *state, STEP_PROVE, "summary.json",
	    "{\"verdict\": \"failed\", \"stages\": [{\"title\": \"Stress\", \"asked\": true, \"verdict\": "
	    "\"failed\"}, {\"title\": \"Load test\", \"asked\": false, \"verdict\": \"not run\"}]}");
	assert_int_equal(judged(&d, STEP_PROVE, 64)->verdict, VERDICT_STAGE_INCONCLUSIVE);
	r = judged(&d, STEP_PROVE, 1);
	assert_int_equal(r->verdict, VERDICT_STAGE_FAILED);
	assert_int_equal(json_array_size(r->figures), 1);
	assert_string_equal(json_member_text(json_array_get(r->figures, 0), "name"), "Stress");
	json_decref(r->figures);
}

/* A figure that is not trusted stands on the page with its verdict, and in no headline. */
static void the_headline_of_a_suite_has_trusted_figures_only(void **state)
{
	static const char results[] =
		"{\"headline\": \"pass: 2 passed; judged by nobody\", \"cases\": ["
		"{\"title\": \"memory copy 1 GiB\", \"target\": \"cpu\", \"verdict\": \"pass\", \"figure\": "
		"{\"value\": 4e10, \"unit\": \"B/s\"}},"
		"{\"title\": \"memory copy 2 GiB\", \"target\": \"cpu\", \"verdict\": \"untrusted\", \"figure\": "
		"{\"value\": 9e10, \"unit\": \"B/s\"}},"
		"{\"title\": \"FP32 GEMM 2048\", \"target\": \"cpu\", \"verdict\": \"skip\"}]}";
	struct stage_result *r;
	struct demo d;

	begin(&d, TOUR_QUICK, &plain);
	put(&d, *state, STEP_CHECK, "results.json", results);
	r = judged(&d, STEP_CHECK, 0);
	assert_int_equal(r->verdict, VERDICT_STAGE_PASSED);
	assert_string_equal(r->headline, "2 passed; memory copy 1 GiB 40.0 GB/s");
	assert_int_equal(json_array_size(r->figures), 2);
	json_decref(r->figures);
}

/* -- the exit code -- */

static void the_exit_code_follows_from_the_steps(void **state)
{
	struct demo d;

	(void)state;
	begin(&d, TOUR_QUICK, &plain);
	for (size_t i = 0; i < d.count; i++)
		d.result[d.step[i]].verdict = VERDICT_STAGE_PASSED;
	assert_int_equal(demo_code(&d), EXIT_PASS);
	d.result[STEP_COST].verdict = VERDICT_STAGE_SKIPPED;
	assert_int_equal(demo_code(&d), EXIT_PASS);
	d.result[STEP_LOAD].verdict = VERDICT_STAGE_NOT_RUN;
	assert_int_equal(demo_code(&d), EXIT_INCONCLUSIVE);
	d.result[STEP_LOAD].asked = false;
	assert_int_equal(demo_code(&d), EXIT_PASS);
	d.result[STEP_CHECK].verdict = VERDICT_STAGE_INCONCLUSIVE;
	assert_int_equal(demo_code(&d), EXIT_INCONCLUSIVE);
	d.result[STEP_CHECK].verdict = VERDICT_STAGE_FAILED;
	assert_int_equal(demo_code(&d), EXIT_FAILED);
}

/* -- the lines of a child's terminal -- */

static void keep_line(void *arg, const char *line)
{
	struct text *all = arg;

	text_addf(all, "%s|", line);
}

static void progress_is_kept_apart_from_lines(void **state)
{
	static const char written[] = "first\nto be\r\033[K[1/2] one\r\033[K[2/2] two";
	struct text all = {0};
	struct stage_lines l = {.line = keep_line, .arg = &all};

	(void)state;
	for (size_t i = 0; i < strlen(written); i++) /* every piece is cut */
		stage_lines_take(&l, written + i, 1);
	assert_string_equal(text_str(&all), "first|");
	assert_string_equal(l.live, "[2/2] two");
	stage_lines_take(&l, "\r\033[Klast\n\n", 10);
	assert_string_equal(text_str(&all), "first|last|");
	assert_string_equal(l.live, "");
	text_release(&all);
}

static void a_line_without_end_is_cut(void **state)
{
	struct text all = {0};
	struct stage_lines l = {.line = keep_line, .arg = &all};

	(void)state;
	for (int i = 0; i < 5000; i++)
		stage_lines_take(&l, "x", 1);
	assert_int_equal(strlen(l.live), sizeof(l.live) - 1);
	stage_lines_take(&l, "\n", 1);
	assert_int_equal(strlen(text_str(&all)), sizeof(l.live)); /* and the mark */
	text_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_step_is_in_a_tour_and_finds_what_it_needs),
		cmocka_unit_test(a_list_brings_the_steps_that_it_needs),
		cmocka_unit_test(a_machine_without_a_gpu_skips_links_with_the_reason),
		cmocka_unit_test(the_cost_is_that_of_the_run_of_the_tour),
		cmocka_unit_test(the_plan_is_the_sum_before_the_run),
		cmocka_unit_test(ended_steps_correct_the_rest),
		cmocka_unit_test(a_step_that_takes_longer_never_has_nothing_left),
		cmocka_unit_test(skipped_steps_take_no_time),
		cmocka_unit_test(a_step_tells_what_it_proves_and_its_command),
		cmocka_unit_test(the_end_of_a_step_has_figures_and_reasons),
		cmocka_unit_test(the_progress_has_the_commands_own_line),
		cmocka_unit_test(the_summary_leaves_out_what_nobody_asked_for),
		cmocka_unit_test_setup_teardown(the_screen_hides_the_name_of_the_machine, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(only_the_taught_sentence_passes, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_training_without_results_is_inconclusive, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(a_sweep_without_a_limit_has_no_rate_for_it, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(stages_of_comprehensive_are_figures, scratch_create,
						scratch_remove),
		cmocka_unit_test_setup_teardown(the_headline_of_a_suite_has_trusted_figures_only,
						scratch_create, scratch_remove),
		cmocka_unit_test(the_exit_code_follows_from_the_steps),
		cmocka_unit_test(progress_is_kept_apart_from_lines),
		cmocka_unit_test(a_line_without_end_is_cut),
	};

	return cmocka_run_group_tests_name("demo", tests, NULL, NULL);
}
