/* SPDX-License-Identifier: Apache-2.0 */
/* The facts about a machine. Raw readings come in layers of increasing cost. Helper processes (`assay __facts
 * LAYER`) read the layers of vendor libraries within a time limit, so the main process never calls a vendor
 * library. A recording is a folder with the same raw readings. One parser turns either into the facts tree
 * (JSON, docs/explanation/design/machine.md), and struct machine is built from that tree. The journal
 * contains the tree, so judging and reporting need nothing else. */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "core/log.h"

/* HOST: /proc, /sys, PCI, kernel log. NVML: adds NVML. CUDA: adds driver attributes (200-310 ms). SOFTWARE:
 * adds path and version of every library (dlopen of each one in a helper process). */
enum layer { LAYER_HOST, LAYER_NVML, LAYER_CUDA, LAYER_SOFTWARE };

/* name, unit, cheapest layer that provides it, help */
/* clang-format off */
#define GPU_FACTS(X)                                                                   \
	X(sm_count, "", CUDA, "multiprocessors")                                       \
	X(cc, "", NVML, "compute capability, 10 * major + minor")                      \
	X(memory_bytes, "B", NVML, "device memory, total")                             \
	X(memory_free_bytes, "B", NVML, "device memory, free before assay began")         \
	X(bus_bits, "bit", NVML, "memory bus width")                                   \
	X(l2_bytes, "B", CUDA, "L2 cache")                                             \
	X(smem_optin_bytes, "B", CUDA, "shared memory a block may request")            \
	X(sm_clock_mhz, "MHz", NVML, "SM clock now")                                   \
	X(sm_clock_max_mhz, "MHz", NVML, "SM clock, maximum")                          \
	X(memory_clock_mhz, "MHz", NVML, "memory clock now")                           \
	X(memory_clock_max_mhz, "MHz", NVML, "memory clock, maximum")                  \
	X(power_limit_w, "W", NVML, "power limit, enforced")                           \
	X(power_limit_default_w, "W", NVML, "power limit, default")                    \
	X(power_limit_max_w, "W", NVML, "power limit, highest allowed")                \
	X(power_w, "W", NVML, "power now")                                             \
	X(temperature_c, "C", NVML, "GPU temperature now")                             \
	X(temperature_slowdown_c, "C", NVML, "temperature at which the hardware slows down") \
	X(temperature_memory_c, "C", NVML, "memory temperature now")                   \
	X(utilization_share, "", NVML, "share of the last second with a kernel running") \
	X(ecc_enabled, "", NVML, "ECC on (1) or off (0)")                              \
	X(ecc_volatile_uncorrected, "", NVML, "uncorrected errors since the driver loaded") \
	X(ecc_aggregate_uncorrected, "", NVML, "uncorrected errors, lifetime")         \
	X(ecc_volatile_corrected, "", NVML, "corrected errors since the driver loaded") \
	X(ecc_aggregate_corrected, "", NVML, "corrected errors, lifetime")             \
	X(ecc_sram_threshold, "", NVML, "SRAM error threshold exceeded (1)")           \
	X(remapped_correctable, "", NVML, "rows remapped for correctable errors")      \
	X(remapped_uncorrectable, "", NVML, "rows remapped for uncorrectable errors")  \
	X(remap_pending, "", NVML, "a row remap is pending until a reset (1)")                    \
	X(remap_failed, "", NVML, "a row remap failed (1)")                                \
	X(remap_banks_none, "", NVML, "banks with no spare row left")                  \
	X(retired_pages, "", NVML, "retired pages (before Ampere)")                    \
	X(pcie_gen, "", NVML, "PCIe generation now (idle GPUs drop to 1)")             \
	X(pcie_gen_max, "", NVML, "PCIe generation possible in this slot")                     \
	X(pcie_gen_device, "", NVML, "PCIe generation that the GPU supports") \
	X(pcie_width, "", NVML, "PCIe lanes now")                                      \
	X(pcie_width_max, "", NVML, "PCIe lanes possible")                             \
	X(pcie_replays, "", NVML, "PCIe replay counter")                               \
	X(numa_node, "", HOST, "NUMA node, -1 none")                                   \
	X(mig_mode, "", NVML, "MIG on (1)")                                            \
	X(persistence, "", NVML, "persistence mode on (1)")                            \
	X(compute_mode, "", NVML, "0 default, 2 prohibited, 3 exclusive process")      \
	X(nvlink_count, "", NVML, "NVLinks the GPU supports")                       \
	X(nvlink_active, "", NVML, "NVLinks that are up")                              \
	X(nvlink_rate_gbps, "GB/s", NVML, "raw rate of one link, one way")             \
	X(nvlink_errors, "", NVML, "NVLink CRC, replay and recovery errors, summed")   \
	X(fabric_state, "", NVML, "0 not supported, 1 not started, 2 in progress, 3 completed") \
	X(fabric_status, "", NVML, "status of the fabric registration, 0 is success")             \
	X(recovery_action, "", NVML, "0 none, 1 reset, 2 reboot, 3 drain p2p, 4 drain and reset") \
	X(clock_reasons, "", NVML, "clock event reasons now, bits")                    \
	X(processes, "", NVML, "processes of others on the GPU")               \
	X(processes_graphics, "", NVML, "graphics processes among them")               \
	X(virtualization, "", NVML, "0 none, 1 pass-through, 2 vGPU, 3 host vGPU, 4 host vSGA") \
	X(copy_engines, "", CUDA, "asynchronous copy engines")                         \
	X(cuda_profiling_restricted, "", HOST, "counters need administrator rights (1)")
/* clang-format on */

#define X(name, unit, layer, help) GPU_FACT_##name,
enum gpu_fact { GPU_FACTS(X) GPU_FACT_COUNT };
#undef X

