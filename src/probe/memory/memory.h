/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * Probe `memory`: moving data through memory or a cache. Streams a, b, c of `size` bytes each; element i of an input is
 * a small integer, a function of (seed, stream, i), so every sum and product below is exact in FP32 and FP64 and any
 * element can be recomputed alone. Elements are FP64 on a CPU, FP32 on a GPU.
 *
 *   read    sum of a                    1 x size read
 *   write   a = 3 (MEMORY_FACTOR)       1 x size written
 *   set     the library's own fill      1 x size written (memset, cuMemset)
 *   copy    c = a                       2 x size
 *   scale   b = 3 c                     2 x size
 *   add     c = a + b                   3 x size
 *   triad   a = b + 3 c                 3 x size
 *   dot     sum of a b                  2 x size read
 *   gather  sum of a[x[i]]              size + 4 bytes an index read; x is a permutation
 *   chase   p = *p, MEMORY_HOPS times   latency: time over hops; one 64-byte node a line (128 on a GPU)
 *
 * Bytes are the algorithm's (STREAM's convention): a write-allocate of the cache is not counted.
 */
/* clang-format on */
#ifndef PROBE_MEMORY_MEMORY_H
#define PROBE_MEMORY_MEMORY_H
#include <stdint.h>
#include "run/probe.h"

#define MEMORY_OPS(X)                                                                                        \
	X(READ, "read")                                                                                      \
	X(WRITE, "write")                                                                                    \
	X(COPY, "copy")                                                                                      \
	X(SCALE, "scale")                                                                                    \
	X(ADD, "add")                                                                                        \
	X(TRIAD, "triad")                                                                                    \
	X(DOT, "dot")                                                                                        \
	X(GATHER, "gather")                                                                                  \
	X(CHASE, "chase")                                                                                    \
	X(SET, "set")
#define X(name, text) MEMORY_##name,
enum memory_op { MEMORY_OPS(X) MEMORY_OP_COUNT };
#undef X
enum memory_search { MEMORY_SEARCH_FIRST, MEMORY_SEARCH_TOP };
enum memory_store { MEMORY_STORE_AUTO, MEMORY_STORE_REGULAR, MEMORY_STORE_NONTEMPORAL, MEMORY_STORE_MEMCPY };

struct memory_opts {
	uint64_t size; /* bytes of each stream; 0: chosen from the machine, memory_size */
	uint32_t op, store, threads, search;
};

enum memory_stream { MEMORY_STREAM_A = 1, MEMORY_STREAM_B, MEMORY_STREAM_C };
enum { MEMORY_FACTOR = 3, MEMORY_SET_BYTE = 0x3f };
enum { MEMORY_HOPS = 16381 }; /* prime: no walk ends where it began, whatever the number of nodes */
/* Bytes of a chase's node: a line of the CPU (elements of 8 bytes) or of the GPU (of 4). */
#define MEMORY_NODE_BYTES(element_bytes) ((element_bytes) == sizeof(float) ? 128u : 64u)

/* -128 .. 127: byte i % 4 of word i / 4 of the stream. */
int memory_element(uint64_t seed, enum memory_stream stream, uint64_t i);

/* Bytes of each stream that these options mean on this machine, a multiple of 4096 and at least that (curve
 * points below 4096: multiples of 64); work() and every engine use this one rule. METHODS "Memory sizes". */
uint64_t memory_size(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* All streams together are 4 x the caches of a CPU, 8 x the L2 of a GPU, or more: the limit is memory. */
bool memory_beyond_caches(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* CPU: the stores that these options mean: past the cache for streams judged as memory, since then no line is
 * read only to be overwritten; never MEMORY_STORE_AUTO. */
enum memory_store memory_store(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* Times that one iteration goes over its streams: on a CPU as often as moves 8 MiB, so that a small size is
 * not timed by its start; 1 on a GPU. work() counts them all. */
unsigned memory_passes(const struct target *t, enum memory_op op, uint64_t size);
/* memory_element of [first, first + count), 16 a Philox call. */
void memory_elements(uint64_t seed, enum memory_stream stream, uint64_t first, size_t count, int8_t *out);
/* Streams the operation has in memory: 1 read write set chase, 2 copy scale dot gather, 3 add triad. */
unsigned memory_streams(enum memory_op op);
unsigned memory_element_bytes(const struct target *t);
const char *memory_op_name(enum memory_op op);

/* What verification asks of an engine. Every call waits until the device is done. */
struct memory_access {
	/* Overwrites what the operation writes (array or sum) by what no right answer is; restores the
	 * inputs. */
	enum status (*poison)(void *state, struct error *err);
	/* One iteration, as enqueue does it. */
	enum status (*run)(void *state, struct error *err);
	/* Elements [first, first + count) of the array that the operation writes, as doubles. */
	enum status (*fetch)(void *state, uint64_t first, size_t count, double *out, struct error *err);
	/* read, dot, gather: the sum that the last iteration left. chase: the node it ended on (its place in
	 * the order of the walk, which began the first iteration after poison at 0 and goes on where it
	 * ended). */
	enum status (*sum)(void *state, double *out, struct error *err);
	/* Optional: compares every element on the device by code of its own and fills wrong. */
	enum status (*check)(void *state, struct wrong *wrong, struct error *err);
};

/* First member of every engine's state: what verify uses. */
struct memory {
	struct memory_opts opts;
	uint64_t seed, size, count; /* size: bytes of a stream; count: its elements */
	unsigned element_bytes;
	const struct memory_access *access;
	struct cpu_pool *pool; /* lent: threads that verification computes on, which then call fetch, each for
				  a range of its own; NULL: the caller's */
	uint64_t iterations;   /* since the last poison: enqueue counts */
	bool ready;	       /* the first verify was done */
};
void memory_begin(struct memory *s, const struct bench *b, const struct memory_opts *o,
		  const struct memory_access *access);

/*
 * The probe's verify: first what timing left (if any), then a poisoned run of its own; leaves the output
 * poisoned, so that what the timed phases leave is theirs. Every element of an array is compared.
 */
enum status memory_verify(void *state, struct wrong *wrong, struct error *err);
/* name, unit, kind, better, help: the probe's own fields. Engines fill what they know. */
#define MEMORY_FIELDS(X)                                                                                     \
	X(stream_bytes, "B", U64, 0, "bytes of each stream")                                                 \
	X(store, "", TEXT, 0,                                                                                \
	  "how results are stored: regular, nontemporal (past the cache) or memcpy's choice")                \
	X(instruction_set, "", TEXT, 0, "instruction set of the loop")                                       \
	X(pages, "", TEXT, 0, "pages of the streams: huge where the kernel gave them")                       \
	X(nodes, "", U64, 0, "chase: nodes walked, one a cache line")                                        \
	X(kernel, "", TEXT, 0, "GPU: the kernel and its shape")
#define X(name, ...) MEMORY_FIELD_##name,
enum memory_field { MEMORY_FIELDS(X) MEMORY_FIELD_COUNT };
#undef X
extern const struct field memory_fields[];

extern const struct engine memory_cpu_engine, memory_gpu_engine, memory_driver_engine;
#endif
