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
	uint64_t size; /* bytes of each stream; 0: memory_size derives it from the machine */
	uint32_t op, store, threads, search;
};

enum memory_stream { MEMORY_STREAM_A = 1, MEMORY_STREAM_B, MEMORY_STREAM_C };
enum { MEMORY_FACTOR = 3, MEMORY_SET_BYTE = 0x3f };
/* prime, so that a walk never ends at its start, whatever the number of nodes */
enum { MEMORY_HOPS = 16381 };
/* Bytes of a chase node: a cache line of the CPU (elements of 8 bytes) or of the GPU (elements of 4
 * bytes). */
#define MEMORY_NODE_BYTES(element_bytes) ((element_bytes) == sizeof(float) ? 128u : 64u)

/* Element i, -128 .. 127: byte i % 4 of word i / 4 of the stream. */
int memory_element(uint64_t seed, enum memory_stream stream, uint64_t i);

/* Bytes of each stream for these options on this machine: a multiple of 4096 and at least 4096 (points of a
 * curve below 4096: a multiple of 64). work() and every engine use this rule. See
 * docs/explanation/methods/cpu-probes.md, "Memory sizes". */
uint64_t memory_size(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* True if all streams together are at least 4 x the caches of a CPU or 8 x the L2 of a GPU, so that memory is
 * the limit. */
bool memory_beyond_caches(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* CPU: the kind of stores for these options; never MEMORY_STORE_AUTO. Streams that are judged as memory use
 * stores past the cache, because these do not read a line before overwriting it. */
enum memory_store memory_store(const struct machine *m, const struct target *t, const struct memory_opts *o);
/* Number of passes over the streams in one iteration. On a CPU an iteration moves at least 8 MiB, so that the
 * overhead of starting it does not distort small sizes; 1 on a GPU. work() counts all passes. */
unsigned memory_passes(const struct target *t, enum memory_op op, uint64_t size);
/* memory_element of [first, first + count); one Philox call gives 16 elements. */
void memory_elements(uint64_t seed, enum memory_stream stream, uint64_t first, size_t count, int8_t *out);
/* Number of streams of the operation: 1 for read, write, set and chase; 2 for copy, scale, dot and gather; 3
 * for add and triad. */
unsigned memory_streams(enum memory_op op);
unsigned memory_element_bytes(const struct target *t);
const char *memory_op_name(enum memory_op op);

/* Functions that verification needs from an engine. Each waits until the device is done. */
struct memory_access {
	/* Overwrites the output (array or sum) with a value that no correct result has, and restores the
	 * inputs. */
	enum status (*poison)(void *state, struct error *err);
	/* Runs one iteration as enqueue does. */
	enum status (*run)(void *state, struct error *err);
	/* Reads elements [first, first + count) of the output array, as doubles. */
	enum status (*fetch)(void *state, uint64_t first, size_t count, double *out, struct error *err);
	/* read, dot, gather: sum of the last iteration. chase: the node at which the last iteration ended, by
	 * its position in the walk. The first iteration after poison starts at position 0, and each next one
	 * continues there. */
	enum status (*sum)(void *state, double *out, struct error *err);
	/* Optional: compares every element on the device with independent code, and fills *wrong. */
	enum status (*check)(void *state, struct wrong *wrong, struct error *err);
};

/* First member of every engine's state; verify uses it. */
struct memory {
	struct memory_opts opts;
	uint64_t seed, size, count; /* size: bytes of a stream; count: elements of a stream */
	unsigned element_bytes;
	const struct memory_access *access;
	/* threads for verification, lent; each calls fetch for its own range. NULL: only the calling
	 * thread. */
	struct cpu_pool *pool;
	uint64_t iterations; /* number of iterations since the last poison; enqueue counts */
	bool ready;	     /* verify has run once */
};
void memory_begin(struct memory *s, const struct bench *b, const struct memory_opts *o,
		  const struct memory_access *access);

/*
 * The probe's verify. It checks the output of the timed iterations, if there were any, then poisons the
 * output, runs one iteration and checks that. It leaves the output poisoned, so that the next output comes
 * from the timed phases. Every element of an output array is compared.
 */
enum status memory_verify(void *state, struct wrong *wrong, struct error *err);
/* name, unit, kind, better, help: the probe's own fields. Engines set the fields that apply to them. */
#define MEMORY_FIELDS(X)                                                                                     \
	X(stream_bytes, "B", U64, 0, "bytes of each stream")                                                 \
	X(store, "", TEXT, 0,                                                                                \
	  "kind of stores: regular, nontemporal (past the cache), or memcpy (the C library decides)")        \
	X(instruction_set, "", TEXT, 0, "instruction set of the loop")                                       \
	X(pages, "", TEXT, 0, "pages of the streams, and the share of huge pages")                           \
	X(nodes, "", U64, 0, "chase: number of nodes, one per cache line")                                   \
	X(kernel, "", TEXT, 0, "GPU: the kernel and its launch shape")
#define X(name, ...) MEMORY_FIELD_##name,
enum memory_field { MEMORY_FIELDS(X) MEMORY_FIELD_COUNT };
#undef X
extern const struct field memory_fields[];

extern const struct engine memory_cpu_engine, memory_gpu_engine, memory_driver_engine;
#endif
