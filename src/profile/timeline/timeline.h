/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a profiled program did, all its processes on one axis: the ring files (inject/ring.h) read, their
 * clocks mapped to this node's CLOCK_MONOTONIC, ranges joined, everything sorted. Summaries, traces and
 * analyses are functions of this alone. Design: docs/explanation/design/profile.md.
 */
#ifndef PROFILE_TIMELINE_TIMELINE_H
#define PROFILE_TIMELINE_TIMELINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* name, text, category in a trace as Kineto calls it, on a device */
/* clang-format off */
#define TIMELINE_KINDS(X)                                  \
	X(KERNEL, "kernel", "kernel", true)                \
	X(COPY, "copy", "gpu_memcpy", true)                \
	X(SET, "set", "gpu_memset", true)                  \
	X(GRAPH, "graph", "gpu_graph", true)               \
	X(RUNTIME, "runtime", "cuda_runtime", false)       \
	X(DRIVER, "driver", "cuda_driver", false)          \
	X(SYNC, "sync", "cuda_sync", false)                \
	X(RANGE, "range", "user_annotation", false)        \
	X(MARK, "mark", "user_annotation", false)          \
	X(OVERHEAD, "overhead", "overhead", false)
/* clang-format on */
#define X(name, ...) TIMELINE_##name,
enum timeline_kind { TIMELINE_KINDS(X) TIMELINE_KIND_COUNT };
#undef X
const char *timeline_kind_name(enum timeline_kind kind);
const char *timeline_kind_category(enum timeline_kind kind);
bool timeline_on_device(enum timeline_kind kind);

enum { TIMELINE_COUNTERS = 16 };
enum { TIMELINE_NONE = UINT32_MAX };  /* no track, no event, no detail */
enum { TIMELINE_DEVICES_MAX = 1024 }; /* no machine has more; a file may say anything */

struct timeline_event {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; start <= end */
	uint16_t kind, process;	   /* enum timeline_kind; index to `process` */
	uint32_t name;		   /* index to `name`; 0 is "" */
	uint32_t track;		   /* index to `track` */
	uint32_t correlation;	   /* of a call and what it put on a device, within a process; 0: none */
	uint32_t detail; /* KERNEL: index to `kernel`. COPY, SET: to `copy`. RANGE, MARK: to `range`.
			  * RUNTIME, DRIVER: what it returned. GRAPH: the graph's id. SYNC, OVERHEAD: CUPTI's
			  * type of it */
};

struct timeline_kernel {
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic, local_bytes;
	uint32_t graph; /* 0: launched by itself */
	uint64_t graph_node;
	uint16_t registers, cluster[3]; /* cluster: 0 where none, or not told */
};

/* CUPTI's kinds of a copy, and of the memory of its sides. */
enum timeline_copy_kind {
	TIMELINE_HOST_TO_DEVICE = 1,
	TIMELINE_DEVICE_TO_HOST = 2,
	TIMELINE_HOST_TO_ARRAY = 3,
	TIMELINE_ARRAY_TO_HOST = 4,
	TIMELINE_ON_DEVICE = 8
};
enum timeline_memory { TIMELINE_PAGEABLE = 1 };

struct timeline_copy {
	uint64_t bytes, graph_node;
	uint32_t from_device,
		to_device; /* as `id` of timeline_device; equal but for copies between devices */
	uint32_t graph;
	uint8_t kind, from, to; /* CUPTI's: enum timeline_copy_kind, 10 between devices ..;
				 * enum timeline_memory, 2 pinned 3 device 5 managed */
	bool asynchronous;
};

/* A number that came with a range: of NCCL "Message size [bytes]", "comm hash" and their like. */
struct timeline_value {
	uint32_t name; /* index to `name`; 0: NVTX's plain payload */
	bool is_float;
	union {
		uint64_t u64;
		double f64;
	};
};

struct timeline_range {
	uint32_t domain; /* index to `name`; 0: NVTX's default one. NCCL's is "NCCL" */
	uint32_t category, color;
	uint32_t value_first, values; /* in `value` */
	bool cut;		      /* not ended when the recording was: its end is the recording's */
};

/* Where events follow each other: a stream of a device, or a thread of the host. */
struct timeline_track {
	uint16_t process;
	bool device;			     /* else a thread */
	uint32_t device_id, context, stream; /* device: as CUDA of that process counts */
	uint32_t thread;		     /* kernel's id of it */
	uint32_t name;			     /* of a thread, as NVTX was told; 0: none */
	uint32_t first, count;		     /* in `by_track`, sorted by start */
};

