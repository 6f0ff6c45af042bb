/* SPDX-License-Identifier: Apache-2.0 */
/* Every row of the catalogue is read from a machine of fakes. A value that cannot be read is absent, with its
 * reason. */
#include "reader_bed.h"

#include <math.h>

/* Whether some entity has had a value of every row so far. */
static bool saw_all(const struct bed *b, bool *seen)
{
	const struct watch_state *s = bed_state(b);
	bool all = true;

	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		enum metric_scope scope = catalogue_row((enum catalogue)c)->scope;

		for (uint32_t i = 0; i < s->count; i++)
			seen[c] |= watch_get(&s->entity[i], (enum catalogue)c) != NULL;
		all &= seen[c] || scope == METRIC_SCOPE_SOURCE || scope == METRIC_SCOPE_EXPORTER;
	}
	return all;
}

static void change(const struct bed *b)
{
	static unsigned n;
	char path[PATH_MAX];
	FILE *f;

	n++;
	machine_file(b->root, "proc/stat", "cpu  %u 0 100 %u 0 0 0 0\ncpu0 1\ncpu1 1\nbtime 1700000000\n",
		     100 + n, 800 + n);
	snprintf(path, sizeof(path), "%s/runs/2026-11-28-serve/requests.jsonl", b->root);
	f = fopen(path, "a");
	assert_non_null(f);
	fputs("{\"tokens\":2,\"first_token_s\":0.25,\"total_s\":3}\n", f);
	fputs("{\"first_token_s\":0.25}\n", f);
	fputs("{\"total_s\":3,\"request\":\"{\\\"first_token_s\\\":7}\"}\n", f); /* a user's text */
	fputs("{\"total_s\":3,\"request\":\"first_token_s\"}\n{\"first_token_s\":null}\n", f);
	assert_int_equal(fclose(f), 0);
}

/* The only time that requests of change have. */
static void check_first_token(struct bed *b)
{
	const struct watch_entity *e = bed_find(bed_state(b), METRIC_SCOPE_RUN, "kind", "serve");
	const struct watch_value *v = e ? watch_get(e, CATALOGUE_RUN_TTFT) : NULL;

	assert_true(!v || v->value == 0.25);
}

/* Values with their units. */
static void check_gpus(struct bed *b)
{
	const struct watch_state *s = bed_state(b);
	const struct watch_entity *e;

	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_POWER) == 69);
	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_SM_CLOCK) == 345e6);
	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_MEMORY) == 81559.0 * 1048576);
	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_HELD_IDLE) == 1);
	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_HELD_POWER) == 0);
	assert_true(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_NVLINK_REPLAY) == 4);
	assert_string_equal(watch_why(bed_gpu(b, 1), CATALOGUE_GPU_NVLINK_REPLAY), "the GPU has no NVLinks");
	assert_string_equal(watch_label(bed_gpu(b, 0), "device"), "nvidia0");
	assert_string_equal(watch_label(bed_gpu(b, 0), "modelName"), "NVIDIA H100 80GB HBM3");
	assert_string_equal(watch_label(bed_gpu(b, 1), "UUID"), "GPU-two");
	e = bed_find(s, METRIC_SCOPE_XID, "xid", "79");
	assert_true(bed_value(e, CATALOGUE_XID_COUNT) == 2);
	assert_string_equal(watch_label(e, "since"), "boot");
	assert_null(bed_find(s, METRIC_SCOPE_XID, "xid", "13"));
	assert_true(bed_value(bed_find(s, METRIC_SCOPE_NVLINK, "nvlink", "1"), CATALOGUE_NVLINK_RX) ==
		    2000 * 1024);
	e = bed_find(s, METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "7");
	assert_string_equal(watch_label(e, "GPU_I_PROFILE"), "1g.10gb");
	assert_true(bed_value(e, CATALOGUE_INSTANCE_MEMORY) == 10.0 * (1 << 30));
	assert_true(fabs(bed_value(bed_gpu(b, 0), CATALOGUE_GPU_TENSOR_ACTIVE) - 0.8) < 1e-9);
	assert_true(fabs(bed_value(e, CATALOGUE_INSTANCE_TENSOR_ACTIVE) - 0.4) < 1e-9);
}

