/* SPDX-License-Identifier: Apache-2.0 */
/* Live reading, facts to struct, recording and replay. The helper re-executes this program: main answers
 * __facts. */
#include "machine/machine.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <sys/stat.h>
#include <unistd.h>
#include "machine/facts/facts.h"
#include "machine/raw/raw.h"
#include "probe/shared/cpu.h"

#define FAKE FAKE_DIR "/libnvidia-ml.so.1"

static struct machine *read_live(enum layer layer)
{
	struct machine *m = NULL;
	struct error err = {0};

	if (machine_read(&m, layer, NULL, NULL, &err))
		fail_msg("%s", err.text);
	return m;
}

static void test_machine__the_host_is_read_without_any_library(void **state)
{
	struct machine *m = read_live(LAYER_HOST);
	const struct cpu *c = machine_cpu(m);

	(void)state;
	assert_true(machine_is_live(m));
	assert_string_equal(machine_label(m), "");
	assert_int_not_equal(c->threads, 0);
	assert_int_equal(c->threads, (unsigned)sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(c->page_bytes, (uint64_t)sysconf(_SC_PAGESIZE));
	assert_true(c->memory_bytes > 1 << 26);
	assert_true(c->usable >= 1 && c->usable <= c->threads);
	assert_null(machine_lib(m, "cuda"));
	machine_free(m);
}

static void test_machine__a_teams_secret_is_no_fact(void **state)
{
	struct machine *m;
	char *facts;

	(void)state;
	assert_int_equal(setenv("ASSAY_TEAM_SECRET", "0123456789abcdef-secret", 1), 0);
	assert_int_equal(setenv("ASSAY_JOB", "launch-0123", 1), 0);
	assert_int_equal(setenv("ASSAY_RANK", "3", 1), 0);
	m = read_live(LAYER_HOST);
	facts = json_dumps(machine_json(m), 0);
	assert_non_null(strstr(facts, "ASSAY_RANK"));
	assert_null(strstr(facts, "0123456789abcdef-secret"));
	assert_null(strstr(facts, "launch-0123"));
	unsetenv("ASSAY_TEAM_SECRET");
	unsetenv("ASSAY_JOB");
	unsetenv("ASSAY_RANK");
	free(facts);
	machine_free(m);
}

static void test_machine__json_gives_the_same_machine(void **state)
{
	struct machine *m = read_live(LAYER_HOST), *again = NULL;

	(void)state;
	assert_int_equal(machine_from_json(&again, machine_json(m), NULL), STATUS_OK);
	assert_memory_equal(machine_cpu(m), machine_cpu(again), sizeof(struct cpu));
	assert_true(json_equal(machine_json(m), machine_json(again)));
	machine_free(m);
	machine_free(again);
}

static void test_machine__facts_of_another_format_are_refused(void **state)
{
	struct machine *m = NULL;
	struct error err = {0};
	json_t *facts = json_pack("{s:i}", "format", 99);

	(void)state;
	assert_int_equal(machine_from_json(&m, facts, &err), STATUS_BAD_INPUT);
	assert_null(m);
	json_decref(facts);
}

static void test_machine__absurd_numbers_count_as_absent(void **state)
{
	struct machine *m = NULL;
	json_t *facts = json_pack("{s:i,s:{s:i,s:f,s:i},s:{s:f},s:[{s:s,s:{s:s}}]}", "format", 1, "cpu",
				  "threads", -3, "quota", 1e30, "usable", 0, "memory", "total_bytes", -1.0,
				  "gpus", "status", "nonsense", "facts", "sm_count", "many");

	(void)state;
	assert_non_null(facts);
	assert_int_equal(machine_from_json(&m, facts, NULL), STATUS_OK);
	assert_int_equal(machine_cpu(m)->threads, 0);
	assert_int_equal(machine_cpu(m)->usable, 1);
	assert_true(machine_cpu(m)->quota == 0);
	assert_int_equal(machine_cpu(m)->memory_bytes, 0);
	assert_int_equal(machine_gpu_count(m), 1);
	assert_int_equal(machine_gpu(m, 0)->status, STATUS_UNAVAILABLE);
	assert_false(gpu_has(machine_gpu(m, 0), GPU_FACT_sm_count));
	assert_null(machine_gpu(m, 1));
	json_decref(facts);
	machine_free(m);
}

/* Two nodes of eight CPUs, a last cache for every four: each node has two, the machine four. */
static void test_machine__last_caches_are_counted_by_who_shares_them(void **state)
{
	struct target all = {.kind = TARGET_CPU, .numa = -1}, node = {.kind = TARGET_CPU, .numa = 1};
	struct machine *m = NULL;
	const struct cpu *c;

	(void)state;
	assert_int_equal(machine_read(&m, LAYER_HOST, SOURCE_DIR "/tests/replay/derived-llc-4", NULL, NULL),
			 STATUS_OK);
	c = machine_cpu(m);
	assert_int_equal(c->numa_count, 2);
	assert_int_equal(c->l3_count, 4);
	assert_int_equal(c->numa[0].l3_count, 2);
	assert_int_equal(c->numa[1].l3_count, 2);
	assert_int_equal(cpu_cache_bytes(m, &all), 4 * (32 << 20));
	assert_int_equal(cpu_cache_bytes(m, &node), 2 * (32 << 20));
	machine_free(m);
	/* Not told: what cpu0 says of itself. */
	m = NULL;
	assert_int_equal(
		machine_read(&m, LAYER_HOST, SOURCE_DIR "/tests/replay/derived-h100-sxm-8", NULL, NULL),
		STATUS_OK);
	assert_int_equal(machine_cpu(m)->numa[0].l3_count, 0);
	assert_int_equal(cpu_cache_bytes(m, &node), 300 << 20);
	machine_free(m);
}

static void test_machine__nvml_answers_become_a_gpu(void **state)
{
	const struct gpu *g;
	struct machine *m;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	m = read_live(LAYER_NVML);
	assert_int_equal(machine_gpu_count(m), 1);
	g = machine_gpu(m, 0);
	assert_string_equal(g->pci, "0000:8d:00.0");
	assert_string_equal(g->name, "NVIDIA H100 80GB HBM3");
	assert_int_equal(g->status, STATUS_OK);
	assert_int_equal(g->nvml_index, 0);
	assert_int_equal(g->cuda_index, -1);
	assert_true(gpu_get(g, GPU_FACT_cc, 0) == 90);
	assert_true(gpu_get(g, GPU_FACT_power_limit_w, 0) == 700);
	assert_true(gpu_get(g, GPU_FACT_bus_bits, 0) == 5120);
	assert_false(gpu_has(g, GPU_FACT_sm_count));
	assert_false(gpu_has(g, GPU_FACT_retired_pages));
	assert_true(gpu_get(g, GPU_FACT_retired_pages, -7) == -7);
	machine_free(m);
	unsetenv("ASSAY_LIB_NVML");
}

static void test_machine__a_lost_gpu_is_lost(void **state)
{
	struct machine *m;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	setenv("FAKE_NVML_RET", "by_index=15", 1);
	m = read_live(LAYER_NVML);
	assert_int_equal(machine_gpu_count(m), 1);
	assert_int_equal(machine_gpu(m, 0)->status, STATUS_LOST);
	assert_int_equal(machine_gpu(m, 0)->cause, CAUSE_GPU_LOST);
	machine_free(m);
	unsetenv("FAKE_NVML_RET");
	unsetenv("ASSAY_LIB_NVML");
}

/* A value that no device can have is not read; the function that answered it stands in the facts, once. */
static void test_machine__impossible_answers_are_absent_and_name_their_function(void **state)
{
	static const struct {
		enum gpu_fact fact;
		const char *why;
	} rows[] = {
		{GPU_FACT_sm_clock_mhz, "nvmlDeviceGetClockInfo answered 4294967295 MHz, which is impossible"},
		{GPU_FACT_temperature_c, "nvmlDeviceGetTemperatureV answered -300 C, which is impossible"},
		{GPU_FACT_pcie_width, "nvmlDeviceGetCurrPcieLinkWidth answered 64, which is impossible"},
		{GPU_FACT_temperature_memory_c, "nvmlDeviceGetFieldValues answered 4294967295 C, which is impossible"},
		{GPU_FACT_memory_clock_mhz, "nvmlDeviceGetClockInfo answered 60000 MHz, which is impossible"},
	};
	const json_t *gpu, *row;
	struct machine *m;
	unsigned noted = 0;
	size_t i;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	setenv("FAKE_NVML_VALUE",
	       "clock_sm=4294967295,temperature=-300,pcie_width=64,memory_temperature=4294967295,clock_memory=60000",
	       1);
	m = read_live(LAYER_NVML);
	gpu = json_array_get(json_object_get(machine_json(m), "gpus"), 0);
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_false(gpu_has(machine_gpu(m, 0), rows[i].fact));
		assert_string_equal(json_string_value(json_object_get(json_object_get(gpu, "unreadable"),
								      gpu_fact_name(rows[i].fact))),
				    rows[i].why);
	}
	assert_true(gpu_get(machine_gpu(m, 0), GPU_FACT_power_limit_w, 0) == 700);
	json_array_foreach(json_object_get(machine_json(m), "unreadable"), i, row)
	{
		const char *why = json_string_value(json_object_get(row, "why"));

		noted += strstr(why, "which is impossible") != NULL;
	}
	assert_int_equal(noted, 4); /* five facts by four functions */
	machine_free(m);
	unsetenv("FAKE_NVML_VALUE");
	unsetenv("ASSAY_LIB_NVML");
}

