/* SPDX-License-Identifier: Apache-2.0 */
/* A training run's step of median length, and its chain from the rate of products to tokens a second. */
#include "test.h"

#include <math.h>
#include "judge/gap/gap.h"
#include "judge/gap/training_step.h"

enum { STEPS = 5, PARTS = 6 };

static const char *const part_names[PARTS] = {"products",	    "thin_products", "attention",
					      "attention_backward", "elements",	     "optimiser"};
static const double part_s[PARTS] = {0.200, 0.020, 0.010, 0.040, 0.030, 0.002};
static const double part_flop[PARTS] = {150e12, 10e12, 6e12, 14e12, 0, 0};
#define MODEL_FLOP 160e12 /* of 180e12 done */
#define RATE 800e12
#define MEDIAN_S 0.304
static const double step_s[STEPS] = {2.0, 0.300, MEDIAN_S, 0.310, 0.302};

struct bed {
	struct record record;
	struct record_case c;
	struct record_phase phase;
	struct judge_context ctx;
	struct subject s;
	struct judgement out;
};

static void reading(struct bed *b, uint64_t t_ns, const char *signal, const char *tail, double value)
{
	struct series *s;
	char name[64];

	snprintf(name, sizeof(name), "%s%s", signal, tail);
	assert_int_equal(series_find(&s, &b->record.series, &b->record.series_count, "train", name,
				     SIGNAL_GAUGE, NULL),
			 STATUS_OK);
	assert_int_equal(series_add(s, t_ns, value, NULL), STATUS_OK);
}

enum told { PHASES = 0, PARTS_S = 1, PARTS_FLOP = 2, GEMM_S = 4, ALL = 7 };

/* 8192 tokens a step. */
static void bed_open(struct bed *b, int told, double mfu)
{
	double sum = 0, device_s = 0, figure;

	*b = (struct bed){.c = {.job = true, .probe = "train", .limit = "training"}};
	for (int i = 0; i < PARTS; i++)
		device_s += part_s[i];
	for (unsigned i = 0; i < STEPS; i++) {
		sum += step_s[i];
		reading(b, i + 1, "step_s", "", step_s[i]);
		reading(b, i + 1, "flop_rate", "", MODEL_FLOP / step_s[i]);
		reading(b, i + 1, "mfu", "", MODEL_FLOP / step_s[i] / RATE);
		reading(b, i + 1, "forward_s", "", 0.4 * device_s);
		reading(b, i + 1, "backward_s", "", 0.6 * device_s - 0.002);
		reading(b, i + 1, "optimiser_s", "", 0.002);
		if (told & GEMM_S)
			reading(b, i + 1, "gemm_s", "", 0.270);
		for (int p = 0; p < PARTS; p++) {
			if (told & PARTS_S)
				reading(b, i + 1, part_names[p], "_part_s", part_s[p]);
			if (told & PARTS_FLOP && part_flop[p] > 0)
				reading(b, i + 1, part_names[p], "_part_flop", part_flop[p]);
		}
	}
	figure = STEPS * 8192 / sum;
	b->phase.values =
		json_pack("{s:f, s:f, s:f}", "tokens_per_s", figure, "flop_rate", STEPS * MODEL_FLOP / sum,
			  "mfu", mfu > 0 ? mfu : STEPS * MODEL_FLOP / sum / RATE);
	b->ctx.record = &b->record;
	b->s = (struct subject){.ctx = &b->ctx,
				.c = &b->c,
				.kind = "node",
				.type = "",
				.phase = &b->phase,
				.phase_name = "once",
				.field = "tokens_per_s",
				.unit = "token/s",
				.figure = figure,
				.has_figure = true};
	b->out.figure = figure;
	b->out.has_figure = true;
	bound_of(&b->s, &b->out.bound);
	gap_of(&b->out, &b->s);
}

static void bed_close(struct bed *b)
{
	for (size_t i = 0; i < b->record.series_count; i++)
		series_release(&b->record.series[i]);
	free(b->record.series);
	json_decref(b->phase.values);
}

static const struct factor *factor(const struct bed *b, const char *name)
{
	for (size_t i = 0; i < b->out.gap_count; i++)
		if (!strcmp(b->out.gap[i].name, name))
			return &b->out.gap[i];
	return NULL;
}

static void close_to(double value, double expected)
{
	if (!(fabs(value - expected) <= 1e-6 * fabs(expected)))
		fail_msg("%.9g is not %.9g", value, expected);
}

static void test_training__of_the_step_of_median_length_all_readings_are_taken(void **state)
{
	struct training_step t;
	struct bed b;

	(void)state;
	bed_open(&b, ALL, 0);
	assert_true(training_step_of(&t, &b.record));
	assert_int_equal(t.steps, STEPS);
	close_to(t.step_s, MEDIAN_S);
	close_to(t.mean_s, (2.0 + 0.300 + MEDIAN_S + 0.310 + 0.302) / STEPS);
	close_to(t.flop, MODEL_FLOP);
	close_to(t.gemm_rate, RATE);
	close_to(t.parts_s, 0.302);
	close_to(t.parts_flop, 180e12);
	assert_int_equal(t.part_count, PARTS);
	assert_string_equal(t.part[3].name, "attention_backward");
	close_to(t.part[3].flop, 14e12);
	bed_close(&b);
}

