/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `link`: copies between host memory and device memory, over PCIe or NVLink-C2C.
 *
 *   h2d, d2h   `size` bytes in one direction; link_bytes counts them once
 *   both       both directions at once on two streams, `size` bytes each; link_bytes counts both
 *   latency    LINK_HOPS dependent reads of host memory by one thread of a kernel; each read is one message
 *              and one round trip
 *
 * Engine `driver` uses the copy engines. Engine `own` runs a kernel that reads or writes mapped host memory.
 * The sampler reads the PCIe generation and width during the run, because an idle link lowers both.
 */
#ifndef PROBE_LINK_LINK_H
#define PROBE_LINK_LINK_H
#include "gpu/device/gpu.h"
#include "run/probe.h"

enum link_direction { LINK_H2D, LINK_D2H, LINK_BOTH, LINK_LATENCY };
enum link_memory { LINK_PINNED, LINK_PAGEABLE };
enum { LINK_HOPS = 1000, LINK_PLACES = 1024, LINK_STEP = 389 };

struct link_opts {
	uint64_t size;
	uint32_t direction, memory;
	const char *numa; /* "auto": the node of the allocating thread; a number: that node */
};

/* name, unit, kind, better, help */
#define LINK_FIELDS(X)                                                                                       \
	X(copy_bytes, "B", U64, 0, "bytes of one copy")                                                      \
	X(host_node, "", U64, 0, "NUMA node of the host memory, if option numa sets it")                     \
	X(cpu_node, "", U64, 0, "NUMA node of the CPU that allocated the host memory, if numa=auto")         \
	X(way, "", TEXT, 0, "what copies: the copy engine, or the kernel with its launch shape")
#define X(name, ...) LINK_FIELD_##name,
enum link_field { LINK_FIELDS(X) LINK_FIELD_COUNT };
#undef X
extern const struct field link_fields[];

/* State of one engine. On host and device, word i of transfer 0 or 1 is word i of generator stream
 * LINK_STREAM or LINK_STREAM + 1, with the case's seed. */
enum { LINK_STREAM = 40, LINK_GRAIN = 4096 /* blocks of 16 bytes */ };
struct link_state {
	struct link_opts opts;
	struct gpu_device *device;
	struct gpu_stream *stream[2];
	struct gpu_event *fork, *join; /* direction both: the second stream starts and ends with the first */
	uint64_t seed, bytes;
	uint32_t *host[2]; /* h2d reads [0], d2h writes [1] */
	gpu_ptr mapped[2];
	bool registered[2];
	gpu_ptr data[2], expected, record, at; /* h2d writes data[0], d2h reads data[1] */
	struct gpu_kernel *kernel;
	unsigned blocks;
	uint64_t iterations;
	bool ready;
	struct cpu_pool *pool; /* fills and checks host memory; idle during copies */
};

/* Allocates host buffer `which`: pinned by the driver; or, on a given node, mapped by this program and then
 * registered with the driver. Owner: caller, link_host_free. */
enum status link_host_alloc(struct link_state *s, unsigned which, struct error *err);
void link_host_free(struct link_state *s, unsigned which);
/* *node is -1 for "auto". BAD_INPUT for anything else that is not a node's number. */
enum status link_numa_node(const struct link_opts *o, int *node, struct error *err);

enum status link_verify(void *state, struct wrong *wrong, struct error *err);
enum status link_enqueue(struct link_state *s, struct error *err);

extern const struct engine link_driver_engine, link_own_engine;
#endif