static void test_machine__a_helper_that_crashes_costs_its_layer_alone(void **state)
{
	struct machine *m;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	setenv("FAKE_NVML_CRASH", "name", 1);
	m = read_live(LAYER_NVML);
	assert_int_equal(machine_gpu_count(m), 0);
	assert_int_not_equal(machine_cpu(m)->threads, 0);
	machine_free(m);
	unsetenv("FAKE_NVML_CRASH");
	unsetenv("ASSAY_LIB_NVML");
}

/* The host has no NVIDIA card here, so the layer's own words are what is left to see. */
static void test_machine__a_helper_that_hangs_is_ended_at_its_limit(void **state)
{
	struct source *s = NULL;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	setenv("FAKE_NVML_HANG", "name", 1);
	setenv("ASSAY_FACTS_LIMIT_MS", "300", 1);
	assert_int_equal(source_live(&s, NULL, NULL), STATUS_OK);
	assert_null(source_layer(s, LAYER_NVML));
	assert_int_equal(source_layer_cause(s, LAYER_NVML), CAUSE_TIMED_OUT);
	source_close(s);
	unsetenv("ASSAY_FACTS_LIMIT_MS");
	unsetenv("FAKE_NVML_HANG");
	unsetenv("ASSAY_LIB_NVML");
}

