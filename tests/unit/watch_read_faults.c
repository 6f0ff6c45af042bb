/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers that hang, crash, lose a GPU or are missing, and readers that stop: the other values go on. */
#include "reader_bed.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include "core/process/process.h"
#include "watch/read/gpu.h"
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

/* Answers that NVML gives with success while it fails, and the row of each. */
static const struct {
	const char *lie;
	enum metric_scope scope;
	enum catalogue row;
} lies[] = {
	{"power=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_POWER},
	{"power_limit=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_POWER_LIMIT},
	{"temperature=10000", METRIC_SCOPE_GPU, CATALOGUE_GPU_TEMPERATURE},
	{"memory_temperature=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_TEMPERATURE_MEMORY},
	{"clock_sm=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_SM_CLOCK},
	{"clock_max_sm=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_SM_CLOCK_MAX},
	{"utilization=101", METRIC_SCOPE_GPU, CATALOGUE_GPU_UTILIZATION},
	{"encoder=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_ENCODER},
	{"decoder=250", METRIC_SCOPE_GPU, CATALOGUE_GPU_DECODER},
	{"energy=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_ENERGY},
	{"memory_v2=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_MEMORY},
	{"violation_power=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_LIMITED_POWER},
	{"ecc_volatile_uncorrected=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_ECC_UNCORRECTED},
	{"ecc_volatile_corrected=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_ECC_CORRECTED},
	{"remapped_rows=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_ROWS_CORRECTABLE},
	{"reasons=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_HELD_HW_THERMAL},
	{"pcie_gen=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_PCIE_GENERATION},
	{"pcie_width=17", METRIC_SCOPE_GPU, CATALOGUE_GPU_PCIE_WIDTH},
	{"pcie_replays=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_PCIE_REPLAYS},
	{"gpm_2=4294967295", METRIC_SCOPE_GPU, CATALOGUE_GPU_SM_ACTIVE},
	{"gpm_5=nan", METRIC_SCOPE_GPU, CATALOGUE_GPU_TENSOR_ACTIVE},
	{"gpm_10=101", METRIC_SCOPE_GPU, CATALOGUE_GPU_DRAM_ACTIVE},
	{"gpm_20=1e12", METRIC_SCOPE_GPU, CATALOGUE_GPU_PCIE_TX},
	{"error_crc=18446744073709551615", METRIC_SCOPE_GPU, CATALOGUE_GPU_NVLINK_CRC},
	{"data_tx=18446744073709551615", METRIC_SCOPE_NVLINK, CATALOGUE_NVLINK_TX},
	{"data_rx=4294967295", METRIC_SCOPE_NVLINK, CATALOGUE_NVLINK_RX},
	{"nvlink_state=7", METRIC_SCOPE_NVLINK, CATALOGUE_NVLINK_UP},
};
enum { LIES = sizeof(lies) / sizeof(lies[0]) };

static const struct watch_entity *lied_about(const struct bed *b, size_t i)
{
	return lies[i].scope == METRIC_SCOPE_GPU
		       ? bed_gpu(b, 0)
		       : bed_find(bed_state(b), lies[i].scope, "pci_bus_id", "0000:1b:00.0");
}

static size_t lies_that_are(const struct bed *b, bool present)
{
	size_t n = 0;

	for (size_t i = 0; i < LIES; i++) {
		const struct watch_entity *e = lied_about(b, i);

		n += e && (watch_get(e, lies[i].row) != NULL) == present;
	}
	return n;
}

static unsigned times(const struct text *lines, const char *words)
{
	unsigned n = 0;

	for (const char *at = text_str(lines); (at = strstr(at, words)); at++)
		n++;
	return n;
}

/* Each value is absent with its reason, which is sent once per GPU. The other values go on, and all return.
 */
static void test_a_driver_that_lies(void **state)
{
	struct watch_recorder *recorder;
	struct text said = {0}, lines = {0};
	uint64_t rounds;
	struct bed b;

	machine_make(*state);
	for (size_t i = 0; i < LIES; i++)
		text_addf(&said, "%s%s", i ? "," : "", lies[i].lie);
	setenv("FAKE_NVML_VALUE", text_str(&said), 1);
	setenv("FAKE_NVML_AFTER", "4", 1);
	setenv("FAKE_NVML_BEFORE", "14", 1);
	bed_start(&b, *state, 0.1);
	recorder = bed_record(&b);
	BED_WAIT(&b, lies_that_are(&b, true) == LIES);
	BED_WAIT(&b, lies_that_are(&b, false) == LIES);
	for (size_t i = 0; i < LIES; i++) {
		const char *why = watch_why(lied_about(&b, i), lies[i].row);

		if (!why || !strstr(why, " answered an impossible number"))
			fail_msg("%s: %s", lies[i].lie, why ? why : "no reason");
	}
	assert_string_equal(
		watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_POWER),
		"nvmlDeviceGetPowerUsage answered an impossible number; possible are 0 to 20000 watts");
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_MEMORY_CLOCK) == 2619e6);
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_MEMORY_UTILIZATION) == 0);
	rounds = bed_state(&b)->readings;
	BED_WAIT(&b, bed_state(&b)->readings > rounds + 20);
	BED_WAIT(&b, lies_that_are(&b, true) == LIES);
	assert_null(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_POWER));
	bed_recorded(&b, recorder, &lines);
	assert_int_equal(times(&lines, "nvmlDeviceGetPowerUsage answered"), 2); /* there are two GPUs */
	text_release(&lines);
	text_release(&said);
	bed_stop(&b);
}

static void test_processes_that_cannot_be(void **state)
{
	json_t *file, *calls;
	const char *why;
	struct bed b;

	machine_make(*state);
	file = json_load_file(getenv("FAKE_NVML_FILE"), 0, NULL);
	calls = json_object_get(json_array_get(json_object_get(file, "gpus"), 0), "calls");
	assert_int_equal(json_object_set_new(calls, "compute_processes",
					     json_pack("[i,[{s:i,s:I,s:i},{s:i,s:I},{s:I,s:I}]]", 0, "pid",
						       4242, "memory", (json_int_t)1 << 60, "sm", 250, "pid",
						       4243, "memory", (json_int_t)2 << 30, "pid",
						       (json_int_t)4294967295, "memory", (json_int_t)1)),
			 0);
	assert_int_equal(json_dump_file(file, getenv("FAKE_NVML_FILE"), 0), 0);
	json_decref(file);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4243"),
			       CATALOGUE_PROCESS_MEMORY) == (double)(2ull << 30));
	BED_WAIT(&b, (why = watch_why(bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"),
				      CATALOGUE_PROCESS_SM)) &&
			     strstr(why, "answered an impossible number"));
	why = watch_why(bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4242"),
			CATALOGUE_PROCESS_MEMORY);
	assert_true(why && strstr(why, "answered an impossible number"));
	assert_null(bed_find(bed_state(&b), METRIC_SCOPE_PROCESS, "pid", "4294967295"));
	bed_stop(&b);
}

/* A row of NVML without limits would pass on every number. Those of a bit, those that the reader counts, and
 * the number of an Xid are checked elsewhere. */
static void test_each_reading_of_nvml_has_limits(void **state)
{
	struct gpu_reader *r = calloc(1, sizeof(*r));

	(void)state;
	assert_non_null(r);
	gpu_limits_init(r->limits);
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		const struct catalogue_row *row = catalogue_row((enum catalogue)c);
		bool nvml = row->scope == METRIC_SCOPE_GPU || row->scope == METRIC_SCOPE_GPU_INSTANCE ||
			    row->scope == METRIC_SCOPE_NVLINK || row->scope == METRIC_SCOPE_PROCESS;

		if (!nvml || !strcmp(row->unit, "bool") || strstr(row->name, "_sampled_") ||
		    c == CATALOGUE_GPU_XID_LAST)
			continue;
		if (gpu_value_is_possible(r, (enum catalogue)c, 1e25) ||
		    gpu_value_is_possible(r, (enum catalogue)c, -100) ||
		    gpu_value_is_possible(r, (enum catalogue)c, 4294967295.0 * r->limits[c].raw))
			fail_msg("%s has no limits", row->name);
		if (!gpu_value_is_possible(r, (enum catalogue)c, fmax(1, r->limits[c].raw)))
			fail_msg("%s cannot be one", row->name);
	}
	free(r);
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
		scratch_test(test_a_driver_that_lies),
		scratch_test(test_processes_that_cannot_be),
		cmocka_unit_test(test_each_reading_of_nvml_has_limits),
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
