/* SPDX-License-Identifier: Apache-2.0 */
/* What changed on a GPU while a run ran: which case it fails, and what it is called. */
#include "judge_bed.h"

#define S 1000000000ull

static struct health_change *change(const struct record_case *from, const struct record_case *to, const char *name,
				    double before, double now)
{
	struct health *h = &w.r.health;
	struct health_change *c;

	h->change = realloc(h->change, (h->change_count + 1) * sizeof(*h->change));
	assert_non_null(h->change);
	c = &h->change[h->change_count++];
	*c = (struct health_change){.t0_ns = from->t0_ns - S / 2,
				    .t1_ns = to->t1_ns + S / 2,
				    .before = before,
				    .now = now};
	snprintf(c->pci, sizeof(c->pci), "%s", w.gpu[0].pci);
	snprintf(c->name, sizeof(c->name), "%s", name);
	return c;
}

static void silence(uint64_t t_ns, enum health_cuda cuda)
{
	struct health *h = &w.r.health;

	h->silence = calloc(1, sizeof(*h->silence));
	assert_non_null(h->silence);
	h->silence_count = 1;
	*h->silence = (struct health_silence){
		.t_ns = t_ns, .nvml = "GPU is lost", .cuda = cuda, .why = "cuInit answers 999", .lost = true};
	snprintf(h->silence->pci, sizeof(h->silence->pci), "%s", w.gpu[0].pci);
}

static int end_all(void **state)
{
	health_release(&w.r.health);
	return end(state);
}

static void forget(void)
{
	health_release(&w.r.health);
}

/* Whatever the suite has: one timed case is enough. */
static void test_changes__each_counter_has_its_verdict(void **state)
{
	static const struct {
		const char *name;
		double before, now;
		bool is_state;
		enum verdict verdict;
		enum cause cause;
		int exit_code;
	} rows[] = {
		{"ecc_volatile_uncorrected", 0, 1, false, VERDICT_FAIL, CAUSE_ECC, 1},
		{"ecc_aggregate_uncorrected", 7, 8, false, VERDICT_FAIL, CAUSE_ECC, 1},
		{"remapped_uncorrectable", 0, 1, false, VERDICT_FAIL, CAUSE_ECC, 1},
		{"remap_pending", 0, 1, true, VERDICT_FAIL, CAUSE_REMAP_PENDING, 1},
		{"remap_failed", 0, 1, true, VERDICT_FAIL, CAUSE_REMAP_FAILED, 1},
		{"recovery_action", 0, 2, true, VERDICT_FAIL, CAUSE_RECOVERY_ACTION, 1},
		{"violation_hw_thermal_s", 3, 4.1, false, VERDICT_FAIL, CAUSE_THERMAL_HW, 1},
		{"violation_power_brake_s", 0, 1.1, false, VERDICT_FAIL, CAUSE_POWER_BRAKE, 1},
		{"ecc_volatile_corrected", 0, 3, false, VERDICT_WARN, CAUSE_ECC, 0},
		{"ecc_aggregate_corrected", 0, 3, false, VERDICT_WARN, CAUSE_ECC, 0},
		{"pcie_replays", 2, 13, false, VERDICT_WARN, CAUSE_PCIE_ERRORS, 0},
		{"nvlink_errors", 2, 4, false, VERDICT_WARN, CAUSE_NVLINK_ERRORS, 0},
		/* what explains, or is too little */
		{"violation_power_s", 0, 30, false, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, 0},
		{"violation_hw_thermal_s", 3, 3.9, false, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, 0},
		{"pcie_replays", 2, 12, false, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, 0},
		{"remap_pending", 1, 0, true, VERDICT_PASS, CAUSE_LOW_CONFIDENCE, 0},
		/* fewer than before */
		{"ecc_volatile_uncorrected", 4, 0, false, VERDICT_UNKNOWN, CAUSE_COUNTER_RESET, 2},
		{"pcie_replays", 40, 2, false, VERDICT_WARN, CAUSE_COUNTER_RESET, 0},
	};
	struct record_case *c = healthy();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		forget();
		change(c, c, rows[i].name, rows[i].before, rows[i].now)->state = rows[i].is_state;
		world_judge(&w);
		if (world_of(&w, c)->verdict != rows[i].verdict || world_of(&w, c)->cause != rows[i].cause ||
		    w.out.exit_code != rows[i].exit_code)
			fail_msg("%s: %s %s, exit %d: %s", rows[i].name, verdict_name(world_of(&w, c)->verdict),
				 cause_name(world_of(&w, c)->cause), w.out.exit_code, world_of(&w, c)->reason);
		if (rows[i].verdict != VERDICT_PASS) {
			assert_non_null(strstr(world_of(&w, c)->reason, w.gpu[0].pci));
			assert_non_null(strstr(world_of(&w, c)->reason, "in this case"));
		}
	}
}