static void test_machine__only_the_libraries_asked_for_are_opened(void **state)
{
	static const char *const libs[] = {"nvml", "cuda", "no_such", NULL}, *const none[] = {NULL};
	struct machine_scope scope = {.up_to = LAYER_HOST, .libs = libs};
	struct machine *m = NULL;
	struct error err = {0};

	(void)state;
	assert_int_equal(machine_read_scope(&m, &scope, NULL, NULL, &err), STATUS_OK);
	assert_non_null(machine_lib(m, "nvml"));
	assert_non_null(machine_lib(m, "cuda"));
	assert_null(machine_lib(m, "openblas"));
	assert_null(machine_lib(m, "no_such"));
	machine_free(m);
	scope.libs = none;
	assert_int_equal(machine_read_scope(&m, &scope, NULL, NULL, &err), STATUS_OK);
	assert_null(machine_lib(m, "nvml"));
	machine_free(m);
}

static void test_machine__visible_devices_grant(void **state)
{
	struct machine *m;

	(void)state;
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	setenv("CUDA_VISIBLE_DEVICES", "GPU-0000", 1);
	m = read_live(LAYER_NVML);
	assert_true(machine_gpu(m, 0)->granted);
	machine_free(m);
	setenv("CUDA_VISIBLE_DEVICES", "1,0", 1); /* an invalid word hides what follows */
	m = read_live(LAYER_NVML);
	assert_false(machine_gpu(m, 0)->granted);
	machine_free(m);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	m = read_live(LAYER_NVML);
	assert_false(machine_gpu(m, 0)->granted);
	machine_free(m);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("ASSAY_LIB_NVML");
}