static void check_processes(struct bed *b)
{
	const struct watch_state *s;
	const struct watch_entity *e;

	BED_WAIT(b, bed_process_label(b, "4242", "command"));
	BED_WAIT(b, bed_process_label(b, "4243", "comm"));
	s = bed_state(b);
	e = bed_find(s, METRIC_SCOPE_PROCESS, "pid", "4242");
	assert_string_equal(watch_label(e, "comm"), "python3");
	assert_string_equal(watch_label(e, "container"), "0123456789ab");
	assert_string_equal(watch_label(e, "hpc_job"), "77");
	assert_string_equal(watch_label(bed_gpu(b, 0), "hpc_job"), "77");
	assert_string_equal(watch_label(bed_gpu(b, 0), "container"), "0123456789ab");
	assert_non_null(watch_label(e, "user"));
	assert_true(bed_value(e, CATALOGUE_PROCESS_SM) == 0.4);
	e = bed_find(s, METRIC_SCOPE_PROCESS, "pid", "4243");
	assert_string_equal(watch_why(e, CATALOGUE_PROCESS_SM), "the driver has no sample of this process");
}

static void check_host(struct bed *b)
{
	const struct watch_state *s = bed_state(b);
	const struct watch_entity *e;

	e = bed_find(s, METRIC_SCOPE_PORT, "device", "mlx5_0");
	assert_true(bed_value(e, CATALOGUE_PORT_TX) == 400 && bed_value(e, CATALOGUE_PORT_RATE) == 50e9);
	assert_true(bed_value(bed_find(s, METRIC_SCOPE_PORT_ERROR, "error", "symbol_error"),
			      CATALOGUE_PORT_ERRORS) == 300);
	e = bed_find(s, METRIC_SCOPE_INTERFACE, "interface", "eth0");
	assert_true(bed_value(e, CATALOGUE_INTERFACE_TX) == 2000 &&
		    bed_value(e, CATALOGUE_INTERFACE_ERRORS) == 10);
	assert_null(bed_find(s, METRIC_SCOPE_INTERFACE, "interface", "veth1"));
	assert_null(bed_find(s, METRIC_SCOPE_INTERFACE, "interface", "lo"));
	e = bed_find(s, METRIC_SCOPE_DISK, "disk", "nvme0n1");
	assert_true(bed_value(e, CATALOGUE_DISK_WRITTEN) == 4000 * 512 &&
		    bed_value(e, CATALOGUE_DISK_BUSY) == 0.5);
	assert_int_equal(s->of_scope[METRIC_SCOPE_DISK], 1);
}

static void check_runs(struct bed *b)
{
	const struct watch_state *s = bed_state(b);
	const struct watch_entity *e;

	e = bed_find(s, METRIC_SCOPE_RUN, "kind", "train");
	assert_string_equal(watch_label(e, "model"), "SmolLM2");
	assert_true(bed_value(e, CATALOGUE_RUN_STEPS) == 200 && bed_value(e, CATALOGUE_RUN_LOSS) == 2.5);
	assert_true(bed_value(e, CATALOGUE_RUN_PART_FORWARD) == 0.125 &&
		    bed_value(e, CATALOGUE_RUN_PART_BACKWARD) == 0.25 &&
		    bed_value(e, CATALOGUE_RUN_PART_OPTIMIZER) == 0.0625 &&
		    bed_value(e, CATALOGUE_RUN_PART_WAIT) == 0.03125);
	e = bed_find(s, METRIC_SCOPE_RUN, "kind", "serve");
	assert_true(bed_value(e, CATALOGUE_RUN_CACHE) == 0.25);
	e = bed_find(s, METRIC_SCOPE_CHECK, "suite", "quick");
	assert_true(bed_value(e, CATALOGUE_CHECK_WARN) == 1 && bed_value(e, CATALOGUE_CHECK_PASS) == 0);
}

