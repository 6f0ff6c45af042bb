/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of a training process: the arena, and everything outside it
 * (docs/explanation/methods/training.md, "Memory of a training run"). The plan is the maximum for a
 * configuration: full micro-batches in which every token is a target.
 */
#ifndef TRAIN_MEMORY_PROCESS_MEMORY_H
#define TRAIN_MEMORY_PROCESS_MEMORY_H
#include "train/step/stepper.h"

/* name, word, description */
/* clang-format off */
#define MEMORY_OUTSIDE_ARENA(X)                                                    \
	X(ROWS, "rows", "token ids of the rows, planned as the size of their files")    \
	X(BATCHES, "batches", "the current and the next micro-batch")                      \
	X(TOKENIZER, "tokenizer", "the tokenizer's vocabulary")                         \
	X(PROGRAM, "program", "code, libraries, OpenBLAS's packed panels")         \
	X(OFFLOADED, "offloaded", "inputs of layers and optimizer states; pinned for a GPU") \
	X(HOST_PARAMS, "copies", "host copies of the trained parameters, for checkpoints") \
	X(PINNED, "pinned", "pinned buffers for transfers to the GPU")       \
	X(DRIVER, "driver", "host memory of the GPU's context and libraries")  \
	X(LIBRARIES, "libraries", "GPU memory of the context, code, cuBLASLt and cuDNN") \
	X(NCCL, "nccl", "buffers of NCCL, and of gradients that are sent in BF16")
/* clang-format on */
#define X(name, ...) MEMORY_##name,
enum memory_outside { MEMORY_OUTSIDE_ARENA(X) MEMORY_OUTSIDE_ARENA_COUNT };
#undef X
const char *memory_outside_name(enum memory_outside what);
const char *memory_outside_text(enum memory_outside what);

struct memory_plan {
	/* Bytes of each kind at the arena's peak. Activations that the gradient's memory holds until it is
	 * written are not in it, but in `shared`. */
	uint64_t arena[MEM_KINDS];
	uint64_t shared;
	uint64_t outside[MEMORY_OUTSIDE_ARENA_COUNT];
	uint64_t arena_bytes, bytes; /* the arena; all of the device's memory (on a CPU: the whole process) */
	/* the arena and LIBRARIES are in GPU memory, everything else on the host */
	bool gpu;
	uint64_t host_bytes; /* memory of the process on the host */
};
/* Fills *m from `planned`, a result of stepper_plan. It looks up the sizes of the row files but does not
 * read them. */
void memory_plan_of(struct memory_plan *m, const struct stepper *planned, const struct config *c);
/* Fills *m from a configuration. */
enum status memory_plan(struct memory_plan *m, const struct shape *shape, const struct config *c,
			unsigned threads, struct error *err);

/* The range that this rank writes to a checkpoint if all ranks write. */
struct host_part;
void host_part_of(struct host_part *part, const struct config *c, const struct params *p);

/* The process's peak resident size so far in bytes; 0: unknown. */
uint64_t memory_peak(void);
/* Bytes of GPU memory in use now by all processes; 0: unknown. */
uint64_t memory_of_gpu(const struct backend *back);
#endif
