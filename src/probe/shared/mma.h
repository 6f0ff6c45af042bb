/* SPDX-License-Identifier: Apache-2.0 */
/* The multiply-add loops of kernel/mma/args.h on one GPU, for probes `peak` (unit mma) and `sm`: launch,
 * records, answers. */
#ifndef PROBE_SHARED_MMA_H
#define PROBE_SHARED_MMA_H
#include <stdbool.h>
#include <stdint.h>
#include "gpu/device/gpu.h"
#include "kernel/mma/args.h"
#include "run/probe.h"

/* name, text, bytes of an operand element: the order of probe gemm's types. */
#define MMA_TYPES(X)                                                                                         \
	X(FP64, "fp64", 8)                                                                                   \
	X(FP32, "fp32", 4)                                                                                   \
	X(TF32, "tf32", 4)                                                                                   \
	X(FP16, "fp16", 2)                                                                                   \
	X(BF16, "bf16", 2)                                                                                   \
	X(E4M3, "e4m3", 1)                                                                                   \
	X(E5M2, "e5m2", 1)                                                                                   \
	X(INT8, "int8", 1)
#define X(name, ...) MMA_##name,
enum mma_type { MMA_TYPES(X) MMA_TYPE_COUNT };
#undef X

enum { MMA_RECORDS = 1024 }; /* SM numbers below this are kept; above what any GPU has */

/* How a type's loop is laid out, from kernel/mma/args.h. */
struct mma_layout {
	bool sm90; /* file mma_sm90 */
	unsigned threads;
	double step_flop; /* of one step on one SM */
	const char *instruction;
};

struct mma {
	struct gpu_device *device;
	struct gpu_stream *stream;
	struct gpu_kernel *kernel;
	struct mma_layout layout;
	enum mma_type type;
	uint32_t steps;
	unsigned blocks, shared_bytes;
	uint64_t launched; /* blocks that must have left a record since mma_clear */
	gpu_ptr records, expected;
};

/* Rows, columns, depth of one instruction; tiles or chains beside one another. */
struct mma_tile {
	unsigned rows, columns, k, tiles;
};

struct mma_tile mma_tile_of(enum mma_type type, bool sm90);
/* UNSUPPORTED where this program has no loop that fills the type's units there. Pure. */
enum status mma_supports(enum mma_type type, unsigned cc, struct error *err);
/* What thread `thread` of a block must find (kernel/mma/args.h): by plain integer sums. */
int64_t mma_expect(enum mma_type type, bool sm90, unsigned thread);

/* flop: of one launch on one SM, rounded to whole groups of steps. Owner: caller, mma_release. */
enum status mma_init(struct mma *x, const struct bench *b, enum mma_type type, double flop,
		     struct error *err);
void mma_release(struct mma *x); /* accepts a zeroed one */
enum status mma_clear(struct mma *x, struct error *err);
/* One block on every SM, or (only_sm >= 0) on that SM by itself; may be captured. */
enum status mma_launch(struct mma *x, int only_sm, struct error *err);
/* Waits, then reads all records: (MMA_RECORDS). */
enum status mma_read(struct mma *x, struct mma_record *out, struct error *err);
/* SMs that left a wrong sum into *w (checked: SMs that ran); the first is placed by its SM. */
void mma_judge(const struct mma_record *records, struct wrong *w);
/* FLOP of one launch on one SM. */
double mma_flop(const struct mma *x);
#endif
