/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probe `stress`: loads matrix units and memory, and checks every result on the device that made it.
 *
 * Tensor part: C = A G^T, n x n x n, of dense random integers that are small enough to make every sum exact.
 * A is one matrix. G alternates between two matrices, so a GEMM that was not computed leaves the result of
 * the other, which is wrong. Row and column sums of each C under two weights are compared with A (G^T w) and
 * G (A^T w), which the host computes by itself from the generator (docs/explanation/methods/cpu-probes.md,
 * "Integer pass").
 *
 * Memory part: an iteration checks that one slice of the buffer still has the words of the previous pass,
 * then writes the next pattern. Address and value of a pattern change in every bit.
 */
#ifndef PROBE_STRESS_STRESS_H
#define PROBE_STRESS_STRESS_H
#include <stdint.h>
#include "run/probe.h"

enum stress_unit { STRESS_ALL, STRESS_TENSOR, STRESS_MEMORY };

/* name, text, bits of an integer operand: exact in the type, and sums of 2^14 products are exact in its
 * accumulator */
#define STRESS_TYPES(X)                                                                                      \
	X(BF16, "bf16", 8)                                                                                   \
	X(FP16, "fp16", 8)                                                                                   \
	X(TF32, "tf32", 8)                                                                                   \
	X(FP32, "fp32", 8)                                                                                   \
	X(FP64, "fp64", 8)                                                                                   \
	X(E4M3, "e4m3", 4)                                                                                   \
	X(INT8, "int8", 8)
#define X(name, ...) STRESS_##name,
enum stress_type { STRESS_TYPES(X) STRESS_TYPE_COUNT };
#undef X
enum { STRESS_STREAM_A = 201, STRESS_STREAM_G, STRESS_STREAM_G2, STRESS_SETS = 2 };

struct stress_opts {
	uint32_t unit, type, n, threads;
	uint64_t bytes;
};

/* The values that n=0 and bytes=0 mean; and the size in bytes of the slice that one iteration walks. */
uint32_t stress_n(const struct target *t, const struct stress_opts *o);
uint64_t stress_bytes(const struct target *t, const struct stress_opts *o);
uint64_t stress_slice(const struct target *t, const struct stress_opts *o);
unsigned stress_bits(enum stress_type type);
const char *stress_type_name(enum stress_type type);
bool stress_has(const struct stress_opts *o, enum stress_unit unit);

/* Expected sums of C, (n) each, for both weights. Owner: caller, stress_sums_free. */
struct stress_sums {
	int64_t *cw[2], *wc[2];
};
enum status stress_expect(struct stress_sums *out, uint64_t seed, unsigned set, unsigned bits, uint32_t n,
			  struct error *err);
void stress_sums_free(struct stress_sums *s);
/* Element i of A or G in storage order. */
int stress_element(uint64_t seed, uint32_t stream, unsigned bits, uint64_t i);
/* Word i of the memory after `pass` passes. */
uint64_t stress_pattern(uint64_t i, uint64_t pass);

/* Findings since prepare. first_*: lowest wrong index, UINT64_MAX: none. */
struct stress_found {
	uint64_t products, passes;   /* checked GEMMs, checked slices */
	uint64_t rows, columns, nan; /* wrong rows and columns of C; elements that are not integers */
	uint64_t first_row, first_column;
	uint64_t words, first_word; /* wrong words of memory */
};

/* First member of every engine's state. */
struct stress {
	struct stress_opts opts;
	uint32_t n;
	uint64_t iterations;
	/* Waits for all enqueued work, checks results that are not yet checked, and returns all findings. */
	enum status (*collect)(void *state, struct stress_found *out, struct error *err);
	enum status (*one)(void *state, struct error *err); /* runs one iteration and checks it */
};

extern const struct engine stress_gpu_engine, stress_cpu_engine;
#endif
