/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring file: what the injected library writes and the program reads. Stands alone: it is compiled into a
 * foreign process. Native byte order (x86-64 and arm64 alike are little-endian), every record a multiple of
 * 8 bytes.
 *
 *   header | segment table | segments of RING_SEGMENT bytes each
 *
 * A segment is free, or keeps what must outlive the rest (strings, devices, clock pairs), or holds events. At
 * the limit the segment with the oldest events is begun anew, and what it held is counted. `used` of a
 * segment moves after a record is whole: whatever ends the process, what it says reads.
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

/* How the recording ended, as far as the library knew. OPEN: the process did not come to its exit(). */
enum ring_state { RING_OPEN, RING_CLOSED };

/* Why events stopped to be kept before the process ended. */
enum ring_stop { RING_STOP_NONE, RING_STOP_DISK_FULL, RING_STOP_FILE_LIMIT, RING_STOP_OTHER };

struct ring_header {
	char magic[8];
	uint32_t version, header_size; /* of this struct; the table follows, then, page-aligned, segment 0 */
	uint32_t segment_size, segments_max;
	uint64_t segments_at;
	uint32_t pid, parent;
	uint64_t started_ns; /* CLOCK_MONOTONIC, when the file was made */
	uint64_t ended_ns;   /* when it was closed; 0: it was not */
	uint32_t state, stop;
	uint32_t cupti_version; /* 0: no CUPTI */
	uint32_t driver_version;
	int32_t rank, local_rank, world; /* of the launcher's environment; -1: none */
	uint32_t segments;		 /* taken so far, free ones among them */
	uint64_t records;		 /* events and kept records written */
	uint64_t overwritten;		 /* events that made room for later ones */
	uint64_t dropped;		 /* events for which there was no room on the disk, or no lock */
	uint64_t dropped_cupti;		 /* activity records that CUPTI itself dropped */
	uint64_t strings_lost;		 /* names for which there was no room */
	uint64_t convert_ns;		 /* time spent in buffers' conversion, CUPTI's thread's */
	uint64_t converted;		 /* activity records converted in that time */
	char command[RING_COMMAND];	 /* words as /proc has them, NUL between */
	uint32_t command_size, reserved;
	char note[RING_NOTE];	 /* why there are no activity records, one sentence; "" where there are */
	char library[RING_NOTE]; /* path of the CUPTI in use */
};

enum ring_segment_kind { RING_FREE, RING_KEPT, RING_EVENTS };
struct ring_segment {
	uint32_t kind, records;
	uint64_t sequence; /* 1 first; orders the segments */
	uint64_t used;	   /* bytes */
};

/* Kept: names, devices, contexts, clocks, schemas, communicators. Events: the rest. */
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
	uint16_t type, size; /* size: bytes, this header among them */
	uint32_t name;	     /* string's id; 0: none */
};

/* Times of activity records are CUPTI's clock; CLOCK records say how it stands to CLOCK_MONOTONIC. */
struct ring_string {
	struct ring_record head; /* name: its own id */
	char text[];		 /* with its NUL, padded */
};
struct ring_clock {
	struct ring_record head;
	uint64_t before_ns, cupti_ns, after_ns; /* monotonic, CUPTI's, monotonic */
};
struct ring_device {
	struct ring_record head;
	uint8_t uuid[16];
	uint64_t memory_bytes, bandwidth_bytes; /* bandwidth: a second */
	uint32_t id, sms, clock_khz, major, minor, l2_bytes;
	uint32_t warps_per_sm, registers_per_sm, shared_per_sm, shared_per_block;
	uint32_t threads_per_block, blocks_per_sm, registers_per_block, warp;
};
struct ring_context {
	struct ring_record head;
	uint32_t id, device, null_stream, reserved;
};
struct ring_field { /* of an NVTX payload */
	uint32_t type, offset, name, reserved;
};
struct ring_schema {
	struct ring_record head;
	uint64_t id;
	uint32_t fields, domain; /* domain: string's id, as a range's. Then so many struct ring_field */
};
struct ring_thread {
	struct ring_record head; /* name: as NVTX was told */
	uint32_t thread, reserved;
};
struct ring_kernel {
	struct ring_record head;
	uint64_t start, end;
	uint32_t device, context, stream, correlation;
	uint64_t graph_node;
	uint32_t graph, local_bytes; /* of a thread */
	uint32_t grid[3], block[3];
	uint16_t registers, cluster[3];
	uint32_t shared_static, shared_dynamic;
};
struct ring_copy {
	struct ring_record head;
	uint64_t start, end, bytes;
	uint32_t device, context, stream, correlation;
	uint64_t graph_node;
	uint32_t graph, to_device;     /* to_device: of a copy between devices, else `device` */
	uint8_t kind, from, to, flags; /* CUpti_ActivityMemcpyKind, ..MemoryKind twice, 1: asynchronous */
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
	struct ring_record head; /* name: the function's */
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
/* NVTX, on CLOCK_MONOTONIC. A push is ended by the same thread's and domain's pop, a start by the end with
 * its id. */
enum ring_range_kind { RING_PUSH, RING_POP, RING_START, RING_END, RING_MARK };
struct ring_range {
	struct ring_record head;
	uint64_t at_ns, id;	 /* id: of start and end */
	uint32_t thread, domain; /* domain: string's id; 0: the default one */
	uint32_t category, color;
	uint8_t kind, payload_kind; /* nvtxPayloadType_t; RING_PAYLOAD_SCHEMA */
	uint16_t payload_size;
	uint32_t reserved; /* then the payload, its schema's id first where it has one */
};
enum { RING_PAYLOAD_SCHEMA = 9 };
/* What NCCL tells as one of its ranges ends: of a communicator that was made. It is kept, since that is long
 * before what is done with it. */
struct ring_comm {
	struct ring_record head;
	uint64_t schema;
	uint32_t domain, size; /* size: of the payload, which follows */
};
/* Counters of one kernel's run, by their places in counter/metrics.h, in its units. */
enum { RING_COUNTERS = 16 };
struct ring_counted {
	struct ring_record head;		     /* name: the kernel's */
	uint64_t at_ns;				     /* CLOCK_MONOTONIC, when it was through */
	uint32_t device, correlation, has, reserved; /* has: bit a counter */
	double value[RING_COUNTERS];
};
static inline int ring_is_kept(unsigned type)
{
	return type < RING_KERNEL || type == RING_COMM;
}

_Static_assert(sizeof(struct ring_header) % 8 == 0 && sizeof(struct ring_segment) % 8 == 0, "aligned table");
_Static_assert(sizeof(struct ring_kernel) == 96 && sizeof(struct ring_api) == 40, "no holes in what is many");
_Static_assert(sizeof(struct ring_copy) == 72 && sizeof(struct ring_set) == 64, "no holes in what is many");

static inline uint64_t ring_table_at(void)
{
	return sizeof(struct ring_header);
}
static inline uint64_t ring_segments_at(uint32_t segments_max)
{
	return (sizeof(struct ring_header) + segments_max * sizeof(struct ring_segment) + 4095) & ~4095ull;
}
#endif
