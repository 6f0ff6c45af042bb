/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the multiply-add loops of kernel/mma/args.h on one GPU, for probes `peak` (unit mma) and `sm`: launch,
 * records and expected sums. */
#ifndef PROBE_SHARED_MMA_H
#define PROBE_SHARED_MMA_H
#include <stdbool.h>
#include <stdint.h>
#include "gpu/device/gpu.h"
#include "kernel/mma/args.h"
#include "run/probe.h"

/* name, text, bytes of an operand element; in the order of probe gemm's types. */
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

enum { MMA_RECORDS = 1024 }; /* records for SM numbers below this; no GPU has more SMs */

/* Launch layout of a type's loop, from kernel/mma/args.h. */
struct mma_layout {
	bool sm90; /* true: the kernel is in file mma_sm90 */
	unsigned threads;
	double step_flop; /* FLOP of one step on one SM */
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
	uint64_t launched; /* number of blocks that must have left a record since mma_clear */
	gpu_ptr records, expected;
};

/* Rows, columns and depth of one instruction, and the number of independent tiles or chains. */
struct mma_tile {
	unsigned rows, columns, k, tiles;
};

struct mma_tile mma_tile_of(enum mma_type type, bool sm90);
/* UNSUPPORTED if this program has no loop that saturates the type's units on this compute capability.
 * Pure. */
enum status mma_supports(enum mma_type type, unsigned cc, struct error *err);
/* Sum that thread `thread` of a block must compute (kernel/mma/args.h), by plain integer arithmetic. */
int64_t mma_expect(enum mma_type type, bool sm90, unsigned thread);

/* Loads the kernel and allocates the records. `flop` is the FLOP of one launch on one SM, rounded down to
 * whole groups of steps. Owner: caller, mma_release. */
enum status mma_init(struct mma *x, const struct bench *b, enum mma_type type, double flop,
		     struct error *err);
void mma_release(struct mma *x); /* accepts a zeroed struct */
enum status mma_clear(struct mma *x, struct error *err);
/* Launches one block on every SM, or only on SM `only_sm` if that is >= 0. May be captured into a graph. */
enum status mma_launch(struct mma *x, int only_sm, struct error *err);
/* Waits for the stream, then copies all records to out[MMA_RECORDS]. */
enum status mma_read(struct mma *x, struct mma_record *out, struct error *err);
/* Counts into *w the SMs with a wrong sum, out of the SMs that ran (w->checked). w->place names the first
 * wrong SM. */
void mma_judge(const struct mma_record *records, struct wrong *w);
/* FLOP of one launch on one SM. */
double mma_flop(const struct mma *x);
#endif