static void test_changes__a_link_whose_errors_rose_is_named(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	snprintf(change(c, c, "nvlink_errors", 2, 4)->parts, 16, "link 7: 2");
	world_judge(&w);
	assert_non_null(strstr(world_of(&w, c)->reason, "link 7: 2"));
}

static void test_changes__the_case_in_which_it_came_has_it(void **state)
{
	struct record_case *a = healthy(), *b = healthy(), *c = healthy();

	(void)state;
	change(b, b, "ecc_volatile_uncorrected", 0, 1);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_FAIL, CAUSE_ECC);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	forget(); /* between two readings all three ran: one has it, and names them */
	change(a, c, "ecc_volatile_uncorrected", 0, 1);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_ECC);
	assert_non_null(strstr(world_of(&w, c)->reason, "one of 3 cases, case 0 to case 2"));
	b->ending = ENDING_CRASHED; /* the one that did not end well is the likeliest */
	b->status = STATUS_NO_RESOURCE;
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_FAIL, CAUSE_ECC);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_changes__the_sampler_narrows_it(void **state)
{
	struct record_case *a = healthy(), *b = healthy(), *c = healthy();
	struct series *s = world_series(&w, "gpu:0000:10:00.0", "pcie_replays", SIGNAL_COUNTER);
	struct series *bits = world_series(&w, "gpu:0000:10:00.0", "clock_reasons", SIGNAL_BITS);

	(void)state;
	series_add(s, a->t0_ns + S, 0, NULL);
	series_add(s, b->t0_ns + S, 30, NULL);
	series_add(s, c->t0_ns + S, 30, NULL);
	for (const struct record_case *each = a; each <= c; each++)
		for (unsigned i = 2; i <= 6; i++)
			series_add(bits, each->t0_ns + i * S, 0, NULL);
	change(a, c, "pcie_replays", 0, 30);
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_WARN, CAUSE_PCIE_ERRORS);
	assert_non_null(strstr(world_of(&w, b)->reason, "in this case"));
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_changes__time_adds_up_over_the_run(void **state)
{
	struct record_case *a = healthy(), *b = healthy();

	(void)state;
	change(a, a, "violation_hw_thermal_s", 0, 0.6);
	change(b, b, "violation_hw_thermal_s", 0.6, 1.3);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_FAIL, CAUSE_THERMAL_HW);
	w.r.health.change[1].interrupted = true; /* what went by while the run stood still was others' */
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_changes__between_cases_it_belongs_to_the_one_before(void **state)
{
	struct record_case *a = healthy(), *b = healthy();
	struct health_change *c = change(a, a, "remap_pending", 0, 1);

	(void)state;
	c->state = true;
	c->t0_ns = a->t1_ns + S / 4;
	c->t1_ns = a->t1_ns + S / 2;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_FAIL, CAUSE_REMAP_PENDING);
	assert_non_null(strstr(world_of(&w, a)->reason, "while no case ran"));
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

