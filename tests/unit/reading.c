/* SPDX-License-Identifier: Apache-2.0 */
/* Readings on machines written down here as facts. What is asserted is fields, never verdicts. */
#include "test.h"

#include <jansson.h>

#include "probe/list.h"
#include "probe/shared/reading.h"
#include "probe/registry.h"

struct reading {
	struct machine *machine;
	struct result *out;
	struct error err;
	enum status status;
	json_t *values;
};

/* Facts of one healthy H100 and its host; `patch` (JSON) goes over them: objects by key, the rest replaced.
 */
static const char healthy[] =
	"{\"format\":1,\"live\":false,\"label\":\"test\",\"layer\":\"software\",\"unreadable\":[],"
	"\"system\":{\"clocksource\":\"tsc\",\"loadavg\":\"1.00 0.5 0.2 1/94 315\",\"virtual_machine\":true},"
	"\"limits\":{\"memlock_bytes\":8388608,\"nofile\":20000},\"environment\":{\"NCCL_ALGO\":\"Ring\"},"
	"\"cpu\":{\"threads\":8,\"usable\":4,\"governor\":\"performance\",\"affinity\":\"0-3\","
	"\"numa\":[{\"node\":0,\"cpus\":\"0-3\"},{\"node\":1,\"cpus\":\"4-7\"}]},"
	"\"memory\":{\"total_bytes\":1000,\"available_bytes\":900,\"swap_bytes\":100,\"swap_free_bytes\":40},"
	"\"storage\":{\"filesystems\":[{\"mount\":\"/\",\"free_bytes\":5},{\"mount\":\"/"
	"data\",\"free_bytes\":7},"
	"{\"mount\":\"/dev/shm\",\"total_bytes\":64,\"free_bytes\":1}]},"
	"\"driver\":{\"loaded\":true,\"version\":\"580.159.04\",\"nvml_version\":\"13.580.159.04\","
	"\"cuda_version\":\"13.0\",\"kernel_module\":\"NVRM version: NVIDIA UNIX 580.159.04  Release "
	"Build\"},"
	"\"kernel_log\":{\"readable\":true,\"xids\":[],\"other\":[]},"
	"\"device_nodes\":[{\"path\":\"/dev/nvidia0\",\"open\":true},{\"path\":\"/dev/"
	"nvidiactl\",\"open\":true}],"
	"\"software\":{\"cudart\":{\"path\":\"/l/"
	"libcudart.so.13\",\"version\":\"12.8.90\"},\"nccl\":{\"missing\":\"no\"}},"
	"\"gpus\":[{\"pci\":\"0000:1b:00.0\",\"name\":\"NVIDIA H100 80GB "
	"HBM3\",\"status\":\"ok\",\"cause\":\"\","
	"\"nvml_index\":0,\"cuda_index\":0,\"granted\":true,\"unreadable\":{},"
	"\"facts\":{\"ecc_enabled\":1,\"ecc_volatile_uncorrected\":0,\"remap_pending\":0,\"pcie_gen\":1,"
	"\"pcie_gen_max\":5,\"pcie_width\":16,\"pcie_width_max\":16,\"clock_reasons\":1,\"power_limit_w\":"
	"700,"
	"\"power_limit_default_w\":700,\"recovery_action\":0,\"mig_mode\":0,\"processes\":0,\"memory_bytes\":"
	"1000,"
	"\"memory_free_bytes\":750,\"nvlink_count\":18,\"nvlink_active\":18,\"fabric_state\":3,\"numa_node\":"
	"1}}]}";

static const struct probe *probe_of(const char *name)
{
	const struct probe *const *p;

	for (p = probe_list; *p; p++)
		if (!strcmp((*p)->name, name))
			return *p;
	fail_msg("no probe %s", name);
	return NULL;
}

