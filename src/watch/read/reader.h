/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of `assay __watch`: one for each source, and the node's, which joins their lines. */
#ifndef WATCH_READ_READER_H
#define WATCH_READ_READER_H
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/error.h"
#include "core/input/opt.h"

/* name, seconds without an answer after which it is ended, help */
/* clang-format off */
#define WATCH_SOURCES(X) \
	X(gpu, 20, "GPUs, by NVML") /* the first one */ \
	X(host, 10, "processors, memory, network interfaces, disks") \
	X(ports, 20, "InfiniBand and RoCE ports") \
	X(runs, 20, "live runs and the last check")
/* clang-format on */
#define X(name, ...) WATCH_SOURCE_##name,
enum watch_source_id { WATCH_SOURCES(X) WATCH_SOURCE_COUNT };
#undef X

struct reader_spec {
	double interval, slow;		      /* seconds */
	const char *sys, *proc, *kmsg, *runs; /* runs NULL: assay-runs in the working folder */
	const char *skip;		      /* PCI addresses of GPUs that are not touched */
	double limit;			      /* seconds without an answer; 0: each source's own */
	bool lifeline;
	bool gpus_only; /* no other source than that of GPUs */
	const volatile sig_atomic_t *stop;
};

/* The name of the process that calls NVML, by which another one finds it when it is stuck. */
#define READER_GPU_NAME "assay-watch-gpu"

/* These return an exit code when the reader of their output is gone, or *stop is set. */
int reader_node(const struct reader_spec *spec);
int reader_gpu(const struct reader_spec *spec);
int reader_host(const struct reader_spec *spec);
int reader_ports(const struct reader_spec *spec);
int reader_runs(const struct reader_spec *spec);
/* Answers "PID" lines on stdin with labels of these processes, "jobs" with the jobs of all GPUs, and "pods"
 * with their pods, one JSON object a line. */
int reader_names(const struct reader_spec *spec);
/* The folder in which a prolog writes the jobs of GPU 0 into the file "0", as for dcgm-exporter; NULL: none
 * is given (DCGM_HPC_JOB_MAPPING_DIR). */
const char *reader_job_files(void);

/* The rounds of a source: one each interval, and every slow seconds one with the SLOW rows. */
struct reader_rounds {
	uint64_t next_ns, slow_ns;
	bool slow;
};
/* Waits for the next round. False: the output is closed, or *stop is set. */
bool reader_wait(struct reader_rounds *r, const struct reader_spec *spec);

/* PCI addresses of the machine's NVIDIA GPUs, sorted: those that the driver grants here, if it lists them,
 * else those on the bus. */
enum { READER_GPUS_MAX = 64 };
struct reader_pci {
	char address[READER_GPUS_MAX][16];
	unsigned count;
	bool granted; /* the driver lists them here */
};
void reader_pci_list(struct reader_pci *p, const char *sys, const char *proc);

/* Declares the entity of this process (scope READER); and sets its CPU time. */
struct watch_out;
uint32_t reader_declare(struct watch_out *o, const char *source);
void reader_cpu(struct watch_out *o, uint32_t e);
/* Reads the first bytes of a small file. False: none. */
bool reader_text(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* The same of a file that stays open in *fd, which is -1 at first. Opening costs more than reading. */
bool reader_text_open(int *fd, char *out, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));
#endif
