/* SPDX-License-Identifier: Apache-2.0 */
/* Latency and bandwidth lines through made-up curves whose switch points are known. */
#include "test.h"
#include <math.h>
#include "core/math/random.h"
#include "judge/gap/latency_fit.h"

enum { POINTS = 28 };

struct law {
	double latency_ns, rate;
};

static double noise(uint64_t i, double share)
{
	return 1 + share * (double)random_f32(11, 3, i);
}

/* Sizes double from 64 bytes; the fastest law holds, as a library would choose. */
static void make(struct latency_fit_point *p, const struct law *law, size_t laws, double share, uint64_t seed,
		 bool told)
{
	static const char *const names[] = {"ring ll", "ring ll128", "ring simple"};

	for (size_t i = 0; i < POINTS; i++) {
		p[i] = (struct latency_fit_point){.x = ldexp(64, (int)i), .ns = INFINITY};
		for (size_t k = 0; k < laws; k++) {
			double ns = law[k].latency_ns + p[i].x / law[k].rate;

			if (ns >= p[i].ns)
				continue;
			p[i].ns = ns;
			p[i].way = told ? names[k] : NULL;
		}
		p[i].ns *= noise(seed * 1000 + i, share);
	}
}

static bool near(double found, double expected, double share)
{
	return fabs(found - expected) <= share * expected;
}

static void test_judge_fit__one_law_is_one_line(void **state)
{
	static const struct law law = {8500, 364};
	struct latency_fit_point p[POINTS];
	struct latency_fit f;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		make(p, &law, 1, 0.01, seed, false);
		latency_fit_of(p, POINTS, &f);
		assert_int_equal(f.lines, 1);
		assert_true(near(f.line[0].latency_ns, 8500, 0.01));
		assert_true(near(f.line[0].rate, 364, 0.01));
		assert_true(fabs(f.line[0].latency_ns - 8500) <= 2 * f.line[0].latency_half);
		assert_true(f.line[0].worst < 0.025);
	}
}

/* LL, LL128 and Simple as on four GPUs: lines cross at 1.0 and 31 MB. */
static const struct law three[] = {{7000, 50}, {24000, 200}, {50000, 364}};

static void check_three(const struct latency_fit *f, const struct latency_fit_point *p)
{
	assert_int_equal(f->lines, 3);
	for (int k = 0; k < 3; k++) {
		assert_true(near(f->line[k].latency_ns, three[k].latency_ns, 0.12));
		assert_true(near(f->line[k].rate, three[k].rate, 0.05));
	}
	for (int k = 0; k < 2; k++) {
		double at = (three[k + 1].latency_ns - three[k].latency_ns) /
			    (1 / three[k].rate - 1 / three[k + 1].rate);

		/* the true place is within one doubling of the interval that was found */
		assert_true(at >= f->change[k].from / 2 && at <= f->change[k].to * 2);
		assert_true(f->change[k].at == 0 || near(f->change[k].at, at, 0.3));
	}
	assert_true(p[f->line[1].first].x > 64);
}

static void test_judge_fit__switch_points_are_found_without_being_told(void **state)
{
	struct latency_fit_point p[POINTS];
	struct latency_fit f;

	(void)state;
	for (uint64_t seed = 0; seed < 20; seed++) {
		make(p, three, 3, seed % 2 ? 0.01 : 0, seed, false);
		latency_fit_of(p, POINTS, &f);
		check_three(&f, p);
		assert_false(f.told);
	}
}

static void test_judge_fit__switch_points_are_where_they_are_told(void **state)
{
	struct latency_fit_point p[POINTS];
	struct latency_fit f;

	(void)state;
	make(p, three, 3, 0.02, 5, true);
	latency_fit_of(p, POINTS, &f);
	assert_true(f.told);
	check_three(&f, p);
	for (size_t k = 0; k + 1 < f.lines; k++) {
		assert_string_not_equal(p[f.line[k].first].way, p[f.line[k + 1].first].way);
		assert_true(f.change[k].to == 2 * f.change[k].from);
	}
}

static void test_judge_fit__too_few_points_have_no_line(void **state)
{
	static const struct law law = {8500, 364};
	struct latency_fit_point p[POINTS];
	struct latency_fit f;

	(void)state;
	make(p, &law, 1, 0, 0, false);
	latency_fit_of(p, 2, &f);
	assert_int_equal(f.lines, 0);
	latency_fit_of(p, 3, &f);
	assert_int_equal(f.lines, 1);
}

static void test_judge_fit__latency_is_never_negative(void **state)
{
	struct latency_fit_point p[4];
	struct latency_fit f;

	(void)state;
	for (int i = 0; i < 4; i++) /* faster than linear: no positive latency fits */
		p[i] = (struct latency_fit_point){.x = ldexp(1, i), .ns = ldexp(1, 2 * i)};
	latency_fit_of(p, 4, &f);
	for (size_t k = 0; k < f.lines; k++)
		assert_true(f.line[k].latency_ns >= 0);
}

static void test_judge_fit__a_cases_latency_is_the_others(void **state)
{
	static const struct law law = {10000, 100};
	struct latency_fit_point p[POINTS];

	(void)state;
	make(p, &law, 1, 0, 0, false);
	p[7].ns *= 3; /* the case that is looked at does not explain itself */
	assert_true(near(latency_fit_latency_without(p, 12, p[7].x), 10000, 0.01));
	assert_true(latency_fit_latency_without(p, 1, p[0].x) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_judge_fit__a_cases_latency_is_the_others),
		cmocka_unit_test(test_judge_fit__latency_is_never_negative),
		cmocka_unit_test(test_judge_fit__one_law_is_one_line),
		cmocka_unit_test(test_judge_fit__switch_points_are_found_without_being_told),
		cmocka_unit_test(test_judge_fit__switch_points_are_where_they_are_told),
		cmocka_unit_test(test_judge_fit__too_few_points_have_no_line),
	};

	return cmocka_run_group_tests_name("judge_fit", tests, NULL, NULL);
}