/* `gpu_patch` goes over the first GPU, `patch` over the machine; NULL: as it is. */
static struct reading read_it(const char *name, const char *patch, const char *gpu_patch)
{
	const struct probe *p = probe_of(name);
	struct target target = {.kind = TARGET_GPU, .gpu_count = 1};
	json_t *facts = json_loads(healthy, 0, NULL);
	json_t *over = patch ? json_loads(patch, 0, NULL) : NULL;
	json_t *gpu_over = gpu_patch ? json_loads(gpu_patch, 0, NULL) : NULL;
	char opts[256] __attribute__((aligned(16)));
	struct reading r = {0};

	assert_non_null(facts);
	assert_true(!patch || over);
	assert_true(!gpu_patch || gpu_over);
	if (over)
		json_object_update_recursive(facts, over);
	if (gpu_over)
		json_object_update_recursive(json_array_get(json_object_get(facts, "gpus"), 0), gpu_over);
	assert_int_equal(machine_from_json(&r.machine, facts, &r.err), STATUS_OK);
	json_decref(facts);
	json_decref(over);
	json_decref(gpu_over);
	assert_true(p->opts.size <= sizeof(opts));
	assert_int_equal(opt_defaults(&p->opts, opts, NULL), STATUS_OK);
	if (!machine_gpu_count(r.machine))
		target = (struct target){.kind = TARGET_NODE};
	r.out = result_create();
	r.status = p->observe(r.machine, &target, opts, r.out, &r.err);
	r.values = result_json(r.out);
	return r;
}

static void done(struct reading *r)
{
	json_decref(r->values);
	result_destroy(r->out);
	machine_free(r->machine);
}

static bool has(const struct reading *r, const char *field)
{
	return json_object_get(r->values, field);
}

static double number(const struct reading *r, const char *field)
{
	const json_t *v = json_object_get(r->values, field);

	if (!json_is_number(v))
		fail_msg("no number %s", field);
	return json_number_value(v);
}

static const char *text(const struct reading *r, const char *field)
{
	const char *v = json_string_value(json_object_get(r->values, field));

	return v ? v : "(absent)";
}

static void test_reading__fields_of_facts_are_named_as_the_facts(void **state)
{
	const struct probe *const *p;
	unsigned readings = 0;

	(void)state;
	for (p = probe_list; *p; p++) {
		size_t i;
		int k;

		if ((*p)->kind != PROBE_READING)
			continue;
		readings++;
		assert_non_null((*p)->observe);
		assert_true((*p)->reads == TARGET_GPU || (*p)->reads == TARGET_NODE);
		for (i = 0; i < (*p)->field_count; i++)
			for (k = 0; k < GPU_FACT_COUNT; k++)
				if (!strcmp((*p)->fields[i].name, gpu_fact_name((enum gpu_fact)k)))
					assert_string_equal((*p)->fields[i].unit,
							    gpu_fact_unit((enum gpu_fact)k));
	}
	assert_int_equal(readings, 14);
}

static void test_reading__a_healthy_gpu_gives_what_was_read_and_nothing_more(void **state)
{
	struct reading r = read_it("ecc", NULL, NULL);

	(void)state;
	assert_int_equal(r.status, STATUS_OK);
	assert_true(number(&r, "ecc_enabled") == 1 && number(&r, "ecc_volatile_uncorrected") == 0);
	assert_false(has(&r, "ecc_sram_threshold")); /* absent is not zero */
	assert_int_equal(json_object_size(r.values), 2);
	done(&r);
	r = read_it("clock_state", NULL, "{\"facts\":{\"clock_reasons\":72}}");
	assert_string_equal(text(&r, "clock_reasons"), "0x48");
	assert_true(number(&r, "power_limit_w") == 700);
	done(&r);
	r = read_it("remap", NULL, "{\"facts\":{\"remap_pending\":1}}");
	assert_true(number(&r, "remap_pending") == 1);
	done(&r);
	r = read_it("gpu_mode", NULL, "{\"facts\":{\"recovery_action\":2}}");
	assert_true(number(&r, "recovery_action") == 2);
	done(&r);
}

