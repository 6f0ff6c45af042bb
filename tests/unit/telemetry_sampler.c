/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler as a process on the fake NVML. This program is its own `__sample`. Limits are only for what
 * never comes. */
#include "test.h"

#include <jansson.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/text/text.h"
#include "telemetry/telemetry.h"
#include "telemetry_bed.h"

enum { LIMIT_S = 60 };
static const char gpu[] = "0000:8d:00.0", source[] = "gpu:0000:8d:00.0";
static const char *const pci[] = {gpu};
static const char *const switches[] = {"FAKE_NVML_INIT", "FAKE_NVML_RET",   "FAKE_NVML_VALUE",
				       "FAKE_NVML_RATE", "FAKE_NVML_AFTER", "FAKE_NVML_LOST",
				       "FAKE_NVML_HANG", "FAKE_NVML_CRASH", "FAKE_NVML_XID"};

static int stage_well(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(switches) / sizeof(switches[0]); i++)
		unsetenv(switches[i]);
	return setenv("ASSAY_LIB_NVML", FAKE_DIR "/libnvidia-ml.so.1", 1);
}

struct listener {
	struct process p;
	struct text pending;
	struct series wanted; /* the one signal that the test looks at */
	unsigned lines,
		others[TELEMETRY_SIGNAL_COUNT]; /* readings of every signal, by its place in the table */
};

static void start(struct listener *l, bool host, const char *from, const char *signal)
{
	struct telemetry_spec spec = {.gpu_pci = pci, .gpu_count = 1, .host = host};

	*l = (struct listener){0};
	snprintf(l->wanted.source, sizeof(l->wanted.source), "%s", from);
	snprintf(l->wanted.signal, sizeof(l->wanted.signal), "%s", signal);
	l->wanted.kind = signal_by_name(signal)->kind;
	assert_int_equal(sampler_start(&l->p, &spec, NULL), STATUS_OK);
}

static void stop(struct listener *l)
{
	sampler_stop(&l->p);
	text_release(&l->pending);
	series_release(&l->wanted);
}

static void take_line(struct listener *l, const char *text, size_t size)
{
	json_t *line = json_loadb(text, size, 0, NULL);
	const json_t *at = json_object_get(line, "at"), *v = json_object_get(line, "v");
	const char *from = json_string_value(json_object_get(line, "source"));
	const char *signal = json_string_value(json_object_get(line, "signal"));
	size_t i;

	assert_non_null(line);
	assert_non_null(signal_by_name(signal));
	assert_int_equal(json_array_size(at), json_array_size(v));
	l->lines++;
	l->others[signal_by_name(signal) - signal_by_name("sm_clock_mhz")] += (unsigned)json_array_size(v);
	for (i = 0; i < json_array_size(at); i++)
		if (!strcmp(from, l->wanted.source) && !strcmp(signal, l->wanted.signal))
			assert_int_equal(series_add(&l->wanted,
						    (uint64_t)json_integer_value(json_array_get(at, i)),
						    json_number_value(json_array_get(v, i)), NULL),
					 STATUS_OK);
	json_decref(line);
}

/* Takes what lies ready; false at the end of the lines. */
static bool take_block(struct listener *l)
{
	char block[4096], *end;
	ssize_t n = read(l->p.channel, block, sizeof(block));

	if (n <= 0)
		return false;
	text_add_bytes(&l->pending, block, (size_t)n);
	while ((end = memchr(l->pending.data, '\n', l->pending.size))) {
		size_t size = (size_t)(end - l->pending.data) + 1;

		take_line(l, l->pending.data, size - 1);
		l->pending.size -= size;
		memmove(l->pending.data, l->pending.data + size, l->pending.size + 1);
	}
	return true;
}

/* Listens until the wanted signal has `count` readings; false at the end of the lines. */
static bool listen_for(struct listener *l, size_t count)
{
	struct pollfd wait = {.fd = l->p.channel, .events = POLLIN};

	while (l->wanted.count < count) {
		if (poll(&wait, 1, LIMIT_S * 1000) != 1)
			fail_msg("the sampler said nothing for %d s", LIMIT_S);
		if (!take_block(l))
			return false;
	}
	return true;
}

