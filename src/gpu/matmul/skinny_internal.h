/* SPDX-License-Identifier: Apache-2.0 */
/* The GEMMs of few rows with and without adapters share these on the host. */
#ifndef GPU_MATMUL_SKINNY_INTERNAL_H
#define GPU_MATMUL_SKINNY_INTERNAL_H
#include "gpu/matmul/skinny.h"
#include "kernel/matmul/skinny.h"

enum skinny_kind { SKINNY_KIND_BF16, SKINNY_KIND_MIXED, SKINNY_KIND_E4M3, SKINNY_KIND_COUNT };
enum { SKINNY_SIZE_COUNT = 7, SKINNY_RESIDENTS = 256 };

/* Clusters of a shape that fit on the device; asked for once. */
struct resident {
	struct gpu_kernel *kernel;
	unsigned cluster, shared_bytes, count;
};

struct skinny {
	struct gpu_device *device;
	/* Without and with adapters. */
	struct gpu_kernel *kernel[2][SKINNY_KIND_COUNT][SKINNY_SIZE_COUNT], *quantize;
	struct resident resident[SKINNY_RESIDENTS];
	unsigned residents;
	unsigned sms, shared_most;
	gpu_ptr state; /* counts of the kernels with adapters; 0: not needed yet */
};

enum skinny_kind skinny_kind_of(const struct skinny_problem *p);

struct skinny_launch {
	struct gpu_kernel *kernel;
	struct gpu_cluster_launch launch; /* without blocks */
	unsigned size;			  /* rows of the entry */
	uint32_t resident;		  /* clusters that run at once */
};
/* Fills the arguments of the problem without adapters. `adapters`: the kernel is the one with adapters. */
enum status skinny_prepare(struct skinny *s, const struct skinny_problem *p, const struct skinny_choice *c,
			   bool adapters, struct skinny_args *a, struct skinny_launch *out,
			   struct error *err);
/* At most as many clusters as run at once. */
enum status skinny_launch(const struct skinny_launch *l, uint32_t units, bool overlap, const void *args,
			  struct gpu_stream *stream, struct error *err);
#endif
