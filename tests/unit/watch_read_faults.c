/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers that hang, crash, lose a GPU or are missing, and readers that stop: the other values go on. */
#include "reader_bed.h"

#include <fcntl.h>
#include <signal.h>
#include "core/process/process.h"
#include "watch/read/reader.h"

/* The first reader of GPUs hangs in a call. The others go on. The second one leaves that GPU out. */
static void test_a_driver_that_hangs(void **state)
{
	char counted[PATH_MAX], *reason;
	struct watch_recorder *recorder;
	struct text lines = {0};
	uint64_t readings;
	struct bed b;
	uint32_t id;

	machine_make(*state);
	snprintf(counted, sizeof(counted), "%s/counted", (char *)*state);
	setenv("FAKE_NVML_COUNTED", counted, 1);
	setenv("FAKE_NVML_UNTIL", "1", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_HANG", "power", 1);
	setenv("TEST_LIMIT", "1", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_POWER) == 69);
	id = bed_gpu(&b, 1)->id;
	/* one of them is left out; the other one has values again, under its number */
	BED_WAIT(&b,
		 bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) + bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_UP) ==
			 1);
	assert_non_null(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 0 ? bed_gpu(&b, 0)->why
									 : bed_gpu(&b, 1)->why);
	assert_int_equal(bed_gpu(&b, 1)->id, id);
	BED_WAIT(&b, bed_value(bed_gpu(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 0),
			       CATALOGUE_GPU_POWER) == 69);
	assert_null(bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	readings = bed_state(&b)->source[WATCH_SOURCE_host].heard_ns;
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_host].heard_ns > readings);
	bed_recorded(&b, recorder, &lines);
	reason = bed_recorded_after(&lines, "\"why\":\"NVML did not answer for ");
	assert_non_null(strstr(reason, " at GPU 0000:"));
	free(reason);
	text_release(&lines);
	bed_stop(&b);
}

static void test_a_driver_that_crashes(void **state)
{
	char counted[PATH_MAX], *reason;
	struct watch_recorder *recorder;
	struct text lines = {0};
	struct stat begun = {0};
	struct bed b;

	machine_make(*state);
	snprintf(counted, sizeof(counted), "%s/counted", (char *)*state);
	setenv("FAKE_NVML_COUNTED", counted, 1);
	setenv("FAKE_NVML_UNTIL", "1", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_CRASH", "temperature", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	BED_WAIT(&b, !stat(counted, &begun) && begun.st_size >= 2); /* the second reader has begun */
	BED_WAIT(&b, !bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	bed_recorded(&b, recorder, &lines);
	reason = bed_recorded_after(&lines, "{\"s\":0,\"why\":\"");
	assert_true(strlen(reason) > 10);
	free(reason);
	text_release(&lines);
	bed_stop(&b);
}

static void test_a_lost_gpu(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_LOST", "0", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_NVLINK, "nvlink", "0"));
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 0);
	assert_string_equal(bed_gpu(&b, 0)->why, "GPU is lost");
	for (int c = 0; c < CATALOGUE_COUNT; c++)
		if (c != CATALOGUE_GPU_UP && c != CATALOGUE_GPU_XID_LAST)
			assert_null(watch_get(bed_gpu(&b, 0), (enum catalogue)c));
	assert_null(bed_find(bed_state(&b), METRIC_SCOPE_NVLINK, "nvlink", "0"));
	assert_null(bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	assert_true(bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

static void test_a_lost_gpu_returns(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_LOST", "0", 1);
	setenv("FAKE_NVML_AFTER", "1.5", 1);
	setenv("FAKE_NVML_BEFORE", "3", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 0);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(bed_gpu(&b, 0)->why);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"));
	bed_stop(&b);
}

/* Sends a signal to the reader of one source of this machine. */
static void signal_reader(const struct bed *b, const char *name, int number)
{
	struct dirent *entry;
	DIR *all = opendir("/proc");
	bool sent = false;

	while (all && (entry = readdir(all))) {
		char path[300], line[4096];
		FILE *f;
		size_t n;

		snprintf(path, sizeof(path), "/proc/%.200s/cmdline", entry->d_name);
		f = fopen(path, "r");
		n = f ? fread(line, 1, sizeof(line) - 1, f) : 0;
		if (f)
			fclose(f);
		for (size_t i = 0; i < n; i++)
			line[i] = line[i] ? line[i] : ' ';
		line[n] = '\0';
		snprintf(path, sizeof(path), " __watch %s ", name);
		if (strstr(line, path) && strstr(line, b->sys))
			sent |= !kill((pid_t)strtol(entry->d_name, NULL, 10), number);
	}
	if (all)
		closedir(all);
	assert_true(sent);
}

static void test_a_source_that_does_not_answer(void **state)
{
	struct watch_recorder *recorder;
	struct text lines = {0};
	uint64_t heard;
	struct bed b;

	machine_make(*state);
	setenv("TEST_LIMIT", "1", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_host].heard_ns && bed_gpu(&b, 0));
	signal_reader(&b, "host", SIGSTOP);
	heard = clock_now_ns(clock_monotonic()) + 500000000; /* what was read before the stop is older */
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_host].heard_ns > heard);
	BED_WAIT(&b, !bed_state(&b)->source[WATCH_SOURCE_host].why);
	bed_recorded(&b, recorder, &lines);
	free(bed_recorded_after(&lines, "\"why\":\"host did not answer for "));
	text_release(&lines);
	BED_WAIT(&b, bed_value(bed_find(bed_state(&b), METRIC_SCOPE_CPU, "model", "A processor"),
			       CATALOGUE_CPU_LOAD) == 1.5);
	bed_stop(&b);
}

static void test_no_nvml(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_gpu].why && bed_gpu(&b, 0) && bed_gpu(&b, 0)->why);
	BED_WAIT(&b, bed_value(bed_find(bed_state(&b), METRIC_SCOPE_CPU, "model", "A processor"),
			       CATALOGUE_CPU_LOAD) == 1.5);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_gpu].heard_ns);
	assert_non_null(bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	assert_null(watch_get(bed_gpu(&b, 0), CATALOGUE_GPU_UP));
	bed_stop(&b);
}