/* Reads on until the wanted signal is not told for 1.5 s, in which a sampler that is well tells it dozens of
 * times; the others' readings go on. */
static void until_it_ceases(struct listener *l)
{
	const struct clock *clock = clock_monotonic();
	uint64_t told_ns = clock_now_ns(clock);
	struct pollfd wait = {.fd = l->p.channel, .events = POLLIN};
	size_t before = l->wanted.count;

	while (clock_now_ns(clock) < told_ns + 1500000000u) {
		if (poll(&wait, 1, 100) == 1)
			assert_true(take_block(l));
		if (l->wanted.count > before)
			told_ns = clock_now_ns(clock);
		before = l->wanted.count;
	}
}

static void over_all(const struct listener *l, struct span *out)
{
	const struct series *s = &l->wanted;

	assert_int_equal(series_over(s, s->t_ns[0], s->t_ns[s->count - 1], out), STATUS_OK);
}

static void test_sampler__a_healthy_gpu_and_the_host_report_and_end_on_term(void **state)
{
	struct listener l;
	struct span span;

	(void)state;
	start(&l, true, source, "energy_j");
	assert_true(listen_for(&l, 100));
	over_all(&l, &span);
	assert_int_equal(span.went_back, 0);
	assert_true(span.ticks >= 2);
	/* The fake's watts, to the precision that the span itself claims. */
	assert_float_equal(span.rate, 69, span.rate_error + 1);
	assert_true(l.others[TELEMETRY_power_w] && l.others[TELEMETRY_gpm_tensor_share]);
	assert_true(l.others[TELEMETRY_temperature_c] && l.others[TELEMETRY_pcie_width]);
	assert_true(l.others[TELEMETRY_cpu_busy_share] && l.others[TELEMETRY_violation_power_s]);
	assert_int_equal(l.others[TELEMETRY_lost_lines], 0);
	sampler_stop(&l.p);
	assert_true(l.p.ended && WIFEXITED(l.p.wait_status) && !WEXITSTATUS(l.p.wait_status));
	stop(&l);
}

/* The request is taken, and GPM goes on behind it. */
static void test_sampler__gpm_goes_on_behind_a_window_that_begins(void **state)
{
	struct listener l;
	unsigned before;

	(void)state;
	start(&l, false, source, "sm_clock_mhz");
	assert_true(listen_for(&l, 50));
	before = l.others[TELEMETRY_gpm_tensor_share];
	assert_true(before > 0);
	sampler_align(&l.p);
	assert_true(listen_for(&l, 150));
	assert_true(l.others[TELEMETRY_gpm_tensor_share] > before);
	stop(&l);
	sampler_align(&l.p); /* nobody is there: no harm */
}

static void test_sampler__an_energy_counter_that_runs_backwards_is_passed_on_as_it_is(void **state)
{
	struct listener l;
	struct span span;

	(void)state;
	setenv("FAKE_NVML_RATE", "energy_total=-5e4", 1);
	start(&l, false, source, "energy_j");
	assert_true(listen_for(&l, 40));
	over_all(&l, &span);
	assert_int_equal(span.went_back, 1);
	stop(&l);
}

static void test_sampler__reason_bits_stay_together(void **state)
{
	struct listener l;
	struct span span;

	(void)state;
	setenv("FAKE_NVML_VALUE", "reasons=72", 1);
	start(&l, false, source, "clock_reasons");
	assert_true(listen_for(&l, 5));
	over_all(&l, &span);
	assert_true(span.bits_and == 0x48 && span.bits_or == 0x48);
	stop(&l);
}

static void test_sampler__absent_readings_are_absent(void **state)
{
	struct listener l;

	(void)state;
	setenv("FAKE_NVML_RET",
	       "power_instant=3,energy_total=3,memory_temperature=3,gpm_support=3,pcie_gen=4", 1);
	start(&l, false, source, "sm_clock_mhz");
	assert_true(listen_for(&l, 60));
	assert_int_equal(l.others[TELEMETRY_power_w], 0);
	assert_int_equal(l.others[TELEMETRY_energy_j], 0);
	assert_int_equal(l.others[TELEMETRY_temperature_memory_c], 0);
	assert_int_equal(l.others[TELEMETRY_gpm_tensor_share], 0);
	assert_int_equal(l.others[TELEMETRY_pcie_gen], 0);
	assert_true(l.others[TELEMETRY_pcie_width] > 0);
	stop(&l);
}