static void test_every_row_is_read(void **state)
{
	bool seen[CATALOGUE_COUNT] = {false};
	struct bed b;
	const struct watch_state *s;
	uint64_t end_ns = clock_now_ns(clock_monotonic()) + PATIENCE_S * 1000000000ull;

	machine_make(*state);
	setenv("FAKE_NVML_RATE", "data_tx=1000", 1);
	bed_start(&b, *state, 0.1);
	while (!saw_all(&b, seen) && clock_now_ns(clock_monotonic()) < end_ns) {
		change(&b);
		bed_turn(&b);
		check_first_token(&b);
	}
	for (int c = 0; c < CATALOGUE_COUNT; c++) {
		enum metric_scope scope = catalogue_row((enum catalogue)c)->scope;

		if (!seen[c] && scope != METRIC_SCOPE_SOURCE && scope != METRIC_SCOPE_EXPORTER)
			print_message("not read: %s %s\n", catalogue_row((enum catalogue)c)->name,
				      catalogue_row((enum catalogue)c)->fixed);
	}
	assert_true(saw_all(&b, seen));
	s = bed_state(&b);
	assert_string_equal(s->boot, "b-1");
	check_gpus(&b);
	check_processes(&b);
	check_host(&b);
	check_runs(&b);
	s = bed_state(&b);
	/* every label is declared */
	for (uint32_t i = 0; i < s->count; i++)
		for (unsigned k = 0; s->entity[i].scope < METRIC_SCOPE_COUNT && k < s->entity[i].label_count;
		     k++)
			assert_true(metric_scope_has(s->entity[i].scope, s->entity[i].label[k].name, false));
	/* a run that ends is gone */
	machine_file(*state, "proc/locks", "2: FLOCK  ADVISORY  WRITE 501 08:02:131 0 EOF\n");
	BED_WAIT(&b, !bed_find(bed_state(&b), METRIC_SCOPE_RUN, "kind", "serve"));
	assert_non_null(bed_find(bed_state(&b), METRIC_SCOPE_RUN, "kind", "train"));
	bed_stop(&b);
}

/* A GPU cannot have more instances than the limit; whatever a driver lists beyond it is not read. */
static void test_as_many_instances_as_a_gpu_can_have(void **state)
{
	json_t *file, *instances;
	char path[PATH_MAX];
	uint64_t readings;
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/nvml.json", (char *)*state);
	file = json_load_file(path, 0, NULL);
	instances = json_object_get(json_array_get(json_object_get(file, "gpus"), 1), "mig");
	assert_int_equal(json_array_size(instances), 1);
	for (int i = 1; i <= METRIC_GPU_INSTANCES_MOST; i++) {
		json_t *one = json_deep_copy(json_array_get(instances, 0));

		json_object_set_new(json_object_get(one, "calls"), "mig_instance",
				    json_pack("[i,i]", 0, 7 + i));
		json_array_append_new(instances, one);
	}
	assert_int_equal(json_dump_file(file, path, 0), 0);
	json_decref(file);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_state(&b)->of_scope[METRIC_SCOPE_GPU_INSTANCE] >= METRIC_GPU_INSTANCES_MOST);
	readings = bed_state(&b)->readings + 20;
	BED_WAIT(&b, bed_state(&b)->readings >= readings);
	assert_int_equal(bed_state(&b)->of_scope[METRIC_SCOPE_GPU_INSTANCE], METRIC_GPU_INSTANCES_MOST);
	assert_non_null(bed_find(bed_state(&b), METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "13"));
	bed_stop(&b);
}

/* They are one entity: the name of a run's folder identifies it. */
static void test_live_runs_of_the_same_name(void **state)
{
	static const char again[] = "elsewhere/2026-11-28-serve/journal.jsonl";
	uint64_t readings;
	struct bed b;

	machine_make(*state);
	machine_file(*state, again,
		     "{\"n\":0,\"t\":1,\"type\":\"open\",\"schema\":3,\"command\":[\"assay\",\"serve\"],\"suite\":\"serve\"}\n"
		     "{\"n\":1,\"t\":4,\"type\":\"telemetry\",\"source\":\"serve\",\"from\":4,\"signals\":{%s}}\n",
		     MACHINE_SIGNAL("running", "5"));
	machine_link(*state, "proc/502/fd/6", again);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_RUN, "kind", "serve"));
	readings = bed_state(&b)->readings + 20;
	BED_WAIT(&b, bed_state(&b)->readings >= readings);
	assert_int_equal(bed_state(&b)->of_scope[METRIC_SCOPE_RUN], 2);
	bed_stop(&b);
}