/* Of a search the case that it follows is judged. */
static void test_changes__a_searchs_case_hands_it_on(void **state)
{
	struct record_case *a = healthy(), *b = healthy();

	(void)state;
	json_object_set_new((json_t *)b->plan, "follows",
			    json_pack("{s:i, s:i, s:s}", "case", 0, "round", 1, "why", "test"));
	change(b, b, "ecc_volatile_uncorrected", 0, 1);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_FAIL, CAUSE_ECC);
	assert_int_equal(w.out.exit_code, 1);
}

static void test_changes__a_reading_case_carries_it_too(void **state)
{
	struct record_case *c = world_reading(&w, "ecc", "gpu0", "ecc_enabled=1 ecc_volatile_uncorrected=0");

	(void)state;
	change(c, c, "ecc_volatile_uncorrected", 0, 1);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_ECC);
}

static void test_changes__nvml_and_cuda_silent_is_a_lost_gpu(void **state)
{
	struct record_case *a = healthy(), *b = healthy();

	(void)state;
	b->ending = ENDING_CRASHED;
	b->status = STATUS_NO_RESOURCE;
	b->cause = CAUSE_CRASHED;
	silence(b->t1_ns + S / 10, CUDA_FAILS);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_ERROR, CAUSE_GPU_LOST);
	assert_int_equal(w.out.exit_code, 2);
}

/* A driver that is exchanged during the run answers neither, and no GPU is lost. */
static void test_changes__only_nvml_can_say_that_a_gpu_is_lost(void **state)
{
	struct record_case *c = healthy();

	(void)state;
	silence(c->t1_ns + S / 10, CUDA_FAILS);
	w.r.health.silence->lost = false;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
	assert_non_null(strstr(world_of(&w, c)->reason, "CUDA does not reach it: cuInit answers 999"));
	w.r.health.silence->mismatch = true;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_VERSION_MISMATCH);
	assert_int_equal(w.out.exit_code, 2);
}

static void test_changes__nvml_alone_silent_is_lost_telemetry(void **state)
{
	struct record_case *a = healthy(), *b = healthy();
	struct series *s = world_series(&w, "gpu:0000:10:00.0", "nvml_error", SIGNAL_GAUGE);

	(void)state;
	series_add(s, a->t0_ns + 3 * S, 15, NULL); /* when the sampler saw it, before CUDA was asked */
	silence(b->t1_ns, CUDA_ANSWERS);
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
	assert_non_null(strstr(world_of(&w, a)->reason, "still reaches it"));
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(w.out.exit_code, 2);
}