static void test_reading__a_silent_gpu_is_its_status_and_cause(void **state)
{
	static const char *const names[] = {"ecc",	    "remap",	  "gpu_mode",	  "clock_state",
					    "nvlink_state", "pcie_state", "contamination"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct reading r =
			read_it(names[i], NULL,
				"{\"status\":\"lost\",\"cause\":\"gpu_lost\",\"reason\":\"does not "
				"answer\"}");

		assert_int_equal(r.status, STATUS_LOST);
		assert_int_equal(r.err.cause, CAUSE_GPU_LOST);
		assert_string_equal(r.err.text, "GPU 0000:1b:00.0: does not answer");
		assert_int_equal(json_object_size(r.values), 0);
		done(&r);
		r = read_it(names[i], NULL, "{\"status\":\"unavailable\",\"cause\":\"driver_missing\"}");
		assert_int_equal(r.status, STATUS_UNAVAILABLE);
		assert_int_equal(r.err.cause, CAUSE_DRIVER_MISSING);
		done(&r);
	}
}

static void test_reading__nothing_readable_says_why(void **state)
{
	struct reading r =
		read_it("remap", NULL,
			"{\"facts\":{\"remap_pending\":\"gone\"},\"unreadable\":{\"remap_pending\":\"not "
			"supported by this device or driver\"}}");

	(void)state;
	assert_int_equal(r.status, STATUS_UNSUPPORTED);
	assert_string_equal(r.err.text,
			    "GPU 0000:1b:00.0: remapped rows: not supported by this device or driver");
	done(&r);
	r = read_it("remap", NULL,
		    "{\"facts\":{\"remap_pending\":\"gone\"},\"unreadable\":{\"remap_pending\":\"permission "
		    "denied\"}}");
	assert_int_equal(r.status, STATUS_UNAVAILABLE);
	assert_int_equal(r.err.cause, CAUSE_PERMISSION);
	done(&r);
	r = read_it("remap", NULL, "{\"facts\":{\"remap_pending\":\"gone\"}}");
	assert_int_equal(r.status, STATUS_UNAVAILABLE);
	assert_int_equal(r.err.cause, CAUSE_LIBRARY_MISSING);
	done(&r);
}

static void test_reading__xids_are_the_gpus_own_and_a_burst_has_a_first(void **state)
{
	struct reading r =
		read_it("xid",
			"{\"kernel_log\":{\"xids\":[{\"xid\":13,\"pci\":\"0000:1b:00.0\",\"uptime_s\":5.0,"
			"\"text\":\"old\"},"
			"{\"xid\":79,\"pci\":\"0000:1b:00.0\",\"uptime_s\":900.25,\"text\":\"fell off\"},"
			"{\"xid\":74,\"pci\":\"0000:3d:00.0\",\"uptime_s\":900.5},"
			"{\"xid\":45,\"pci\":\"0000:1b:00.0\",\"uptime_s\":901.0}]}}",
			"{\"status\":\"lost\"}");

	(void)state;
	assert_int_equal(r.status, STATUS_OK); /* the log speaks of a GPU that does not */
	assert_true(number(&r, "xid_count") == 3 && number(&r, "xid_first") == 79);
	assert_string_equal(text(&r, "xid_list"), "13@5.0 79@900.2 45@901.0");
	assert_string_equal(text(&r, "xid_first_text"), "fell off");
	done(&r);
	r = read_it("xid", NULL, NULL);
	assert_true(number(&r, "xid_count") == 0 && number(&r, "kernel_log_readable") == 1);
	assert_false(has(&r, "xid_list") || has(&r, "xid_first"));
	done(&r);
	r = read_it("xid", "{\"kernel_log\":{\"readable\":false}}", NULL);
	assert_int_equal(r.status, STATUS_OK);
	assert_true(number(&r, "kernel_log_readable") == 0);
	assert_false(has(&r, "xid_count")); /* no Xid seen is not known */
	done(&r);
	r = read_it("xid", "{\"kernel_log\":null}", NULL);
	assert_int_equal(r.status, STATUS_UNAVAILABLE);
	assert_int_equal(r.err.cause, CAUSE_NO_LOG);
	done(&r);
}