/* Without files of the kernel, NVML's own list counts. */
static void test_gpus_that_only_nvml_lists(void **state)
{
	struct bed b;
	char path[PATH_MAX];

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/sys/bus", (char *)*state);
	file_remove_tree(path);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

static void test_a_suspended_gpu_is_not_touched(void **state)
{
	struct bed b;

	machine_make(*state);
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "suspended\n");
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_POWER) == 69);
	BED_WAIT(&b, bed_gpu(&b, 1)->heard_ns[METRIC_FAST]);
	assert_string_equal(watch_label(bed_gpu(&b, 1), "power_state"), "suspended");
	assert_null(watch_label(bed_gpu(&b, 1), "UUID"));
	assert_null(watch_get(bed_gpu(&b, 1), CATALOGUE_GPU_UP));
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "active\n");
	BED_WAIT(&b, bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_POWER) == 69);
	assert_null(watch_label(bed_gpu(&b, 1), "power_state"));
	machine_file(*state, "sys/bus/pci/devices/0000:2b:00.0/power/runtime_status", "suspended\n");
	BED_WAIT(&b, !watch_get(bed_gpu(&b, 1), CATALOGUE_GPU_POWER));
	bed_stop(&b);
}

/* RARE rows are read in each sixth SLOW reading: every 0.6 s here. */
static void test_rare_rows_are_read_seldom(void **state)
{
	uint64_t first_ns;
	struct bed b;

	machine_make(*state);
	bed_start(&b, *state, 0.05);
	BED_WAIT(&b, bed_gpu(&b, 0) && bed_gpu(&b, 0)->heard_ns[METRIC_RARE]);
	assert_true(bed_gpu(&b, 0)->tells_rare);
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_PCIE_REPLAYS) >= 0);
	first_ns = bed_gpu(&b, 0)->heard_ns[METRIC_RARE];
	BED_WAIT(&b, bed_gpu(&b, 0)->heard_ns[METRIC_RARE] > first_ns);
	assert_true(bed_gpu(&b, 0)->heard_ns[METRIC_RARE] - first_ns > 400000000);
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_PCIE_REPLAYS) >= 0);
	bed_stop(&b);
}

static void test_xids_without_a_kernel_log(void **state)
{
	const struct watch_entity *e;
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/kmsg", (char *)*state);
	unlink(path);
	setenv("FAKE_NVML_XID", "94@0.5", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_XID, "xid", "94"));
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_XID_LAST) == 94);
	e = bed_find(bed_state(&b), METRIC_SCOPE_XID, "xid", "94");
	assert_true(bed_value(e, CATALOGUE_XID_COUNT) == 1);
	assert_string_equal(watch_label(e, "since"), "reader");
	bed_stop(&b);
}

/* A kernel log whose first records are gone counts from the start of the reader. */
static void test_xids_of_a_log_that_has_turned_over(void **state)
{
	char path[PATH_MAX];
	struct bed b;
	FILE *f;

	machine_make(*state);
	machine_file(*state, "kmsg", "4,900,5,-;NVRM: Xid (PCI:0000:1b:00): 79, old\n");
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	assert_null(bed_find(bed_state(&b), METRIC_SCOPE_XID, "xid", "79"));
	snprintf(path, sizeof(path), "%s/kmsg", (char *)*state);
	f = fopen(path, "a");
	assert_true(f && fputs("4,901,6,-;NVRM: Xid (PCI:0000:1b:00): 48, new\n", f) >= 0 && !fclose(f));
	BED_WAIT(&b, bed_find(bed_state(&b), METRIC_SCOPE_XID, "xid", "48"));
	assert_string_equal(watch_label(bed_find(bed_state(&b), METRIC_SCOPE_XID, "xid", "48"), "since"),
			    "reader");
	bed_stop(&b);
}

