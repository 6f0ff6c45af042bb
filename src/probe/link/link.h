/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `link`: host memory to device memory and back, over PCIe (or NVLink-C2C).
 *
 *   h2d, d2h   `size` bytes one way; link_bytes counts them once
 *   both       the two at once on two streams, `size` each; link_bytes counts both
 *   latency    LINK_HOPS dependent reads of host memory by one thread of a kernel: a message a read, one
 * round trip each
 *
 * Engines: `driver` (the copy engines), `own` (a kernel that reads or writes mapped host memory). Generation
 * and width are read by the sampler while it runs, since an idle link trains down.
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
	const char *numa; /* "auto": where the process allocates; a number: memory of that node */
};

/* name, unit, kind, better, help */
#define LINK_FIELDS(X)                                                                                       \
	X(copy_bytes, "B", U64, 0, "bytes of one copy")                                                      \
	X(host_node, "", U64, 0, "NUMA node of the host memory, where it was asked for")                     \
	X(cpu_node, "", U64, 0,                                                                              \
	  "NUMA node of the CPU that allocated the host memory, where none was asked for")                   \
	X(way, "", TEXT, 0, "who copies: the copy engine or the kernel and its shape")
#define X(name, ...) LINK_FIELD_##name,
enum link_field { LINK_FIELDS(X) LINK_FIELD_COUNT };
#undef X
extern const struct field link_fields[];

/* One engine's state. Stream words: device and host hold word i of LINK_STREAM + way under the case's seed.
 */
enum { LINK_STREAM = 40, LINK_GRAIN = 4096 /* blocks of 16 bytes */ };
struct link_state {
	struct link_opts opts;
	struct gpu_device *device;
	struct gpu_stream *stream[2];
	struct gpu_event *fork, *join; /* both: the second stream begins and ends with the first */
	uint64_t seed, bytes;
	uint32_t *host[2]; /* [0] is read by h2d, [1] is written by d2h */
	gpu_ptr mapped[2];
	bool registered[2];
	gpu_ptr data[2], expected, record, at; /* data[0] written by h2d, data[1] read by d2h */
	struct gpu_kernel *kernel;
	unsigned blocks;
	uint64_t iterations;
	bool ready;
	struct cpu_pool *pool; /* fills and checks host memory; asleep while copies run */
};

/* Host memory: pinned by the driver, or our own, placed on a node and pinned by registering. */
enum status link_host_alloc(struct link_state *s, unsigned which, struct error *err);
void link_host_free(struct link_state *s, unsigned which);
enum status link_numa_node(const struct link_opts *o, int *node, struct error *err); /* -1: auto */

enum status link_verify(void *state, struct wrong *wrong, struct error *err);
enum status link_enqueue(struct link_state *s, struct error *err);

extern const struct engine link_driver_engine, link_own_engine;
#endif