static void test_reading__pcie_takes_this_devices_lines_of_the_log(void **state)
{
	struct reading r = read_it(
		"pcie_state",
		"{\"kernel_log\":{\"other\":[\"[1.0] pcieport 0000:00:01.0: AER: Corrected error received: "
		"0000:1b:00.0\",\"[2.0] pcieport 0000:00:01.0: AER: Uncorrectable (Fatal) error message "
		"received from "
		"0000:1b:00.0\",\"[3.0] pcieport 0000:00:02.0: AER: Corrected error received: "
		"0000:3d:00.0\"]}}",
		"{\"facts\":{\"pcie_width\":8}}");

	(void)state;
	assert_true(number(&r, "pcie_aer_fatal") == 1 && number(&r, "pcie_aer_corrected") == 1);
	assert_true(number(&r, "pcie_width") == 8 && number(&r, "pcie_width_max") == 16);
	done(&r);
	r = read_it("pcie_state", "{\"kernel_log\":{\"readable\":false}}", NULL);
	assert_int_equal(r.status, STATUS_OK);
	assert_false(has(&r, "pcie_aer_fatal"));
	done(&r);
}

static void test_reading__nvlink_names_the_links_that_are_down(void **state)
{
	struct reading r =
		read_it("nvlink_state", NULL,
			"{\"facts\":{\"nvlink_active\":16},\"links\":[{\"link\":0,\"active\":true},"
			"{\"link\":3,\"active\":false},{\"link\":7,\"active\":false}]}");

	(void)state;
	assert_true(number(&r, "nvlink_active") == 16 && number(&r, "fabric_state") == 3);
	assert_string_equal(text(&r, "nvlink_down"), "3,7");
	done(&r);
	r = read_it("nvlink_state", NULL,
		    "{\"facts\":{\"nvlink_count\":null,\"nvlink_active\":null,\"fabric_state\":0},"
		    "\"unreadable\":{\"nvlink_active\":\"not supported by this device or driver\"}}");
	assert_int_equal(r.status, STATUS_UNSUPPORTED); /* a PCIe card: a skip */
	done(&r);
}

static void test_reading__contamination_counts_memory_and_hides_names(void **state)
{
	struct reading r = read_it(
		"contamination", NULL,
		"{\"facts\":{\"processes\":2},\"processes\":[{\"kind\":\"compute\",\"pid\":77,"
		"\"memory_bytes\":12000000000,\"name\":\"secret\"},{\"kind\":\"graphics\",\"pid\":78}]}");

	(void)state;
	assert_true(number(&r, "processes") == 2 && number(&r, "memory_used_bytes") == 250);
	assert_true(number(&r, "memory_used_share") == 0.25);
	assert_string_equal(text(&r, "process_list"), "pid 77 compute 12.0 GB, pid 78 graphics");
	done(&r);
	r = read_it("contamination", NULL, "{\"facts\":{\"memory_free_bytes\":null}}");
	assert_int_equal(r.status, STATUS_OK);
	assert_false(has(&r, "memory_used_bytes"));
	done(&r);
}