static void test_machine__a_recording_replays_as_the_machine(void **state)
{
	char dir[] = "/tmp/assay-record-XXXXXX", path[128], line[160];
	struct machine *m = NULL, *live;
	struct error err = {0};

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/recording", dir);
	setenv("ASSAY_LIB_NVML", FAKE, 1);
	if (machine_record(NULL, path, false, NULL, NULL, &err))
		fail_msg("%s", err.text);
	live = read_live(LAYER_SOFTWARE);
	unsetenv("ASSAY_LIB_NVML");
	if (machine_read(&m, LAYER_SOFTWARE, path, NULL, &err))
		fail_msg("%s", err.text);
	assert_false(machine_is_live(m));
	assert_string_equal(machine_cpu(m)->model, machine_cpu(live)->model);
	assert_int_equal(machine_cpu(m)->l2_bytes, machine_cpu(live)->l2_bytes);
	assert_int_equal(machine_gpu_count(m), machine_gpu_count(live));
	assert_string_equal(machine_gpu(m, 0)->pci, machine_gpu(live, 0)->pci);
	assert_string_not_equal(machine_gpu(m, 0)->uuid, machine_gpu(live, 0)->uuid);
	assert_string_not_equal(machine_gpu(m, 0)->serial, machine_gpu(live, 0)->serial);
	assert_non_null(machine_lib(m, "onednn"));
	assert_int_equal(machine_lib(m, "nvml")->status, STATUS_OK);
	machine_free(m);
	machine_free(live);
	assert_int_equal(machine_record(NULL, path, false, NULL, NULL, &err), STATUS_BAD_INPUT); /* never over another */
	snprintf(line, sizeof(line), "rm -r %s", dir);
	assert_int_equal(system(line), 0);
}

static void test_machine__no_recording_is_an_error(void **state)
{
	struct machine *m = NULL;
	struct error err = {0};

	(void)state;
	assert_int_not_equal(machine_read(&m, LAYER_HOST, "/nonexistent", NULL, &err), STATUS_OK);
	assert_null(m);
	assert_non_null(strstr(err.text, "/nonexistent"));
}

static json_t *changed(const char *changes, enum status *st, struct error *err)
{
	json_t *whole = json_pack("{s:{s:s},s:[i,i]}", "host", "a/b", "old", "list", 1, 2);
	json_t *map = json_loads(changes, 0, NULL);

	assert_non_null(map);
	*st = source_derive(whole, map, err);
	json_decref(map);
	return whole;
}

static void test_machine__a_derived_recording_is_its_changes(void **state)
{
	struct error err = {0};
	enum status st;
	json_t *whole = changed("{\"/host/a~1b\":\"new\",\"/host/n\":{\"x~y\":1},\"/host/n/x~0y\":null,"
				"\"/list/0\":null,\"/list/1\":7}",
				&st, &err);
	json_t *wanted = json_pack("{s:{s:s,s:{}},s:[i,i]}", "host", "a/b", "new", "n", "list", 2, 7);

	(void)state;
	assert_int_equal(st, STATUS_OK);
	assert_true(json_equal(whole, wanted));
	json_decref(whole);
	json_decref(wanted);
}

static void test_machine__changes_of_nothing_are_refused(void **state)
{
	static const char *const wrong[] = {"{\"\":1}",		  "{\"host\":1}",    "{\"/none/x\":1}",
					    "{\"/list/3\":1}",	  "{\"/list/x\":1}", "{\"/list/-1\":1}",
					    "{\"/host/b\":null}", "{\"/list/\":1}",  "{\"/host/a~1b/c\":1}"};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct error err = {0};
		enum status st;

		json_decref(changed(wrong[i], &st, &err));
		if (st != STATUS_BAD_INPUT)
			fail_msg("%s was taken", wrong[i]);
		assert_non_null(strstr(err.text, "does not exist"));
	}
}

