/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our matrix plans as a shared library, for tests/oracles/peer_gemm.py: PyTorch and we run in one process, on
 * one context, one stream, the same operands and the same cuBLASLt file, so that the plan is all that
 * differs.
 */
#ifndef TESTS_GPU_PAIRS_H
#define TESTS_GPU_PAIRS_H
#include <stddef.h>
#include <stdint.h>

struct pairs;
struct pairs_shape {
	const char *a, *b, *d; /* "bf16" .. as gpu/matmul.h names types */
	const char *compute;   /* "fp64", "fp32", "tf32", "int32" */
	uint64_t m, n, k;
	int32_t transpose_a, transpose_b, fast_accumulate, scaled;
	uint32_t candidates; /* heuristics asked for */
};

/* On the device whose primary context PyTorch uses. NULL: `text` (of `size`) says why. Owner: caller,
 * pairs_close. */
struct pairs *pairs_open(const char *lib_path, const char *pci, char *text, size_t size);
void pairs_close(struct pairs *p);
int pairs_version(const struct pairs *p);
/* Number of candidates, or 0 with `text`. */
unsigned pairs_plan(struct pairs *p, const struct pairs_shape *s, char *text, size_t size);
/* The candidate's name into `text`; 0 on success. */
int pairs_select(struct pairs *p, unsigned candidate, char *text, size_t size);
/* 0 on success; stream: a CUstream. Device addresses. */
int pairs_run(struct pairs *p, uint64_t a, uint64_t b, uint64_t d, uint64_t scale_a, uint64_t scale_b,
	      void *stream, char *text, size_t size);

/* The held clock between stamp 0 and stamp 1 of a slot, both on `stream`; read after the stream was waited
 * for. */
enum { PAIRS_SLOTS = 16 };
int pairs_stamp(struct pairs *p, unsigned slot, unsigned which, void *stream, char *text, size_t size);
int pairs_clock(struct pairs *p, unsigned slot, double *hz, char *text, size_t size);
/* Host nanoseconds that each of `count` launches of an empty kernel took to enqueue. */
int pairs_launches(struct pairs *p, void *stream, unsigned count, double *ns, char *text, size_t size);
#endif