static void test_reading__gpus_are_counted_each_way_that_could_be_counted(void **state)
{
	static const char second[] =
		"{\"gpus\":[{\"pci\":\"0000:1b:00.0\",\"name\":\"A\",\"status\":\"ok\","
		"\"nvml_index\":0,\"cuda_index\":0,\"granted\":true},{\"pci\":\"0000:3d:00.0\","
		"\"name\":\"A\",\"status\":\"unavailable\",\"cause\":\"gpu_missing\"},"
		"{\"pci\":\"0000:4e:00.0\",\"name\":\"B\",\"status\":\"lost\",\"nvml_index\":1}]}";
	struct reading r = read_it("gpu_count", second, NULL);

	(void)state;
	assert_true(number(&r, "gpu_count_pci") == 3 && number(&r, "gpu_count_nvml") == 2);
	assert_true(number(&r, "gpu_count_cuda") == 1 && number(&r, "gpu_count_dev") == 1);
	assert_true(number(&r, "gpu_count_lost") == 1 && number(&r, "gpu_count_silent") == 1);
	assert_true(number(&r, "gpu_count_granted") == 1 && number(&r, "driver_loaded") == 1);
	assert_string_equal(text(&r, "gpu_models"), "2 x A, 1 x B");
	done(&r);
	r = read_it(
		"gpu_count",
		"{\"driver\":{\"loaded\":false},\"device_nodes\":null,\"gpus\":[{\"pci\":\"0000:1b:00.0\","
		"\"status\":\"unavailable\",\"cause\":\"driver_missing\"}]}",
		NULL);
	assert_true(number(&r, "driver_loaded") == 0 && number(&r, "gpu_count_pci") == 1);
	assert_false(has(&r, "gpu_count_nvml") || has(&r, "gpu_count_cuda") || has(&r, "gpu_count_dev"));
	done(&r);
	/* A library that is broken lists nothing, and no GPU is missing for it; NVML that lists none is
	 * another matter. */
	r = read_it("gpu_count",
		    "{\"unreadable\":[{\"what\":\"NVML\",\"cause\":\"version_mismatch\",\"why\":\"x\"}]}",
		    "{\"nvml_index\":null}");
	assert_int_equal(r.status, STATUS_OK);
	assert_false(has(&r, "gpu_count_nvml"));
	assert_true(number(&r, "gpu_count_cuda") == 1 && number(&r, "gpu_count_pci") == 1);
	done(&r);
	r = read_it("gpu_count", NULL, "{\"nvml_index\":null}");
	assert_true(number(&r, "gpu_count_nvml") == 0);
	done(&r);
	r = read_it(
		"gpu_count",
		"{\"unreadable\":[{\"what\":\"CUDA driver\",\"cause\":\"library_missing\",\"why\":\"x\"}]}",
		"{\"cuda_index\":null}");
	assert_false(has(&r, "gpu_count_cuda"));
	done(&r);
	r = read_it("gpu_count",
		    "{\"unreadable\":[{\"what\":\"CUDA driver\",\"cause\":\"vendor_call\",\"why\":\"802\"}]}",
		    "{\"cuda_index\":null}");
	assert_true(number(&r, "gpu_count_cuda") ==
		    0); /* it started and found none, or could not for the GPU */
	done(&r);
	r = read_it("gpu_count", "{\"layer\":\"nvml\"}", "{\"cuda_index\":null}");
	assert_false(has(&r, "gpu_count_cuda")); /* the layer was not read */
	done(&r);
}

static void test_reading__without_a_gpu_they_skip(void **state)
{
	static const char *const names[] = {"gpu_count", "versions", "numa", "nccl_env"};
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct reading r = read_it(names[i], "{\"gpus\":[]}", NULL);

		assert_int_equal(r.status, STATUS_UNSUPPORTED);
		assert_int_equal(r.err.cause, CAUSE_NO_HARDWARE);
		done(&r);
	}
}

static void test_reading__versions_compare_driver_and_libraries(void **state)
{
	struct reading r = read_it("versions", NULL, NULL);

	(void)state;
	assert_true(number(&r, "driver_cuda_version") == 13000 && number(&r, "cuda_version") == 12080);
	assert_true(number(&r, "driver_module_matches") == 1);
	assert_string_equal(text(&r, "driver_version"), "580.159.04");
	assert_string_equal(text(&r, "library_missing"), "nccl");
	done(&r);
	r = read_it("versions", "{\"driver\":{\"nvml_version\":\"13.570.10.01\"}}", NULL);
	assert_true(number(&r, "driver_module_matches") == 0);
	done(&r);
	r = read_it("versions", NULL, "{\"status\":\"unavailable\",\"cause\":\"version_mismatch\"}");
	assert_true(number(&r, "driver_module_matches") == 0);
	done(&r);
	r = read_it("versions", "{\"driver\":null}", NULL);
	assert_int_equal(r.status, STATUS_UNAVAILABLE);
	assert_int_equal(r.err.cause, CAUSE_DRIVER_MISSING);
	done(&r);
}

