/* SPDX-License-Identifier: Apache-2.0 */
/* The account of several ranks on made-up steps: the shares of their time, the late rank and its causes. */
#include "train/run/rank_account.h"
#include <math.h>
#include "test.h"
#include "core/process/cpu_wait.h"
#include "train/run/diagnose.h"

enum { RANKS = 4, STEPS = 20 };

/* Steps as they happen: each rank works, the collective ends for all `exposed` after the last has come. */
struct world {
	struct rank_figures base, odd; /* own work of a rank; added for rank `who` */
	unsigned who;		       /* RANKS: none */
	double exposed_s;
	bool in_turn; /* another rank in each step */
};

static struct rank_account account(const struct world *w)
{
	struct rank_window window;
	struct rank_account a;
	struct error err = {0};

	assert_int_equal(rank_window_make(&window, RANKS, &err), STATUS_OK);
	for (unsigned s = 0; s < STEPS; s++) {
		struct rank_figures all[RANKS];
		double end = 0;

		for (unsigned r = 0; r < RANKS; r++) {
			const bool odd = r == (w->in_turn ? s % RANKS : w->who);

			all[r] = w->base;
			if (odd) {
				const double *more = (const double *)&w->odd;
				double *sum = (double *)&all[r];

				for (int i = 0; i < RANK_FIGURES; i++)
					sum[i] += more[i];
			}
			all[r].step_s = all[r].compute_s + all[r].rows_s + all[r].save_s + 0.002;
			if (odd)
				all[r].step_s += w->odd.step_s; /* of the host */
			end = fmax(end, all[r].step_s + w->exposed_s);
		}
		for (unsigned r = 0; r < RANKS; r++) {
			all[r].drain_s = end - all[r].step_s;
			all[r].step_s = end;
		}
		rank_window_add(&window, all);
		assert_int_equal(rank_account_make(&a, &window, &err), STATUS_OK);
		if (s + 1 < RANK_WINDOW)
			assert_int_equal(a.late.rank, -1);
	}
	assert_true(fabs(a.compute + a.exposed + a.waiting + a.rows + a.save + a.host - 1) < 1e-9);
	assert_true(fabs(rank_parts_all_s(&window.sum) - (STEPS - 1) * a.step_s) < 1e-6 * STEPS ||
		    w->in_turn);
	rank_window_release(&window);
	return a;
}

static const struct rank_figures usual = {
	.compute_s = 0.1, .rows_s = 0.001, .tokens = 1000, .clock_hz = 1.98e9, .link_rate = 80};

static void test_account__equal_ranks_name_nobody(void **state)
{
	const struct world w = {.base = usual, .who = RANKS, .exposed_s = 0.02};
	const struct rank_account a = account(&w);

	(void)state;
	assert_int_equal(a.late.rank, -1);
	assert_true(fabs(a.exposed - 0.02 / 0.123) < 1e-9);
	assert_true(a.waiting < 1e-9);
	assert_true(fabs(a.host - 0.002 / 0.123) < 1e-9);
}

static void test_account__ranks_that_are_late_in_turn_name_nobody(void **state)
{
	const struct world w = {
		.base = usual, .odd = {.compute_s = 0.05}, .in_turn = true, .exposed_s = 0.01};
	const struct rank_account a = account(&w);

	(void)state;
	assert_int_equal(a.late.rank, -1);
	assert_true(a.waiting > 0.2);
}

