/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring file: the injected library writes it, and assay reads it. This header includes nothing else of
 * assay, because it is compiled into a foreign process. Byte order is native (x86-64 and arm64 are both
 * little-endian). The size of each record is a multiple of 8 bytes.
 *
 *   header | segment table | segments of RING_SEGMENT bytes each
 *
 * A segment is free, or holds long-lived records (strings, devices, clock pairs), or holds events. At the
 * limit of the file's size, the segment with the oldest events is overwritten, and its events are counted as
 * overwritten. `used` of a segment grows only after a record is complete. So the file can be read however the
 * process ends.
 */
#ifndef PROFILE_INJECT_RING_H
#define PROFILE_INJECT_RING_H
#include <stdint.h>

#define RING_MAGIC "assayRNG"
enum {
	RING_VERSION = 1,
	RING_SEGMENT = 1 << 20,
	RING_SEGMENTS_MAX = 1 << 14, /* 16 GiB */
	RING_SEGMENTS_MIN = 4,
	RING_COMMAND = 2048,
	RING_NOTE = 256,
	RING_STRING_MAX = 4096, /* longer names are cut */
	RING_STRINGS = 98304,	/* names of a process */
	RING_PAYLOAD_MAX = 64,	/* bytes of an NVTX payload */
	RING_SCHEMA_FIELDS = 16,
};

/* State of the recording. OPEN: the process did not reach exit(). */
enum ring_state { RING_OPEN, RING_CLOSED };

/* Why no more events were saved before the process ended. */
enum ring_stop { RING_STOP_NONE, RING_STOP_DISK_FULL, RING_STOP_FILE_LIMIT, RING_STOP_OTHER };

struct ring_header {
	char magic[8];
	uint32_t version, header_size; /* header_size: size of this struct. The segment table follows, then,
					  page-aligned, segment 0 */
	uint32_t segment_size, segments_max;
	uint64_t segments_at;
	uint32_t pid, parent;
	uint64_t started_ns; /* CLOCK_MONOTONIC at the creation of the file */
	uint64_t ended_ns;   /* CLOCK_MONOTONIC at its closing; 0: not closed */
	uint32_t state, stop;
	uint32_t cupti_version; /* 0: no CUPTI */
	uint32_t driver_version;
	int32_t rank, local_rank, world; /* from the launcher's environment; -1: none */
	uint32_t segments;		 /* segments in use so far, including free ones */
	uint64_t records;		 /* events and long-lived records written */
	uint64_t overwritten;		 /* events overwritten by later ones */
	uint64_t dropped;	    /* events dropped because the disk was full or the lock was not free */
	uint64_t dropped_cupti;	    /* activity records that CUPTI dropped */
	uint64_t strings_lost;	    /* names that could not be stored */
	uint64_t convert_ns;	    /* time spent on converting buffers, mostly in CUPTI's thread */
	uint64_t converted;	    /* activity records converted in that time */
	char command[RING_COMMAND]; /* words as in /proc, separated by NUL */
	uint32_t command_size, reserved;
	char note[RING_NOTE]; /* one sentence that says why there are no activity records; "" if there are */
	char library[RING_NOTE]; /* path of the CUPTI in use */
};

enum ring_segment_kind { RING_FREE, RING_KEPT, RING_EVENTS };
struct ring_segment {
	uint32_t kind, records;
	uint64_t sequence; /* order of the segments; the first is 1 */
	uint64_t used;	   /* bytes */
};

/* Long-lived records: names, devices, contexts, clocks, schemas, communicators. All other types are events.
 */
/* clang-format off */
#define RING_TYPES(X)                            \
	X(STRING, ring_string)                   \
	X(CLOCK, ring_clock)                     \
	X(DEVICE, ring_device)                   \
	X(CONTEXT, ring_context)                 \
	X(SCHEMA, ring_schema)                   \
	X(THREAD, ring_thread)                   \
	X(KERNEL, ring_kernel)                   \
	X(COPY, ring_copy)                       \
	X(SET, ring_set)                         \
	X(API, ring_api)                         \
	X(SYNC, ring_sync)                       \
	X(GRAPH, ring_graph)                     \
	X(OVERHEAD, ring_overhead)               \
	X(RANGE, ring_range)                     \
	X(COMM, ring_comm)                       \
	X(COUNTED, ring_counted)
/* clang-format on */
#define X(name, type) RING_##name,
enum ring_type { RING_NONE, RING_TYPES(X) RING_TYPE_COUNT };
#undef X

struct ring_record {
	uint16_t type, size; /* size: bytes, including this header */
	uint32_t name;	     /* id of a string; 0: none */
};

