/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of libpairs.so share. */
#ifndef TESTS_GPU_PAIRS_INTERNAL_H
#define TESTS_GPU_PAIRS_INTERNAL_H
#include "gpu/device/gpu.h"
#include "gpu/device/internal.h"
#include "pairs.h"

struct pairs {
	struct gpu_device *device;
	struct matmul *matmul; /* NULL until pairs_matmul */
	struct matmul_plan *plan;
	struct gpu_stamps *stamps[PAIRS_SLOTS]; /* made when first asked for */
};

/* 0, or 1 with the error's words in `text`. */
int pairs_told(enum status st, const struct error *err, char *text, size_t size);
/* PyTorch's stream as one of ours. */
struct gpu_stream pairs_stream(const struct pairs *p, void *raw);
#endif