static void test_account__each_cause_is_named_with_its_evidence(void **state)
{
	static const struct {
		struct rank_figures odd;
		enum rank_cause cause;
		const char *evidence;
	} kinds[] = {
		{{.step_s = 0.05},
		 RANK_CAUSE_HOST,
		 "host 100 % (52.0 ms of the host per step, others 2.0 ms)"},
		{{.step_s = 0.05, .cpu_wait_s = 0.05},
		 RANK_CAUSE_CPU,
		 "no free CPU 100 % (50.0 ms of waiting for a CPU per step, others 0.0 ms)"},
		{{.compute_s = 0.05, .cpu_wait_s = 0.05}, RANK_CAUSE_CPU, "slower computation 0 %"},
		{{.compute_s = 0.05, .tokens = 500, .cpu_wait_s = 0.03}, RANK_CAUSE_ROWS, "no free CPU 0 %"},
		{{.compute_s = 0.05, .clock_hz = -0.66e9, .cpu_wait_s = 0.03},
		 RANK_CAUSE_CLOCK,
		 "no free CPU 0 %"},
		{{.rows_s = 0.05},
		 RANK_CAUSE_DATA,
		 "data 100 % (51.0 ms of waiting for rows per step, others 1.0 ms)"},
		{{.save_s = 0.05}, RANK_CAUSE_SAVE, "checkpoint 100 %"},
		{{.compute_s = 0.05, .tokens = 500},
		 RANK_CAUSE_ROWS,
		 "unequal rows 100 % (1500 tokens, others 1000)"},
		{{.compute_s = 0.05, .clock_hz = -0.66e9},
		 RANK_CAUSE_CLOCK,
		 "clock 100 % (1320 MHz, others 1980)"},
		{{.compute_s = 0.05, .clock_hz = -0.66e9, .slowed_share = 0.9},
		 RANK_CAUSE_THROTTLE,
		 "throttle 100 % (90 % of the time, others 0 %)"},
		{{.compute_s = 0.05, .link_rate = -40},
		 RANK_CAUSE_LINK,
		 "link 100 % (PCIe generation x lanes 40, others 80)"},
		{{.compute_s = 0.05},
		 RANK_CAUSE_COMPUTE,
		 "slower computation 100 % (150.0 ms of computation per step"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		for (unsigned who = 0; who < RANKS; who++) {
			const struct world w = {
				.base = usual, .odd = kinds[i].odd, .who = who, .exposed_s = 0.005};
			const struct rank_account a = account(&w);

			assert_int_equal(a.late.rank, (int)who);
			assert_int_equal(a.late.cause, kinds[i].cause);
			assert_non_null(strstr(a.late.evidence, kinds[i].evidence));
			assert_true(a.late.share[kinds[i].cause] > 0.95);
			assert_true(fabs(a.late.behind_s - 0.05) < 1e-6);
		}
}

/* A rank that comes 14.2 ms later than the others, for several reasons. */
static void test_account__time_without_a_cpu_counts_once(void **state)
{
	static const struct {
		double host_s, compute_s, base_wait_s, wait_s; /* wait: more than the base */
		enum rank_cause cause;
		double cpu, host, compute; /* shares */
	} cases[] = {
		/* as in a run on two busy cores: the others have no CPU for 7.5 ms, the late rank for 18.1 */
		{0.001, 0.0132, 0.0075, 0.0106, RANK_CAUSE_CPU, 0.746, 0.018, 0.236},
		{0.001, 0.0132, 0.0075, 0.005, RANK_CAUSE_COMPUTE, 0.352, 0.046, 0.602},
		{0.0132, 0.001, 0.0075, 0.003, RANK_CAUSE_HOST, 0.211, 0.733, 0.056},
		/* all have too few CPUs, and the late rank waits for one longer than it is late */
		{0.001, 0.0132, 0.0145, 0.0005, RANK_CAUSE_CPU, 0.035, 0.068, 0.897},
		{0.001, 0.0132, 0.0135, 0.0005, RANK_CAUSE_COMPUTE, 0.035, 0.068, 0.897},
		/* it waits for a CPU while it waits for others, too */
		{0.001, 0.0132, 0, 0.05, RANK_CAUSE_CPU, 1, 0, 0},
		/* all have equally few CPUs; this one has more */
		{0.0132, 0.001, 0.03, 0, RANK_CAUSE_HOST, 0, 0.930, 0.070},
		{0.0132, 0.001, 0.03, -0.03, RANK_CAUSE_HOST, 0, 0.930, 0.070},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct world w = {.base = {.compute_s = 0.0096, .cpu_wait_s = cases[i].base_wait_s},
					.odd = {.step_s = cases[i].host_s,
						.compute_s = cases[i].compute_s,
						.cpu_wait_s = cases[i].wait_s},
					.who = 2,
					.exposed_s = 0.001};
		const struct rank_account a = account(&w);

		assert_int_equal(a.late.rank, 2);
		assert_int_equal(a.late.cause, cases[i].cause);
		assert_true(fabs(a.late.share[RANK_CAUSE_CPU] - cases[i].cpu) < 2e-3);
		assert_true(fabs(a.late.share[RANK_CAUSE_HOST] - cases[i].host) < 2e-3);
		assert_true(fabs(a.late.share[RANK_CAUSE_COMPUTE] - cases[i].compute) < 2e-3);
	}
}

/* All ranks wait for a CPU, and longer than the late one is late. Then no host and no computation is blamed. Other
 * causes have evidence of their own. */
static void test_account__too_few_cpus_replace_no_cause_with_evidence(void **state)
{
	static const struct {
		struct rank_figures odd;
		enum rank_cause cause;
	} cases[] = {
		{{.step_s = 0.05}, RANK_CAUSE_CPU},
		{{.compute_s = 0.05}, RANK_CAUSE_CPU},
		{{.rows_s = 0.05}, RANK_CAUSE_DATA},
		{{.save_s = 0.05}, RANK_CAUSE_SAVE},
		{{.compute_s = 0.05, .tokens = 500}, RANK_CAUSE_ROWS},
		{{.compute_s = 0.05, .clock_hz = -0.66e9}, RANK_CAUSE_CLOCK},
		{{.compute_s = 0.05, .clock_hz = -0.66e9, .slowed_share = 0.9}, RANK_CAUSE_THROTTLE},
		{{.compute_s = 0.05, .link_rate = -40}, RANK_CAUSE_LINK},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = {.base = usual, .odd = cases[i].odd, .who = 1, .exposed_s = 0.005};

		w.base.cpu_wait_s = 0.06;
		assert_int_equal(account(&w).late.rank, 1);
		assert_int_equal(account(&w).late.cause, cases[i].cause);
	}
}

/* A rank with 32 threads that comes 20 ms late. */
static void test_account__threads_that_wait_at_the_same_time_count_once(void **state)
{
	enum { THREADS = 32 };
	static const struct {
		uint64_t each_ns, first_ns; /* waits of the other threads and of the first one */
		double longest_s;
		enum rank_cause cause;
	} cases[] = {
		{1000000, 1000000, 0.001, RANK_CAUSE_COMPUTE}, /* the sum is 32 ms */
		{5000000, 6000000, 0.006, RANK_CAUSE_COMPUTE},
		{1000000, 20000000, 0.02, RANK_CAUSE_CPU},
		{21000000, 21000000, 0.021, RANK_CAUSE_CPU},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world w = {.base = {.compute_s = 0.1}, .odd = {.compute_s = 0.02}, .who = 3, .exposed_s = 0.001};
		uint64_t before[THREADS], now[THREADS];

		for (unsigned t = 0; t < THREADS; t++) {
			before[t] = 1000 * t;
			now[t] = before[t] + (t ? cases[i].each_ns : cases[i].first_ns);
		}
		w.odd.cpu_wait_s = 1e-9 * (double)cpu_wait_longest_ns(before, now, THREADS);
		assert_true(fabs(w.odd.cpu_wait_s - cases[i].longest_s) < 1e-12);
		assert_int_equal(account(&w).late.rank, 3);
		assert_int_equal(account(&w).late.cause, cases[i].cause);
		/* all ranks wait as long */
		w.base.cpu_wait_s = w.odd.cpu_wait_s;
		w.odd.cpu_wait_s = 0;
		assert_int_equal(account(&w).late.cause, cases[i].longest_s > 0.02 ? RANK_CAUSE_CPU : RANK_CAUSE_COMPUTE);
	}
}

static void test_account__what_is_not_known_is_said(void **state)
{
	const struct world w = {
		.base = {.compute_s = 0.1}, .odd = {.compute_s = 0.05}, .who = 1, .exposed_s = 0.005};
	const struct rank_account a = account(&w);

	(void)state;
	assert_non_null(strstr(a.late.evidence, "clock and throttle: not known on this rank"));
	assert_non_null(strstr(a.late.evidence, "link: not known on this rank"));
}

/* A rank that comes last, but whose own figures are those of the fastest one. */
static void test_account__a_delay_that_nothing_explains_names_nobody(void **state)
{
	struct rank_window window;
	struct rank_account a;
	struct error err = {0};

	(void)state;
	for (int explains = 0; explains < 2; explains++) {
		assert_int_equal(rank_window_make(&window, RANKS, &err), STATUS_OK);
		for (unsigned s = 0; s < STEPS; s++) {
			struct rank_figures all[RANKS];

			for (unsigned r = 0; r < RANKS; r++)
				all[r] = (struct rank_figures){.step_s = 0.152,
							       .compute_s = explains ? 0.1 : 0.2,
							       .drain_s = r == 1 ? 0 : 0.05};
			all[1].compute_s = 0.15;
			rank_window_add(&window, all);
		}
		assert_int_equal(rank_account_make(&a, &window, &err), STATUS_OK);
		assert_int_equal(a.late.rank, explains ? 1 : -1);
		rank_window_release(&window);
	}
}

/* Telemetry of the late rank's GPU begins some steps later than that of the others. */
static void test_account__a_gpu_that_is_known_later_is_not_a_slower_one(void **state)
{
	struct rank_window window;
	struct rank_account a;
	struct error err = {0};

	(void)state;
	assert_int_equal(rank_window_make(&window, RANKS, &err), STATUS_OK);
	for (unsigned s = 0; s < RANK_WINDOW; s++) {
		struct rank_figures all[RANKS];

		for (unsigned r = 0; r < RANKS; r++) {
			all[r] = usual;
			all[r].compute_s = r == 1 ? 0.15 : 0.1;
			all[r].step_s = 0.16;
			all[r].drain_s = r == 1 ? 0.005 : 0.055;
			if (r == 1 && s < RANK_WINDOW / 2)
				all[r].clock_hz = all[r].link_rate = 0;
		}
		rank_window_add(&window, all);
	}
	assert_int_equal(rank_account_make(&a, &window, &err), STATUS_OK);
	assert_int_equal(a.late.rank, 1);
	assert_int_equal(a.late.cause, RANK_CAUSE_COMPUTE);
	assert_non_null(strstr(a.late.evidence, "clock 0 % (1980 MHz, others 1980)"));
	assert_non_null(strstr(a.late.evidence, "link 0 % (PCIe generation x lanes 80, others 80)"));
	rank_window_release(&window);
}

static struct findings findings_of(const struct rank_account *a)
{
	struct diagnose d = {0};
	struct findings found;
	const struct diagnose_step s = {
		.step = 1, .loss = 1, .grad_norm = 1, .rate = 1, .targets = 1, .step_s = 1, .ranks = a};

	diagnose_step(&d, &found, &s);
	diagnose_step(&d, &found, &s); /* reported once */
	assert_int_equal(found.count, 0);
	d = (struct diagnose){0};
	diagnose_step(&d, &found, &s);
	return found;
}

static void test_account__findings_name_the_setting(void **state)
{
	struct rank_account a = {.steps = RANK_WINDOW, .compute = 0.9, .late = {.rank = -1}};
	struct findings f;

	(void)state;
	assert_int_equal(findings_of(&a).count, 0);
	a.exposed = 0.2;
	f = findings_of(&a);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.found[0].what, FINDING_COMMUNICATION_BOUND);
	assert_non_null(strstr(finding_knob(f.found[0].what), "bucket_cap_mb"));
	a.exposed = 0;
	a.memory_share = 0.8;
	a.tensor_share = 0.2;
	assert_int_equal(findings_of(&a).found[0].what, FINDING_MEMORY_BOUND);
	a.tensor_share = 0.6;
	assert_int_equal(findings_of(&a).count, 0);
	a.sm_share = 0.4;
	assert_int_equal(findings_of(&a).found[0].what, FINDING_LAUNCH_BOUND);
	a.sm_share = 0.85;
	a.late = (struct rank_late){.rank = 2, .cause = RANK_CAUSE_HOST, .evidence = "host 99 %"};
	f = findings_of(&a);
	assert_int_equal(f.found[0].what, FINDING_STRAGGLER);
	assert_non_null(strstr(f.found[0].text, "rank 2"));
	assert_non_null(strstr(f.found[0].text, "host 99 %"));
	a.late.cause = RANK_CAUSE_CPU; /* no rank is at fault */
	f = findings_of(&a);
	assert_int_equal(f.count, 1);
	assert_int_equal(f.found[0].what, FINDING_NO_FREE_CPU);
	assert_non_null(strstr(f.found[0].text, "the node of rank 2 has too few free CPUs"));
	assert_non_null(strstr(f.found[0].text, "host 99 %"));
	assert_non_null(strstr(finding_knob(f.found[0].what), "stop other programs"));
	a.late.cause = RANK_CAUSE_ROWS;
	assert_int_equal(findings_of(&a).found[0].what, FINDING_UNEQUAL_ROWS);
	a.steps = RANK_WINDOW - 1; /* too few steps to say anything */
	assert_int_equal(findings_of(&a).count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_account__equal_ranks_name_nobody),
		cmocka_unit_test(test_account__ranks_that_are_late_in_turn_name_nobody),
		cmocka_unit_test(test_account__each_cause_is_named_with_its_evidence),
		cmocka_unit_test(test_account__time_without_a_cpu_counts_once),
		cmocka_unit_test(test_account__too_few_cpus_replace_no_cause_with_evidence),
		cmocka_unit_test(test_account__threads_that_wait_at_the_same_time_count_once),
		cmocka_unit_test(test_account__what_is_not_known_is_said),
		cmocka_unit_test(test_account__a_delay_that_nothing_explains_names_nobody),
		cmocka_unit_test(test_account__a_gpu_that_is_known_later_is_not_a_slower_one),
		cmocka_unit_test(test_account__findings_name_the_setting),
	};

	return cmocka_run_group_tests_name("train_rank_account", tests, NULL, NULL);
}