static void test_reading__limits_are_absent_when_there_is_no_limit(void **state)
{
	struct reading r = read_it("limits", NULL, NULL);

	(void)state;
	assert_true(number(&r, "memlock_bytes") == 8388608 && number(&r, "nofile") == 20000);
	assert_true(number(&r, "cpu_usable") == 4 && number(&r, "swap_used_bytes") == 60);
	assert_true(number(&r, "shm_bytes") == 64 && number(&r, "disk_free_bytes") == 5);
	assert_string_equal(text(&r, "disk_mount"), "/");
	assert_false(has(&r, "cpu_quota"));
	done(&r);
	r = read_it("limits", "{\"limits\":{\"memlock_bytes\":\"unlimited\"},\"cpu\":{\"quota\":1.5}}", NULL);
	assert_false(has(&r, "memlock_bytes"));
	assert_true(number(&r, "cpu_quota") == 1.5);
	done(&r);
	r = read_it("limits", "{\"storage\":null,\"memory\":null,\"limits\":null}", NULL);
	assert_int_equal(r.status, STATUS_OK);
	assert_false(has(&r, "disk_free_bytes") || has(&r, "shm_bytes") || has(&r, "memory_total_bytes"));
	done(&r);
}

static void test_reading__host_counts_what_its_kernel_logged(void **state)
{
	struct reading r = read_it(
		"host_state",
		"{\"kernel_log\":{\"other\":[\"mce: [Hardware Error]: Machine check events logged\","
		"\"Out of memory: Killed process 5\",\"nvidia-nvswitch0: SXid (PCI:0): 12028\"]},"
		"\"unreadable\":[{\"what\":\"memory speed\",\"cause\":\"permission\",\"why\":\"x\"}]}",
		NULL);

	(void)state;
	assert_true(number(&r, "machine_checks") == 1 && number(&r, "oom_kills") == 1);
	assert_true(number(&r, "sxid_count") == 1 && number(&r, "dmi_readable") == 0);
	assert_true(number(&r, "load_share") == 0.25);
	assert_string_equal(text(&r, "governor"), "performance");
	assert_string_equal(text(&r, "clocksource"), "tsc");
	done(&r);
	/* Our own last run left a load of 8 behind, and nobody works now; then others keep three of four
	 * busy. */
	r = read_it("host_state",
		    "{\"system\":{\"loadavg\":\"8.00 4 2 1/94 315\",\"cpu_use\":{\"window_s\":0.3,"
		    "\"busy_share\":0.27,\"own_share\":0.25}}}",
		    NULL);
	assert_float_equal(number(&r, "foreign_share"), 0.02, 1e-9);
	assert_false(has(&r, "load_share"));
	done(&r);
	/* We watched and could not read it: the load average is no substitute. */
	r = read_it("host_state", "{\"system\":{\"loadavg\":\"8.00 4 2 1/94 315\",\"cpu_use\":{}}}", NULL);
	assert_false(has(&r, "foreign_share") || has(&r, "load_share"));
	done(&r);
	r = read_it("host_state", "{\"system\":{\"cpu_use\":{\"busy_share\":0.75,\"own_share\":0}}}", NULL);
	assert_float_equal(number(&r, "foreign_share"), 0.75, 1e-9);
	done(&r);
	r = read_it("host_state", "{\"kernel_log\":{\"readable\":false},\"cpu\":{\"governor\":null}}", NULL);
	assert_false(has(&r, "foreign_share")); /* a recording that has the load average alone */
	assert_true(number(&r, "kernel_log_readable") == 0);
	assert_false(has(&r, "machine_checks") || has(&r, "governor") || has(&r, "dmi_readable"));
	done(&r);
}

static void test_reading__numa_finds_gpus_beyond_our_cpus(void **state)
{
	struct reading r = read_it("numa", NULL, NULL);

	(void)state;
	assert_true(number(&r, "numa_nodes") == 2 && number(&r, "numa_gpus_unreachable") == 1);
	assert_string_equal(text(&r, "numa_map"), "0000:1b:00.0 1");
	done(&r);
	r = read_it("numa", NULL, "{\"facts\":{\"numa_node\":0}}");
	assert_true(number(&r, "numa_gpus_unreachable") == 0 && number(&r, "numa_gpus_unknown") == 0);
	done(&r);
	r = read_it("numa", NULL, "{\"facts\":{\"numa_node\":-1}}");
	assert_true(number(&r, "numa_gpus_unknown") == 1);
	done(&r);
	r = read_it("numa", "{\"cpu\":{\"numa\":[{\"node\":0,\"cpus\":\"0-3\"}]}}",
		    "{\"facts\":{\"numa_node\":-1}}");
	assert_true(number(&r, "numa_gpus_unknown") == 0 && number(&r, "numa_gpus_unreachable") == 0);
	done(&r);
	r = read_it("numa", "{\"cpu\":{\"numa\":[]}}", NULL);
	assert_int_equal(r.status, STATUS_UNSUPPORTED);
	done(&r);
}