static void test_machine__a_derived_recording_names_a_folder_beside_it(void **state)
{
	static const char *const wrong[] = {"..", "", "a/b", "none"};
	char dir[] = "/tmp/assay-derived-XXXXXX", path[64], line[128];

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/recording.json", dir);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct machine *m = NULL;
		struct error err = {0};
		FILE *f = fopen(path, "w");

		assert_non_null(f);
		fprintf(f, "{\"format\":1,\"of\":\"%s\",\"changes\":{}}", wrong[i]);
		fclose(f);
		assert_int_not_equal(machine_read(&m, LAYER_HOST, dir, NULL, &err), STATUS_OK);
		assert_null(m);
		assert_non_null(strstr(err.text, i < 3 ? "is not a plain folder name" : "none/host.json"));
	}
	snprintf(line, sizeof(line), "rm -r %s", dir);
	assert_int_equal(system(line), 0);
}

/* What control groups leave of a machine with 126 GiB; text of files below /sys/fs/cgroup, in JSON. GiB. */
struct groups {
	const char *of, *changes;
	double limit, available;
};

#define GROUP(path, limit, used, stat)                                                                       \
	"\"/host/text/~1sys~1fs~1cgroup" path "~1memory.max\":\"" limit "\","                                   \
	"\"/host/text/~1sys~1fs~1cgroup" path "~1memory.current\":\"" used "\","                                \
	"\"/host/text/~1sys~1fs~1cgroup" path "~1memory.stat\":[\"anon 1\",\"inactive_file " stat "\"]"
#define GROUP1(path, limit, used, stat)                                                                      \
	"\"/host/text/~1sys~1fs~1cgroup~1memory" path "~1memory.limit_in_bytes\":\"" limit "\","               \
	"\"/host/text/~1sys~1fs~1cgroup~1memory" path "~1memory.usage_in_bytes\":\"" used "\","                \
	"\"/host/text/~1sys~1fs~1cgroup~1memory" path                                                           \
	"~1memory.stat\":[\"inactive_file 7\",\"total_inactive_file " stat "\"]"
#define OURS(text) "\"/host/text/~1proc~1self~1cgroup\":\"" text "\","
#define NONE1 "9223372036854771712"

/* A derived recording in a folder of its own, beside the one that it is of. */
static void check_groups(const char *dir, const struct groups *g)
{
	char path[96];
	struct machine *m = NULL;
	struct error err = {0};
	const struct cpu *cpu;
	FILE *f;

	snprintf(path, sizeof(path), "%s/d/recording.json", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "{\"format\":1,\"of\":\"h100-sxm-1\",\"changes\":{%s}}", g->changes);
	fclose(f);
	snprintf(path, sizeof(path), "%s/d", dir);
	if (machine_read(&m, LAYER_HOST, path, NULL, &err))
		fail_msg("%s: %s", g->of, err.text);
	cpu = machine_cpu(m);
	if ((double)cpu->memory_limit_bytes != g->limit * (1 << 30) ||
	    (double)cpu->memory_available_bytes != g->available * (1 << 30))
		fail_msg("%s: limit %.4f GiB, available %.4f GiB", g->of,
			 (double)cpu->memory_limit_bytes / (1 << 30), (double)cpu->memory_available_bytes / (1 << 30));
	machine_free(m);
}

