/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KERNEL_MEMORY_PATTERN_TEST_H
#define KERNEL_MEMORY_PATTERN_TEST_H
#include "kernel/args.h"

/* The patterns in the order of the test: name, purpose */
#define HBM_PATTERNS(X)                                                                                      \
	X(ADDRESS, "address", "each word holds its own address: wrong lines decoded")                        \
	X(INVERSE, "inverse", "and its complement: every bit both ways")                                     \
	X(MOVING, "moving", "one bit set, moving with the address: coupled lines")                           \
	X(RANDOM, "random", "the generator's words: many transitions")
#define X(name, text, why) HBM_##name,
enum hbm_pattern { HBM_PATTERNS(X) HBM_PATTERN_COUNT };
#undef X

#define HBM_KEPT 16 /* the number of wrong words that are recorded one by one */
struct hbm_wrong {
	uint64_t address, expected, found;
};

struct hbm_record {			 /* the host sets first to UINT64_MAX, all else to 0 */
	uint64_t count;			 /* wrong words */
	uint64_t first;			 /* lowest wrong address */
	uint64_t checked;		 /* words read */
	uint64_t bits;			 /* the OR of all wrong bits */
	struct hbm_wrong kept[HBM_KEPT]; /* the first wrong words that were found, unordered */
};
static_assert(sizeof(struct hbm_record) == 32 + HBM_KEPT * 24, "layout shared with nvcc");

struct hbm_args {
	DEVICE_PTR(uint64_t) words;
	DEVICE_PTR(struct hbm_record) record;
	uint64_t count; /* 64-bit words, a multiple of 2 */
	uint64_t seed;	/* seed of the random pattern; shifts the moving bit */
	uint32_t pattern, reserved;
};
static_assert(sizeof(struct hbm_args) == 40, "layout shared with nvcc");
#endif