static void test_sampler__an_xid_comes_with_its_number(void **state)
{
	struct listener l;

	(void)state;
	setenv("FAKE_NVML_XID", "94@0.1", 1);
	start(&l, false, source, "xid");
	assert_true(listen_for(&l, 1));
	assert_true(l.wanted.value[0] == 94);
	stop(&l);
}

/* A call never returns: the parent reads what came before, sees no more, and can end it. */
static void test_sampler__a_call_that_hangs_costs_the_readings_not_the_run(void **state)
{
	struct listener l;

	(void)state;
	setenv("FAKE_NVML_HANG", "fields", 1);
	setenv("FAKE_NVML_AFTER", "1", 1);
	start(&l, true, source, "power_w");
	assert_true(listen_for(&l, 1));
	until_it_ceases(&l);
	assert_false(process_poll(&l.p));
	sampler_stop(&l.p);
	assert_true(l.p.ended && WIFSIGNALED(l.p.wait_status) && WTERMSIG(l.p.wait_status) == SIGKILL);
	stop(&l);
}

static void test_sampler__a_lost_gpu_leaves_the_host(void **state)
{
	struct listener l;

	(void)state;
	setenv("FAKE_NVML_LOST", "0", 1);
	setenv("FAKE_NVML_AFTER", "0.3", 1);
	start(&l, true, "host", "cpu_busy_share");
	assert_true(listen_for(&l, 8));
	assert_true(l.others[TELEMETRY_power_w] < 60);
	stop(&l);
}

static void test_sampler__without_a_library_only_the_host_is_sampled(void **state)
{
	struct listener l;

	(void)state;
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	start(&l, true, "host", "cpu_busy_share");
	assert_true(listen_for(&l, 1));
	stop(&l);
	start(&l, false, source, "power_w");
	assert_false(listen_for(&l, 1));
	stop(&l);
	assert_true(WIFEXITED(l.p.wait_status) && WEXITSTATUS(l.p.wait_status) == 1);
}

static void test_sampler__a_crash_is_an_end_of_lines(void **state)
{
	struct listener l;

	(void)state;
	setenv("FAKE_NVML_CRASH", "fields", 1);
	setenv("FAKE_NVML_AFTER", "0.3", 1);
	start(&l, true, source, "xid");
	assert_false(listen_for(&l, 1));
	stop(&l);
	/* A sanitizer turns the signal into an exit code of its own. */
	assert_false(WIFEXITED(l.p.wait_status) && !WEXITSTATUS(l.p.wait_status));
}

static volatile sig_atomic_t stop_asked;

static void on_term(int signum)
{
	(void)signum;
	stop_asked = 1;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_sampler__a_healthy_gpu_and_the_host_report_and_end_on_term,
				       stage_well),
		cmocka_unit_test_setup(test_sampler__gpm_goes_on_behind_a_window_that_begins, stage_well),
		cmocka_unit_test_setup(
			test_sampler__an_energy_counter_that_runs_backwards_is_passed_on_as_it_is,
			stage_well),
		cmocka_unit_test_setup(test_sampler__reason_bits_stay_together, stage_well),
		cmocka_unit_test_setup(test_sampler__absent_readings_are_absent, stage_well),
		cmocka_unit_test_setup(test_sampler__an_xid_comes_with_its_number, stage_well),
		cmocka_unit_test_setup(test_sampler__a_call_that_hangs_costs_the_readings_not_the_run,
				       stage_well),
		cmocka_unit_test_setup(test_sampler__a_lost_gpu_leaves_the_host, stage_well),
		cmocka_unit_test_setup(test_sampler__without_a_library_only_the_host_is_sampled, stage_well),
		cmocka_unit_test_setup(test_sampler__a_crash_is_an_end_of_lines, stage_well),
	};

	if (argc > 1 && !strcmp(argv[1], "__sample")) {
		signal(SIGTERM, on_term);
		signal(SIGPIPE, SIG_IGN);
		return sampler_main(argc - 2, argv + 2, &stop_asked, NULL);
	}
	return cmocka_run_group_tests_name("telemetry_sampler", tests, NULL, NULL);
}
