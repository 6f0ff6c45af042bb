/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is here. Raw readings come in layers of rising price; helpers (`assay __facts LAYER`) read the vendor
 * layers within a limit, so the supervisor has never called a vendor library. A recording is a folder of the
 * same raw readings; one parser turns either into the facts tree (JSON, docs/explanation/design/machine.md),
 * from which struct machine is built. The journal carries that JSON, so judge and report need nothing else.
 */
#ifndef MACHINE_MACHINE_H
#define MACHINE_MACHINE_H
#include <jansson.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "core/log.h"

/* HOST: /proc, /sys, PCI, kernel log. NVML: + NVML. CUDA: + driver attributes (200-310 ms). SOFTWARE: + every
 * library's path and version (dlopen of each in a helper). */
enum layer { LAYER_HOST, LAYER_NVML, LAYER_CUDA, LAYER_SOFTWARE };

/* name, unit, cheapest layer that tells, help */
/* clang-format off */
#define GPU_FACTS(X)                                                                   \
	X(sm_count, "", CUDA, "multiprocessors")                                       \
	X(cc, "", NVML, "compute capability, 10 * major + minor")                      \
	X(memory_bytes, "B", NVML, "device memory, total")                             \
	X(memory_free_bytes, "B", NVML, "device memory, free before we began")         \
	X(bus_bits, "bit", NVML, "memory bus width")                                   \
	X(l2_bytes, "B", CUDA, "L2 cache")                                             \
	X(smem_optin_bytes, "B", CUDA, "shared memory a block may ask for")            \
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
	X(remap_pending, "", NVML, "a remap waits for a reset (1)")                    \
	X(remap_failed, "", NVML, "a remap failed (1)")                                \
	X(remap_banks_none, "", NVML, "banks with no spare row left")                  \
	X(retired_pages, "", NVML, "retired pages (before Ampere)")                    \
	X(pcie_gen, "", NVML, "PCIe generation now (idle GPUs drop to 1)")             \
	X(pcie_gen_max, "", NVML, "PCIe generation possible here")                     \
	X(pcie_gen_device, "", NVML, "PCIe generation that the GPU can in a slot that can") \
	X(pcie_width, "", NVML, "PCIe lanes now")                                      \
	X(pcie_width_max, "", NVML, "PCIe lanes possible")                             \
	X(pcie_replays, "", NVML, "PCIe replay counter")                               \
	X(numa_node, "", HOST, "NUMA node, -1 none")                                   \
	X(mig_mode, "", NVML, "MIG on (1)")                                            \
	X(persistence, "", NVML, "persistence mode on (1)")                            \
	X(compute_mode, "", NVML, "0 default, 2 prohibited, 3 exclusive process")      \
	X(nvlink_count, "", NVML, "NVLinks that could be there")                       \
	X(nvlink_active, "", NVML, "NVLinks that are up")                              \
	X(nvlink_rate_gbps, "GB/s", NVML, "raw rate of one link, one way")             \
	X(nvlink_errors, "", NVML, "NVLink CRC, replay and recovery errors, summed")   \
	X(fabric_state, "", NVML, "0 not supported, 1 not started, 2 in progress, 3 completed") \
	X(fabric_status, "", NVML, "fabric registration's status, 0 well")             \
	X(recovery_action, "", NVML, "0 none, 1 reset, 2 reboot, 3 drain p2p, 4 drain and reset") \
	X(clock_reasons, "", NVML, "clock event reasons now, bits")                    \
	X(processes, "", NVML, "processes on the GPU that are not ours")               \
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
	char pci[16];			    /* "0000:1b:00.0", lower case: the part's name in tickets */
	char slot[32];			    /* physical slot; "": unreadable */
	unsigned pci_device, pci_subsystem; /* (device << 16 | vendor); 0: unreadable */
	int cuda_index, nvml_index;	    /* -1: not listed there */
	double fact[GPU_FACT_COUNT];
	uint64_t present;   /* bit a fact; absent is not zero */
	bool granted;	    /* CUDA_VISIBLE_DEVICES, cgroup */
	enum status status; /* LOST: on the bus, listed, silent. UNAVAILABLE: no driver */
	enum cause cause;   /* why status is not OK */
	char reason[160];
};
_Static_assert(GPU_FACT_COUNT <= 64, "gpu.present holds 64 facts");

