/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process of a training run takes: the arena, and what stands beside it (docs/explanation/methods,
 * "Memory of a training run"). Planned is the most that a configuration can take: full micro-batches, every
 * token a target.
 */
#ifndef TRAIN_MEMORY_PROCESS_MEMORY_H
#define TRAIN_MEMORY_PROCESS_MEMORY_H
#include "train/step/stepper.h"

/* name, what it is */
/* clang-format off */
#define MEMORY_OUTSIDE_ARENA(X)                                                    \
	X(ROWS, "rows", "ids of the rows, as many bytes as their files")    \
	X(BATCHES, "batches", "micro-batches at hand")                      \
	X(TOKENIZER, "tokenizer", "its vocabulary")                         \
	X(PROGRAM, "program", "code, libraries, OpenBLAS's panels")         \
	X(HOST_PARAMS, "copies", "of what is trained, for checkpoints of a GPU") \
	X(PINNED, "pinned", "pieces and batches on their way to a GPU")       \
	X(DRIVER, "driver", "of a GPU, on the host: context and libraries")  \
	X(LIBRARIES, "libraries", "on the GPU: its context, code, cuBLASLt and cuDNN")
/* clang-format on */
#define X(name, ...) MEMORY_##name,
enum memory_beside { MEMORY_OUTSIDE_ARENA(X) MEMORY_OUTSIDE_ARENA_COUNT };
#undef X
const char *memory_beside_name(enum memory_beside what);
const char *memory_beside_text(enum memory_beside what);

struct memory_plan {
	uint64_t arena[MEM_KINDS]; /* at its peak */
	uint64_t beside[MEMORY_OUTSIDE_ARENA_COUNT];
	uint64_t arena_bytes, bytes; /* the arena; all that is of the device: of a CPU the process */
	bool gpu;		     /* the arena and LIBRARIES are the GPU's, the rest the host's */
	uint64_t host_bytes;	     /* the process on the host */
};
/* `planned`: by stepper_plan. Files of rows are looked at, not read. */
void memory_plan_of(struct memory_plan *m, const struct stepper *planned, const struct config *c);
/* The same from the configuration. */
enum status memory_plan(struct memory_plan *m, const struct shape *shape, const struct config *c,
			unsigned threads, struct error *err);

/* This process's highest resident size so far; 0: the system does not say. */
uint64_t memory_peak(void);
/* What the GPU has in use now, of all processes; 0: the driver does not say. */
uint64_t memory_of_gpu(const struct backend *back);
#endif