static void test_reading__an_unset_variable_reads_as_empty(void **state)
{
	struct reading r = read_it("nccl_env", NULL, NULL);

	(void)state;
	assert_string_equal(text(&r, "NCCL_ALGO"), "Ring");
	assert_string_equal(text(&r, "NCCL_P2P_DISABLE"), "");
	done(&r);
	r = read_it("nccl_env", "{\"environment\":null}", NULL);
	assert_int_equal(r.status, STATUS_UNAVAILABLE);
	done(&r);
}

static void test_reading__nccls_files_count_where_the_environment_says_nothing(void **state)
{
	struct reading r = read_it("nccl_env",
				   "{\"nccl_files\":[{\"path\":\"~/"
				   ".nccl.conf\",\"text\":\"NCCL_P2P_DISABLE=1\\nNCCL_ALGO=Tree\\n"
				   "NCCL_DEBUG=trace\\nNCCL_SOCKET_IFNAME=eth7\\nCUDA_LAUNCH_BLOCKING=1\"},"
				   "{\"path\":\"/etc/nccl.conf\",\"text\":\"NCCL_P2P_DISABLE=0\"}],"
				   "\"interfaces\":[{\"name\":\"eth0\",\"state\":\"up\"}]}",
				   NULL);

	(void)state;
	assert_string_equal(text(&r, "NCCL_ALGO"), "Ring"); /* the environment's */
	assert_string_equal(text(&r, "NCCL_P2P_DISABLE"), "1");
	assert_string_equal(text(&r, "NCCL_DEBUG"), "TRACE"); /* NCCL takes either case */
	assert_string_equal(text(&r, "NCCL_SOCKET_IFNAME_missing"), "eth7 is missing");
	assert_string_equal(text(&r, "NCCL_IB_HCA_missing"), "");
	assert_string_equal(text(&r, "CUDA_LAUNCH_BLOCKING"), ""); /* CUDA does not read them */
	done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reading__fields_of_facts_are_named_as_the_facts),
		cmocka_unit_test(test_reading__a_healthy_gpu_gives_what_was_read_and_nothing_more),
		cmocka_unit_test(test_reading__a_silent_gpu_is_its_status_and_cause),
		cmocka_unit_test(test_reading__nothing_readable_says_why),
		cmocka_unit_test(test_reading__xids_are_the_gpus_own_and_a_burst_has_a_first),
		cmocka_unit_test(test_reading__pcie_takes_this_devices_lines_of_the_log),
		cmocka_unit_test(test_reading__nvlink_names_the_links_that_are_down),
		cmocka_unit_test(test_reading__contamination_counts_memory_and_hides_names),
		cmocka_unit_test(test_reading__gpus_are_counted_each_way_that_could_be_counted),
		cmocka_unit_test(test_reading__without_a_gpu_they_skip),
		cmocka_unit_test(test_reading__versions_compare_driver_and_libraries),
		cmocka_unit_test(test_reading__limits_are_absent_when_there_is_no_limit),
		cmocka_unit_test(test_reading__host_counts_what_its_kernel_logged),
		cmocka_unit_test(test_reading__numa_finds_gpus_beyond_our_cpus),
		cmocka_unit_test(test_reading__an_unset_variable_reads_as_empty),
		cmocka_unit_test(test_reading__nccls_files_count_where_the_environment_says_nothing),
	};

	return cmocka_run_group_tests_name("reading", tests, NULL, NULL);
}
