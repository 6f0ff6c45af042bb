/* SPDX-License-Identifier: Apache-2.0 */
/* A machine of files below one folder, and the fake NVML's answers: two GPUs, the second one under MIG. */
#ifndef TESTS_UNIT_WATCH_MACHINE_H
#define TESTS_UNIT_WATCH_MACHINE_H
#include <jansson.h>
#include "scratch.h"
#include "test.h"
#include "core/file/file.h"
#include "core/text/text.h"

/* Writes a file, with its folders, below the machine's folder. */
__attribute__((format(printf, 3, 4))) static inline void machine_file(const char *root, const char *name,
								      const char *format, ...)
{
	char path[PATH_MAX], *slash;
	struct text text = {0};
	va_list args;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	for (slash = strchr(path + strlen(root) + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	va_start(args, format);
	text_addv(&text, format, args);
	va_end(args);
	f = fopen(path, "w");
	assert_true(f && fputs(text_str(&text), f) >= 0 && !fclose(f));
	text_release(&text);
}

static inline void machine_link(const char *root, const char *name, const char *target)
{
	char path[PATH_MAX], to[PATH_MAX];

	machine_file(root, name, "x"); /* its folders */
	snprintf(path, sizeof(path), "%s/%s", root, name);
	unlink(path);
	snprintf(to, sizeof(to), "%s/%s", root, target);
	assert_int_equal(symlink(to, path), 0);
}

static inline void machine_pci(const char *root, const char *address)
{
	char name[128];

	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/vendor", address);
	machine_file(root, name, "0x10de\n");
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/class", address);
	machine_file(root, name, "0x030200\n");
	snprintf(name, sizeof(name), "sys/bus/pci/devices/%s/power/runtime_status", address);
	machine_file(root, name, "active\n");
}

static inline void machine_gpus(const char *root)
{
	json_t *file = json_load_file(SOURCE_DIR "/tests/fake/h100.json", 0, NULL), *gpus, *first, *second;
	char path[PATH_MAX];

	assert_non_null(file);
	gpus = json_object_get(file, "gpus");
	first = json_array_get(gpus, 0);
	second = json_deep_copy(first);
	json_object_set_new(json_object_get(first, "calls"), "pci",
			    json_pack("[i,{s:s,s:i,s:i}]", 0, "bus_id", "00000000:1B:00.0", "device",
				      590352606, "subsystem", 1));
	json_object_set_new(json_object_get(first, "calls"), "compute_processes",
			    json_pack("[i,[{s:i,s:I,s:i},{s:i,s:I}]]", 0, "pid", 4242, "memory",
				      (json_int_t)1 << 30, "sm", 40, "pid", 4243, "memory",
				      (json_int_t)2 << 30));
	json_object_set_new(json_object_get(first, "gpm"), "5", json_real(80)); /* tensor pipes */
	for (int i = 0; i < 2; i++) {
		json_t *link =
			json_pack("{s:[i,i],s:{s:[i,i],s:[i,i],s:[i,i],s:[i,i],s:[i,i]}}", "nvlink_state", 0,
				  1, "fields", "data_tx", 0, 1000, "data_rx", 0, 2000, "error_crc", 0, 1,
				  "error_replay", 0, 2, "error_recovery", 0, 3);

		assert_non_null(link);
		json_array_append_new(json_object_get(first, "links"), link);
	}
	json_object_set_new(json_object_get(second, "calls"), "pci",
			    json_pack("[i,{s:s,s:i,s:i}]", 0, "bus_id", "00000000:2B:00.0", "device",
				      590352606, "subsystem", 1));
	json_object_set_new(json_object_get(second, "calls"), "uuid", json_pack("[i,s]", 0, "GPU-two"));
	json_object_set_new(json_object_get(second, "calls"), "mig_mode", json_pack("[i,[i,i]]", 0, 1, 1));
	json_object_set_new(second, "mig",
			    json_pack("[{s:{s:[i,i],s:[i,i],s:[i,s],s:[i,s],s:[i,[I,I,I,I]]}}]", "calls",
				      "mig_instance", 0, 7, "mig_compute", 0, 0, "name", 0,
				      "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "uuid", 0, "MIG-one", "memory_v2",
				      0, (json_int_t)10 << 30, (json_int_t)1 << 20, (json_int_t)9 << 30,
				      (json_int_t)1 << 30));
	json_array_append_new(gpus, second);
	snprintf(path, sizeof(path), "%s/nvml.json", root);
	assert_int_equal(json_dump_file(file, path, 0), 0);
	json_decref(file);
	setenv("FAKE_NVML_FILE", path, 1);
	setenv("ASSAY_LIB_NVML", FAKE_DIR "/libnvidia-ml.so.1", 1);
	machine_pci(root, "0000:1b:00.0");
	machine_pci(root, "0000:2b:00.0");
}

static inline void machine_run(const char *root, const char *kind, unsigned pid, const char *key,
			       const char *result, const char *signals)
{
	char name[128], target[128];

	snprintf(target, sizeof(target), "runs/2026-11-28-%s/journal.jsonl", kind);
	machine_file(
		root, target,
		"{\"n\":0,\"t\":1,\"type\":\"open\",\"schema\":3,\"command\":[\"assay\",\"%s\"],\"suite\":\"%s\"}\n"
		"{\"n\":1,\"t\":2,\"type\":\"plan\",\"suite\":\"%s\",\"steps\":[{\"cases\":[{\"case\":0,\"key\":\"%s\"}]}]}\n"
		"{\"n\":2,\"t\":3,\"type\":\"result\",\"case\":0,\"phase\":\"load\",\"values\":{%s}}\n"
		"{\"n\":3,\"t\":4,\"type\":\"telemetry\",\"source\":\"%s\",\"from\":4,\"signals\":{%s}}\n",
		kind, kind, kind, key, result, kind, signals);
	snprintf(name, sizeof(name), "proc/%u/fd/5", pid);
	machine_link(root, name, target);
}

#define MACHINE_SIGNAL(name, value) "\"" name "\":{\"kind\":\"gauge\",\"after\":[0],\"v\":[" value "]}"

static inline void machine_host(const char *root)
{
	static const char *const counters[] = {"port_xmit_data", "port_rcv_data", "symbol_error"};
	char name[128];

	machine_file(root, "proc/sys/kernel/random/boot_id", "b-1\n");
	machine_file(root, "proc/stat",
		     "cpu  100 0 100 800 0 0 0 0\ncpu0 1 1 1 1\ncpu1 1 1 1 1\nbtime 1700000000\n");
	machine_file(root, "proc/loadavg", "1.5 1 1 1/2 3\n");
	machine_file(root, "proc/meminfo",
		     "MemTotal:       1048576 kB\nMemFree: 1 kB\nMemAvailable:    524288 kB\n");
	machine_file(root, "proc/cpuinfo", "processor\t: 0\nmodel name\t: A processor\n");
	machine_file(
		root, "proc/net/dev",
		"Inter-| Receive\n face |bytes\n    lo: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n"
		"  eth0: 1000 5 1 2 0 0 0 0 2000 6 3 4 0 0 0 0\n veth1: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
	machine_file(root, "sys/class/net/eth0/carrier", "1\n");
	machine_file(root, "sys/class/net/eth0/device/x", "\n");
	machine_file(root, "sys/class/net/veth1/carrier", "1\n");
	machine_file(
		root, "proc/diskstats",
		" 259 0 nvme0n1 10 0 2000 1 20 0 4000 1 0 500 1\n 259 1 nvme0n1p1 1 0 1 1 1 0 1 1 0 1 1\n"
		"   7 0 loop0 1 0 1 1 1 0 1 1 0 1 1\n");
	machine_file(root, "sys/block/nvme0n1/size", "1\n");
	machine_file(root, "sys/class/powercap/intel-rapl:0/name", "package-0\n");
	machine_file(root, "sys/class/powercap/intel-rapl:0/max_energy_range_uj", "1000000000\n");
	machine_file(root, "sys/class/powercap/intel-rapl:0/energy_uj", "5000000\n");
	for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++) {
		snprintf(name, sizeof(name), "sys/class/infiniband/mlx5_0/ports/1/counters/%s", counters[i]);
		machine_file(root, name, "%zu\n", 100 * (i + 1));
	}
	machine_file(root, "sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	machine_file(root, "sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	machine_file(root, "sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n");
}

static inline void machine_processes(const char *root)
{
	machine_file(root, "proc/4242/comm", "python3\n");
	machine_file(root, "proc/4242/cgroup",
		     "0::/system.slice/slurmstepd.scope/job_77/step_0/user/task_0/docker-"
		     "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef.scope\n");
	machine_file(root, "proc/4242/cmdline", "python3 train.py --x\n");
	machine_file(root, "proc/4243/comm", "other\n");
	machine_file(
		root, "proc/locks",
		"1: POSIX  ADVISORY  WRITE 1 08:02:1 0 EOF\n2: FLOCK  ADVISORY  WRITE 501 08:02:131 0 EOF\n"
		"3: FLOCK  ADVISORY  WRITE 502 08:02:132 0 EOF\n4: FLOCK  ADVISORY  WRITE 503 08:02:133 0 EOF\n");
	machine_run(root, "train", 501, "train SmolLM2 lora batch=4x512 tokens=1 steps=200", "",
		    MACHINE_SIGNAL("loss", "2.5") "," MACHINE_SIGNAL("step", "7") "," MACHINE_SIGNAL(
			    "step_s", "0.5") "," MACHINE_SIGNAL("forward_s", "0.125") "," MACHINE_SIGNAL("backward_s", "0.25") "," MACHINE_SIGNAL("optimiser_s", "0.0625") "," MACHINE_SIGNAL("wait_s", "0.03125") "," MACHINE_SIGNAL("tokens_per_s",
								"1000") "," MACHINE_SIGNAL("mfu", "0.4"));
	machine_run(root, "serve", 502, "serve Llama", "\"pages\":200",
		    MACHINE_SIGNAL("running", "3") "," MACHINE_SIGNAL("waiting", "1") "," MACHINE_SIGNAL(
			    "pages_used", "50"));
	machine_file(root, "runs/2026-11-28-serve/requests.jsonl", "{\"first_token_s\":9}\n");
	machine_file(root, "runs/2026-11-27-quick/results.json",
		     "{\"verdict\":\"warn\",\"run\":{\"Suite\":\"quick\"}}\n");
	machine_file(root, "runs/2026-11-27-broken/results.json", "{\"verdict\":");
}

static inline void machine_make(const char *root)
{
	machine_gpus(root);
	machine_host(root);
	machine_processes(root);
	machine_file(
		root, "kmsg",
		"6,0,1,-;Linux version 6\n4,900,5,-;NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the "
		"bus.\n SUBSYSTEM=pci\n4,901,6,-;NVRM: Xid (PCI:0000:1b:00): 79, again\n"
		"4,902,6,-;NVRM: Xid (PCI:0000:9b:00): 13, another GPU\n4,903,6,-;NVRM: Xid (PCI:hostile\n");
}
#endif