/* The first two start up and tune. */
static void test_training__where_steady_steps_are_told_they_alone_count(void **state)
{
	struct training_step t;
	struct bed b;

	(void)state;
	bed_open(&b, ALL, 0);
	for (unsigned i = 0; i < STEPS; i++)
		reading(&b, i + 1, "steady", "", 0);
	assert_true(training_step_of(&t, &b.record));
	assert_int_equal(t.steps, STEPS); /* none is steady: all there is */
	bed_close(&b);
	bed_open(&b, ALL, 0);
	for (unsigned i = 0; i < STEPS; i++)
		reading(&b, i + 1, "steady", "", i >= 2);
	assert_true(training_step_of(&t, &b.record));
	assert_int_equal(t.steps, 3);
	close_to(t.step_s, MEDIAN_S);
	close_to(t.mean_s, (MEDIAN_S + 0.310 + 0.302) / 3);
	assert_int_equal(t.t_ns, 3);
	bed_close(&b);
}

static void test_training__the_bound_is_the_models_flop_at_the_rate_of_products(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, ALL, 0);
	assert_int_equal(b.out.bound.from, BOUND_CEILING);
	close_to(b.out.bound.value, 8192 / (MODEL_FLOP / RATE));
	bed_close(&b);
	bed_open(&b, ALL, 1.2); /* a product slower than the steps */
	assert_int_equal(b.out.bound.from, BOUND_NONE);
	assert_int_equal(b.out.gap_count, 0);
	bed_close(&b);
}

static void test_training__its_factors_are_the_parts_of_a_step_and_leave_nothing(void **state)
{
	const double first_s = MODEL_FLOP / RATE, again_s = 20e12 / RATE;
	struct bed b;

	(void)state;
	bed_open(&b, ALL, 0);
	assert_true(b.out.explained);
	close_to(b.out.unexplained, 1);
	close_to(factor(&b, "made again")->value, first_s / (first_s + again_s));
	close_to(factor(&b, "products")->value,
		 (first_s + again_s) / (first_s + again_s + 0.200 - 150e12 / RATE));
	close_to(factor(&b, "optimiser")->value, 0.300 / 0.302);
	close_to(factor(&b, "host")->value, 0.302 / MEDIAN_S);
	close_to(factor(&b, "other steps")->value,
		 MEDIAN_S * STEPS / (2.0 + 0.300 + MEDIAN_S + 0.310 + 0.302));
	assert_null(factor(&b, "device"));
	assert_non_null(strstr(factor(&b, "products")->signal, "200 ms at 750 of 800 TFLOPS"));
	bed_close(&b);
}

static void test_training__a_journal_without_parts_flop_takes_products_together(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, PARTS_S | GEMM_S, 0);
	close_to(b.out.unexplained, 1);
	close_to(factor(&b, "products, attention")->value, MODEL_FLOP / RATE / 0.270);
	close_to(factor(&b, "elements")->value, 0.270 / 0.300);
	assert_null(factor(&b, "attention"));
	assert_null(factor(&b, "made again"));
	bed_close(&b);
}

static void test_training__without_parts_the_passes_are_what_is_left(void **state)
{
	struct bed b;

	(void)state;
	bed_open(&b, GEMM_S, 0); /* a CPU */
	close_to(b.out.unexplained, 1);
	assert_true(b.out.explained);
	close_to(factor(&b, "products")->value, MODEL_FLOP / RATE / 0.270);
	close_to(factor(&b, "other operations")->value, 0.270 / 0.302);
	bed_close(&b);
	bed_open(&b, PHASES, 0); /* a GPU without step_parts */
	close_to(b.out.unexplained, 1);
	assert_false(b.out.explained);
	close_to(factor(&b, "device")->value, MODEL_FLOP / RATE / 0.302);
	assert_non_null(strstr(factor(&b, "device")->signal, "step_parts: true"));
	bed_close(&b);
}

static void test_training__a_run_without_steps_has_no_chain(void **state)
{
	struct training_step t;
	struct record none = {0};
	struct bed b;

	(void)state;
	assert_false(training_step_of(&t, &none));
	bed_open(&b, ALL, 0);
	b.ctx.record = &none;
	gap_of(&b.out, &b.s);
	assert_int_equal(b.out.gap_count, 0);
	bed_close(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_training__of_the_step_of_median_length_all_readings_are_taken),
		cmocka_unit_test(test_training__where_steady_steps_are_told_they_alone_count),
		cmocka_unit_test(test_training__the_bound_is_the_models_flop_at_the_rate_of_products),
		cmocka_unit_test(test_training__its_factors_are_the_parts_of_a_step_and_leave_nothing),
		cmocka_unit_test(test_training__a_journal_without_parts_flop_takes_products_together),
		cmocka_unit_test(test_training__without_parts_the_passes_are_what_is_left),
		cmocka_unit_test(test_training__a_run_without_steps_has_no_chain),
	};

	return cmocka_run_group_tests_name("judge_training", tests, NULL, NULL);
}