/* NVML's answers outside of what exists: absent with a reason, and the rest goes on. */
static void test_readings_that_are_refused(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "power=4,clock_sm=3,gpm_support=3,reasons=3,reasons_old=3", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_TEMPERATURE) == 30);
	assert_null(watch_get(bed_gpu(&b, 0), CATALOGUE_GPU_POWER));
	assert_string_equal(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_POWER), "permission denied");
	assert_string_equal(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE),
			    "this device or driver has no GPM");
	assert_non_null(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_HELD_POWER));
	assert_non_null(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_SAMPLED_SYNC));
	bed_stop(&b);
}

static const char *energy_why(struct bed *b)
{
	const struct watch_entity *e = bed_find(bed_state(b), METRIC_SCOPE_CPU, "model", "A processor");

	return e && !watch_get(e, CATALOGUE_CPU_ENERGY) ? watch_why(e, CATALOGUE_CPU_ENERGY) : NULL;
}

/* A machine without energy counters is told apart from counters that this user may not read. */
static void test_energy_counters(void **state)
{
	char path[PATH_MAX];
	struct bed b;

	machine_make(*state);
	snprintf(path, sizeof(path), "%s/sys/class/powercap/intel-rapl:0/energy_uj", (char *)*state);
	assert_int_equal(unlink(path), 0); /* root may read every file, so there is none */
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, energy_why(&b));
	assert_string_equal(energy_why(&b), "this user may not read the energy counters (RAPL); root may");
	bed_stop(&b);
	machine_file(*state, "sys/class/powercap/intel-rapl:0/name", "psys\n");
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, energy_why(&b));
	assert_string_equal(energy_why(&b), "the machine has no energy counters (RAPL)");
	bed_stop(&b);
}

static void test_dcgm_has_the_counters(void **state)
{
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "gpm_sample=19", 1);
	setenv("FAKE_NVML_AFTER", "1", 1);
	setenv("FAKE_NVML_BEFORE", "2.5", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE) >= 0);
	BED_WAIT(&b, !watch_get(bed_gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE));
	assert_string_equal(watch_why(bed_gpu(&b, 0), CATALOGUE_GPU_TENSOR_ACTIVE),
			    "another program, such as DCGM, uses the counters of the GPU");
	assert_true(bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_UP) == 1);
	BED_WAIT(&b, bed_value(bed_gpu(&b, 0), CATALOGUE_GPU_SM_ACTIVE) >= 0);
	bed_stop(&b);
}

/* Memory of an instance stays when its shares are refused, and they are absent with the reason. */
static void test_instances_without_gpm(void **state)
{
	const struct watch_entity *e;
	struct bed b;

	machine_make(*state);
	setenv("FAKE_NVML_RET", "gpm_instance_sample=3", 1);
	bed_start(&b, *state, 0.1);
	BED_WAIT(&b, (e = bed_find(bed_state(&b), METRIC_SCOPE_GPU_INSTANCE, "GPU_I_ID", "7")) &&
			     watch_why(e, CATALOGUE_INSTANCE_SM_ACTIVE));
	assert_string_equal(watch_why(e, CATALOGUE_INSTANCE_SM_ACTIVE),
			    "not supported by this device or driver");
	assert_null(watch_get(e, CATALOGUE_INSTANCE_DRAM_ACTIVE));
	assert_true(bed_value(e, CATALOGUE_INSTANCE_MEMORY_USED) > 0);
	assert_true(bed_value(bed_gpu(&b, 1), CATALOGUE_GPU_UP) == 1);
	bed_stop(&b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		scratch_test(test_every_row_is_read),
		scratch_test(test_as_many_instances_as_a_gpu_can_have),
		scratch_test(test_live_runs_of_the_same_name),
		scratch_test(test_gpus_that_only_nvml_lists),
		scratch_test(test_a_suspended_gpu_is_not_touched),
		scratch_test(test_rare_rows_are_read_seldom),
		scratch_test(test_xids_without_a_kernel_log),
		scratch_test(test_xids_of_a_log_that_has_turned_over),
		scratch_test(test_readings_that_are_refused),
		scratch_test(test_energy_counters),
		scratch_test(test_dcgm_has_the_counters),
		scratch_test(test_instances_without_gpm),
	};

	return BED_MAIN(argc, argv, "watch_read", tests);
}