static void test_the_driver_is_not_loaded(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_INIT", "9", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	assert_string_equal(bed_state(&b)->source[WATCH_SOURCE_gpu].why, "the driver is not loaded");
	bed_stop(&b);
}

static void test_no_gpu(void **state)
{
	struct bed b;

	machine_host(*state);
	setenv("ASSAY_LIB_NVML", "/nowhere/libnvidia-ml.so.1", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_find(bed_state(&b), METRIC_SCOPE_CPU, "model", "A processor"),
			       CATALOGUE_CPU_COUNT) == 2);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_gpu].heard_ns);
	assert_int_equal(bed_state(&b)->of_scope[METRIC_SCOPE_GPU], 0);
	bed_stop(&b);
}

static void test_an_earlier_reader_is_stuck(void **state)
{
	struct bed b;

	machine_make(*state);
	machine_file(*state, "proc/77/stat", "77 (" READER_GPU_NAME ") D 1 77\n");
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	assert_string_equal(bed_state(&b)->source[WATCH_SOURCE_gpu].why,
			    "an earlier reader (process 77) is stuck in the driver");
	assert_non_null(bed_gpu(&b, 0)); /* listed without the driver */
	machine_file(*state, "proc/77/stat", "77 (" READER_GPU_NAME ") S 1 77\n");
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(bed_state(&b)->source[WATCH_SOURCE_gpu].why);
	bed_stop(&b);
}

/* A reader of the stream that sleeps gets a copy of the state, not old lines. */
static void test_a_slow_reader(void **state)
{
	struct bed b;
	uint64_t end_ns;

	machine_make(*state);
	setenv("FAKE_NVML_RATE", "power=100000,temperature=20,clock_sm=500,memory_v2=100000000", 1);
	bed_start(&b, *state, 0.05);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	fcntl(watch_feed_fd(b.feed), F_SETPIPE_SZ, 4096);
	end_ns = bed_state(&b)->now_ns + 12000000000ull;
	clock_sleep_ns(clock_monotonic(), 12000000000ull);
	BED_WAIT(&b, bed_state(&b)->now_ns >= end_ns);
	assert_null(watch_feed_why(b.feed));
	BED_WAIT(&b, watch_age(bed_state(&b), bed_gpu(&b, 0), clock_now_ns(clock_monotonic())) < 1);
	bed_stop(&b);
}

/* The node ends when its stdin does. */
static void test_the_lifeline(void **state)
{
	const char *argv[] = {NULL, "__watch", "node", "--lifeline", NULL};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC), code = -1;
	struct process_spec spec = {.argv = argv, .input = &null, .cpu_numa = -1};
	struct error err = {0};
	char *out = NULL;
	size_t size = 0;

	(void)state;
	assert_int_equal(process_run(&spec, PATIENCE_S * 1000, 1 << 20, &out, &size, &code, &err), STATUS_OK);
	assert_int_equal(code, 0);
	free(out);
	close(null);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_a_driver_that_hangs),
		scratch_test(test_a_driver_that_crashes),
		scratch_test(test_a_lost_gpu),
		scratch_test(test_a_lost_gpu_returns),
		scratch_test(test_a_source_that_does_not_answer),
		scratch_test(test_no_nvml),
		scratch_test(test_the_driver_is_not_loaded),
		scratch_test(test_no_gpu),
		scratch_test(test_an_earlier_reader_is_stuck),
		scratch_test(test_a_slow_reader),
		cmocka_unit_test(test_the_lifeline),
	};

	return BED_MAIN(argc, argv, "watch_read_faults", tests);
}