struct gpu {
	char name[96], uuid[64], serial[32], vbios[32];
	char pci[16];  /* "0000:1b:00.0", lower case; identifies the GPU in support tickets */
	char slot[32]; /* physical slot; "": unknown */
	unsigned pci_device, pci_subsystem; /* device << 16 | vendor; 0: unknown */
	int cuda_index, nvml_index;	    /* -1: not listed there */
	double fact[GPU_FACT_COUNT];
	uint64_t present;   /* one bit per fact; an absent fact is not zero */
	bool granted;	    /* allowed by CUDA_VISIBLE_DEVICES and the device nodes */
	enum status status; /* LOST: on the PCI bus and listed, but does not answer. UNAVAILABLE: no driver */
	enum cause cause;   /* why status is not OK */
	char reason[160];
};
_Static_assert(GPU_FACT_COUNT <= 64, "gpu.present holds 64 facts");

/* CPU features that our kernels and libraries distinguish. */
/* clang-format off */
#define CPU_ISA(X) X(sse2) X(avx2) X(fma) X(avx512f) X(avx512_bf16) X(avx512_vnni) X(avx_vnni) X(amx_bf16) X(amx_int8) X(neon) X(sve)
/* clang-format on */
#define X(name) CPU_ISA_##name,
enum cpu_isa { CPU_ISA(X) CPU_ISA_COUNT };
#undef X

struct numa {
	int node;	   /* the operating system's number */
	unsigned cpus;	   /* logical CPUs of the node that we may use */
	unsigned l3_count; /* last-level caches that its CPUs share; 0: unknown */
	uint64_t memory_bytes;
};

struct cpu {
	char model[128], vendor[32];
	unsigned sockets, cores, threads;	   /* online; cores 0: unknown */
	unsigned usable;			   /* logical CPUs in our affinity mask */
	double quota;				   /* CPU quota of cgroup v1 or v2, in CPUs; 0: none */
	uint64_t l1d_bytes, l2_bytes, l3_bytes;	   /* size of one instance; 0: unknown */
	unsigned l3_count;			   /* instances; 0: unknown */
	uint64_t memory_bytes, memory_limit_bytes; /* MemTotal; limit of the cgroup, 0: none */
	/* MemAvailable, or what is left below a cgroup's limit; 0: unknown */
	uint64_t memory_available_bytes;
	uint64_t page_bytes;
	uint32_t isa; /* one bit per CPU_ISA_* */
	bool virtual_machine;
	struct numa numa[64];
	unsigned numa_count;
};

struct lib_found { /* one library of the SOFTWARE layer */
	char name[24], path[256], version[32], missing[256];
	enum status status;
	enum cause cause;
};

struct machine; /* immutable */

/* Logs each GPU that the kernel has suspended, for a command whose next calls of NVML or CUDA wake it. */
void machine_tell_suspended(const struct log *log);
/* Reads the live machine (recording NULL) or a recording. Release with machine_free. If a layer cannot be
 * read, its facts are absent and have a reason; this is not an error. */
enum status machine_read(struct machine **m, enum layer up_to, const char *recording, const struct log *log,
			 struct error *err);
/* The part of a live machine to read. Opening every library takes a second, which a single probe does not
 * need. */
struct machine_scope {
	enum layer up_to;
	const char *out; /* folder for results, which need not exist; NULL: the working folder */
	/* if it becomes non-zero, reading ends soon with CANCELLED; NULL: never */
	const volatile sig_atomic_t *stop;
	const char *const *libs; /* names of the libraries to open for the SOFTWARE layer, ended by NULL,
				    whatever up_to is; NULL: as up_to says */
};
/* As machine_read. From a recording, all its libraries are read. */
enum status machine_read_scope(struct machine **m, const struct machine_scope *scope, const char *recording,
			       const struct log *log, struct error *err);
/* Writes the raw readings of this machine to a new folder, with pseudonyms unless `real_names`. If `m` is not
 * NULL, *m becomes the machine of these readings, with real names. Release with machine_free. */
enum status machine_record(struct machine **m, const char *dir, bool real_names,
			   const volatile sig_atomic_t *stop, const struct log *log, struct error *err);
/* Builds the machine from the journal's `machine` event. The JSON is copied. */
enum status machine_from_json(struct machine **m, const json_t *facts, struct error *err);
void machine_free(struct machine *m);

/* The facts with pseudonyms for serials, UUIDs, addresses, host and user names and command lines. Journals
 * contain these facts unless real names were requested. Pseudonyms are equal in all runs of one machine. The
 * caller decrefs it. NULL: out of memory. */
json_t *machine_json_shared(const struct machine *m);

/* All results are lent, and valid as long as `m`. */
const json_t *machine_json(const struct machine *m);
/* Row `index` of its "gpus"; NULL: none. */
const json_t *machine_gpu_json(const struct machine *m, unsigned index);
bool machine_is_live(const struct machine *m);
const char *
machine_label(const struct machine *m); /* "" if live; else the recording's label: "derived: ..." */
const struct cpu *machine_cpu(const struct machine *m);
const struct gpu *machine_gpu(const struct machine *m, unsigned index); /* in PCI order; NULL past the last */
unsigned machine_gpu_count(const struct machine *m); /* GPUs on the PCI bus or listed by NVML */
const struct lib_found *machine_lib(const struct machine *m,
				    const char *name); /* NULL: the layer was not read */
bool gpu_has(const struct gpu *g, enum gpu_fact fact);
/* The value of the fact, or `fallback` if it is absent. */
double gpu_get(const struct gpu *g, enum gpu_fact fact, double fallback);
const char *gpu_fact_name(enum gpu_fact fact);
const char *gpu_fact_unit(enum gpu_fact fact);
#endif