/* Times of activity records are on CUPTI's clock. CLOCK records relate it to CLOCK_MONOTONIC. */
struct ring_string {
	struct ring_record head; /* name: its own id */
	char text[];		 /* ends in NUL, padded */
};
struct ring_clock {
	struct ring_record head;
	uint64_t before_ns, cupti_ns, after_ns; /* CLOCK_MONOTONIC, CUPTI's clock, CLOCK_MONOTONIC */
};
struct ring_device {
	struct ring_record head;
	uint8_t uuid[16];
	uint64_t memory_bytes, bandwidth_bytes; /* bandwidth_bytes: B/s */
	uint32_t id, sms, clock_khz, major, minor, l2_bytes;
	uint32_t warps_per_sm, registers_per_sm, shared_per_sm, shared_per_block;
	uint32_t threads_per_block, blocks_per_sm, registers_per_block, warp;
};
struct ring_context {
	struct ring_record head;
	uint32_t id, device, null_stream, reserved;
};
struct ring_field { /* a field of an NVTX payload */
	uint32_t type, offset, name, reserved;
};
struct ring_schema {
	struct ring_record head;
	uint64_t id;
	/* domain: id of a string, as in ring_range. `fields` structs ring_field follow */
	uint32_t fields, domain;
};
struct ring_thread {
	struct ring_record head; /* name: set with NVTX */
	uint32_t thread, reserved;
};
struct ring_kernel {
	struct ring_record head;
	uint64_t start, end;
	uint32_t device, context, stream, correlation;
	uint64_t graph_node;
	uint32_t graph, local_bytes; /* local_bytes: per thread */
	uint32_t grid[3], block[3];
	uint16_t registers, cluster[3];
	uint32_t shared_static, shared_dynamic;
};
struct ring_copy {
	struct ring_record head;
	uint64_t start, end, bytes;
	uint32_t device, context, stream, correlation;
	uint64_t graph_node;
	uint32_t graph, to_device;     /* to_device: differs from `device` for copies between devices only */
	uint8_t kind, from, to, flags; /* kind: CUpti_ActivityMemcpyKind; from, to: CUpti_ActivityMemoryKind;
					  flags: 1 asynchronous */
	uint32_t from_device;
};
struct ring_set {
	struct ring_record head;
	uint64_t start, end, bytes;
	uint32_t device, context, stream, correlation;
	uint64_t graph_node;
	uint32_t graph, value;
};
struct ring_api {
	struct ring_record head; /* name: of the function */
	uint64_t start, end;
	uint32_t thread, correlation, result;
	uint16_t domain, cbid; /* domain: 1 driver, 2 runtime */
};
struct ring_sync {
	struct ring_record head;
	uint64_t start, end;
	uint32_t type, context, stream, event, correlation, reserved;
};
struct ring_graph {
	struct ring_record head;
	uint64_t start, end;
	uint32_t device, context, stream, correlation, graph, reserved;
};
struct ring_overhead {
	struct ring_record head;
	uint64_t start, end;
	uint32_t kind, thread;
};
/* NVTX events, on CLOCK_MONOTONIC. A push ends at the pop of the same thread and domain, a start at the end
 * with the same id. */
enum ring_range_kind { RING_PUSH, RING_POP, RING_START, RING_END, RING_MARK };
struct ring_range {
	struct ring_record head;
	uint64_t at_ns, id;	 /* id: for start and end */
	uint32_t thread, domain; /* domain: id of a string; 0: the default domain */
	uint32_t category, color;
	uint8_t kind, payload_kind; /* payload_kind: nvtxPayloadType_t or RING_PAYLOAD_SCHEMA */
	uint16_t payload_size;
	uint32_t reserved; /* the payload follows; if it has a schema, the id of the schema comes first */
};
enum { RING_PAYLOAD_SCHEMA = 9 };
/* What NCCL reports at the end of a range about a communicator that it created. Long-lived, because the
 * communicator is used long afterwards. */
struct ring_comm {
	struct ring_record head;
	uint64_t schema;
	uint32_t domain, size; /* size: of the payload, which follows */
};
/* Hardware counters of one run of a kernel. Order and units are those of counter/metrics.h. */
enum { RING_COUNTERS = 16 };
struct ring_counted {
	struct ring_record head;		     /* name: of the kernel */
	uint64_t at_ns;				     /* CLOCK_MONOTONIC at the end of the kernel */
	uint32_t device, correlation, has, reserved; /* has: one bit per counter */
	double value[RING_COUNTERS];
};
static inline int ring_is_lasting(unsigned type)
{
	return type < RING_KERNEL || type == RING_COMM;
}

_Static_assert(sizeof(struct ring_header) % 8 == 0 && sizeof(struct ring_segment) % 8 == 0,
	       "the table is aligned");
_Static_assert(sizeof(struct ring_kernel) == 96 && sizeof(struct ring_api) == 40,
	       "no padding in frequent records");
_Static_assert(sizeof(struct ring_copy) == 72 && sizeof(struct ring_set) == 64,
	       "no padding in frequent records");

static inline uint64_t ring_table_at(void)
{
	return sizeof(struct ring_header);
}
static inline uint64_t ring_segments_at(uint32_t segments_max)
{
	return (sizeof(struct ring_header) + segments_max * sizeof(struct ring_segment) + 4095) & ~4095ull;
}
#endif