/* The least of all groups from ours up, and what each has free: pages of files that can go count as free. */
static void test_machine__what_a_cgroup_uses_is_not_available(void **state)
{
	static const struct groups rows[] = {
		{"our own", GROUP("~1container~1id-05bd3a53", "8589934592", "6442450944", "1073741824"), 8, 3},
		{"the parent's, where we have none",
		 GROUP("~1container~1id-05bd3a53", "max", "5", "0") "," GROUP("~1container", "4294967296", "3221225472", "0"), 4,
		 1},
		{"the parent's has less free than our lower one, since others are in it",
		 GROUP("~1container~1id-05bd3a53", "2147483648", "1073741824", "0") "," GROUP("~1container", "4294967296",
										      "4026531840", "0"),
		 2, 0.25},
		{"a container's, whose path is the host's",
		 OURS("0::/docker/4f") GROUP("", "2147483648", "1073741824", "536870912"), 2, 1.5},
		{"a container's, whose path is its own", OURS("0::/") GROUP("", "2147483648", "1073741824", "0"), 2, 1},
		{"all inactive pages", OURS("0::/a") GROUP("~1a", "2147483648", "1073741824", "1610612736"), 2, 2},
		{"files in use and the kernel's caches: half of the first, all of the second",
		 OURS("0::/a") "\"/host/text/~1sys~1fs~1cgroup~1a~1memory.max\":\"8589934592\","
			       "\"/host/text/~1sys~1fs~1cgroup~1a~1memory.current\":\"8053063680\","
			       "\"/host/text/~1sys~1fs~1cgroup~1a~1memory.stat\":[\"inactive_file 536870912\","
			       "\"active_file 6442450944\",\"slab_reclaimable 268435456\"]",
		 8, 4.25},
		{"version 1", OURS("3:memory:/job") GROUP1("~1job", "4294967296", "3221225472", "536870912"), 4, 1.5},
		{"version 1, the parent's",
		 OURS("3:memory:/batch/job") GROUP1("~1batch~1job", NONE1, "3221225472", "0") "," GROUP1(
			 "~1batch", "4294967296", "3221225472", "0"),
		 4, 1},
		{"version 1 in a container", OURS("3:memory:/docker/4f") GROUP1("", "4294967296", "3221225472", "0"), 4, 1},
		{"memory by version 1 beside a limit of version 2",
		 "\"/host/text/~1proc~1self~1cgroup\":[\"3:memory:/job\",\"0::/a\"]," GROUP(
			 "~1a", "8589934592", "0", "0") "," GROUP1("~1job", "4294967296", "3221225472", "0"),
		 4, 1},
		{"a kernel that does not tell MemAvailable",
		 "\"/host/text/~1proc~1meminfo\":\"MemTotal: 131981020 kB\"," OURS("0::/a") GROUP("~1a", "2147483648",
												 "1073741824", "0"),
		 2, 1},
	};
	char dir[] = "/tmp/assay-cgroup-XXXXXX", path[96], line[128];
	struct machine *m = NULL;

	(void)state;
	assert_int_equal(machine_read(&m, LAYER_HOST, SOURCE_DIR "/tests/replay/derived-cgroup-limits", NULL, NULL),
			 STATUS_OK);
	assert_true(machine_cpu(m)->memory_limit_bytes == (uint64_t)8 << 30);
	assert_true(machine_cpu(m)->memory_available_bytes == (uint64_t)7 << 29);
	machine_free(m);
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/h100-sxm-1", dir);
	assert_int_equal(symlink(SOURCE_DIR "/tests/replay/h100-sxm-1", path), 0);
	snprintf(path, sizeof(path), "%s/d", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_groups(dir, &rows[i]);
	snprintf(line, sizeof(line), "rm -r %s", dir);
	assert_int_equal(system(line), 0);
}

static void test_machine__texts_are_read_with_care(void **state)
{
	char out[32];
	double v = -1;

	(void)state;
	assert_true(facts_number("0x10de", &v));
	assert_true(v == 0x10de);
	assert_false(facts_number("12 kB", &v));
	assert_false(facts_number("nan", &v));
	assert_false(facts_number("", &v));
	assert_false(facts_number(NULL, &v));
	assert_true(facts_line("a: 1\nbb : two \n", "bb", ':', out, sizeof(out)));
	assert_string_equal(out, "two");
	assert_false(facts_line("bbb: 1", "bb", ':', out, sizeof(out)));
	assert_int_equal(facts_cpulist_count("0-3,8"), 5);
	assert_int_equal(facts_cpulist_count("0-"), 0);
	assert_int_equal(facts_cpulist_count("3-1"), 0);
	assert_int_equal(facts_cpulist_count("0,x"), 0);
	assert_int_equal(facts_cpulist_count(NULL), 0);
}

/* One type 17 record of 64 GiB DDR5 at 5600 of 6400 MT/s, an empty slot, and the end. */
static void test_machine__dmi_memory_is_read(void **state)
{
	unsigned char table[256] = {0};
	json_t *list, *row;
	size_t at;

	(void)state;
	memcpy(table, (unsigned char[]){17, 0x22, 1, 0}, 4);
	table[0x0c] = 0xff;
	table[0x0d] = 0x7f;
	table[0x10] = 1;
	table[0x12] = 0x22;
	table[0x15] = 6400 & 0xff;
	table[0x16] = 6400 >> 8;
	table[0x1e] = 1; /* 65536 MiB */
	table[0x20] = 5600 & 0xff;
	table[0x21] = 5600 >> 8;
	memcpy(table + 0x22, "DIMM_A1\0", 9);
	at = 0x22 + 9;
	memcpy(table + at, (unsigned char[]){17, 0x22, 2, 0}, 4);
	at += 0x22 + 2;
	list = dmi_memory_parse(table, at);
	assert_int_equal(json_array_size(list), 1);
	row = json_array_get(list, 0);
	assert_string_equal(json_string_value(json_object_get(row, "locator")), "DIMM_A1");
	assert_string_equal(json_string_value(json_object_get(row, "type")), "DDR5");
	assert_int_equal(json_integer_value(json_object_get(row, "bytes")), 64LL << 30);
	assert_int_equal(json_integer_value(json_object_get(row, "mts_configured")), 5600);
	json_decref(list);
	for (size_t cut = 0; cut < at; cut++)
		json_decref(dmi_memory_parse(table, cut));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_machine__the_host_is_read_without_any_library),
		cmocka_unit_test(test_machine__a_teams_secret_is_no_fact),
		cmocka_unit_test(test_machine__json_gives_the_same_machine),
		cmocka_unit_test(test_machine__facts_of_another_format_are_refused),
		cmocka_unit_test(test_machine__absurd_numbers_count_as_absent),
		cmocka_unit_test(test_machine__last_caches_are_counted_by_who_shares_them),
		cmocka_unit_test(test_machine__nvml_answers_become_a_gpu),
		cmocka_unit_test(test_machine__impossible_answers_are_absent_and_name_their_function),
		cmocka_unit_test(test_machine__a_lost_gpu_is_lost),
		cmocka_unit_test(test_machine__a_helper_that_crashes_costs_its_layer_alone),
		cmocka_unit_test(test_machine__a_helper_that_hangs_is_ended_at_its_limit),
		cmocka_unit_test(test_machine__only_the_libraries_asked_for_are_opened),
		cmocka_unit_test(test_machine__visible_devices_grant),
		cmocka_unit_test(test_machine__a_recording_replays_as_the_machine),
		cmocka_unit_test(test_machine__no_recording_is_an_error),
		cmocka_unit_test(test_machine__a_derived_recording_is_its_changes),
		cmocka_unit_test(test_machine__changes_of_nothing_are_refused),
		cmocka_unit_test(test_machine__a_derived_recording_names_a_folder_beside_it),
		cmocka_unit_test(test_machine__what_a_cgroup_uses_is_not_available),
		cmocka_unit_test(test_machine__texts_are_read_with_care),
		cmocka_unit_test(test_machine__dmi_memory_is_read),
	};

	if (argc >= 3 && !strcmp(argv[1], "__facts")) {
		json_t *raw = !strcmp(argv[2], "nvml") ? raw_nvml()
			      : !strcmp(argv[2], "cuda")
				      ? raw_cuda()
				      : raw_software(argc > 3 ? (const char *const *)argv + 3 : NULL);
		int code = json_dumpf(raw, stdout, 0);

		json_decref(raw);
		return code;
	}
	return cmocka_run_group_tests_name("machine", tests, NULL, NULL);
}