/* ISA bits that our kernels and libraries distinguish. */
/* clang-format off */
#define CPU_ISA(X) X(sse2) X(avx2) X(fma) X(avx512f) X(avx512_bf16) X(avx512_vnni) X(avx_vnni) X(amx_bf16) X(amx_int8) X(neon) X(sve)
/* clang-format on */
#define X(name) CPU_ISA_##name,
enum cpu_isa { CPU_ISA(X) CPU_ISA_COUNT };
#undef X

struct numa {
	int node;	   /* OS index */
	unsigned cpus;	   /* logical CPUs of it that we may use */
	unsigned l3_count; /* last caches that its CPUs share; 0: not told */
	uint64_t memory_bytes;
};

struct cpu {
	char model[128], vendor[32];
	unsigned sockets, cores, threads;	   /* online; cores 0: hidden */
	unsigned usable;			   /* logical CPUs in our affinity mask */
	double quota;				   /* cgroup v1 or v2 CPU quota in CPUs; 0: none */
	uint64_t l1d_bytes, l2_bytes, l3_bytes;	   /* one instance each; 0: hidden */
	unsigned l3_count;			   /* instances; 0: not told */
	uint64_t memory_bytes, memory_limit_bytes; /* MemTotal; cgroup limit or 0 */
	uint64_t memory_available_bytes; /* MemAvailable, or what is left below a cgroup's limit; 0: not told
					  */
	uint64_t page_bytes;
	uint32_t isa; /* bit a CPU_ISA_* */
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

/* Reads live (recording NULL) or from a recording. Owner: caller, machine_free. A layer that cannot be read
 * leaves its facts absent with a reason; that is not an error here. */
enum status machine_read(struct machine **m, enum layer up_to, const char *recording, const struct log *log,
			 struct error *err);
/* How much of a live machine is wanted: opening every library takes a second that one probe need not wait
 * for. */
struct machine_scope {
	enum layer up_to;
	const char *out; /* where results go, an existing folder or not; NULL: the working folder */
	const volatile sig_atomic_t *stop; /* not 0: CANCELLED soon after; NULL: never */
	const char *const *libs; /* of the SOFTWARE layer these alone, NULL ends, whatever up_to says; NULL:
				    as up_to says */
};
/* As machine_read; a recording has the libraries that it has. */
enum status machine_read_scope(struct machine **m, const struct machine_scope *scope, const char *recording,
			       const struct log *log, struct error *err);
/* Writes the raw readings of this machine to a new folder; pseudonyms unless `real_names`. *m, unless NULL,
 * is the machine of these very readings, under its real names. Owner: caller, machine_free. */
enum status machine_record(struct machine **m, const char *dir, bool real_names,
			   const volatile sig_atomic_t *stop, const struct log *log, struct error *err);
/* From the journal's `machine` event; the JSON is copied. */
enum status machine_from_json(struct machine **m, const json_t *facts, struct error *err);
void machine_free(struct machine *m);

/* The facts with pseudonyms in the place of serials, UUIDs, addresses, host and user names and command lines:
 * what a journal carries unless real names were asked for. The same on every run of one machine. Owner:
 * caller; NULL: out of memory. */
json_t *machine_json_shared(const struct machine *m);

/* All lent, valid as long as m. */
const json_t *machine_json(const struct machine *m);
bool machine_is_live(const struct machine *m);
const char *machine_label(const struct machine *m); /* "" live; else the recording's label: "derived: ..." */
const struct cpu *machine_cpu(const struct machine *m);
const struct gpu *machine_gpu(const struct machine *m, unsigned index); /* PCI order; NULL past the last */
unsigned machine_gpu_count(const struct machine *m);			/* on the PCI bus or listed by NVML */
const struct lib_found *machine_lib(const struct machine *m, const char *name); /* NULL: layer not read */
bool gpu_has(const struct gpu *g, enum gpu_fact fact);
/* Fact or `fallback` where absent. */
double gpu_get(const struct gpu *g, enum gpu_fact fact, double fallback);
const char *gpu_fact_name(enum gpu_fact fact);
const char *gpu_fact_unit(enum gpu_fact fact);
#endif
