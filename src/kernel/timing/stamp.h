/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_TIMING_STAMP_H
#define KERNEL_TIMING_STAMP_H
#include "kernel/args.h"

struct stamp_record {	   /* one per SM, indexed by %smid */
	uint64_t cycles;   /* %clock64 */
	uint64_t ns;	   /* %globaltimer */
	uint32_t sequence; /* number of the launch that wrote it; 0: never written */
	uint32_t reserved;
};
static_assert(sizeof(struct stamp_record) == 24, "layout shared with nvcc");

struct stamp_args {
	DEVICE_PTR(struct stamp_record) record; /* (slots) */
	uint32_t slots;
	uint32_t sequence; /* must grow from launch to launch */
};
static_assert(sizeof(struct stamp_args) == 16, "layout shared with nvcc");
#endif
