/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline: what all processes of a profiled program did, on one time axis. It is read from the ring
 * files (inject/ring.h): clocks are mapped to this node's CLOCK_MONOTONIC, ranges are joined, and events are
 * sorted. Summaries, traces and analyses depend on the timeline only. Design:
 * docs/explanation/design/profile.md. */
#ifndef PROFILE_TIMELINE_TIMELINE_H
#define PROFILE_TIMELINE_TIMELINE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/error.h"

/* id, name, Kineto's category in a trace, whether the event is on a device */
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
enum { TIMELINE_NONE = UINT32_MAX };  /* no track, event or detail */
enum { TIMELINE_DEVICES_MAX = 1024 }; /* more than any machine has; limits what a malformed file can claim */

struct timeline_event {
	uint64_t start_ns, end_ns; /* CLOCK_MONOTONIC; start <= end */
	uint16_t kind, process;	   /* enum timeline_kind; index into `process` */
	uint32_t name;		   /* index into `name`; 0 is "" */
	uint32_t track;		   /* index into `track` */
	/* links a call to the work that it put on a device, within a process; 0: none */
	uint32_t correlation;
	uint32_t detail; /* KERNEL: index into `kernel`. COPY, SET: into `copy`. RANGE, MARK: into `range`.
			    RUNTIME, DRIVER: the return code. GRAPH: id of the graph. SYNC, OVERHEAD: CUPTI's
			    type */
};

struct timeline_kernel {
	uint32_t grid[3], block[3];
	uint32_t shared_static, shared_dynamic, local_bytes;
	uint32_t graph; /* 0: not launched by a graph */
	uint64_t graph_node;
	uint16_t registers, cluster[3]; /* cluster: 0 if there is none or it is unknown */
};

/* CUPTI's numbers for the kinds of copies and of memory. */
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
	uint32_t from_device, to_device; /* numbered as `id` of timeline_device; they differ for copies
					    between devices only */
	uint32_t graph;
	uint8_t kind, from, to; /* CUPTI's numbers. kind: enum timeline_copy_kind, 10 between devices ..;
				   from, to: enum timeline_memory, 2 pinned, 3 device, 5 managed */
	bool asynchronous;
};

/* A number in the payload of a range. NCCL writes "Message size [bytes]", "comm hash" and others. */
struct timeline_value {
	uint32_t name; /* index into `name`; 0: NVTX's plain payload */
	bool is_float;
	union {
		uint64_t u64;
		double f64;
	};
};

struct timeline_range {
	uint32_t domain; /* index into `name`; 0: NVTX's default domain. NCCL's is "NCCL" */
	uint32_t category, color;
	uint32_t value_first, values; /* range in `value` */
	bool cut;		      /* the range was still open when the recording ended */
};

/* A sequence of events: a stream of a device, or a thread of the host. */
struct timeline_track {
	uint16_t process;
	bool device;			     /* a stream; false: a thread */
	uint32_t device_id, context, stream; /* device_id: as CUDA in that process counts */
	uint32_t thread;		     /* the kernel's thread id */
	uint32_t name;			     /* name of a thread set with NVTX; 0: none */
	uint32_t first, count;		     /* range in `by_track`, sorted by start */
};

struct timeline_device {
	uint16_t process;
	uint32_t id;   /* as CUDA in that process counts */
	uint32_t name; /* index into `name` */
	uint8_t uuid[16];
	uint64_t memory_bytes, bandwidth_bytes; /* bandwidth_bytes: B/s at the rated clock */
	uint32_t sms, clock_khz, major, minor, l2_bytes, warps_per_sm, registers_per_sm, shared_per_sm,
		shared_per_block, threads_per_block, blocks_per_sm, registers_per_block, warp;
};

/* Hardware counters of one run of a kernel. Order and units are those of counter/metrics.h. */
struct timeline_counted {
	uint64_t at_ns; /* CLOCK_MONOTONIC at the end of the kernel */
	uint16_t process;
	uint32_t device, name, has; /* has: one bit per counter */
	double value[TIMELINE_COUNTERS];
};

/* An NCCL communicator, as one of its ranks reported it. */
struct timeline_comm {
	uint16_t process;
	bool split; /* `ranks` is that of its parent: the number of ranks that split off was not reported */
	uint64_t id, parent; /* id: hash, equal on all ranks; parent 0: none */
	uint32_t ranks;	     /* 0: unknown */
	uint32_t rank;	     /* TIMELINE_NONE: unknown, or all ranks are in this process */
};

struct timeline_process {
	uint32_t pid, parent;
	int rank, local_rank, world; /* -1: none */
	char *command;		     /* words, separated by blanks */
	char *file;		     /* name of the ring file */
	char *note;		     /* why there are no activity records; NULL: there are */
	char *library;		     /* path of its CUPTI; NULL: none */
	uint32_t cupti_version, driver_version;
	uint64_t started_ns, ended_ns;
	bool closed; /* the process reached exit(), so no events are missing at the end */
	uint64_t events;
	uint64_t overwritten;	/* old events that were overwritten by later ones */
	uint64_t dropped;	/* events dropped because the disk was full or the lock was not free */
	uint64_t dropped_cupti; /* events dropped because CUPTI had no buffer in time */
	uint64_t names_lost;
	uint64_t cut_bytes; /* bytes of the file that could not be decoded */
	uint64_t left_out;  /* events beyond the limit of events */
	uint64_t odd;  /* invalid events that were skipped: an end before the start, an unknown type .. */
	uint32_t stop; /* enum ring_stop */
	uint32_t clock_pairs;		    /* number of readings that map its clock */
	double clock_error_ns, clock_drift; /* half the width of the tightest pair; s/s over the recording */
	uint64_t converted;		    /* activity records converted to ring records */
	double convert_ns;		    /* mean time of one conversion; 0: unknown */
};

struct timeline {
	struct timeline_process *process;
	struct timeline_device *device;
	struct timeline_track *track;
	struct timeline_event *event; /* sorted by start; of equal starts the longer one first */
	uint32_t *by_track;	      /* indices of events, grouped by track */
	struct timeline_kernel *kernel;
	struct timeline_copy *copy;
	struct timeline_range *range;
	struct timeline_value *value;
	struct timeline_comm *comm;
	struct timeline_counted *counted; /* in the order of the runs, grouped by process */
	char **name;			  /* demangled if possible; [0] is "" */
	size_t processes, devices, tracks, events, kernels, copies, ranges, values, comms, counteds, names;
	uint64_t start_ns, end_ns; /* first start and last end; 0 without events */
	uint32_t *call; /* indices of call events, sorted by process and correlation (timeline_call) */
	size_t calls;
};

/* Reads every *.ring file of the folder `dir`. A damaged file is described by the counts of its process; a
 * file that is not a ring file is left out, with a line in *note. A folder without files gives OK and no
 * process. At most events_max events are read (0: 50 million; about 130 bytes each). Later events are left
 * out and counted. Release with timeline_release. NO_RESOURCE: out of memory. */
struct text;
enum status timeline_read(struct timeline *t, const char *dir, size_t events_max, struct text *note,
			  struct error *err);
void timeline_release(struct timeline *t); /* leaves *t empty */

const char *timeline_name(const struct timeline *t, uint32_t name); /* never NULL */
/* The runtime or driver call that put this work on the device; NULL: it was not recorded. */
const struct timeline_event *timeline_call(const struct timeline *t, const struct timeline_event *e);
/* The device of that process; NULL: unknown. */
const struct timeline_device *timeline_device_of(const struct timeline *t, uint16_t process, uint32_t id);
#endif