/* Each of the three signals, where it came before; and none where it never came. */
static void test_changes__a_window_without_a_signal_that_came_before_is_unknown(void **state)
{
	static const char *const names[] = {"sm_clock_mhz", "temperature_c", "clock_reasons"};
	static const double values[] = {1500, 40, 0};
	struct record_case *a = healthy(), *b = healthy();
	struct series *s[3];

	(void)state;
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	for (size_t i = 0; i < 3; i++) {
		s[i] = world_series(&w, "gpu:0000:10:00.0", names[i], SIGNAL_GAUGE);
		for (unsigned k = 0; k < 13; k++) /* throughout the windows of both */
			series_add(s[i], (k < 7 ? a : b)->t0_ns + (1 + k % 7) * S, values[i], NULL);
	}
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	for (size_t i = 0; i < 3; i++) {
		s[i]->count = 7;
		world_judge(&w);
		assert_verdict(&w, a, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
		assert_verdict(&w, b, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
		assert_non_null(strstr(world_of(&w, b)->reason, names[i]));
		assert_int_equal(w.out.exit_code, 2);
		s[i]->count = 13;
	}
	for (unsigned k = 7; k < 13; k++) /* a clock that no working device has is no valid sample */
		s[0]->value[k] = 0;
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
}

/* Read once a second, a window of 50 ms may well have no temperature; none for seconds is another matter. */
static void test_changes__a_short_window_is_judged_by_what_is_beside_it(void **state)
{
	struct record_case *a = healthy(), *b = healthy();
	struct series *s = world_series(&w, "gpu:0000:10:00.0", "temperature_c", SIGNAL_GAUGE);
	struct record_phase *p = world_phase(b, "sustained");

	(void)state;
	p->t1_ns = p->t0_ns + S / 20;
	series_add(s, a->t0_ns + 2 * S, 40, NULL);
	series_add(s, p->t1_ns + S, 40, NULL);
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	s->t_ns[1] = p->t1_ns + 4 * S;
	world_judge(&w);
	assert_verdict(&w, b, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
}

/* What the GPU told before the first case counts as supplied, unless telemetry was not wanted. */
static void test_changes__a_sampler_that_never_spoke_is_noticed(void **state)
{
	struct record_case *c = healthy();
	struct health *h = &w.r.health;

	(void)state;
	h->supply = calloc(1, sizeof(*h->supply));
	h->supply_count = 1;
	snprintf(h->supply->pci, sizeof(h->supply->pci), "%s", w.gpu[0].pci);
	snprintf(h->supply->signal, sizeof(h->supply->signal), "clock_reasons");
	w.r.open = json_pack("{s:{s:b}}", "options", "sample", 1);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_UNKNOWN, CAUSE_TELEMETRY_LOST);
	json_decref(w.r.open);
	w.r.open = json_pack("{s:{s:b}}", "options", "sample", 0);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
}

static void test_changes__a_reboot_is_named_with_its_case(void **state)
{
	struct record_case *a = healthy(), *b = healthy(), *c = healthy();

	(void)state;
	a->reboot = REBOOT_BEHIND;
	b->reboot = REBOOT_WITHIN;
	world_judge(&w);
	assert_verdict(&w, a, VERDICT_WARN, CAUSE_REBOOTED);
	assert_non_null(strstr(world_of(&w, a)->reason, "after this case"));
	assert_verdict(&w, b, VERDICT_WARN, CAUSE_REBOOTED);
	assert_non_null(strstr(world_of(&w, b)->reason, "while this case ran"));
	assert_verdict(&w, c, VERDICT_PASS, CAUSE_LOW_CONFIDENCE);
	assert_int_equal(w.out.exit_code, 0);
}

/* On any GPU of the case, and however the case ended. */
static void test_changes__an_xid_of_any_gpu_and_ending_counts(void **state)
{
	struct record_case *c = world_case(&w, "p2p", "gpu0+gpu1", "link.d2d", "");
	struct series *s = world_series(&w, "gpu:0000:11:00.0", "xid", SIGNAL_GAUGE);

	(void)state;
	world_set(c, "sustained", "link_rate", 300e9);
	world_verified(c);
	series_add(s, c->t0_ns + 2 * S, 94, NULL);
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_XID);
	c->ending = ENDING_CRASHED;
	c->status = STATUS_NO_RESOURCE;
	world_judge(&w);
	assert_verdict(&w, c, VERDICT_FAIL, CAUSE_XID);
	assert_int_equal(w.out.exit_code, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(test_changes__##name, begin_one, end_all)
#define T8(name) cmocka_unit_test_setup_teardown(test_changes__##name, begin_eight, end_all)
		T(each_counter_has_its_verdict),
		T(a_link_whose_errors_rose_is_named),
		T(the_case_in_which_it_came_has_it),
		T(the_sampler_narrows_it),
		T(time_adds_up_over_the_run),
		T(between_cases_it_belongs_to_the_one_before),
		T(a_searchs_case_hands_it_on),
		T(a_reading_case_carries_it_too),
		T(nvml_and_cuda_silent_is_a_lost_gpu),
		T(only_nvml_can_say_that_a_gpu_is_lost),
		T(nvml_alone_silent_is_lost_telemetry),
		T(a_window_without_a_signal_that_came_before_is_unknown),
		T(a_short_window_is_judged_by_what_is_beside_it),
		T(a_sampler_that_never_spoke_is_noticed),
		T(a_reboot_is_named_with_its_case),
		T8(an_xid_of_any_gpu_and_ending_counts),
#undef T
#undef T8
	};

	return cmocka_run_group_tests_name("judge_changes", tests, NULL, NULL);
}