struct timeline_device {
	uint16_t process;
	uint32_t id;   /* as CUDA of that process counts */
	uint32_t name; /* index to `name` */
	uint8_t uuid[16];
	uint64_t memory_bytes, bandwidth_bytes; /* a second, at the rated clock */
	uint32_t sms, clock_khz, major, minor, l2_bytes, warps_per_sm, registers_per_sm, shared_per_sm,
		shared_per_block, threads_per_block, blocks_per_sm, registers_per_block, warp;
};

/* Counters of one kernel's run: by their places in counter/metrics.h, in its units. */
struct timeline_counted {
	uint64_t at_ns; /* CLOCK_MONOTONIC, when it was through */
	uint16_t process;
	uint32_t device, name, has; /* has: bit a counter */
	double value[TIMELINE_COUNTERS];
};

/* A communicator of NCCL's, as one of its ranks told when it was made. */
struct timeline_comm {
	uint16_t process;
	bool split;	     /* `ranks` is its parent's: how many split off is not told */
	uint64_t id, parent; /* its hash, the same on all ranks; parent 0: none */
	uint32_t ranks;	     /* 0: not told */
	uint32_t rank;	     /* TIMELINE_NONE: all are this process's, or not told */
};

struct timeline_process {
	uint32_t pid, parent;
	int rank, local_rank, world; /* -1: none */
	char *command;		     /* words, a blank between */
	char *file;		     /* the ring file's name */
	char *note;		     /* why there are no activity records; NULL: there are */
	char *library;		     /* path of its CUPTI; NULL: none */
	uint32_t cupti_version, driver_version;
	uint64_t started_ns, ended_ns;
	bool closed; /* it came to its exit(): nothing is missing at the end */
	uint64_t events;
	uint64_t overwritten;	/* older events that made room for later ones */
	uint64_t dropped;	/* no room on the disk, or its lock was not to be had */
	uint64_t dropped_cupti; /* CUPTI had no buffer in time */
	uint64_t names_lost;
	uint64_t cut_bytes;   /* of the file, that do not read */
	uint64_t left_out;    /* over the limit of events */
	uint64_t odd;	      /* events passed over: an end before its start, unknown types .. */
	uint32_t stop;	      /* enum ring_stop */
	uint32_t clock_pairs; /* that map its clock */
	double clock_error_ns, clock_drift; /* half the tightest pair's width; s/s over the recording */
	uint64_t converted;		    /* activity records turned into ours */
	double convert_ns;		    /* what that took for one of them, mean; 0: not told */
};

struct timeline {
	struct timeline_process *process;
	struct timeline_device *device;
	struct timeline_track *track;
	struct timeline_event *event; /* sorted by start, then longer first */
	uint32_t *by_track;	      /* indices to `event`, a track's together */
	struct timeline_kernel *kernel;
	struct timeline_copy *copy;
	struct timeline_range *range;
	struct timeline_value *value;
	struct timeline_comm *comm;
	struct timeline_counted *counted; /* in the order of their runs, a process's together */
	char **name;			  /* demangled where that can be done; [0] is "" */
	size_t processes, devices, tracks, events, kernels, copies, ranges, values, comms, counteds, names;
	uint64_t start_ns, end_ns; /* first start and last end; 0 without events */
	uint32_t *call; /* indices to `event` of calls, by process and correlation (timeline_call) */
	size_t calls;
};

/*
 * Reads every *.ring file of the folder. A file that is none, or cut, is told by its process's counts, or
 * left out with a line in *note; no file at all is OK and no process. At most events_max events are taken (0:
 * 50 million; about 130 bytes each), the later ones of each file are left out and counted. NO_RESOURCE:
 * memory.
 */
struct text;
enum status timeline_read(struct timeline *t, const char *dir, size_t events_max, struct text *note,
			  struct error *err);
void timeline_release(struct timeline *t); /* empty again */

const char *timeline_name(const struct timeline *t, uint32_t name); /* never NULL */
/* The runtime or driver call that put this on the device; NULL where it was not recorded. */
const struct timeline_event *timeline_call(const struct timeline *t, const struct timeline_event *e);
/* Device of that process; NULL: not told. */
const struct timeline_device *timeline_device_of(const struct timeline *t, uint16_t process, uint32_t id);
#endif
